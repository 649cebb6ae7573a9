"""Requests of a page, the place of finished views on it, and a view as an output."""

import os
from typing import Any, Literal

from adk_nb.notebook.view.view_state import Json

VIEW_MIME = "application/vnd.jupyter.widget-view+json"


_FIELDS = {"need": ("what", "id"), "rerun": ("event",), "state": ("key", "text")}


class _Page:
    keeps_out: bool | None = None
    """It keeps views out of the notebook's file; None: no page has reported."""


_page = _Page()


def set_page(*, keeps_out: bool) -> None:
    """Note whether the page keeps views out of the notebook's file."""
    _page.keeps_out = keeps_out


def request_of(message: Json) -> Json | None:
    """The request in a page's message, checked: no odd message reaches a run.

    Returns:
        `{"kind": "need", "what", "id"}`, `{"kind": "rerun", "event"}` or `{"kind": "state", "key", "text"}` (`text`
        None: remove the key); None for anything else.
    """
    fields = _FIELDS.get(str(message.get("kind")))
    if fields is None:
        return None
    request = {name: message.get(name) for name in fields}
    if message["kind"] == "need":
        request["id"] = request["id"] or ""
    is_text = all(isinstance(value, str) or (name == "text" and value is None) for name, value in request.items())
    return {"kind": message["kind"], **request} if is_text else None


def views_stay() -> bool:
    """True if a view may stay after its run: saved without its kernel, it would read "model not found".

    Until a page reports, JupyterLab and Notebook are assumed to keep it out of the file, and no other front end.
    Source of the variable: jupyter_server 2, `MappingKernelManager`; VS Code names its sessions with `-jvsc-`.
    """
    if _page.keeps_out is not None:
        return _page.keeps_out
    session = os.environ.get("JPY_SESSION_NAME", "")
    return bool(session) and "-jvsc-" not in session


def with_view(bundle: dict[str, str], model_id: str, of: Literal["page", "run"] = "page") -> Any:
    """An output: that view on the page, and `bundle` alone in a file.

    Args:
        bundle: By media type.
        model_id: Empty: there is no view.
        of: `run`: the view of a run that is not over; a reloaded page shows it again if the kernel lives.
    """
    if not model_id:
        return bundle
    view = {"version_major": 2, "version_minor": 0, "model_id": model_id}
    return {**bundle, VIEW_MIME: view}, {VIEW_MIME: {"adk_nb": of}}
