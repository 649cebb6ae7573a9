"""Hooks into IPython: how it splits lines, what runs before and after cells, and secrets hidden in its tracebacks."""

import contextlib
import gc
import importlib
import io
import re
import shutil
import sys
import threading
import tokenize
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from typing import Any, cast

from IPython.core.error import UsageError
from IPython.core.getipython import get_ipython
from IPython.core.inputtransformer2 import EscapedCommand, MagicAssign, TokenTransformBase
from IPython.display import clear_output, display  # pyright: ignore[reportUnknownVariableType]

from adk_nb.concurrency.threads import farewell, has_threads, repeat
from adk_nb.errors import closest
from adk_nb.google_adk import COMMANDS
from adk_nb.notebook import last_error
from adk_nb.notebook.magics import catalog
from adk_nb.notebook.place import can_ask, display_mode
from adk_nb.notebook.registry import registry
from adk_nb.redaction import HIDDEN, hidden, known_secrets, remember_environment


class CellCounter:
    """Count the cells of one shell, as `In[n]` does.

    nbval runs cells with `store_history=False`, which IPython does not number: outputs that name a cell would differ
    from the saved ones. So those cells are counted here, from the one that loads the magics.
    """

    def __init__(self, shell: Any) -> None:
        self._history = shell.history_manager
        self._unstored = ["", ""]  # there is no cell 0; cell 1 is running: it loads the magics

    def begin_cell(self, info: Any) -> None:
        """Count a cell; IPython's `pre_run_cell`, which silent cells do not raise."""
        if not info.store_history and not self._is_stored:
            self._unstored.append(str(info.raw_cell or ""))

    @property
    def number(self) -> int:
        """The n of `In[n]` of the running cell."""
        # Not `execution_count`: IPython's versions differ in when they increment it.
        return len(self._history.input_hist_parsed if self._is_stored else self._unstored) - 1

    @property
    def sources(self) -> list[str]:
        """Sources of the cells, by number; the first is empty."""
        return [str(cell) for cell in self._history.input_hist_raw] if self._is_stored else self._unstored

    @property
    def _is_stored(self) -> bool:
        return len(self._history.input_hist_parsed) > 1


_PRELOADED = (
    "adk_nb.types",  # google.genai.types: most of the time
    "adk_nb.agents.llm_agent",
    "adk_nb.notebook.magics.tool",
    "adk_nb.notebook.magics.agent",
    "adk_nb.notebook.magics.chat",
    "adk_nb.notebook.view.widget",
    "adk_nb.models.offline_llm",
)
"""In the order of import; a cell that starts stops it after the current module."""
_IDLE_SECONDS = 0.1
"""Time for the reply of a cell, which leaves the kernel after `post_run_cell`, and for the next cell of Run All."""


@contextmanager
def without_collections() -> Generator[None]:
    """Within this, nothing looks for garbage: an import leaves little, and the search takes a fifth of its time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Preload:
    """Import the modules of the first definition in the background, while no cell runs.

    Import errors are left to the cell that needs the module.
    """

    def __init__(self) -> None:
        self._modules = list(_PRELOADED)
        self._is_importing = False
        self._cells = 0

    @property
    def is_over(self) -> bool:
        """True: nothing is left to import."""
        return not (self._modules or self._is_importing)

    def after_cell(self, _: Any = None) -> None:
        """Continue after a short idle time; IPython's `post_run_cell`."""
        self.pause()
        if self._modules:
            repeat(partial(self._load_next, self._cells), after=_IDLE_SECONDS, name="adk-nb-preload")

    def pause(self, _: Any = None) -> None:
        """Stop after the current module; IPython's `pre_run_cell`."""
        self._cells += 1

    def _load_next(self, cells: int) -> float | None:
        if cells != self._cells or not self._modules:
            return None
        self._is_importing = True
        with suppress(Exception), without_collections():
            importlib.import_module(self._modules.pop(0))
        self._is_importing = False
        return 0


_PATIENCE = 0.5
"""Seconds that a cell waits in silence for what it needs."""
_LOADING = "loading adk_nb ..."


class LoadingLine:
    """Within this, a cell that waits for an import says so after a while; the line goes when the import is done."""

    def __init__(self, settings: Any, *, is_alone: bool) -> None:
        """A saved notebook gets no line, as it would depend on the machine.

        Args:
            settings: An `AdkNb`.
            is_alone: The cell has no other output so far, which would go with the line.
        """
        self._in_kernel = getattr(get_ipython(), "kernel", None) is not None
        is_watched = is_alone and display_mode(settings.display) not in ("static", "off")
        is_shown = is_watched if self._in_kernel else sys.stderr.isatty()
        self._is_standing = False
        self._is_over = not (is_shown and has_threads())
        self._lock = threading.Lock()
        self._timer = threading.Timer(_PATIENCE, copy_context().run, [self._show])
        self._timer.daemon = True

    def _show(self) -> None:
        with self._lock:
            if self._is_over:
                return
            self._is_standing = True
            if self._in_kernel:
                display({"text/plain": _LOADING}, raw=True)
            else:
                sys.stderr.write(_LOADING)

    def __enter__(self) -> None:
        if not self._is_over:
            self._timer.start()

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_over = True
            if self._is_standing and self._in_kernel:
                clear_output()
            elif self._is_standing:
                sys.stderr.write("\r\033[K")


_COMMAND = re.compile(r"^\s*(?:\w+\s*=\s*)?(?:!{1,2}|%(?:sx|system)\s)\s*adk\s+([a-z_]+)", re.MULTILINE)
_SCRIPT = re.compile(r"%%(?:bash|sh|system|sx|!)")
_COMMAND_IN_SCRIPT = re.compile(r"^\s*adk\s+([a-z_]+)", re.MULTILINE)
_NO_MAGIC = re.compile(r"(?:Line|Cell) magic (?:function )?`(%%?)(\w+)` not found")
_SETTING = re.compile(r"\s*%config\s+AdkNb\.(\w+)\s*=\s*([^\s'\"]+)\s*$")


def print_hints(result: Any) -> None:
    """Print what to type after a cell that calls google-adk's commands, or fails with a common mistake."""
    cell = result.info.raw_cell or ""
    commands = (_COMMAND_IN_SCRIPT if _SCRIPT.match(cell) else _COMMAND).findall(cell)
    for command in dict.fromkeys(commands) if not shutil.which("adk") else ():
        instead = COMMANDS.get(command, "see %%agent?, %chat? and %agents")
        runs = "" if command == "deploy" else "; or type %config AdkNb.google_adk = True, and it runs"
        sys.stderr.write(f"adk_nb: there is no `adk {command}` here; {instead}{runs}\n")
    if result.error_in_exec and (line := _hint_for(result.error_in_exec, cell)):
        sys.stderr.write(f"adk_nb: {line}\n")


def _hint_for(error: BaseException, cell: str) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name in ("google", "google.adk"):
        return "google-adk is not installed; to import adk_nb in its place, type: %config AdkNb.google_adk = True"
    if isinstance(error, RuntimeError) and "asyncio.run() cannot be called from a running event loop" in str(error):
        return "a cell runs in an event loop; write `await main()`, or type: %config AdkNb.nest_asyncio = True"
    if isinstance(error, UsageError) and (magic := _NO_MAGIC.match(str(error))):
        near = closest(magic[2], registry.magic_names)
        with suppress(Exception):  # an extension that cannot be used
            cells = bool(near) and catalog.grammar(near or "").cells
            return f"did you mean {'%%' if cells else magic[1]}{near}?" if near else ""
        return f"did you mean {magic[1]}{near}?"
    if isinstance(error, NameError) and (setting := _SETTING.match(cell)):
        return f'put text in quotes; type: %config AdkNb.{setting[1]} = "{setting[2]}"'
    return ""


# ---- lines

_TEXT_MAGICS = ("chat", "confirm", "state")
"""Magics of the core whose line may be text."""
_SEMICOLON = re.compile(r";\s*(['\"]\)\s*)$")
_ONLY_LINE = re.compile(r"%%(\w+)\b[^?]*$")
_INDENTS = (tokenize.INDENT, tokenize.DEDENT)


class _FirstInLine(TokenTransformBase):
    """A transformer that runs before IPython's own.

    IPython applies the one with the smallest `start_col` first (9.18, `TokenTransformBase.sortby`); that of its HelpEnd
    (`name?`) is the first token of the line.
    """

    start_line: int
    start_col: int

    def __init__(self, start: tuple[int, int]) -> None:
        super().__init__(start)
        self._column = self.start_col
        self.start_col = -1

    def transform(self, lines: list[str]) -> list[str]:
        """Rewrite the line from its real column on."""
        self.start_col = self._column
        return cast(Any, super()).transform(lines)


class _TextLine(_FirstInLine, EscapedCommand):
    """`%chat How is Oslo?`, which IPython would take for a request for help on `Oslo`."""

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> "_TextLine | None":
        """Return a transformer for the first such line."""
        for line in tokens_by_line:
            start = next((number for number, token in enumerate(line) if token.type not in _INDENTS), None)
            if start is not None and _is_text_magic(line[start:]):
                return cls(line[start].start)
        return None


class _TextAssign(_FirstInLine, MagicAssign):
    """`ans = %chat How is Oslo?`, likewise."""

    def transform(self, lines: list[str]) -> list[str]:
        """Rewrite the line, without its last semicolon: an assignment displays no reply, so it silences nothing."""
        lines = super().transform(lines)
        lines[self.start_line] = _SEMICOLON.sub(r"\1", lines[self.start_line])
        return lines

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> "_TextAssign | None":
        """Return a transformer for the first such line."""
        for line in tokens_by_line:
            sign = next((number for number, token in enumerate(line) if token.string == "="), None)
            if sign is not None and line[0].type in (tokenize.NAME, *_INDENTS) and _is_text_magic(line[sign + 1 :]):
                return cls(line[sign + 1].start)
        return None


def _is_text_magic(tokens: list[Any]) -> bool:
    """True for a magic whose line may be text, with text after a blank."""
    if len(tokens) < 3:
        return False
    sign, name, text = tokens[:3]
    return (
        sign.string == "%"
        and name.string in (*_TEXT_MAGICS, *registry.text_magics)
        and sign.end == name.start
        and text.start > name.end
        and text.type not in (tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER)
    )


def _add_empty_body(lines: list[str]) -> list[str]:
    """Add an empty line to a cell of one `%%` line: IPython prints a UsageError for it, and nbval would pass it."""
    match = _ONLY_LINE.match(lines[0].rstrip()) if lines else None
    if match and registry.has_magic(match[1]) and not "".join(lines[1:]):
        return [lines[0].rstrip() + "\n", "\n"]
    return lines


def install_line_transformers(shell: Any) -> None:
    """Pass lines of text and cells without a body to their magics."""
    manager = shell.input_transformer_manager
    # First: IPython's own would rewrite `%chat How?` into a call for help.
    manager.token_transformers[:0] = [_TextLine, _TextAssign]
    manager.cleanup_transforms.append(_add_empty_body)


def remove_line_transformers(shell: Any) -> None:
    """Undo `install_line_transformers`."""
    manager = shell.input_transformer_manager
    for transformers in (manager.token_transformers, manager.cleanup_transforms):
        transformers[:] = [item for item in transformers if item not in (_TextLine, _TextAssign, _add_empty_body)]


# ---- the end of the kernel


def install_farewell(shell: Any) -> None:
    """Tell runs that the kernel ends, as at a restart: a later kernel can resume them."""
    kernel: Any = getattr(shell, "kernel", None)
    if (end := getattr(kernel, "do_shutdown", None)) is None:
        return

    def do_shutdown(restart: bool) -> Any:
        farewell.tell("by a restart of the kernel" if restart else "by the end of the kernel")
        return end(restart)

    farewell.is_expected = True
    kernel.do_shutdown = do_shutdown


def remove_farewell(shell: Any) -> None:
    """Undo `install_farewell`."""
    kernel: Any = getattr(shell, "kernel", None)
    if "do_shutdown" in getattr(kernel, "__dict__", ()):
        farewell.is_expected = False
        del kernel.do_shutdown


# ---- tracebacks

_ATTRIBUTE = "_adk_nb_tracebacks"
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
# repr() of an error that quotes the repr() of another one escapes these again.
_QUOTED = {"\\": r"\\+", "'": r"\\*'", '"': r'\\*"'}
_ELLIPSIS = re.compile(r"\.\.\.|…")
_CUT = 6
"""Shortest piece of a secret that is hidden where `%xmode Verbose` shortens a value."""


def install_traceback_filter(shell: Any) -> None:
    """Hide known secrets in the errors that `shell` shows, stores, and sends to its client, in each `%xmode`."""
    remember_environment()
    tracebacks = _Tracebacks(shell)
    for name, method in tracebacks.replacements.items():
        setattr(shell, name, method)
    shell.events.register("post_run_cell", last_error.note)
    # ipykernel builds the execute_reply from the result after these hooks.
    shell.events.register("post_run_cell", hide_in_result)
    setattr(shell, _ATTRIBUTE, tracebacks)


def remove_traceback_filter(shell: Any) -> None:
    """Undo `install_traceback_filter`."""
    if tracebacks := getattr(shell, _ATTRIBUTE, None):
        for name in (*tracebacks.replacements, _ATTRIBUTE):
            delattr(shell, name)
        shell.events.unregister("post_run_cell", hide_in_result)
        shell.events.unregister("post_run_cell", last_error.note)
        last_error.forget()


def without_secrets(text: str) -> str:
    """Hide secrets in a traceback: plain, split by color codes, escaped by repr(), or shortened with an ellipsis."""
    text = hidden(text)
    # IPython colors tokens, so codes may stand within a secret.
    bare = _COLOR.sub("", text)
    for secret in known_secrets():
        if secret in bare or not _QUOTED.keys().isdisjoint(secret):
            text = re.sub(f"(?:{_COLOR.pattern})*".join(_QUOTED.get(c, re.escape(c)) for c in secret), HIDDEN, text)
    # From the end: a replacement moves what follows it.
    for match in reversed(list(_ELLIPSIS.finditer(text))):
        prefix, suffix = text[: match.start()], text[match.end() :]
        head = tail = 0  # characters at the end of the prefix that begin a secret; of the suffix that end one
        for secret in known_secrets():
            start = prefix.rfind(secret[:_CUT])
            if start >= 0 and _unescaped(secret).startswith(_unescaped(prefix[start:])):
                head = max(head, len(prefix) - start)
            size = suffix.find(secret[-_CUT:]) + _CUT
            if size >= _CUT and _unescaped(secret).endswith(_unescaped(suffix[:size])):
                tail = max(tail, size)
        if head or tail:
            prefix, suffix = prefix[: len(prefix) - head], suffix[tail:]
            text = prefix + HIDDEN * bool(head) + match[0] + HIDDEN * bool(tail) + suffix
    return text


def _unescaped(text: str) -> str:
    return text.replace("\\", "")


class _Tracebacks:
    """Replacements for the methods of a shell that show and store tracebacks; they hide secrets."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._begin, self._show = shell.showtraceback, shell._showtraceback
        self._last: tuple[int, list[str]] = (0, [])
        self.replacements: dict[str, Callable[..., Any]] = {"showtraceback": self.begin, "_showtraceback": self.show}
        if store := getattr(shell, "_format_exception_for_storage", None):  # IPython 9.3 and later, for %notebook
            self._store = store
            self.replacements["_format_exception_for_storage"] = self.store

    def begin(self, *args: Any, **options: Any) -> None:
        """Replace `showtraceback`."""
        stderr = io.StringIO()  # Python itself writes exception groups there
        try:
            # Held back until it is filtered: what is written cannot be taken back.
            with contextlib.redirect_stderr(stderr):
                self._begin(*args, **options)
        finally:
            if text := stderr.getvalue():
                sys.stderr.write(without_secrets(text))

    def show(self, kind: Any, error: Any, lines: list[str]) -> None:
        """Replace `_showtraceback`, which gets the finished lines."""
        lines = [without_secrets(line) for line in lines]
        self._last = id(error), lines
        if getattr(error, "is_on_card", False) and can_ask():
            # A person reads it on the card, which changes once it is answered; an error output would stay. The reply to
            # the cell is an error all the same, from `_last_traceback` of ipykernel, and Run All stops.
            self._shell._last_traceback = lines
            return
        self._show(kind, _safe_error(error), lines)

    def store(self, error: Any, *args: Any, **options: Any) -> dict[str, Any]:
        """Replace `_format_exception_for_storage`."""
        if self._last[0] == id(error):  # formatting the same error again takes as long again
            return {"ename": type(error).__name__, "evalue": str(_safe_error(error)), "traceback": self._last[1]}
        stored = self._store(error, *args, **options)
        lines = [without_secrets(line) for line in stored["traceback"]]
        return {**stored, "evalue": without_secrets(stored["evalue"]), "traceback": lines}


def hide_in_result(result: Any) -> None:
    """Hide secrets in the error of the `execute_reply`, which the client gets beside the output."""
    for name in ("error_before_exec", "error_in_exec"):
        setattr(result, name, _safe_error(getattr(result, name)))


def _safe_error(error: Any) -> Any:
    """`error`, or if its message has a secret, an error of the same type name without it."""
    if error is None:
        return None
    try:
        text = str(error)
    except Exception:  # a __str__ that fails is reported where the error is shown
        return error
    safe = without_secrets(text)
    if safe == text:
        return error
    # A new class: the constructor of the error's own may need other arguments.
    return type(type(error).__name__, (Exception,), {})(safe).with_traceback(error.__traceback__)
