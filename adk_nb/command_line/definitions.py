"""The statements of a notebook's cells that define something, apart from those that talk, evaluate, serve or show."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

DEFINES = {
    "agent", "tool", "workflow", "load_ext", "reload_ext", "config", "key",
    "autoreload", "matplotlib", "cd", "env", "set_env", "writefile",
}  # fmt: skip
"""Magics that define or set up something, whose cells run."""
_TALKS = {
    "ask", "aask", "run", "arun", "run_async", "run_live", "run_debug", "run_until_complete",
    "stream_query", "async_stream_query", "answer", "approve", "reject", "rerun", "rewind", "resume", "box",
    "evaluate", "aevaluate", "agent_map",
}  # fmt: skip
"""Functions and methods that run an agent, or something else to its end."""
_SHOWS = {
    "print", "pprint", "display", "show", "plot", "head", "tail", "describe", "info", "read_text", "read", "help",
}  # fmt: skip
"""Functions and methods that are called to look at something, where nothing is done with what they return."""
_ASKS = {"input", "getpass"}
_RESULTS = {"_run", "_eval", "_map", "_serve", "_", "__", "___", "Out"}
"""Variables that hold what talking leaves."""
_SETS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.Expr)
"""Statements that define variables at most."""
_CAPTURE = re.compile(r"\s*([^\W\d]\w*)\s*<<")
"""The variable before `<<` in the line of a magic."""
_MAGIC_CALLS = ("run_line_magic", "run_cell_magic")
_SHELL_CALLS = ("system", "getoutput")


@dataclass
class Selection:
    """Chooses the statements of cells, one cell after another, and remembers what the left out ones would have set."""

    unavailable: dict[str, str] = field(default_factory=lambda: dict.fromkeys(_RESULTS, "an answer"))
    """Variable that only a statement which was left out sets -> that statement, as `cell 5 (%chat)`."""
    talkers: set[str] = field(default_factory=set[str])
    """Functions of the notebook that talk when they are called, or need what was left out."""
    failed: set[str] = field(default_factory=set[str])
    """Variables of cells that failed, as they looked at what talking leaves."""
    needed: str = ""
    """One of these that a definition needs; empty: none does."""

    def choose(self, module: ast.Module, place: str) -> list[str]:
        """Take the statements out of a module that are not to run; returns why, a reason each.

        Args:
            module: A cell, whose magics are calls already.
            place: The cell, as `cell 5`.
        """
        kept, reasons = list[ast.stmt](), list[str]()
        for statement in module.body:
            if self.failed and not _only_shows(statement):
                self.needed = self.needed or next(filter(self.failed.__contains__, _mentioned(statement)), "")
            reason = self._reason(statement)
            if reason is None and _only_shows(statement):
                continue
            if reason is None:
                kept.append(statement)
                for name in _bound(statement):
                    self.unavailable.pop(name, None)
                    self.failed.discard(name)
                self._note_talker(statement)
            else:
                reasons.append(reason)
                for name in _bound(statement):
                    self.unavailable[name] = f"{place} ({reason})"
        module.body = kept
        return list(dict.fromkeys(reasons))

    def leave_out_failed(self, statements: Sequence[ast.stmt], place: str) -> bool:
        """Take a cell that failed as left out, if it defines nothing but variables; False: it defines more."""
        if not all(isinstance(one, _SETS) for one in statements):
            return False
        for name in [name for one in statements for name in _bound(one)]:
            self.unavailable[name] = place
            self.failed.add(name)
        return True

    def run_all(self, module: ast.Module) -> None:
        """Note that all statements of a module run."""
        for statement in module.body:
            for name in _bound(statement):
                self.unavailable.pop(name, None)

    def _reason(self, statement: ast.stmt) -> str | None:
        """Why a statement does not run, as `%chat`; None: it runs."""
        for node in _now(statement):
            if isinstance(node, ast.Call) and (reason := self._reason_of_call(node)):
                return reason
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in self.unavailable:
                return f"needs {node.id}"
        return None

    def _reason_of_call(self, call: ast.Call) -> str | None:
        function = call.func
        name = _name_of(function)
        if name in _MAGIC_CALLS and call.args and isinstance(call.args[0], ast.Constant):
            magic = str(call.args[0].value)
            mark = "%%" if name == "run_cell_magic" else "%"
            return None if magic in DEFINES else f"{mark}{magic}"
        if name in _SHELL_CALLS and _is_of_ipython(function):
            command = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else ""
            return f"!{str(command).split(maxsplit=1)[0]}" if str(command).strip() else "!"
        if name in _ASKS:
            return f"{name}(), which needs a person"
        if name in _TALKS or (isinstance(function, ast.Name) and name in self.talkers):
            return f"{name}()"
        return None

    def _note_talker(self, statement: ast.stmt) -> None:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        nodes = [node for part in statement.body for node in ast.walk(part)]
        own = {one.arg for one in ast.walk(statement.args) if isinstance(one, ast.arg)}
        own |= {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        read = {node.id for node in nodes if isinstance(node, ast.Name)} - own
        calls = (node for node in nodes if isinstance(node, ast.Call))
        if read & self.unavailable.keys() or any(self._reason_of_call(call) for call in calls):
            self.talkers.add(statement.name)
        else:
            self.talkers.discard(statement.name)


def _only_shows(statement: ast.stmt) -> bool:
    """True for a statement that shows or checks something, and sets nothing."""
    if isinstance(statement, ast.Expr):
        call = statement.value
        if isinstance(call, ast.Await):
            return False
        return not isinstance(call, ast.Call) or _name_of(call.func) in _SHOWS
    if isinstance(statement, ast.For | ast.If | ast.With):
        return all(map(_only_shows, [*statement.body, *getattr(statement, "orelse", ())]))
    return isinstance(statement, ast.Assert | ast.Pass)


def _name_of(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _is_of_ipython(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Call)


def _now(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement that are evaluated when it runs: all but the bodies of functions."""
    waiting: list[Any] = [statement]
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting = [*node.decorator_list, *node.args.defaults, *filter(None, node.args.kw_defaults), *waiting]
        elif not isinstance(node, ast.Lambda):
            waiting = [*ast.iter_child_nodes(node), *waiting]


def _mentioned(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement reads, also in functions, and the words of a cell below a magic."""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Call) and _name_of(node.func) in _MAGIC_CALLS:
            for argument in node.args[1:]:
                if isinstance(argument, ast.Constant):
                    yield from re.findall(r"\w+", str(argument.value))


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement sets."""
    for node in _now(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.ExceptHandler) and node.name:
            yield node.name
        elif isinstance(node, ast.Call) and _name_of(node.func) in _MAGIC_CALLS:
            line = node.args[1] if len(node.args) > 1 else None
            if isinstance(line, ast.Constant) and (capture := _CAPTURE.match(str(line.value))):
                yield capture[1]
