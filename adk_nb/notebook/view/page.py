"""Whether a view may stay on the page when its run is over, and how it is put beside what the notebook's file keeps."""

import os
from typing import Any, Literal

VIEW_MIME = "application/vnd.jupyter.widget-view+json"


class _Page:
    said: bool | None = None


_page = _Page()


def page_said(*, keeps_out: bool) -> None:
    """A page has told whether it keeps such views out of the notebook's file."""
    _page.said = keeps_out


def views_stay() -> bool:
    """Whether a view may stay when its run is over: saved without its kernel, it would read "model not found".

    Until a page has told, JupyterLab and Notebook are believed to keep it out of the file, and no other place is.
    Source of the variable: jupyter_server 2, `MappingKernelManager`; VS Code names its sessions with `-jvsc-`.
    """
    if _page.said is not None:
        return _page.said
    session = os.environ.get("JPY_SESSION_NAME", "")
    return bool(session) and "-jvsc-" not in session


def with_view(bundle: dict[str, str], model_id: str, of: Literal["page", "run"] = "page") -> Any:
    """What an output is shown as: by that view on the page, and in a file by `bundle` alone.

    Args:
        bundle: By media type.
        model_id: Empty: there is no view.
        of: `run`: the view of one that is not over, and a page that is loaded again has it again if the kernel lives.
    """
    if not model_id:
        return bundle
    view = {"version_major": 2, "version_minor": 0, "model_id": model_id}
    return {**bundle, VIEW_MIME: view}, {VIEW_MIME: {"adk_nb": of}}
