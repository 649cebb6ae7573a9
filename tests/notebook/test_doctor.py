"""%doctor: what is installed and set, what is missing, and what to type next; no key is shown."""

import asyncio
import sys
import threading
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from adk_nb import LlmAgent, redaction, sync
from adk_nb.code_executors import isolation
from adk_nb.models import OpenAILlm
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.notebook.magics import doctor
from adk_nb.notebook.magics.doctor import findings
from adk_nb.notebook.magics.output import Finding
from tests.notebook.conftest import Shell
from tests.support.http_service import Service


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    yield
    redaction.forget()


def findings_by_topic(shell: Shell) -> dict[str, Finding]:
    magics = shell.ip.magics_manager.registry["AdkMagics"]
    return {finding.topic: finding for finding in findings(magics)}


def test_it_is_a_table_of_findings_with_what_to_type(shell: Shell):
    report = str(shell.cell("%doctor"))
    head, line, *rows = report.splitlines()

    assert head.split("  ")[0] == "check"
    assert head.endswith("type next")
    assert set(line) == {"-", " "}
    assert len(rows) == len(findings_by_topic(shell))
    assert [row.split()[0] for row in rows[:2]] == ["model", "key"]  # versions come last
    [versions] = [place for place, row in enumerate(rows) if row.startswith("versions")]
    assert versions >= len(rows) - 3 and f"ipython {metadata.version('ipython')}" in rows[versions]
    assert "%pip install" not in report  # extras are optional


def test_keys_are_shown_by_their_names_alone(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "Zx91-secret-abc")
    monkeypatch.setenv("GEMINI_API_KEY", "Zx92-secret-abc")
    rows = findings_by_topic(shell)

    assert rows["key"] == Finding("key", "GEMINI_API_KEY, OPENAI_API_KEY are set")
    assert rows["model"].status.startswith(f"{GEMINI_MODEL} (GEMINI_API_KEY is set)")
    assert "secret" not in str(shell.cell("%doctor"))


def test_it_reports_the_isolation_of_the_code_of_models(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    here = findings_by_topic(shell)["models' code"]
    works = isolation.available()
    monkeypatch.setenv("PATH", "")
    isolation.available.cache_clear()
    without_programs = findings_by_topic(shell)["models' code"]
    isolation.available.cache_clear()

    assert here.status.startswith("isolated" if works else "not isolated")
    assert without_programs.status.startswith("not isolated") and "keys" in without_programs.status
    assert sys.platform != "linux" or "bubblewrap" in without_programs.advice


def test_without_a_key_it_names_the_magic_that_sets_one(shell: Shell):
    assert findings_by_topic(shell)["key"].advice.startswith("%key gemini")


def test_with_vertex_no_key_is_needed(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")

    assert "Vertex AI" in findings_by_topic(shell)["key"].status
    assert not findings_by_topic(shell)["key"].advice


def test_a_missing_package_comes_with_the_line_that_installs_it(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    real = metadata.version
    missing = ("anywidget", "mcp")

    def version(name: str) -> str:
        if name in missing:
            raise metadata.PackageNotFoundError(name)
        return "6.29.5" if name == "ipykernel" else real(name)

    monkeypatch.setattr(doctor.metadata, "version", version)
    rows = findings_by_topic(shell)

    assert rows["anywidget"] == Finding("anywidget", "not installed", "%pip install anywidget", is_problem=True)
    assert rows["ipykernel"].is_problem and rows["ipykernel"].status.startswith("6.29.5: ")
    assert "%confirm" in rows["ipykernel"].advice
    assert list(rows)[:2] == ["anywidget", "ipykernel"]
    extras = rows["extras"].status.split(", ")
    assert {"auth", "code"} <= {*extras} and not {"mcp", "dev"} & {*extras}


@pytest.mark.parametrize(("version", "is_well"), [("7.0.0", False), ("7.3.0", False), ("7.4.0", True), ("8.0", True)])
def test_an_ipykernel_that_may_miss_messages_comes_with_the_line_that_upgrades_it(
    version: str, is_well: bool, shell: Shell, monkeypatch: pytest.MonkeyPatch
):
    def version_of(name: str) -> str:
        return version

    monkeypatch.setattr(doctor.metadata, "version", version_of)

    problem = findings_by_topic(shell).get("ipykernel")
    assert (problem and problem.advice) == (None if is_well else "%pip install -U ipykernel")


def test_a_blocked_event_loop_is_a_problem(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    assert not findings_by_topic(shell)["event loop"].is_problem
    monkeypatch.setattr(doctor, "_SECONDS", 0.05)
    release = threading.Event()

    async def block() -> None:
        await asyncio.sleep(0)
        release.wait(30)  # a tool that blocks the loop

    blocking = sync.start(block())
    try:
        row = findings_by_topic(shell)["event loop"]
    finally:
        release.set()
        blocking.result(5)
    assert row.is_problem and row.advice == "restart the kernel"
    assert "adk-nb-loop" in row.status and "@tool(thread=True)" in row.status


def test_settings_of_the_notebook_are_reported(shell: Shell, tmp_path: Path):
    shell.ip.starting_dir = str(tmp_path)
    shell.cell('%config AdkNb.display = "static"')
    shell.cell('%config AdkNb.sessions = "sqlite:///nb.db"')
    shell.cell("%replay auto")
    rows = findings_by_topic(shell)
    shell.cell("%replay off")

    assert rows["live view"].status.startswith("static")
    assert "%config AdkNb.display =" in rows["live view"].advice and '"auto"' in rows["live view"].advice
    assert rows["sessions"].status.endswith("sqlite:///nb.db")
    assert rows["recording"].status.endswith("cassettes/notebook.jsonl")
    assert rows["recording"].advice == "%replay off"
    assert findings_by_topic(shell)["recording"].advice == "%record, %replay"


@pytest.mark.parametrize(
    ("module", "variable", "user_variable", "name"),
    [
        ("google.colab", "", "", "Colab"),
        ("", "KAGGLE_KERNEL_RUN_TYPE", "", "Kaggle"),
        ("", "BINDER_SERVICE_HOST", "", "Binder"),
        ("", "", "__vsc_ipynb_file__", "VS Code"),
        ("", "", "", "IPython, in a terminal or a script"),
    ],
)
def test_the_front_end_is_reported(
    module: str, variable: str, user_variable: str, name: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("ADK_NB_DISPLAY")
    if module:
        monkeypatch.setitem(sys.modules, module, SimpleNamespace())
    if variable:
        monkeypatch.setenv(variable, "x")
    if user_variable:
        shell.names[user_variable] = "/somewhere/nb.ipynb"

    assert findings_by_topic(shell)["runs in"].status == name


@pytest.mark.parametrize(
    ("can_ask", "runs_in", "view", "advice"),
    [(True, "Jupyter", "a widget", ""), (False, "nbclient", "off", "%confirm")],
)
def test_in_a_kernel_it_reports_the_display_and_input(
    can_ask: bool, runs_in: str, view: str, advice: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("ADK_NB_DISPLAY")
    kernel: Any = SimpleNamespace(_allow_stdin=can_ask)
    monkeypatch.setattr(shell.ip, "kernel", kernel, raising=False)
    rows = findings_by_topic(shell)

    assert rows["runs in"].status.startswith(runs_in)
    assert rows["live view"].status.startswith(view)
    assert advice in rows["input"].advice and bool(rows["input"].advice) is not can_ask
    assert rows["asyncio.run"].status.startswith("fails in cells")


def test_in_a_terminal_asyncio_run_works_and_is_not_said_to_fail(shell: Shell):
    shell.cell("import asyncio\nasync def three():\n    return 3")

    assert shell.cell("asyncio.run(three())") == 3
    assert findings_by_topic(shell)["asyncio.run"].status.startswith("works in cells")


@pytest.mark.parametrize("has_tools", [False, True])
def test_a_server_that_tells_its_model_of_no_tools_is_reported(shell: Shell, has_tools: bool):
    def look() -> str:
        """Look."""
        return "seen"

    with Service() as server:
        server.say("/props", {"chat_template_caps": {"supports_tools": has_tools}})
        shell.names["clerk"] = LlmAgent(
            name="clerk", model=OpenAILlm(model="noise", base_url=f"{server.url}/v1"), tools=[look]
        )

        report = str(shell.cell("%doctor"))

    assert ("does not tell model 'noise' of any tool" in report) is not has_tools
    assert ("--chat-template-file" in report) is not has_tools
