"""The front end: requests of a page, views in outputs and in the saved file, and replies while a cell runs."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# ipykernel has no annotations here

import logging
import os
from typing import Any, Literal

from IPython.core.getipython import get_ipython

from adk_nb.concurrency.threads import IN_A_BROWSER
from adk_nb.notebook.view.view_state import Json

VIEW_MIME = "application/vnd.jupyter.widget-view+json"


_FIELDS = {"need": ("what", "id"), "rerun": ("event",), "state": ("key", "text")}


class _Page:
    keeps_out: bool | None = None
    """True if it leaves views out of the saved file. None: no page has reported."""


_page = _Page()


def set_page(*, keeps_out: bool) -> None:
    """Note whether the page leaves views out of the saved file."""
    _page.keeps_out = keeps_out


def request_of(message: Json) -> Json | None:
    """The request in a page's message, checked.

    Returns:
        `{"kind": "need", "what", "id"}`, `{"kind": "rerun", "event"}` or `{"kind": "state", "key", "text"}` (`text`
        None: remove the key); None for anything else.
    """
    # Untrusted: any script on the page can send messages of a widget.
    fields = _FIELDS.get(str(message.get("kind")))
    if fields is None:
        return None
    request = {name: message.get(name) for name in fields}
    if message["kind"] == "need":
        request["id"] = request["id"] or ""
    is_text = all(isinstance(value, str) or (name == "text" and value is None) for name, value in request.items())
    return {"kind": message["kind"], **request} if is_text else None


def views_stay() -> bool:
    """True if a view may stay after its run, since the front end leaves it out of the saved file.

    A saved view would be shown as "model not found" without its kernel. Until a page reports, JupyterLab and Notebook
    are assumed to leave views out, and no other front end. Source of the variable: jupyter_server 2, `SessionManager`;
    VS Code names its sessions with `-jvsc-`.
    """
    if _page.keeps_out is not None:
        return _page.keeps_out
    session = "JupyterLite" if IN_A_BROWSER else os.environ.get("JPY_SESSION_NAME", "")
    return bool(session) and "-jvsc-" not in session


def with_view(bundle: dict[str, str], model_id: str, phase: Literal["page", "run"] = "page") -> Any:
    """An output with a view for the page, and `bundle` for the saved file.

    Args:
        bundle: By media type.
        model_id: Of the view; empty: there is none.
        phase: `run`: the run is not over; a reloaded page shows the view again if the kernel lives.
    """
    if not model_id:
        return bundle
    view = {"version_major": 2, "version_minor": 0, "model_id": model_id}
    # Jupyter shows the richest known media type: the view wins while its kernel lives.
    return {**bundle, VIEW_MIME: view}, {VIEW_MIME: {"adk_nb": phase}}


logger = logging.getLogger(__name__)

_REQUESTS = ("kernel_info_request", "comm_info_request")
_WIDGETS = "jupyter.widget.control"
"""Target of the comm that asks for the state of all widgets, as ipywidgets 8 has it."""


class SideShell:
    """Answers the first requests of a page while a cell runs, in a subshell. One for each kernel.

    Source: ipykernel 7, `Kernel.shell_channel_thread_main` and `SubshellManager`; the names are private. A kernel
    without them answers when the cell has ended.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel
        self._thread = kernel.shell_channel_thread
        self._id = ""
        self._comms: set[str] = set()
        """Ids of comms that ask for the state of all widgets."""
        self.runs: set[object] = set()
        """Live runs."""
        # On the channel's own loop: a zmq stream belongs to one thread.
        self._thread.io_loop.add_callback(kernel.shell_stream.on_recv, self._received, copy=False)

    async def _received(self, frames: list[Any]) -> None:
        """Runs on the thread of the shell channel."""
        if self.runs:
            try:
                session = self._kernel.session
                identities, rest = session.feed_identities(frames, copy=False)
                message = session.deserialize(rest, content=False, copy=False)
                # JEP 91: else the front end has chosen a subshell.
                if not message["header"].get("subshell_id") and self._answers(message):
                    self._id = self._id or self._thread.manager._create_subshell()
                    header = {**message["header"], "subshell_id": self._id}
                    content = session.unpack(message["content"])
                    routed = {**message, "header": header, "content": content}
                    # Signed again: the HMAC covers the header, which has changed.
                    parts = session.serialize(routed, ident=[bytes(identity) for identity in identities])
                    frames = list(map(type(frames[0]), [*parts, *message["buffers"]]))
            except Exception:  # the main shell reports the error
                logger.debug("the side shell cannot take a message", exc_info=True)
        await self._kernel.shell_channel_thread_main(frames)

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
