"""Run code of an agent in this kernel, as a cell would, and tell what came of it."""

import ast
import base64
import builtins
import getpass
import io
import itertools
import linecache
import os
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, cast

from adk_nb import locations, types
from adk_nb.notebook.extensions.notebook_tools.look import described, first_rows, shape_of
from adk_nb.notebook.extensions.notebook_tools.values import (
    Json,
    cut,
    fitted,
    length_of,
    library_of,
    type_name,
    without_secrets,
)
from adk_nb.notebook.variables import user_variables
from adk_nb.tools.media import MAX_MEDIA_BYTES, close_inline_figure, media_in
from adk_nb.tools.tool_result import Told

_HEAD = 20_000
"""Characters of the output that are kept from its beginning."""
_TAIL = 5_000
"""Characters that are kept from its end."""
_SHOWN = 200_000
"""Characters of the output that go to the cell, too."""
_PICTURES = 4
"""Pictures of one result."""
_DISPLAYS = 50
"""Displays that go to the cell."""
_NAMES = 30
"""Variables that are named as new, changed or gone; threads, and lines of an error."""
_TOLD = 2_000
"""Characters of the output that the model gets."""
_LAST = 500
"""Characters of its end, where it is longer."""
_runs = itertools.count(1)


def problem_of(code: str, transform: Callable[[str], str]) -> str:
    """Why code cannot be run, for the model; empty: it can be.

    `transform`: IPython's, which makes Python of magics.
    """
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError) as error:
        lines = [(n, line.strip()) for n, line in enumerate(code.split("\n"), 1)]
        marked = [f"line {n}: {line:.60}" for n, line in lines if line[:1] in ("%", "!", "?") or line[-1:] == "?"]
        with suppress(SyntaxError, ValueError):
            ast.parse(transform(code))
            return f"magics and shell lines do not run here ({'; '.join(marked[:3])}); propose a cell with write_cell"
        place = f" in line {error.lineno}: {(error.text or '').strip():.80}" if isinstance(error, SyntaxError) else ""
        return f"{type(error).__name__}: {getattr(error, 'msg', error)}{place}"
    except (RecursionError, MemoryError):
        return "the code is nested too deeply to be read"
    if not tree.body:
        return "there is no code in it"
    try:
        compile(tree, "<run_code>", "exec")
    except (SyntaxError, ValueError) as error:
        place = f" in line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        if "await" in str(error) or "async" in str(error):
            return f"await{place} is not possible here, as the cell waits; propose a cell with write_cell"
        return f"{type(error).__name__}: {getattr(error, 'msg', error)}{place}"
    return ""


class _Printed(io.TextIOBase):
    """What is printed: to the cell, and its beginning and end for the model."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._head: list[str] = []
        self._tail: deque[str] = deque(maxlen=_TAIL)
        self.count = 0

    encoding = "utf-8"

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def write(self, text: str, /) -> int:
        if not isinstance(cast(Any, text), str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        if self.count < _SHOWN:
            self._stream.write(text[: _SHOWN - self.count])
            if self.count + len(text) >= _SHOWN:
                self._stream.write(f"\n[more than {_SHOWN:,} characters: the rest is not shown]\n")
        self.add(text)
        return len(text)

    def add(self, text: str) -> None:
        """Keep it for the model alone."""
        room = max(0, _HEAD - self.count)
        if room:
            self._head.append(text[:room])
        self._tail.extend(text[room:][-_TAIL:])
        self.count += len(text)

    def flush(self) -> None:
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)  # as of the kernel's own stream

    @property
    def told(self) -> str:
        """What the model is told of it."""
        head, tail = "".join(self._head), "".join(self._tail)
        # Hidden before it is cut, and as one text where nothing is missing: of a secret in two no half is found.
        if self.count <= _HEAD + _TAIL:
            head = tail = without_secrets(head + tail)
            if len(head) <= _TOLD + _LAST:
                return head
        else:
            head, tail = without_secrets(head), without_secrets(tail)
        head, tail = head[:_TOLD], tail[-_LAST:]
        return f"{head}\n[{max(0, self.count - len(head) - len(tail)):,} characters left out]\n{tail}"


class _Displays:
    """What is displayed: pictures for the result, the rest to the cell, its text for the model."""

    def __init__(self, publish: Callable[..., Any], printed: _Printed) -> None:
        self._publish, self._printed = publish, printed
        self.pictures: list[types.Blob] = []
        self.left_out = 0
        self.count = 0

    def publish(self, data: Mapping[str, Any], *args: Any, **options: Any) -> None:
        """As of IPython's publisher."""
        for kind in ("image/png", "image/jpeg"):
            if content := data.get(kind):
                self.add(content if isinstance(content, bytes) else base64.b64decode(content), kind)
                return
        self.count += 1
        if self.count <= _DISPLAYS:
            self._publish(data, *args, **options)
        if text := data.get("text/plain"):
            self._printed.add(f"{text}\n")

    def add(self, content: bytes, kind: str) -> None:
        """Take in a picture."""
        size = sum(len(picture.data or b"") for picture in self.pictures) + len(content)
        if len(self.pictures) < _PICTURES and size <= MAX_MEDIA_BYTES:
            self.pictures.append(types.Blob(data=content, mime_type=kind))
        else:
            self.left_out += 1


def run(shell: Any, code: str) -> Any:
    """Run code in the notebook's namespace, in this thread; returns what the model is told.

    Raises:
        KeyboardInterrupt: Ctrl-C, or the Stop of the run.
    """
    process, filename = os.getpid(), f"<run_code {next(_runs)}>"
    linecache.cache[filename] = (len(code), None, code.splitlines(True), filename)
    tree = ast.parse(code, filename)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    names: dict[str, Any] = shell.user_ns
    before, figures, threads = _marks(names), _figures(), {*threading.enumerate()}
    printed, value, error = _Printed(sys.stdout), None, None
    displays = _Displays(shell.display_pub.publish, printed)
    with _as_in_a_cell(shell, printed, displays, process):
        try:
            exec(compile(tree, filename, "exec", dont_inherit=True), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), filename, "eval", dont_inherit=True), names)
            _flush_figures(figures, displays)
        except KeyboardInterrupt:
            raise
        except BaseException as raised:
            error = raised
    outcome: Json = {"printed": printed.told} if printed.count else {}
    shown = None
    if value is not None:
        facts = described(value)
        if (picture := facts.pop("picture", None)) is not None:
            displays.add(picture.data, picture.mime_type)
            close_inline_figure(value)
        is_short_text = type(value) is str and len(value) <= _LAST
        outcome["value"] = facts["beginning"] if is_short_text else facts.get("value", facts)
        shown = first_rows(facts)
    if error is not None:
        outcome |= _told_error(error, filename)
    outcome |= _changes(before, names, tree if last is None else ast.parse(code))
    if going_on := [thread.name for thread in threading.enumerate() if thread not in threads and _is_of_code(thread)]:
        outcome["threads"] = f"{cut(', '.join(going_on[:_NAMES]), 200)}: still running, as the code left them"
    if displays.left_out:
        outcome["pictures_left_out"] = displays.left_out
    told = fitted(outcome or {"note": "it ran, and printed nothing"})
    return Told({**told, **({"pictures": displays.pictures} if displays.pictures else {})}, shown)


@contextmanager
def _as_in_a_cell(shell: Any, printed: _Printed, displays: _Displays, process: int) -> Generator[None]:
    """What the code prints and displays is kept; what would end or block the kernel raises.

    A process that it forks ends here: the kernel is there once.
    """
    end = os._exit

    def refusal(name: str, instead: str, real: Any = None) -> Callable[..., Any]:
        def refuse(*args: Any, **options: Any) -> Any:
            if os.getpid() != process and real is not None:
                return real(*args, **options)
            raise RuntimeError(f"{name} {instead}")

        return refuse

    no_input = "is not possible in run_code, as nobody is asked; ask the user in your answer"
    no_end = "would end the kernel and all variables; it was not called"
    replaced: list[tuple[Any, str, Any]] = [
        (sys, "stdout", printed),
        (sys, "stderr", printed),
        (shell.display_pub, "publish", displays.publish),
        (builtins, "input", refusal("input()", no_input)),
        (getpass, "getpass", refusal("getpass()", no_input)),
        (shell, "ask_exit", refusal("exit()", no_end)),
        *((os, name, refusal(f"os.{name}()", no_end, getattr(os, name))) for name in _ENDS if hasattr(os, name)),
    ]
    with ExitStack() as restoring:
        for owner, name, value in replaced:
            _replace(restoring, owner, name, value)
        try:
            yield
        finally:
            if os.getpid() != process:
                end(0)


_ENDS = ("_exit", "abort", "execv", "execve")


def _replace(restoring: ExitStack, owner: Any, name: str, value: Any) -> None:
    own = cast(dict[str, Any], vars(owner))
    if name in own:
        restoring.callback(setattr, owner, name, own[name])
    elif hasattr(owner, name):
        restoring.callback(delattr, owner, name)
    else:
        return
    setattr(owner, name, value)


# ---- variables


_Mark = tuple[Any, Any]


def _marks(names: Mapping[str, Any]) -> dict[str, _Mark]:
    """Each variable's value, with its length or shape."""
    return {name: (value, _extent(value)) for name, value in _variables(names).items()}


def _variables(names: Mapping[str, Any]) -> dict[str, Any]:
    now = dict(names)
    return {name: now[name] for name in user_variables([name for name in now if type(name) is str])}


def _extent(value: Any) -> Any:
    return shape_of(value) if library_of(value)[0] else length_of(value)


def _changes(before: Mapping[str, _Mark], names: Mapping[str, Any], tree: ast.AST) -> Json:
    """Variables that are new, changed and gone. In place: another length or shape, or the code assigns into it."""
    now, assigned = _variables(names), _assigned_into(tree)
    changed = [
        name
        for name, (value, extent) in before.items()
        if name in now and (now[name] is not value or name in assigned or _extent(now[name]) != extent)
    ]
    lists = {
        "new": [f"{name} ({type_name(value)})" for name, value in now.items() if name not in before],
        "changed": changed,
        "gone": [name for name in before if name not in now],
    }
    return {
        word: [*listed[:_NAMES], *([f"{len(listed) - _NAMES:,} more"] if len(listed) > _NAMES else [])]
        for word, listed in lists.items()
        if listed
    }


def _assigned_into(tree: ast.AST) -> set[str]:
    """The names before a dot or bracket that something is assigned to: `df` of `df.loc[0, "a"] = 1`."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            inner: ast.expr = node
            while isinstance(inner, ast.Attribute | ast.Subscript):
                inner = inner.value
            if isinstance(inner, ast.Name):
                found.add(inner.id)
    return found


# ---- figures, errors, threads


def _figures() -> set[int]:
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    return {*pyplot.get_fignums()} if pyplot else set[int]()


def _flush_figures(before: set[int], displays: _Displays) -> None:
    """Take the figures that the code left open, as a cell shows them at its end."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    for number in sorted(_figures() - before):
        figure = pyplot.figure(number)
        if displays.left_out or len(displays.pictures) >= _PICTURES:
            displays.left_out += 1
        elif media := media_in(figure):
            displays.add(media.data, media.mime_type)
        close_inline_figure(figure)


def _told_error(error: BaseException, filename: str) -> Json:
    """The error, and the lines of the code and of cells through which it came."""
    if isinstance(error, SystemExit):
        return {"error": f"sys.exit({cut(repr(error.code), 80)}) ended the code; the kernel goes on"}
    lines: list[str] = []
    for frame, line in traceback.walk_tb(error.__traceback__):
        cell = locations.cell_of(frame)
        if frame.f_code.co_filename == filename or cell:
            source = linecache.getline(frame.f_code.co_filename, line).strip()
            lines.append(f"{f'{cell} ' if cell else ''}line {line}: {cut(source, 200)}")
    if len(lines) > _NAMES:
        lines = [*lines[:3], f"… {len(lines) - 6:,} lines …", *lines[-3:]]
    try:
        text = str(error)
    except Exception:  # its own __str__
        text = "its message cannot be read"
    return {"error": cut(f"{type(error).__name__}: {text}", 1_000), "at": lines}


def _is_of_code(thread: threading.Thread) -> bool:
    return thread.is_alive() and not thread.name.startswith(("adk-nb", "IPython", "ThreadPoolExecutor-zmq"))
