"""Write Python: values and calls, imports, and pieces in the order in which they run."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from adk_nb.notebook.export.target import Target

WIDTH = 100
_DEFINES = re.compile(r"(#.*\n)*(@|def |async def |class )")
_PLAIN = re.compile(r"[^\\\x00-\x09\x0b-\x1f\x7f]*")


def text_code(text: str) -> str:
    """A text as Python has it: over several lines if it has several."""
    is_plain = _PLAIN.fullmatch(text) and '"""' not in text and not text.endswith('"')
    if "\n" in text and is_plain:
        return f'"""\\\n{text}"""'
    if is_plain and '"' not in text:
        return f'"{text}"'
    return repr(text)


def list_code(items: Iterable[str]) -> str:
    """Expressions in brackets."""
    return f"[{', '.join(items)}]"


def call_code(function: str, given: Mapping[str, str | None], *first: str) -> str:
    """A call: on one line if there is room, else an argument a line.

    Args:
        function: What is called.
        given: Names -> expressions; those that are None are left out.
        first: Expressions without a name.
    """
    said = [*first, *(f"{name}={value}" for name, value in given.items() if value is not None)]
    line = f"{function}({', '.join(said)})"
    if "\n" not in line and len(line) <= WIDTH:
        return line
    return "\n".join([f"{function}(", *(f"    {one}," for one in said), ")"])


def joined(pieces: Iterable[str]) -> str:
    """Pieces of a file under each other: lines close together, what has several apart, functions far apart."""
    made = ""
    last = ""
    for one in filter(None, pieces):
        far = _DEFINES.match(one) or _DEFINES.match(last) or last.startswith(("import ", "from "))
        near = "\n" if "\n" not in one + last else "\n\n"
        made += one if not last else ("\n\n\n" if far else near) + one
        last = one
    return made


def is_data(value: Any, depth: int = 0) -> bool:
    """Whether `repr` of it is Python that makes it again."""
    if type(value) in (str, int, bool, bytes, type(None)):
        return True
    if type(value) is float:
        return value == value and abs(value) != float("inf")
    if depth > 20 or type(value) not in (list, tuple, dict, set):
        return False
    inner = [*cast(Iterable[Any], value), *(cast(Mapping[Any, Any], value).values() if type(value) is dict else ())]
    return all(is_data(one, depth + 1) for one in inner)


_STANDARD = {
    "Any": ("typing", "Any"),
    "AsyncGenerator": ("collections.abc", "AsyncGenerator"),
    "json": ("json", ""),
    "Path": ("pathlib", "Path"),
    "re": ("re", ""),
    "types": ("types", ""),
}
"""What the written helpers need of Python itself."""
_ROOMS = {
    "BaseAgent": "agents",
    "DEFAULT_ROUTE": "workflow",
    "Event": "events",
    "EventActions": "events",
    "FunctionTool": "tools",
    "InvocationContext": "agents.invocation_context",
    "JoinNode": "workflow",
    "LlmAgent": "agents",
    "LongRunningFunctionTool": "tools",
    "LoopAgent": "agents",
    "McpToolset": "tools.mcp_tool",
    "OpenAPIToolset": "tools.openapi_tool.openapi_spec_parser.openapi_toolset",
    "ParallelAgent": "agents",
    "SequentialAgent": "agents",
    "SseConnectionParams": "tools.mcp_tool.mcp_session_manager",
    "StreamableHTTPConnectionParams": "tools.mcp_tool.mcp_session_manager",
    "Workflow": "workflow",
}
"""What is written itself -> where both packages have it."""


class Imports:
    """Import lines, by module."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._whole: dict[str, str] = {}
        self._names: dict[str, dict[str, str]] = {}
        """Module -> what is bound -> what of the module."""

    def add(self, bound: str, module: str, name: str) -> None:
        """Bind `bound` to `name` of `module`, or to the module itself where `name` is empty."""
        if name:
            self._names.setdefault(module, {})[bound] = name
        else:
            self._whole[bound] = module

    def add_known(self, bound: str) -> bool:
        """Bind what the written code uses by that name; False: it is none of that."""
        if bound in _ROOMS:
            self.add(bound, f"{self._target.package}.{_ROOMS[bound]}", bound)
        elif bound in _STANDARD:
            self.add(bound, *_STANDARD[bound])
        else:
            return False
        return True

    @property
    def code(self) -> str:
        """The lines; Python's and other packages first, then those of the target."""
        whole = [_import(bound, module) for bound, module in self._whole.items()]
        named = [f"from {module} import {', '.join(_named(names))}" for module, names in sorted(self._names.items())]
        lines = [*sorted(whole), *named]
        theirs = [one for one in lines if self._target.package in one]
        others = [one for one in lines if one not in theirs]
        return "\n\n".join("\n".join(group) for group in (others, theirs) if group)


def _import(bound: str, module: str) -> str:
    return f"import {module}" if bound == module.partition(".")[0] else f"import {module} as {bound}"


def _named(names: dict[str, str]) -> list[str]:
    return sorted(name if bound == name else f"{name} as {bound}" for bound, name in names.items())


@dataclass(frozen=True, eq=False)
class Piece:
    """Some lines that belong together."""

    text: str
    early: Sequence[str] = ()
    """Names that have to be there when it runs."""
    late: Sequence[str] = ()
    """Names that have to be there when what it defines is called."""


Find = Callable[[str, str], Iterable[Piece]]
"""`(name, who needs it) -> the pieces that make it`, in their order; none for what Python has itself."""


class Order:
    """The pieces that some names need, in an order in which they run."""

    def __init__(self, find: Find) -> None:
        self.pieces: list[Piece] = []
        self._find = find
        self._of: dict[str, list[Piece]] = {}
        self._begun: set[str] = set()
        self._written: set[Piece] = set()

    def add(self, name: str, needed_by: str) -> None:
        """Write what makes `name`, after all that it needs."""
        if name in self._begun:
            self._finish(name)  # a circle: those that need it only when called come after it
            return
        self._begun.add(name)
        self._of[name] = list(self._find(name, needed_by))
        for piece in self._of[name]:
            for one in piece.early:
                if one != name:
                    self.add(one, name)
            for one in piece.late:
                if one not in self._begun:
                    self.add(one, name)
            self._write(piece)

    def add_or_leave(self, name: str, needed_by: str) -> None:
        """As `add`; if it raises, all is as it was."""
        before = list(self.pieces), dict(self._of), set(self._begun), set(self._written)
        try:
            self.add(name, needed_by)
        except Exception:
            self.pieces, self._of, self._begun, self._written = before
            raise

    def _finish(self, name: str) -> None:
        for piece in self._of.get(name, ()):
            self._write(piece)

    def _write(self, piece: Piece) -> None:
        if piece not in self._written:
            self._written.add(piece)
            self.pieces.append(piece)
