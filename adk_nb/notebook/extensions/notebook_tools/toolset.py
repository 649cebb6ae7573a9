"""`NotebookToolset`: the variables and cells of this notebook as tools."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from IPython.core.getipython import get_ipython

from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import ConfigurationError
from adk_nb.notebook import settings
from adk_nb.notebook.cells.session_store import client_app
from adk_nb.notebook.extensions.notebook_tools import look, policy, values
from adk_nb.notebook.extensions.notebook_tools.code_tool import RunCodeTool
from adk_nb.notebook.extensions.notebook_tools.page_cells import ChangeCellTool, PageCells
from adk_nb.notebook.extensions.notebook_tools.pages import pages
from adk_nb.runtime.context import ReadonlyContext, ToolContext
from adk_nb.runtime.history import SENT_BY, history_of
from adk_nb.sessions.session import Session
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset, ToolPredicate
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.tool_result import Told

_A2A = "a2a_metadata"
"""Key of the metadata of a message that came over A2A. Source: google-adk 2.13."""
_CLIENTS = client_app("")


class NotebookToolset(BaseToolset):
    """Lets an agent see this notebook, its variables and its cells, and run code in it after a click of yours.

    What the agent gets is bounded, and known secrets are hidden in it. Values of Python's own types and of known
    libraries are read; no code of other classes is run for it.

    Args:
        tool_filter: The names of the tools to offer, or a predicate. None: all.
        tool_name_prefix: The tools are offered as `<prefix>_<name>`.
    """

    def __init__(
        self, *, tool_filter: ToolPredicate | Sequence[str] | None = None, tool_name_prefix: str | None = None
    ) -> None:
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        self._cells = PageCells(pages())
        reading = (self._list_variables, self._look_at, self._read_cells)
        self._tools: list[BaseTool] = [
            *(FunctionTool(function, name=function.__name__.removeprefix("_"), effect="pure") for function in reading),
            FunctionTool(self._write_cell, name="write_cell", effect="once"),
            ChangeCellTool(self._cells),
        ]
        self._run_code = RunCodeTool()

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The tools; none in the turn of a client of `%serve`, unless the owner said `--with-notebook`.

        Raises:
            ConfigurationError: This process is no notebook.
        """
        if get_ipython() is None:
            raise ConfigurationError("NotebookToolset needs a notebook, and this process is not one; leave it out here")
        if readonly_context and _is_of_client(readonly_context):
            return []
        return [*self._tools, *([self._run_code] if policy.now.code == "ask" else [])]

    def _list_variables(self, filter: str = "") -> dict[str, Any]:
        """List the variables of the notebook, the newest first: name, type, shape or length, size.

        Args:
            filter: Words; each has to be in the name or the type. Empty: all variables.
        """
        return values.listed(_variables(), filter)

    def _look_at(self, name: str) -> Any:
        """Look at a variable of the notebook before you compute with it: a frame (columns, types, nulls, ranges, first
        rows), an array, a picture, a text, a container.

        Args:
            name: The name of the variable.
        """
        told = look.look(_variables(), name)
        return Told(told, look.first_rows(told))

    async def _read_cells(self, tool_context: ToolContext, wanted: str = "") -> dict[str, Any]:
        """Read cells of the notebook: source, short output, error.

        Args:
            tool_context: Given by the runtime.
            wanted: Numbers, as "3" or "2-5, 8"; or words that a cell has to have. Empty: the notebook.
        """
        return await self._cells.read(wanted, tool_context)

    async def _write_cell(self, source: str, tool_context: ToolContext, below: int | None = None) -> dict[str, Any]:
        """Write a new cell into the notebook. It is not run: that is up to the user.

        Args:
            source: The code of the cell, or its text if the first line is `%%markdown`.
            tool_context: Given by the runtime.
            below: The number of the cell below which it is added. None: below the cell that runs now.
        """
        return await self._cells.write(source, below, tool_context)


def add_notebook(agent: LlmAgent, typed: bool) -> None:
    """`%%agent --notebook`: give an agent the tools of this notebook."""
    agent.tools = [*agent.tools, NotebookToolset()]


def _is_of_client(context: ReadonlyContext) -> bool:
    """True in a turn that somebody else began, also after the owner's click; who may is in the settings."""
    session = context.session
    if session.app_name in settings.now.client_apps:
        return False
    # An agent tool's own session does not say who sent the message, but that of its caller does.
    callers: list[Session] = cast(Any, context)._invocation_context.shared.turn.sessions
    turns = [turns[-1] for each in (session, *callers) if (turns := history_of(each).turns)]
    said = [context.run_config.custom_metadata or {}, *(turn.events[0].custom_metadata or {} for turn in turns)]
    is_sent = any(metadata.get(SENT_BY) or _A2A in metadata for metadata in said)
    return is_sent or session.app_name.startswith(_CLIENTS)


def _variables() -> Mapping[str, Any]:
    shell: Any = get_ipython()
    return shell.user_ns
