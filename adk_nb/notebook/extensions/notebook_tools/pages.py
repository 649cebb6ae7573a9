"""The cells of this notebook, as the page has them that shows it: to read, to add to, and to change.

A request goes out as a message of a comm that nobody opened. Every page of the kernel hears it, also one that was
loaded again, or whose kernel another notebook shares. A page answers on the control channel, which ipykernel reads
while a cell runs, and in a browser (Pyodide) on a BroadcastChannel. The other half is
`editors/jupyterlab/src/agent_cells.js`.
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# comm, ipykernel and Pyodide have no annotations

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from IPython.core.getipython import get_ipython

from adk_nb.concurrency.threads import IN_A_BROWSER
from adk_nb.errors import UserError
from adk_nb.lazy import require
from adk_nb.notebook.place import can_ask, cell_id, request

Json = dict[str, Any]

ANSWER_SECONDS = 2.0
"""For the first page to say that it is there."""
OTHERS_SECONDS = 0.25
"""For further pages after the first, unless that is the one whose cell runs."""
WORK_SECONDS = 10.0
"""For the page that said it is there to do its work."""
_COMM = "adk_nb.cells"
_ANSWER = "adk_nb_cells"
"""Type of the message on the control channel."""
_PAGES = "_adk_nb_pages"
"""The attribute of the shell that holds its `Pages`."""


class NoPageError(UserError):
    """No page shows the notebook; nothing was done."""


class CellError(UserError):
    """The page has not done what was asked."""


@dataclass(frozen=True)
class PageCell:
    """A cell as the page shows it."""

    number: int
    """From 1, from the top."""
    id: str
    kind: str
    """`code`, `markdown` or `raw`."""
    count: int | None
    """The n of `In[n]`; None: it has not run here."""
    source: str
    output: str
    """As short text."""
    error: str
    is_editable: bool

    @classmethod
    def of(cls, fields: Any) -> "PageCell":
        """What a page says of a cell. Any script on the page can say it: only its types are relied on."""
        said = cast(Json, fields) if isinstance(fields, dict) else {}
        texts = {name: said[name] if isinstance(said.get(name), str) else "" for name in ("id", "kind", "source")}
        texts |= {name: said[name] if isinstance(said.get(name), str) else "" for name in ("output", "error")}
        number, count = said.get("number"), said.get("count")
        return cls(
            number=number if isinstance(number, int) else 0,
            count=count if isinstance(count, int) else None,
            is_editable=said.get("editable") is not False,
            **texts,
        )


class Pages:
    """The pages that show the notebook of one kernel. Its methods may be awaited on any loop, by one caller each."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._takers: dict[str, Callable[[Json], object]] = {}
        """Id of an open request -> takes its answers."""
        self._page = ""
        """The page that was asked last."""
        self._running = ""
        """Id of the request whose cell runs."""
        self._comm: Any = None
        self._channel: Any = None
        kernel: Any = getattr(shell, "kernel", None)
        if hasattr(kernel, "control_handlers"):
            kernel.control_handlers[_ANSWER] = self._on_control
            shell.events.register("pre_run_cell", self._begin_cell)
            shell.events.register("post_run_cell", self._end_cell)

    @property
    def may_be_there(self) -> bool:
        """False where no page can answer: in a terminal, in VS Code, and where a program runs the cells."""
        if IN_A_BROWSER:
            return True
        kernel: Any = getattr(self._shell, "kernel", None)
        return hasattr(kernel, "control_handlers") and can_ask() and "__vsc_ipynb_file__" not in self._shell.user_ns

    async def read(self) -> list[PageCell]:
        """All cells, from the top.

        Raises:
            NoPageError: As the class says.
        """
        answer = await self._ask("read", await self._chosen())
        return [PageCell.of(fields) for fields in answer.get("cells") or []]

    async def insert(self, source: str, below: str, by: str) -> PageCell:
        """Add a code cell, which is not run; its outputs are none, and it is trusted no more than any other.

        Args:
            source: Its text.
            below: The id of the cell above it. Empty: the running cell, else the last one.
            by: The agent, for the metadata of the cell.

        Raises:
            NoPageError: As the class says.
            CellError: There is no such cell, or the page has not confirmed the new one.
        """
        place = {"below": below, "running": cell_id()}
        answer = await self._ask("insert", await self._chosen(), source=source, by=by, **place)
        return PageCell.of(answer.get("cell"))

    async def change(self, id: str, was: str, source: str, by: str) -> PageCell:
        """Replace the text of a cell, if it still is `was`; the editor can undo it.

        Raises:
            NoPageError: As the class says.
            CellError: There is no such cell, its text is another one, it cannot be edited, or the page has not
                confirmed the change.
        """
        answer = await self._ask("change", await self._chosen(), cell=id, was=was, source=source, by=by)
        return PageCell.of(answer.get("cell"))

    async def _chosen(self) -> str:
        """The page to ask: the one that sent the running cell or the click, else the last one, else one in sight."""
        if not self.may_be_there:
            raise NoPageError("no page shows this notebook")
        asking = str(cast(Json, request().get("header") or {}).get("session", ""))
        found: list[tuple[bool, bool, bool, str]] = []
        async with self._sent({"ask": "who"}) as next_answer:
            seconds = ANSWER_SECONDS
            while answer := await next_answer(seconds):
                page, session = str(answer.get("page", "")), str(answer.get("session", ""))
                found.append((bool(asking) and session == asking, page == self._page, answer.get("seen") is True, page))
                if found[-1][0]:
                    break
                seconds = OTHERS_SECONDS
        if not found:
            raise NoPageError("no page shows this notebook")
        self._page = max(found, key=lambda each: each[:3])[3]
        return self._page

    async def _ask(self, what: str, page: str, **fields: Any) -> Json:
        async with self._sent({"ask": what, "to": page, **fields}) as next_answer:
            answer = await next_answer(WORK_SECONDS)
        if answer is None:
            raise CellError(
                f"the page has not confirmed in {WORK_SECONDS:g} s; read the cells to see what became of it"
            )
        if problem := answer.get("problem"):
            raise CellError(str(problem))
        return answer

    @asynccontextmanager
    async def _sent(self, message: Json) -> AsyncGenerator[Callable[[float], Any]]:
        """Send a request; within this, wait for one answer after the other: `await next_answer(seconds)`, else None."""
        loop, answers = asyncio.get_running_loop(), asyncio.Queue[Json]()
        id = secrets.token_hex(8)
        self._takers[id] = partial(loop.call_soon_threadsafe, answers.put_nowait)

        async def next_answer(seconds: float) -> Json | None:
            try:
                return await asyncio.wait_for(answers.get(), seconds)
            except TimeoutError:
                return None

        try:
            self._send({"id": id, **message})
            yield next_answer
        finally:
            del self._takers[id]

    def _send(self, message: Json) -> None:
        if self._comm is None:
            # primary=False: it is not opened, as a page that has no such target would complain.
            create = require("comm", package="comm").create_comm
            self._comm = create(target_name=_COMM, comm_id=_COMM, primary=False)
        self._comm.send({**message, "channel": self._listen() if IN_A_BROWSER else ""})

    def _take(self, answer: Any) -> None:
        """Hand an answer to its request; one that nobody waits for any more is dropped."""
        if isinstance(answer, dict) and (take := self._takers.get(str(cast(Json, answer).get("id")))):
            with suppress(RuntimeError):  # the loop of who asked has ended
                take(cast(Json, answer))

    # ---- ipykernel

    def _on_control(self, _stream: Any, _identities: Any, message: Json) -> None:
        """Runs on the thread of the control channel."""
        self._take(message["content"])
        # After its message the channel says `idle`, which pages and server take for the whole kernel.
        asyncio.get_running_loop().call_soon(self._still_busy)

    def _still_busy(self) -> None:
        running = self._running
        if running:
            self._say("busy")
            if not self._running:  # the cell has ended, and its own `idle` may have gone out before
                self._say("idle")

    def _say(self, state: str) -> None:
        kernel = self._shell.kernel
        topic = f"kernel.{kernel.ident}.status".encode()
        content = {"execution_state": state}
        kernel.session.send(kernel.iopub_socket, "status", content, parent=request(), ident=topic)

    def _begin_cell(self, _: Any) -> None:
        self._running = self._running or _message_id()

    def _end_cell(self, result: Any) -> None:
        ran = getattr(getattr(result, "info", None), "raw_cell", None)
        # A cell may run code as a cell of its own.
        if ran is None or ran == cast(Json, request().get("content") or {}).get("code"):
            self._running = ""

    # ---- Pyodide

    def _listen(self) -> str:
        """The name of the channel on which a page of this site answers; made when first needed."""
        if self._channel is None:
            javascript, ffi = require("js", package="pyodide-py"), require("pyodide.ffi", package="pyodide-py")
            self._channel = javascript.BroadcastChannel.new(f"adk-nb-{secrets.token_hex(16)}")
            self._channel.onmessage = ffi.create_proxy(self._on_channel)
        return str(self._channel.name)

    def _on_channel(self, event: Any) -> None:
        self._take(json.loads(event.data))


def _message_id() -> str:
    return str(cast(Json, request().get("header") or {}).get("msg_id", ""))


def pages() -> Pages:
    """The pages of this kernel; made at the first call, which should be in a cell before the one that asks them."""
    shell: Any = get_ipython()
    known: Pages = getattr(shell, _PAGES, None) or Pages(shell)
    if shell is not None:
        setattr(shell, _PAGES, known)
    return known
