"""The line of a served agent in its cell: its address, and a button that shows the token."""
# pyright: reportUnknownMemberType=false
# ipywidgets has no annotations

from typing import Any

import anywidget
import traitlets

from adk_nb.notebook.view.widget import STATIC, answer_on_the_front_ends_subshell


class ServedView(anywidget.AnyWidget):
    """One line, with a button that shows the token. The token is sent as a message, never as saved widget state.

    Args:
        name: The agent.
        url: Its address.
        paths: The protocols, with their paths.
        secret: `token`, `curl` (a command that has it) and `page` (an address that has it; empty: there is no page).
    """

    _esm = (STATIC / "served.js").read_text(encoding="utf-8")
    _css = (STATIC / "served.css").read_text(encoding="utf-8")
    name = traitlets.Unicode().tag(sync=True)
    url = traitlets.Unicode().tag(sync=True)
    paths = traitlets.Unicode().tag(sync=True)
    running = traitlets.Bool(default_value=True).tag(sync=True)

    def __init__(self, name: str, url: str, paths: str, secret: dict[str, str]) -> None:
        self._secret = secret
        super().__init__(name=name, url=url, paths=paths)
        answer_on_the_front_ends_subshell(self.comm)
        self.on_msg(self._receive)

    def stopped(self) -> None:
        """Show that the server has stopped."""
        self._secret = {}
        self.running = False

    def _receive(self, _: Any, message: Any, __: Any) -> None:
        if isinstance(message, dict) and message.get("kind") == "token" and self._secret:
            self.send({"kind": "token", **self._secret})
