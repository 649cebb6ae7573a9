"""What a magic hands back that is no reply: it shows itself at the end of a cell."""

from collections.abc import Mapping
from html import escape
from typing import Any

from adk_nb.notebook.place import Note

_AS_TEXT = (
    ' style="font-family: var(--jp-code-font-family, monospace); font-size: var(--jp-code-font-size, 13px); '
    'line-height: var(--jp-code-line-height, 1.3); padding-left: 6px; white-space: pre-wrap"'
)
"""As a page shows plain text."""
_MARK = ' style="border-left: 3px solid #d29922; padding-left: 0.5em"'


class Shown:
    """Something to look at: a mime type -> text, `text/plain` always among them."""

    def __init__(self, bundle: Mapping[str, str]) -> None:
        self._bundle = dict(bundle)

    @property
    def forms(self) -> dict[str, str]:
        """A mime type -> one form."""
        return self._bundle

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return self._bundle

    def below(self, *lines: str) -> "Shown":
        """The same, with lines of text of this package's own under it."""
        ends = {"text/plain": "\n{}", "text/markdown": "\n\n{}", "text/html": "<p>{}</p>"}
        safe = {kind: [escape(one) for one in lines] if kind == "text/html" else lines for kind in ends}
        more = {kind: "".join(map(end.format, safe[kind])) for kind, end in ends.items()}
        return Shown({kind: form + more.get(kind, "") for kind, form in self._bundle.items()})

    def __str__(self) -> str:
        return self._bundle["text/plain"]

    __repr__ = __str__


def said(*lines: str) -> Shown:
    """Lines of plain text; empty ones are left out."""
    told = [line for line in lines if line]
    plain = {"text/plain": "\n".join(told)}
    if not any(isinstance(line, Note) for line in told):
        return Shown(plain)
    rows = "".join(f"<div{_MARK * isinstance(line, Note)}>{escape(line)}</div>" for line in told)
    return Shown({**plain, "text/html": f"<div{_AS_TEXT}>{rows}</div>"})
