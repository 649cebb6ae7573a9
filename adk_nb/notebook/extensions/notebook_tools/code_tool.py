"""`run_code`: a piece of code on a card, and then in this kernel."""

import threading
from collections.abc import Callable
from typing import Any, cast

from IPython.core.getipython import get_ipython

from adk_nb import sync
from adk_nb.concurrency.work import CallQueue, current_call_queue, stop_wanted
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.extensions.notebook_tools import policy, running
from adk_nb.runtime import approvals
from adk_nb.runtime.context import ToolContext
from adk_nb.runtime.history import history_of
from adk_nb.tools.function_tool import FunctionTool

_NEVER = "no code runs here: %config AdkNb.notebook_code is 'never'; propose a cell with write_cell"
_LONGEST = 50_000
"""Characters of a piece of code."""
_stop_at_once = threading.Event()
_stop_at_once.set()


class RunCodeTool(FunctionTool):
    """Runs code in this kernel, on its main thread, each piece after a click of the notebook's owner.

    A click may also allow what follows in the same turn; what it allows is known to this process alone.
    """

    def __init__(self) -> None:
        # Code may have any effect, so a resumed run asks before it runs the code again.
        super().__init__(run_code, effect="once")
        self._allowed: set[tuple[str, str, str, str]] = set()
        """Turns in which code runs without further clicks."""

    @property
    def may_need_approval(self) -> bool:
        """True: it asks."""
        return True

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        """False in a turn that was allowed, and for what cannot run anyway."""
        return not (self._problem(args) or _turn(tool_context) in self._allowed)

    async def confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> ToolConfirmation | None:
        if not await self.check_require_confirmation(args, tool_context):
            return None
        return _request(args)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Run the code, if it was allowed in this process."""
        if problem := self._problem(args):
            return {"error": problem}
        decided, turn = tool_context.tool_confirmation, _turn(tool_context)
        if decided is None and turn not in self._allowed:
            return {"error": "it was not run: nobody has allowed it"}
        if decided is not None:
            if not decided.confirmed:
                return approvals.rejection(decided)
            if tool_context.get_invocation_context().shared.outermost.is_continued:
                # The click was for the run that was cut, maybe in another process.
                tool_context.actions.requested_tool_confirmations[tool_context.function_call_id or ""] = _request(args)
                return approvals.placeholder()
            if decided.for_turn and turn:
                self._allowed.add(turn)
        shell: Any = get_ipython()
        code = str(args["code"])
        return await _in_kernel(shell, lambda: running.run(shell, code))

    def _problem(self, args: dict[str, Any]) -> str:
        if invalid := self.check(args):
            return invalid
        if policy.now.code == "never":
            return _NEVER
        code, shell = str(args["code"]), cast(Any, get_ipython())
        if len(code) > _LONGEST:
            return f"it was not run: it has {len(code):,} characters, and {_LONGEST:,} are the most; run it in parts"
        problem = running.problem_of(code, shell.transform_cell) if shell else "this process is no notebook"
        return f"it was not run: {problem}" if problem else ""


def run_code(code: str, why: str) -> dict[str, Any]:
    """Run Python code in the kernel of the notebook, as a cell would, after the user has allowed it.

    You get what it prints, the value of the last expression, pictures, an error with its lines, and which variables are
    new, changed and gone. Magics, input() and await are not possible in it.

    Args:
        code: The code.
        why: What it is for, in one sentence, for the user who allows it.
    """
    raise NotImplementedError  # its signature is what a model is told; RunCodeTool.run_async does the work


def _request(args: dict[str, Any]) -> ToolConfirmation:
    documents = {"code.py": str(args["code"])}
    return ToolConfirmation(hint=str(args["why"]), documents=documents, action="Run", for_turn=True)


def _turn(context: ToolContext) -> tuple[str, str, str, str] | None:
    """What a turn is known by: its session, and the event of the message that began it. None: no message began it."""
    session = context.session
    turns = history_of(session).turns
    return (session.app_name, session.user_id, session.id, turns[-1].events[0].id) if turns else None


async def _in_kernel(shell: Any, work: Callable[[], Any]) -> Any:
    """The result of `work`, which runs on the kernel's main thread; whatever stops the run interrupts it."""

    def checked() -> Any:
        if threading.current_thread() is not threading.main_thread():
            return {"error": "it was not run: the main thread of this kernel is not within reach; ask from a cell"}
        return work()

    queue, loop = current_call_queue.get(), getattr(getattr(shell, "kernel", None), "io_loop", None)
    home = getattr(loop, "asyncio_loop", None)
    if queue is None and home is not None:  # a run of a server's, on whose workers no code of the notebook belongs
        queue = CallQueue(lambda: None, home)
    tokens = current_call_queue.set(queue), stop_wanted.set(_stop_at_once)
    try:
        return await sync.blocking(checked, keeps_result=True)
    finally:
        current_call_queue.reset(tokens[0])
        stop_wanted.reset(tokens[1])
