"""%config AdkNb, and pasted code that calls asyncio.run."""

import os
import sys
from collections.abc import Iterator
from queue import Empty
from typing import Any

import pytest
from jupyter_client.manager import KernelManager, start_new_kernel

from adk_nb.models.default_model import MODEL_VARIABLE
from adk_nb.notebook.chat.reply import view_of_reply
from adk_nb.notebook.place import display_mode
from tests.notebook.conftest import Shell

TWICE = """import asyncio
async def main():
    await asyncio.sleep(0)
    return 'ran'
asyncio.run(main()) + asyncio.run(main())"""


def test_the_model_of_the_setting_answers_for_agents_that_name_none(shell: Shell) -> None:
    shell.cell("%config AdkNb.model = 'offline'")
    shell.cell("%%agent guide\nBe brief.")
    shell.cell("from adk_nb import LlmAgent\ntwin = LlmAgent(name='twin', instruction='Hi.')")

    assert view_of_reply(shell.cell("%chat guide Hi")).notice
    assert shell.names["twin"].canonical_model.model == "offline"
    shell.cell("%config AdkNb.model = ''")
    assert MODEL_VARIABLE not in os.environ


def test_settings_are_listed_and_a_wrong_value_is_one_line(shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
    shell.cell("%config AdkNb")
    for name in ("model", "display", "confirm", "nest_asyncio"):
        assert f"AdkNb.{name}=" in shell.printed

    shell.run("%config AdkNb.display = 'loud'")

    assert len(caplog.records) == 1
    assert all(repr(mode) in caplog.text for mode in ("auto", "widget", "static", "text", "off"))
    assert shell.cell("%config AdkNb.display") == "auto"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("ofline", "no model named 'ofline'; did you mean 'offline'?"),
        ("llama", "no model named 'llama'; there is: "),
    ],
)
def test_a_model_that_nobody_knows_is_refused_at_once_in_one_line(
    shell: Shell, caplog: pytest.LogCaptureFixture, typed: str, said: str
) -> None:
    shell.cell("%config AdkNb.model = 'offline'")

    shell.run(f"%config AdkNb.model = {typed!r}")

    assert len(caplog.records) == 1
    assert said in caplog.text and caplog.text.count("\n") == 1
    assert shell.cell("%config AdkNb.model") == "offline"
    assert str(shell.cell("%%agent guide\nBe brief.")) == "guide v1 · model offline"
    shell.cell("%config AdkNb.display = 'static'")
    shell.cell("%config AdkNb.model = 'gemini-2.5-pro'")
    assert len(caplog.records) == 1
    assert os.environ[MODEL_VARIABLE] == "gemini-2.5-pro"


def test_a_package_that_is_not_installed_is_named_with_what_installs_it(
    shell: Shell, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "nest_asyncio2", None)  # Python's own way to say that there is none

    shell.run("%config AdkNb.nest_asyncio = True")

    assert "%pip install nest" in caplog.text
    assert shell.cell("%config AdkNb.nest_asyncio") is False


class Kernel:
    """A real kernel with the extension loaded."""

    def __init__(self, manager: KernelManager, client: Any) -> None:
        self._manager = manager
        self._client = client
        self.run("%load_ext adk_nb")

    def run(self, source: str) -> tuple[str, str, str]:
        """Run a cell: its result, what it wrote to stderr, and the name of its error."""
        key = self._client.execute(source)
        result = said = error = ""
        while True:
            try:
                message = self._client.get_iopub_msg(timeout=30)
            except Empty:
                raise AssertionError("the kernel did not answer") from None
            if message["parent_header"].get("msg_id") != key:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind in ("execute_result", "display_data"):
                result = content["data"]["text/plain"]
            elif kind == "stream" and content["name"] == "stderr":
                said += content["text"]
            elif kind == "error":
                error = f"{content['ename']}: {content['evalue']}"
            elif kind == "status" and content["execution_state"] == "idle":
                return result, said, error


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        yield Kernel(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


@pytest.mark.kernel
def test_pasted_asyncio_run_fails_with_the_two_ways_out_and_works_when_it_is_asked_for(kernel: Kernel) -> None:
    _, said, error = kernel.run(TWICE)
    assert error.startswith("RuntimeError: asyncio.run()")
    hint = said.splitlines()[-1]
    assert "`await main()`" in hint and hint.endswith("%config AdkNb.nest_asyncio = True")
    assert said.count("adk_nb:") == 1
    assert kernel.run("await main()")[0] == "'ran'"

    assert kernel.run("%config AdkNb.nest_asyncio = True") == ("", "", "")

    assert kernel.run(TWICE) == ("'ranran'", "", "")
    assert kernel.run(TWICE) == ("'ranran'", "", "")
    kernel.run("%%agent guide -m offline\nBe brief.")
    assert kernel.run("%chat guide Hello")[2] == ""
    assert kernel.run("raise RuntimeError('another')")[1] == ""


@pytest.mark.kernel
def test_a_kernel_names_the_cells_as_the_notebook_does(kernel: Kernel) -> None:
    kernel.run("%%agent guide -m offline\nBe brief.")  # cell 2; the first loaded the extension
    kernel.run("%%tool\ndef f(x: int) -> int:\n    'F.'\n    return x")

    assert "In[2]" in kernel.run("%agents")[0]
    assert "In[3]" in kernel.run("%tools")[0]


@pytest.mark.parametrize("line", ["%config AdkNb.confirm=yes", "%config AdkNb.confirm = yes"])
def test_a_setting_without_quotes_is_told_what_to_type(shell: Shell, line: str) -> None:
    shell.run(line)

    hint = '%config AdkNb.confirm = "yes"'
    assert shell.printed.splitlines()[-1].endswith(hint)
    shell.cell(hint)
    assert shell.cell("%config AdkNb.confirm") == "yes"


def test_a_setting_that_cannot_be_says_which_can(shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
    shell.run("%config AdkNb.confirm = 'maybe'")

    assert "['ask', 'yes', 'no']" in caplog.text and "'maybe'" in caplog.text
    assert shell.cell("%config AdkNb.confirm") == "ask"


@pytest.mark.parametrize(("typed", "near"), [("on_eror", "on_error"), ("modle", "model"), ("zzz", "%config AdkNb")])
def test_a_setting_that_there_is_not_is_refused_with_the_nearest(
    shell: Shell, caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder, typed: str, near: str
) -> None:
    shell.run(f"%config AdkNb.{typed} = 1")

    assert len(caplog.records) == 1 and f"'{typed}'" in caplog.text and near in caplog.text
    assert not recwarn.list and not shell.printed
    valid = shell.run('%config AdkNb.on_error = "card"')
    assert valid.success
    assert len(caplog.records) == 1


@pytest.mark.parametrize(("word", "mode"), [("static", "static"), ("text", "text"), ("", "widget"), ("auto", "widget")])
def test_the_environment_says_how_runs_are_shown(word: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADK_NB_DISPLAY", word)

    assert display_mode() == mode
    assert display_mode("off") == "off"


def test_a_way_to_show_runs_that_there_is_not_is_named_with_those_there_are(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell.cell("%%agent guide -m offline\nBe brief.")
    monkeypatch.setenv("ADK_NB_DISPLAY", "statik")

    said = shell.fails("%chat guide hello")

    assert "='statik'" in said and all(mode in said for mode in ("auto", "widget", "static", "text", "off"))
