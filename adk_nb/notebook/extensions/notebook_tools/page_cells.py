"""Cells as the tools of an agent read, write and change them on the page; where no page answers, in the kernel."""

import difflib
from dataclasses import dataclass, field
from typing import Any

from adk_nb import types
from adk_nb.errors import InputError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.extensions.notebook_tools.kernel_cells import NUMBERS, KernelCells, numbers_in
from adk_nb.notebook.extensions.notebook_tools.pages import CellError, NoPageError, PageCell, Pages
from adk_nb.notebook.extensions.notebook_tools.values import MOST_CHARACTERS, Json, cut, weight
from adk_nb.redaction import hidden
from adk_nb.runtime.context import ToolContext
from adk_nb.sessions.session import Session
from adk_nb.tools.base_tool import BaseTool

_LINE = 80
"""Characters of a cell in a list of many."""
_OUTPUT = 1_000
"""Characters of an output, and of an error."""
_KEPT = 600
"""Characters of a result beside its cells."""
_SESSIONS = 100
"""Sessions whose cells are known at a time."""
SessionKey = tuple[str, str, str]


@dataclass(frozen=True)
class _Known:
    """A cell as an agent knows it."""

    cell: PageCell
    seen: str
    """Of its source; something is cut or hidden in it, unless it is all."""


@dataclass
class _Session:
    """The cells that the agent of one session knows."""

    cells: dict[int, _Known] = field(default_factory=dict[int, _Known])
    """By the number that it was told."""
    written: tuple[str, str] = ("", "")
    """The turn in which it last wrote a cell, and the id of that cell."""


@dataclass(frozen=True)
class Change:
    """Another text for a cell, which a person accepts or not."""

    number: int
    cell: PageCell
    source: str

    @property
    def confirmation(self) -> ToolConfirmation:
        """The request, with the difference."""
        before, after = (hidden(text).splitlines() for text in (self.cell.source, self.source))
        lines = [*difflib.unified_diff(before, after, lineterm="")][2:]
        hint = f"Replace the text of {_label(self.number, self.cell)}?"
        documents = {f"difference of cell {self.number}": "\n".join(lines)}
        return ToolConfirmation(hint=hint, documents=documents, action="Accept")


class PageCells:
    """The cells of the page that shows the notebook; see `KernelCells` for where there is none.

    An agent calls cells by their numbers, from the top. Between its calls a reader may add and remove some, so a number
    means the cell that the agent was told it is; and a cell is changed only if it has the text that the agent has seen.
    """

    def __init__(self, pages: Pages) -> None:
        self._pages = pages
        self._kernel = KernelCells()
        self._sessions: dict[SessionKey, _Session] = {}
        """The one used last comes last."""

    def _session(self, context: ToolContext) -> _Session:
        key = _key_of(context.session)
        self._sessions[key] = known = self._sessions.pop(key, None) or _Session()
        if len(self._sessions) > _SESSIONS:  # an agent of one that is left out has to read its cells again
            del self._sessions[next(iter(self._sessions))]
        return known

    async def read(self, wanted: str, context: ToolContext) -> Json:
        """Cells by number, or those that have all the words; empty: all, one line each if they are too much."""
        try:
            cells = await self._pages.read()
        except NoPageError:
            return await self._kernel.read(wanted)
        except CellError as error:
            return {"error": str(error)}
        if NUMBERS.fullmatch(wanted):
            numbers = set(numbers_in(wanted))
            chosen = [cell for cell in cells if cell.number in numbers]
        else:
            words = wanted.lower().split()
            chosen = [cell for cell in cells if all(word in _searched(cell) for word in words)]
        if not chosen:
            return {"cells": [], "note": f"no cell has {cut(wanted, _LINE)!r}; the notebook has {len(cells)} cells"}
        told = [_whole(cell) for cell in chosen]
        result: Json = {"cells": told}
        if len(chosen) > 1 and weight(result) > MOST_CHARACTERS - _KEPT:
            result = {"cells": _lines(chosen), "note": "these are their beginnings; name numbers to read cells whole"}
            told = [{"source": ""}] * len(chosen)
            if (listed := len(result["cells"])) < len(chosen):
                result["left_out"] = f"{len(chosen) - listed} cells, from cell {chosen[listed].number} on"
        elif weight(result) > MOST_CHARACTERS - _KEPT:
            told = [_whole(chosen[0], MOST_CHARACTERS - 2 * _OUTPUT - _KEPT)]
            result = {"cells": told, "note": "the cell is too long to be shown whole, and cannot be changed by you"}
        known = self._session(context).cells
        for cell, said in zip(chosen, told, strict=True):
            known[cell.number] = _Known(cell, said["source"])
        return result

    async def write(self, source: str, below: int | None, context: ToolContext) -> Json:
        """Add a cell, which is not run. `below`: None: below what it wrote last in this turn, else the running one."""
        session = self._session(context)
        try:
            turn, last = session.written
            above = last if turn == context.invocation_id else ""
            if below is not None:
                above = await self._id_of(below, session)
            cell = await self._pages.insert(source, above, context.agent_name)
        except NoPageError:
            return await self._kernel.insert(source)
        except (CellError, InputError) as error:
            return {"error": str(error)}
        session.written = (context.invocation_id, cell.id)
        moved = {number + (number >= cell.number): known for number, known in session.cells.items()}
        session.cells = {**moved, cell.number: _Known(cell, cell.source)}
        note = "the user sees the cell, and may run it; the numbers of the cells below it are one higher now"
        return {"written": f"cell {cell.number}", "note": note}

    async def _id_of(self, number: int, session: _Session) -> str:
        if number in session.cells:
            return session.cells[number].cell.id
        cells = await self._pages.read()
        if not 1 <= number <= len(cells):
            raise InputError(f"there is no cell {number}; the notebook has {len(cells)} cells")
        return cells[number - 1].id

    async def planned(self, number: int, source: str, context: ToolContext) -> Change | Json:
        """The change to ask for; or what the model is told, as nothing can be changed.

        Raises:
            NoPageError: As the class says.
        """
        if not self._pages.may_be_there:
            raise NoPageError("no page shows this notebook")
        known = self._session(context).cells.get(number)
        if known is None:
            return {"error": f"read cell {number} first, with read_cells"}
        if not known.seen and known.cell.source:
            return {"error": f"only the beginning of cell {number} was read; read it by its number"}
        if known.seen != known.cell.source:
            return {"error": f"cell {number} has text that is not shown to you; leave it to the user"}
        now = next((cell for cell in await self._pages.read() if cell.id == known.cell.id), None)
        if now is None:
            return {"error": f"cell {number} is not in the notebook any more; read the cells again"}
        if now.source != known.cell.source:
            return {"error": f"the user has changed cell {number} since it was read; read it again"}
        if not now.is_editable:
            return {"error": f"cell {number} is protected: its metadata has editable: false"}
        if source == now.source:
            return {"unchanged": f"cell {number} has that text already"}
        return Change(number, now, source)

    async def change(self, change: Change, source: str, context: ToolContext) -> Json:
        """Make a change that was accepted, with the `source` as it was accepted."""
        try:
            cell = await self._pages.change(change.cell.id, change.cell.source, source, context.agent_name)
        except NoPageError:
            return {"error": "no page shows the notebook any more; nothing was changed"}
        except CellError as error:
            return {"error": str(error)}
        self._session(context).cells[change.number] = _Known(cell, cell.source)
        return {"changed": f"cell {change.number}", "note": "it has not run since; the user may take the change back"}

    async def shown(self, number: int, source: str) -> Json:
        """Show a change where no page takes it."""
        try:
            return await self._kernel.propose(number, source)
        except InputError as error:
            return {"error": str(error)}


class ChangeCellTool(BaseTool):
    """Replaces the text of a cell, after a person has seen the difference and accepted it."""

    def __init__(self, cells: PageCells) -> None:
        super().__init__(
            name="change_cell",
            description="Propose another text for a cell of the notebook. The user sees the difference, and accepts it "
            "or not. Read the cell first.",
        )
        # A second attempt finds the text changed, and changes nothing.
        self.effect = "idempotent"
        self._cells = cells
        self._planned: dict[tuple[SessionKey, str], Change | Json | None] = {}
        """Session, and id of a call in it -> what is to be done; None: there is no page."""

    def _get_declaration(self) -> types.FunctionDeclaration:
        number = {"type": "integer", "description": "The number of the cell, as read_cells gives it."}
        source = {"type": "string", "description": "The whole new text of the cell."}
        schema = {
            "type": "object",
            "properties": {"number": number, "source": source},
            "required": ["number", "source"],
        }
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    @property
    def asks_to_repeat(self) -> bool:
        """False: a person is shown the difference each time."""
        return False

    async def confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> ToolConfirmation | None:
        """Show the difference. None: there is nothing to change."""
        planned = await self._plan(args, tool_context)
        self._planned[_key_of(tool_context.session), tool_context.function_call_id or ""] = planned
        return planned.confirmation if isinstance(planned, Change) else None

    async def _plan(self, args: dict[str, Any], context: ToolContext) -> Change | Json | None:
        number, source = args.get("number"), args.get("source")
        if not isinstance(number, int) or not isinstance(source, str):
            return {"error": "change_cell needs number, the number of a cell, and source, its whole new text"}
        try:
            return await self._cells.planned(number, source, context)
        except NoPageError:
            return None
        except CellError as error:
            return {"error": str(error)}

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        call = _key_of(tool_context.session), tool_context.function_call_id or ""
        if call not in self._planned:  # asked for in an earlier process, whose page had other cells
            return {"error": "the kernel was restarted after the question; read the cell, and propose the change again"}
        planned = self._planned.pop(call)
        if planned is None:
            return await self._cells.shown(args["number"], args["source"])
        return (
            await self._cells.change(planned, args["source"], tool_context) if isinstance(planned, Change) else planned
        )


def _key_of(session: Session) -> SessionKey:
    """Its id alone says little: clients of a server choose theirs, and models the ids of their calls."""
    return session.app_name, session.user_id, session.id


def _label(number: int, cell: PageCell) -> str:
    return f"cell {number}" + (f", In[{cell.count}]" if cell.count else "")


def _whole(cell: PageCell, source: int = MOST_CHARACTERS) -> Json:
    told: Json = {"number": cell.number}
    told |= {"kind": cell.kind} if cell.kind != "code" else {}
    told |= {"ran": f"In[{cell.count}]"} if cell.count else {}
    told["source"] = cut(cell.source, source)
    outcomes = {"output": cell.output, "error": cell.error}
    return told | {name: cut(text, _OUTPUT) for name, text in outcomes.items() if text}


def _lines(cells: list[PageCell]) -> list[str]:
    """One line a cell, as many as fit."""
    lines: list[str] = []
    left = MOST_CHARACTERS - _KEPT
    for cell in cells:
        first = next((line.strip() for line in cell.source.splitlines() if line.strip()), "(empty)")
        facts = (
            [cell.kind] * (cell.kind != "code")
            + [f"In[{cell.count}]"] * bool(cell.count)
            + ["failed"] * bool(cell.error)
        )
        line = f"{cell.number}{' (' + ', '.join(facts) + ')' if facts else ''}: {cut(first, _LINE)}"
        left -= weight(line) + 2
        if left < 0:
            break
        lines.append(line)
    return lines


def _searched(cell: PageCell) -> str:
    # What is hidden is not found either: else a secret could be guessed, letter by letter.
    return hidden(f"In[{cell.count}] {cell.kind} {cell.source} {cell.output} {cell.error}").lower()
