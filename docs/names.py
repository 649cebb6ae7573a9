"""The public names and what each is for, read from the stubs and the docstrings without importing either."""

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = (
    *("adk_nb", "agents", "tools", "models", "runners", "sessions", "workflow", "events", "evaluation", "apps"),
    *("plugins", "memory", "artifacts", "code_executors", "planners", "skills", "auth", "a2a", "serving"),
    *("telemetry", "engines", "errors", "extensions", "panels", "live", "examples", "graph_compose", "integrations"),
    "utils",
)
"""In the order in which users meet them: what is imported first stands first."""
INSIDE = ("tools/auth",)
"""Folders in them whose stub is for the package itself."""
FIRST = (
    *("Agent", "tool", "Chat", "Reply", "LlmAgent", "SequentialAgent", "ParallelAgent", "LoopAgent"),
    *("Workflow", "node", "START", "END", "Runner", "InMemoryRunner", "App", "RunConfig", "Context"),
    *("ToolContext", "FunctionTool", "AgentTool", "McpToolset", "Gemini", "OpenAILlm", "Claude", "OllamaLlm"),
    *("evaluate", "metric", "judge", "agent_map", "Session", "InMemorySessionService", "SqliteSessionService"),
)
"""Of the names of a package, those that stand before the others."""
_SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z`])")
_LONG = 130
"""Characters that a line has at most, unless its first sentence is longer."""


@dataclass(frozen=True)
class PublicName:
    """A name that users import."""

    name: str
    package: str
    """Where it is imported from."""
    path: str
    """Where it is defined."""
    line: str
    """What it is for, in a sentence."""


@cache
def public_names(package: str) -> list[PublicName]:
    """The public names of one of `PACKAGES`, and of the packages in it that have stubs of their own."""
    folder = ROOT / "adk_nb" / ("" if package == "adk_nb" else package)
    nested = [] if package == "adk_nb" else sorted(folder.glob("*/**/__init__.pyi"))
    inside = [ROOT / "adk_nb" / path / "__init__.pyi" for path in INSIDE]
    stubs = [stub for stub in [folder / "__init__.pyi", *nested] if stub.is_file() and stub not in inside]
    found = [public for stub in stubs for public in _of_stub(stub)]
    found = found or _of_module(f"adk_nb.{package}")
    return sorted(found, key=lambda public: FIRST.index(public.name) if public.name in FIRST else len(FIRST))


def _of_stub(stub: Path) -> list[PublicName]:
    package = ".".join(stub.parent.relative_to(ROOT).parts)
    imports = [node for node in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    sources = {alias.name: node.module or "" for node in imports for alias in node.names}
    ours = {name: module for name, module in sources.items() if module.startswith("adk_nb")}
    return [PublicName(name, package, f"{module}.{name}", line_of(module, name)) for name, module in ours.items()]


def _of_module(module: str) -> list[PublicName]:
    """A module without a stub: the names in its `__all__`, else its classes."""
    names = [node.name for node in _body(module) if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    for node in _body(module):
        if isinstance(node, ast.Assign) and _values(node).get("__all__"):
            names = ast.literal_eval(node.value)
    return [PublicName(name, module, f"{module}.{name}", line_of(module, name)) for name in names]


def line_of(module: str, name: str) -> str:
    """The first sentence about a name in its module, and more if they are short; empty if there is none."""
    line, *more = _SENTENCE.split(" ".join(_docstring(module, name).partition("\n\n")[0].split()))
    for sentence in more:
        if len(line) + len(sentence) > _LONG:
            break
        line = f"{line} {sentence}"
    return line


def _docstring(module: str, name: str) -> str:
    if _file(f"{module}.{name}"):  # a module, handed out by its package
        return ast.get_docstring(ast.Module(_body(f"{module}.{name}"), [])) or ""
    body = _body(module)
    for node, after in zip(body, [*body[1:], None], strict=True):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() if node.name == name:
                if said := ast.get_docstring(node):  # an overload has none
                    return said
            case ast.Assign() | ast.AnnAssign() if value := _values(node).get(name):
                if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                    return str(after.value.value)
                return _of_value(module, value)
            case ast.ImportFrom() if name in [alias.asname or alias.name for alias in node.names]:
                return _docstring(node.module or "", name)
            case _:
                pass
    return ""


def _values(node: ast.Assign | ast.AnnAssign) -> dict[str, ast.expr]:
    """What an assignment gives to which name."""
    found: dict[str, ast.expr] = {}
    for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = zip(target.elts, node.value.elts, strict=True)
            found |= {name.id: value for name, value in pairs if isinstance(name, ast.Name)}
        elif isinstance(target, ast.Name) and node.value:
            found[target.id] = node.value
    return found


def _of_value(module: str, value: ast.expr) -> str:
    """Another name for something, or an object of a class."""
    match value:
        case ast.Name(id=name):
            return f"The same as `{name}`."
        case ast.Call(func=ast.Name(id=name)):
            return _docstring(module, name)
        case _:
            return ""


def _body(module: str) -> list[ast.stmt]:
    file = _file(module)
    return ast.parse(file.read_text(encoding="utf-8")).body if file else []


@cache
def _file(module: str) -> Path | None:
    path = ROOT.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
