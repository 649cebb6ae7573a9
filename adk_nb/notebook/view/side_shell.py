"""A shell beside the kernel's main one: a page that is loaded again while a cell runs gets its widgets at once.

JupyterLab asks a kernel for its info and for its widgets before it draws any, and asks the main shell, which answers
when the cell has ended. ipykernel 7 has subshells; while a run is live, one of them answers these requests.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# ipykernel has no annotations here

import logging
from typing import Any

from IPython.core.getipython import get_ipython

logger = logging.getLogger(__name__)

_REQUESTS = ("kernel_info_request", "comm_info_request")
_WIDGETS = "jupyter.widget.control"
"""Target of the comm that asks for the state of all widgets, as ipywidgets 8 has it."""


class SideShell:
    """Answers a page's first requests while runs are live. One for each kernel.

    Source: ipykernel 7, `Kernel.shell_channel_thread_main` and `SubshellManager`; the names are private. A kernel that
    lacks them answers when the cell has ended.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._thread = kernel.shell_channel_thread
        self._id = ""
        self._comms: set[str] = set()
        """Ids of comms that ask for the state of all widgets."""
        self.runs: set[object] = set()
        """Live runs."""
        self._thread.io_loop.add_callback(kernel.shell_stream.on_recv, self._received, copy=False)

    async def _received(self, frames: list[Any]) -> None:
        """Runs on the thread of the shell channel."""
        if self.runs:
            try:
                frames = self._routed(frames)
            except Exception:  # the main shell reports the error
                logger.debug("the side shell cannot take a message", exc_info=True)
        await self._kernel.shell_channel_thread_main(frames)

    def _routed(self, frames: list[Any]) -> list[Any]:
        session = self._kernel.session
        identities, rest = session.feed_identities(frames, copy=False)
        message = session.deserialize(rest, content=False, copy=False)
        if message["header"].get("subshell_id") or not self._answers(message):
            return frames
        self._id = self._id or self._thread.manager._create_subshell()
        header = {**message["header"], "subshell_id": self._id}
        content = session.unpack(message["content"])
        routed = {**message, "header": header, "content": content}
        parts = session.serialize(routed, ident=[bytes(identity) for identity in identities])
        return list(map(type(frames[0]), [*parts, *message["buffers"]]))

    def _answers(self, message: Any) -> bool:
        kind = message["header"]["msg_type"]
        if kind in _REQUESTS:
            return True
        if kind not in ("comm_open", "comm_msg", "comm_close"):
            return False
        content = self._kernel.session.unpack(message["content"])
        if kind == "comm_open" and content.get("target_name") == _WIDGETS:
            self._comms.add(content["comm_id"])
        return content.get("comm_id") in self._comms


def side_shell() -> SideShell | None:
    """The side shell of this kernel; None if it cannot have one."""
    kernel: Any = getattr(get_ipython(), "kernel", None)
    if not hasattr(getattr(kernel, "shell_channel_thread", None), "manager"):
        return None
    if (shell := getattr(kernel, "_adk_nb_side_shell", None)) is None:
        shell = kernel._adk_nb_side_shell = SideShell(kernel)
    return shell
