"""Hide the secrets that this process knows in every traceback that a shell shows, in each of IPython's modes."""

# pyright: basic
# IPython's shells are untyped.

import contextlib
import io
import re
import sys
from typing import Any

from adk_nb.notebook import last_error
from adk_nb.redaction import HIDDEN, hidden, known_secrets, remember_environment

_ATTRIBUTE = "_adk_nb_tracebacks"
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
# However often: the value of an error has the quoted text of an error in it.
_QUOTED = {"\\": r"\\+", "'": r"\\*'", '"': r'\\*"'}
_ELLIPSIS = re.compile(r"\.\.\.|…")
_CUT = 6
"""Characters of a secret that are still one, where `%xmode Verbose` shortens a value."""


def install(shell: Any) -> None:
    """Hide secrets in what `shell` shows and keeps of errors, and sends to the client that sent the cell."""
    remember_environment()
    tracebacks = _Tracebacks(shell)
    for name, method in tracebacks.replacements.items():
        setattr(shell, name, method)
    shell.events.register("post_run_cell", last_error.note)
    shell.events.register("post_run_cell", hide_in_result)
    setattr(shell, _ATTRIBUTE, tracebacks)


def remove(shell: Any) -> None:
    """Undo `install`."""
    if tracebacks := getattr(shell, _ATTRIBUTE, None):
        for name in (*tracebacks.replacements, _ATTRIBUTE):
            delattr(shell, name)
        shell.events.unregister("post_run_cell", hide_in_result)
        shell.events.unregister("post_run_cell", last_error.note)
        last_error.forget()


def without_secrets(text: str) -> str:
    """Hide secrets in a traceback: whole, in pieces of several colors, quoted, or cut to their ends."""
    text = hidden(text)
    bare = _COLOR.sub("", text)
    for secret in known_secrets():
        if secret in bare or not _QUOTED.keys().isdisjoint(secret):
            text = re.sub(f"(?:{_COLOR.pattern})*".join(_QUOTED.get(c, re.escape(c)) for c in secret), HIDDEN, text)
    for match in reversed(list(_ELLIPSIS.finditer(text))):
        before, after = text[: match.start()], text[match.end() :]
        head = max((_head_length(before, secret) for secret in known_secrets()), default=0)
        tail = max((_tail_length(after, secret) for secret in known_secrets()), default=0)
        if head or tail:
            before, after = before[: len(before) - head], after[tail:]
            text = before + HIDDEN * bool(head) + match[0] + HIDDEN * bool(tail) + after
    return text


def _head_length(text: str, secret: str) -> int:
    """Characters at the end of `text` that are the beginning of `secret`."""
    at = text.rfind(secret[:_CUT])
    return len(text) - at if at >= 0 and _unescaped(secret).startswith(_unescaped(text[at:])) else 0


def _tail_length(text: str, secret: str) -> int:
    """Characters at the beginning of `text` that are the end of `secret`."""
    size = text.find(secret[-_CUT:]) + _CUT
    return size if size >= _CUT and _unescaped(secret).endswith(_unescaped(text[:size])) else 0


def _unescaped(text: str) -> str:
    return text.replace("\\", "")


class _Tracebacks:
    """A shell's own methods that show and keep tracebacks, called with the secrets taken out."""

    def __init__(self, shell: Any) -> None:
        self._begin, self._show = shell.showtraceback, shell._showtraceback
        self._last: tuple[int, list[str]] = (0, [])
        self.replacements = {"showtraceback": self.begin, "_showtraceback": self.show}
        if store := getattr(shell, "_format_exception_for_storage", None):  # IPython 9.3 and later, for %notebook
            self._store = store
            self.replacements["_format_exception_for_storage"] = self.store

    def begin(self, *args: Any, **options: Any) -> None:
        stderr = io.StringIO()  # groups of exceptions are written there by Python itself
        try:
            with contextlib.redirect_stderr(stderr):
                self._begin(*args, **options)
        finally:
            if text := stderr.getvalue():
                sys.stderr.write(without_secrets(text))

    def show(self, kind: Any, error: Any, lines: list[str]) -> None:
        lines = [without_secrets(line) for line in lines]
        self._last = id(error), lines
        self._show(kind, _safe_error(error), lines)

    def store(self, error: Any, *args: Any, **options: Any) -> dict[str, Any]:
        if self._last[0] == id(error):  # IPython would spend as long again to make the same text
            return {"ename": type(error).__name__, "evalue": str(_safe_error(error)), "traceback": self._last[1]}
        stored = self._store(error, *args, **options)
        lines = [without_secrets(line) for line in stored["traceback"]]
        return {**stored, "evalue": without_secrets(stored["evalue"]), "traceback": lines}


def hide_in_result(result: Any) -> None:
    """Hide secrets in the error that the client that sent a cell gets once more, beside the output."""
    for name in ("error_before_exec", "error_in_exec"):
        setattr(result, name, _safe_error(getattr(result, name)))


def _safe_error(error: Any) -> Any:
    """`error`; or, if its text holds a secret, one of that name without it."""
    if error is None:
        return None
    try:
        text = str(error)
    except Exception:  # its own __str__ fails, which whoever shows it says
        return error
    safe = without_secrets(text)
    if safe == text:
        return error
    return type(type(error).__name__, (Exception,), {})(safe).with_traceback(error.__traceback__)
