"""%doctor: what is there, what is not, and what to type next; no key is shown."""

import asyncio
import sys
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adk_nb import redaction, sync
from adk_nb.code_executors import isolation
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.notebook import doctor
from adk_nb.notebook.doctor import Finding, findings
from tests.notebook.conftest import Shell


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    yield
    redaction.forget()


def found(shell: Shell) -> dict[str, Finding]:
    magics = shell.ip.magics_manager.registry["AdkMagics"]
    return {one.about: one for one in findings(shell.ip, magics.settings)}


def test_it_is_a_table_of_what_is_there_and_what_to_type(shell: Shell):
    said = str(shell.cell("%doctor"))
    head, line, *rows = said.splitlines()

    assert head.split("  ")[0] == "look at"
    assert head.endswith("type next")
    assert set(line) == {"-", " "}
    assert len(rows) == len(found(shell))
    assert [row.split()[0] for row in rows[:2]] == ["model", "key"]  # what can be done; versions stand at the end
    [versions] = [place for place, row in enumerate(rows) if row.startswith("versions")]
    assert versions >= len(rows) - 3 and f"ipython {metadata.version('ipython')}" in rows[versions]
    assert "adk-nb[" not in said  # extras that nobody asked for


def test_keys_are_shown_by_their_names_alone(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "Zx91-secret-abc")
    monkeypatch.setenv("GEMINI_API_KEY", "Zx92-secret-abc")
    told = found(shell)

    assert told["key"] == Finding("key", "GEMINI_API_KEY, OPENAI_API_KEY are set")
    assert told["model"].found == f"{GEMINI_MODEL} (GEMINI_API_KEY is set), for agents that name none"
    assert "secret" not in str(shell.cell("%doctor"))


def test_it_says_how_far_the_code_of_models_is_kept_apart(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    here = found(shell)["models' code"]
    works = isolation.available()
    monkeypatch.setenv("PATH", "")
    isolation.available.cache_clear()
    nowhere = found(shell)["models' code"]
    isolation.available.cache_clear()

    assert here.found.startswith("isolated from other processes by" if works else "not isolated")
    assert nowhere.found.startswith("not isolated") and "keys" in nowhere.found
    assert sys.platform != "linux" or "bubblewrap" in nowhere.next


def test_without_a_key_it_says_how_to_set_one(shell: Shell):
    assert found(shell)["key"] == Finding("key", "none is set", "%key gemini (or openai, anthropic)")


def test_with_vertex_no_key_is_needed(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")

    assert found(shell)["key"].found == "none needed: Vertex AI takes Google Cloud's credentials"


def test_what_is_not_installed_comes_with_the_line_that_installs_it(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    real = metadata.version
    gone = ("anywidget", "mcp")

    def version(name: str) -> str:
        if name in gone:
            raise metadata.PackageNotFoundError(name)
        return "6.29.5" if name == "ipykernel" else real(name)

    monkeypatch.setattr(doctor.metadata, "version", version)
    told = found(shell)

    assert told["anywidget"] == Finding("anywidget", "not installed", "%pip install anywidget", is_problem=True)
    assert told["ipykernel"] == Finding(
        "ipykernel",
        "6.29.5: a click on a card counts when its cell has ended",
        "or answer with %confirm",
        is_problem=True,
    )
    assert list(told)[:2] == ["anywidget", "ipykernel"]
    extras = told["extras"].found.split(", ")
    assert {"auth", "code"} <= {*extras} and not {"mcp", "dev"} & {*extras}


@pytest.mark.parametrize(("version", "is_well"), [("7.0.0", False), ("7.3.0", False), ("7.4.0", True), ("8.0", True)])
def test_a_kernel_that_may_not_hear_a_page_comes_with_the_line_that_renews_it(
    version: str, is_well: bool, shell: Shell, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(doctor.metadata, "version", lambda name: version)

    problem = found(shell).get("ipykernel")
    assert (problem and problem.next) == (None if is_well else "%pip install -U ipykernel")


def test_a_loop_that_is_blocked_is_told(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    assert found(shell)["loop"] == Finding("loop", "the thread adk-nb-loop answers")
    monkeypatch.setattr(doctor, "_SECONDS", 0.05)
    go_on = asyncio.Event()

    async def block() -> None:
        while not go_on.is_set():
            time.sleep(0.01)  # noqa: ASYNC251  # as a tool of a user might

    blocking = sync.start(block())
    try:
        told = found(shell)["loop"]
    finally:
        go_on.set()
        blocking.result(5)
    assert told.found.startswith("the thread adk-nb-loop does not answer; something blocks it")
    assert told.next == "restart the kernel"


def test_what_was_set_in_the_notebook_is_told(shell: Shell, tmp_path: Path):
    shell.ip.starting_dir = str(tmp_path)
    shell.cell('%config AdkNb.display = "static"')
    shell.cell('%config AdkNb.sessions = "sqlite:///nb.db"')
    shell.cell("%replay auto")
    told = found(shell)
    shell.cell("%replay off")

    assert told["live view"] == Finding("live view", "static, as set", '%config AdkNb.display = "auto"')
    assert told["sessions"].found == "kept in sqlite:///nb.db"
    assert told["recording"] == Finding(
        "recording", "answers are replayed, and recorded if not there: cassettes/notebook.jsonl", "%replay off"
    )
    assert found(shell)["recording"].next == "%record, %replay"


@pytest.mark.parametrize(
    ("module", "variable", "held", "name"),
    [
        ("google.colab", "", "", "Colab"),
        ("", "KAGGLE_KERNEL_RUN_TYPE", "", "Kaggle"),
        ("", "BINDER_SERVICE_HOST", "", "Binder"),
        ("", "", "__vsc_ipynb_file__", "VS Code"),
        ("", "", "", "IPython, in a terminal or a script"),
    ],
)
def test_where_it_runs_is_told(
    module: str, variable: str, held: str, name: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("ADK_NB_DISPLAY")
    if module:
        monkeypatch.setitem(sys.modules, module, SimpleNamespace())
    if variable:
        monkeypatch.setenv(variable, "x")
    if held:
        shell.names[held] = "/somewhere/nb.ipynb"

    assert found(shell)["runs in"].found == name


@pytest.mark.parametrize(
    ("asks", "runs_in", "view", "questions"),
    [
        (True, "Jupyter", "a widget (anywidget); if it stays empty", "you can be asked, as %key does"),
        (False, "a notebook that is being tested or converted", "none: nobody looks", "nobody can be asked here"),
    ],
)
def test_in_a_kernel_it_says_how_runs_are_shown_and_whether_anybody_can_be_asked(
    asks: bool, runs_in: str, view: str, questions: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("ADK_NB_DISPLAY")
    kernel: Any = SimpleNamespace(_allow_stdin=asks)
    monkeypatch.setattr(shell.ip, "kernel", kernel, raising=False)
    told = found(shell)

    assert told["runs in"].found == runs_in
    assert told["live view"].found.startswith(view)
    assert told["questions"].found == questions
