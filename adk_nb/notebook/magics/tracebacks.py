"""No traceback that a shell shows, in any of IPython's modes, holds a secret that this process knows."""

# pyright: basic
# IPython's shells are untyped.

import contextlib
import io
import re
import sys
from typing import Any

from adk_nb.notebook import last_error
from adk_nb.redaction import HIDDEN, hidden, known, look_around

_KEPT = "_adk_nb_hides"
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_QUOTED = {"\\": r"\\+", "'": r"\\*'", '"': r'\\*"'}
"""However often: the value of an error has the quoted words of an error in it."""
_ELLIPSIS = re.compile(r"\.\.\.|…")
_CUT = 6
"""Characters of a secret that are still one, where `%xmode Verbose` shortens a value."""


def install(shell: Any) -> None:
    """Hide secrets in what `shell` shows and keeps of errors, and in what it tells the client that sent the cell."""
    look_around()
    shown = _Shown(shell)
    for name, own in shown.in_place_of.items():
        setattr(shell, name, own)
    shell.events.register("post_run_cell", last_error.note)
    shell.events.register("post_run_cell", told_without)
    setattr(shell, _KEPT, shown)


def remove(shell: Any) -> None:
    """Let `shell` show errors as it did."""
    if shown := getattr(shell, _KEPT, None):
        for name in (*shown.in_place_of, _KEPT):
            delattr(shell, name)
        shell.events.unregister("post_run_cell", told_without)
        shell.events.unregister("post_run_cell", last_error.note)
        last_error.forget()


def without_secrets(text: str) -> str:
    """`text` of a traceback without secrets, whole, in pieces of several colors, quoted, or cut to their ends."""
    text = hidden(text)
    bare = _COLOR.sub("", text)
    for one in known():
        if one in bare or not _QUOTED.keys().isdisjoint(one):
            text = re.sub(f"(?:{_COLOR.pattern})*".join(_QUOTED.get(c, re.escape(c)) for c in one), HIDDEN, text)
    for found in reversed(list(_ELLIPSIS.finditer(text))):
        before, after = text[: found.start()], text[found.end() :]
        begun = max((_begun(before, one) for one in known()), default=0)
        ended = max((_ended(after, one) for one in known()), default=0)
        if begun or ended:
            before, after = before[: len(before) - begun], after[ended:]
            text = before + HIDDEN * bool(begun) + found[0] + HIDDEN * bool(ended) + after
    return text


def _begun(text: str, secret: str) -> int:
    """How many characters at the end of `text` are the beginning of `secret`."""
    at = text.rfind(secret[:_CUT])
    return len(text) - at if at >= 0 and _bare(secret).startswith(_bare(text[at:])) else 0


def _ended(text: str, secret: str) -> int:
    """How many characters at the beginning of `text` are the end of `secret`."""
    size = text.find(secret[-_CUT:]) + _CUT
    return size if size >= _CUT and _bare(secret).endswith(_bare(text[:size])) else 0


def _bare(text: str) -> str:
    return text.replace("\\", "")


class _Shown:
    """What a shell does by itself, with its text changed on the way."""

    def __init__(self, shell: Any) -> None:
        self._begin, self._show = shell.showtraceback, shell._showtraceback
        self._shown: tuple[int, list[str]] = (0, [])
        self.in_place_of = {"showtraceback": self.begin, "_showtraceback": self.show}
        if keep := getattr(shell, "_format_exception_for_storage", None):  # IPython 9.3 and later, for %notebook
            self._keep = keep
            self.in_place_of["_format_exception_for_storage"] = self.keep

    def begin(self, *said: Any, **more: Any) -> None:
        told = io.StringIO()  # groups of exceptions are written there by Python itself
        try:
            with contextlib.redirect_stderr(told):
                self._begin(*said, **more)
        finally:
            if text := told.getvalue():
                sys.stderr.write(without_secrets(text))

    def show(self, kind: Any, error: Any, lines: list[str]) -> None:
        lines = [without_secrets(line) for line in lines]
        self._shown = id(error), lines
        self._show(kind, _like(error), lines)

    def keep(self, error: Any, *said: Any, **more: Any) -> dict[str, Any]:
        if self._shown[0] == id(error):  # IPython would spend as long again to make the same text
            return {"ename": type(error).__name__, "evalue": str(_like(error)), "traceback": self._shown[1]}
        kept = self._keep(error, *said, **more)
        lines = [without_secrets(line) for line in kept["traceback"]]
        return {**kept, "evalue": without_secrets(kept["evalue"]), "traceback": lines}


def told_without(result: Any) -> None:
    """The client that sent a cell is told of its error once more, beside the output."""
    for name in ("error_before_exec", "error_in_exec"):
        setattr(result, name, _like(getattr(result, name)))


def _like(error: Any) -> Any:
    """`error`; or, if its words hold a secret, one of that name without it."""
    if error is None:
        return None
    try:
        said = str(error)
    except Exception:  # its own __str__ fails: whoever shows it says so
        return error
    safe = without_secrets(said)
    made = type(type(error).__name__, (Exception,), {})
    return error if safe == said else made(safe).with_traceback(error.__traceback__)
