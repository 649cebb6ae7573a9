"""The house style as tests, so that `pytest` alone says whether a change is ready."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from front_end import view_build

from tests.front_end import labextension_build

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    "command",
    [
        "ruff format --check .",
        "ruff check .",
        pytest.param("pyright", marks=pytest.mark.slow),
        "lint-imports --no-logo",
    ],
)
def test_style(command: str):
    tool, *arguments = command.split()
    # Without this, pyright asks the package index whether it is the newest.
    environment = os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1", "NO_COLOR": "1"}

    done = subprocess.run([BIN / tool, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)

    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


LINT = ("--config", "tests/front_end/eslint.config.js", "--max-warnings", "0")
FORMAT = ("--config", "tests/front_end/prettier.json", "--check")


@pytest.mark.slow
@pytest.mark.parametrize("command", [("eslint", *LINT), ("prettier", *FORMAT)], ids=lambda command: command[0])
def test_style_of_the_view(command: tuple[str, ...]):
    files = [path for path in view_build.sources() if command[0] == "prettier" or path.endswith(".js")]

    done = view_build.run(*command, *files, cwd=ROOT)

    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


@pytest.mark.slow
def test_types_of_the_view():
    done = view_build.run("tsc", "--project", "tests/front_end", "--pretty", "false", cwd=ROOT)

    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


@pytest.mark.slow
def test_the_view_is_what_its_sources_make(tmp_path: Path):
    view_build.build(tmp_path)

    stale = [
        name for name in view_build.BUNDLE if (tmp_path / name).read_bytes() != (view_build.STATIC / name).read_bytes()
    ]

    stale += [] if view_build.PANEL_INDEX.read_text() == view_build.panel_index() else ["panels/index.js"]
    assert not stale, f"{stale} differ from what static/src makes; type: make bundle"


@pytest.mark.slow
def test_the_extension_of_jupyterlab_is_what_its_sources_make(tmp_path: Path):
    labextension_build.build(tmp_path / "built")

    built, committed = (labextension_build.files(folder) for folder in (tmp_path / "built", labextension_build.BUILT))
    assert built == committed, f"{labextension_build.BUILT} differs from what its sources make; type: make bundle"


ALLOWED_SCANS = {
    "runtime/open_sessions.py": "the events that other runs wrote",
    "runtime/rewind.py": "state and files as they were; the events that a fork copies",
    "runtime/first_event.py": "a history of the events before a run",
    "flow/budget.py": "what a run has cost since the last text",
    "flow/code_execution.py": "files that were sent",
    "flow/request.py": "the view of the newest cache metadata",
    "flow/tool_call.py": "whether a recorded result was stored",
    "flow/history/compaction.py": "the contents' own view",
    "flow/history/contents.py": "the contents' own view",
    "notebook/chat/chat.py": "hands out the list",
    "notebook/chat/past.py": "the events that a rewind undoes",
    "notebook/chat/turn.py": "keeps the list of a turn's beginning",
    "notebook/magics/confirm.py": "keeps the list of a turn's beginning",
    "notebook/magics/state.py": "a row for each event",
    "notebook/magics/trace.py": "which rows are dim",
    "notebook/view/rows.py": "the state that a view begins with",
}
"""Files that look at the events of a session themselves, and for what; facts about calls, interrupts, tasks, turns,
checkpoints and rewinds come from `runtime.history`.
"""


def scans_a_session(tree: ast.AST) -> bool:
    """True if something loops over the events of a session or a history, or takes a part of them."""
    loops = [node.iter for node in ast.walk(tree) if isinstance(node, ast.For | ast.comprehension)]
    calls = [arg for node in ast.walk(tree) if isinstance(node, ast.Call) and is_scan(node.func) for arg in node.args]
    slices = [node.value for node in ast.walk(tree) if isinstance(node, ast.Subscript) and is_slice(node.slice)]
    return any(is_events(part) for node in (*loops, *calls, *slices) for part in ast.walk(node))


def is_scan(called: ast.expr) -> bool:
    return isinstance(called, ast.Name) and called.id in ("any", "enumerate", "list", "next", "reversed", "surviving")


def is_slice(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice)


def is_events(node: ast.AST) -> bool:
    if not (isinstance(node, ast.Attribute) and node.attr == "events"):
        return False
    owner = node.value.func if isinstance(node.value, ast.Call) else node.value
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return name.lstrip("_") in ("session", "history", "history_of", "sessions")


def test_facts_about_a_session_come_from_its_history():
    package = ROOT / "adk_nb"
    folders = ("runtime", "flow", "agents", "workflow", "notebook")
    paths = [path for folder in folders for path in (package / folder).rglob("*.py")]
    trees = {str(path.relative_to(package)): ast.parse(path.read_text(encoding="utf-8")) for path in paths}

    scanning = {name for name, tree in trees.items() if scans_a_session(tree)}

    assert scanning - {"runtime/history.py"} == ALLOWED_SCANS.keys()


WRITERS = ROOT / "adk_nb" / "notebook" / "view" / "writers"
OF_WRITERS = {"as_text", "bundle", "html", "StreamedMarkdown"}
"""What others may import from the writers: documents go in, forms come out. `html` is called as `OF_HTML`."""
OF_HTML = {"write", "for_view", "page_sources", "readable", "visible_text"}
MAKES_JSON = {
    "rows.py": "rows of a live view",
    "event_text.py": "texts of these rows",
    "cards.py": "cards of errors",
    "interrupt_text.py": "notes on cards",
    "reply_view.py": "the answer in a live view",
    "results.py": "artifacts in a live view",
    "prompt.py": "the panel of prompts",
    "waterfall.py": "the panel of the waterfall",
    "plain_text.py": "where they are defined",
}
"""Files whose texts go to a page as JSON, through no writer: its scripts set them as text. They may call `cleaned`."""


def test_only_the_writers_know_escaping():
    faults: list[str] = []
    for path in sorted((ROOT / "adk_nb" / "notebook").rglob("*.py")):
        if not path.is_relative_to(WRITERS):
            faults += [f"{path.relative_to(ROOT)}: {fault}" for fault in _escaping_in(path)]

    assert not faults, "\n".join(faults)


def _escaping_in(path: Path) -> list[str]:
    faults: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import) and any(name.name == "html" for name in node.names):
            faults.append("imports html")
        elif isinstance(node, ast.ImportFrom):
            names = {name.name for name in node.names}
            module = node.module or ""
            if module == "html" or (module.startswith("adk_nb.notebook.view.writers") and names - OF_WRITERS):
                faults.append(f"imports {', '.join(sorted(names))} from {module}")
            if module.endswith("plain_text") and "cleaned" in names and path.name not in MAKES_JSON:
                faults.append("cleans text that a writer cleans")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "html":
            faults += [f"calls html.{node.attr}"] if node.attr not in OF_HTML else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_markup(node.value):
            faults.append(f"writes markup: {node.value[:60]!r}")
    return faults


def _is_markup(text: str) -> bool:
    return re.match(r"<(?:p|div|span|section|table|pre|code|svg|details|small|strong|iframe)[ >]", text) is not None
