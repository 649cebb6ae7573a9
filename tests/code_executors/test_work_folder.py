"""Code that puts links, pipes and folders where its files belong: the host follows none, and writes nothing outside."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adk_nb import sync, types
from adk_nb.agents import LlmAgent
from adk_nb.code_executors import (
    BaseCodeExecutor,
    CodeExecutorContext,
    KernelCodeExecutor,
    UnsafeLocalCodeExecutor,
    child_kernel,
)
from adk_nb.code_executors.code_execution_utils import CodeExecutionInput, File
from adk_nb.code_executors.isolation import available
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm
from tests.support.talk import Talk

pytestmark = [pytest.mark.kernel, pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")]
SECRET = "the key of the user"
has_sandbox = pytest.mark.skipif(not available(sandbox=True), reason="this machine has no sandbox: bwrap does not work")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[KernelCodeExecutor]:
    executor = KernelCodeExecutor(isolation="sandbox", memory_limit_mb=512)
    yield executor
    sync.run(executor.close())


@pytest.fixture(scope="module")
def processes() -> Iterator[KernelCodeExecutor]:
    """Without a sandbox the code reaches the user's files itself, and still gets none of them through the host."""
    executor = KernelCodeExecutor(memory_limit_mb=512)
    yield executor
    sync.run(executor.close())


@pytest.fixture(params=[pytest.param("sandbox", marks=has_sandbox), "processes"])
def executor(request: pytest.FixtureRequest) -> KernelCodeExecutor:
    return request.getfixturevalue(request.param)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "id_rsa").write_text(SECRET)
    return tmp_path


class Coding:
    """A talk in which each turn runs one block of code, with input files or without."""

    def __init__(self, executor: BaseCodeExecutor, session_id: str, *codes: str) -> None:
        answers = [answer for code in codes for answer in (f"```python\n{code}\n```", "ok")]
        self.talk = Talk(LlmAgent(name="a", model=ScriptedLlm(*answers), code_executor=executor))
        self.session_id = session_id
        self.talk.open(session_id)
        self.artifacts: dict[str, bytes] = {}
        """All that came back, by name."""

    def run(self, **files: str) -> tuple[bool, str]:
        """Run the next block; return whether it succeeded, and what the model was told."""
        context = CodeExecutorContext({})
        context.add_input_files([File(name.replace("__", "."), text.encode()) for name, text in files.items()])
        delta: dict[str, Any] = {"state_delta": context.get_state_delta()} if files else {}
        if files:  # the rest of the state of this session's code stays
            delta["state_delta"] = {k: v for k, v in delta["state_delta"].items() if k == "_code_executor_input_files"}
        events = self.talk.say(session_id=self.session_id, **delta)
        assert self.talk.error is None
        for event in events:
            for name, version in event.actions.artifact_delta.items():
                self.artifacts[name] = self._load(name, version)
        return told(events)

    def _load(self, name: str, version: int) -> bytes:
        service = self.talk.runner.artifact_service
        assert service
        load = service.load_artifact(
            app_name="app", user_id="u", session_id=self.session_id, filename=name, version=version
        )
        part = sync.run(load)
        assert part and part.inline_data and part.inline_data.data is not None
        return part.inline_data.data


def told(events: list[Event]) -> tuple[bool, str]:
    [result] = [part.code_execution_result for event in events for part in event.parts if part.code_execution_result]
    return result.outcome == types.Outcome.OUTCOME_OK, result.output or ""


TRYING = """
import os
try:
    {attempt}
    print("done")
except OSError as error:
    print("refused", error.strerror)
"""


@pytest.mark.parametrize(
    "attempt",
    [
        "os.rename('../work', '../w2'); os.symlink({home!r}, '../work')",
        "os.rename(os.getcwd(), os.getcwd() + '2'); os.symlink({home!r}, os.getcwd())",
        "up = os.path.dirname(os.getcwd()); os.rename(up, up + '2'); os.mkdir(up); os.symlink({home!r}, up + '/work')",
    ],
)
def test_another_folder_in_the_place_of_the_work_folder_is_neither_read_nor_written(
    executor: KernelCodeExecutor, home: Path, attempt: str
):
    coding = Coding(executor, f"swap{attempt[:20]}", TRYING.format(attempt=attempt.format(home=str(home))), "1")

    coding.run()
    coding.run(sales__csv="a,b")

    assert [path.name for path in home.iterdir()] == ["id_rsa"]
    assert coding.artifacts == {}


@has_sandbox
def test_in_a_sandbox_only_the_work_folder_is_written_and_its_place_is_fixed(sandbox: KernelCodeExecutor):
    moving = TRYING.format(attempt="os.rename('../work', '../w2')")
    code = moving + "open('../beside', 'w').close()\nprint(os.getcwd(), sorted(os.listdir('..')))"
    coding = Coding(sandbox, "place", code)

    _, text = coding.run()

    answer = text.removeprefix("Code execution result:\n")
    assert answer.startswith("refused")
    work = Path(answer.splitlines()[1].split()[0])
    assert work.is_dir() and not (work.parent / "beside").exists() and "kernel.log" not in answer


@pytest.mark.parametrize("kind", ["os.symlink({path!r}, 'sales.csv')", "os.link({path!r}, 'sales.csv')"])
def test_an_input_file_is_not_written_through_a_link_in_its_place(executor: KernelCodeExecutor, home: Path, kind: str):
    link = TRYING.format(attempt=kind.format(path=str(home / "id_rsa")))
    coding = Coding(executor, f"input{kind[:8]}", link, "print(open('sales.csv').read())")

    coding.run()
    ok, text = coding.run(sales__csv="a,b")

    assert (home / "id_rsa").read_text() == SECRET
    assert ok and "a,b" in text
    assert SECRET.encode() not in coding.artifacts.values()


@pytest.mark.parametrize(
    ("attempt", "name"),
    [
        ("os.symlink({path!r}, 'stolen')", "stolen"),
        ("os.mkfifo('pipe')", "pipe"),
        ("import socket; socket.socket(socket.AF_UNIX).bind('door')", "door"),
        ("open('b', 'w').close(); os.link('b', 'b2')", "b2"),
        ("open('huge', 'wb').truncate(10 * 1024**3)", "huge"),
        ("open('shut', 'w').close(); os.chmod('shut', 0)", "shut" if os.getuid() else ""),
        ("open('new\\nline', 'w').close()", "new"),
        ("open(b'\\xff.txt', 'w').close()", "udcff"),
    ],
)
def test_what_is_no_file_to_return_is_named_and_the_others_are_returned(
    executor: KernelCodeExecutor, home: Path, attempt: str, name: str
):
    code = TRYING.format(attempt=attempt.format(path=str(home / "id_rsa"))) + f"open('good{name}', 'w').write('x')"
    coding = Coding(executor, f"named{attempt[:12]}", code.replace("goodnew", "good"))

    ok, text = coding.run()

    assert ok and "done" in text
    assert [content for artifact, content in coding.artifacts.items() if artifact.startswith("good")] == [b"x"]
    assert name in text.partition("not returned")[2].partition("Saved")[0]
    assert SECRET.encode() not in coding.artifacts.values()


def test_without_a_sandbox_another_name_of_a_file_of_the_user_is_not_returned(
    processes: KernelCodeExecutor, home: Path
):
    coding = Coding(processes, "hard", f"import os; os.link({str(home / 'id_rsa')!r}, 'mine.txt')")

    ok, text = coding.run()

    assert ok and "mine.txt (a hard link)" in text and coding.artifacts == {}


def test_a_pipe_in_the_place_of_a_file_holds_up_nobody(executor: KernelCodeExecutor, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(executor, "timeout_seconds", 60)
    coding = Coding(executor, "fifo", "import os; os.mkfifo('sales.csv')", "print(open('sales.csv').read())")

    coding.run()

    assert coding.run(sales__csv="a,b") == (True, "Code execution result:\na,b\n\n")


def test_a_file_that_becomes_a_link_or_a_pipe_while_it_is_read_gives_nothing_away(
    executor: KernelCodeExecutor, home: Path
):
    flipping = f"""
import os, threading
def flip():
    while True:
        for number in range(20):
            for make in (lambda: open("new", "w").write("mine"), lambda: os.symlink({str(home / "id_rsa")!r}, "new"),
                         lambda: os.mkfifo("new")):
                try:
                    make()
                    os.replace("new", f"file{{number}}")
                except OSError:
                    pass
threading.Thread(target=flip, daemon=True).start()
"""
    coding = Coding(executor, "race", flipping, *["1"] * 20)
    for _ in range(21):
        coding.run()

    assert SECRET.encode() not in coding.artifacts.values()
    assert (home / "id_rsa").read_text() == SECRET


def test_a_folder_in_the_place_of_a_file_is_a_failed_result_until_the_code_removes_it(executor: KernelCodeExecutor):
    codes = ["import os; os.mkdir('sales.csv')", "1", "import os; os.rmdir('sales.csv')", "open('sales.csv').read()"]
    coding = Coding(executor, "folder", *codes)

    coding.run()
    ok, text = coding.run(sales__csv="a,b")
    coding.run()

    assert not ok and "sales.csv" in text
    assert coding.run() == (True, "Code execution result:\n'a,b'\n\n")


def test_files_and_a_folder_that_are_gone_end_no_turn(executor: KernelCodeExecutor):
    coding = Coding(
        executor, "gone", "open('a', 'w').write('a')", "import os, shutil; shutil.rmtree(os.getcwd(), True)", "1"
    )

    coding.run(sales__csv="a,b")
    coding.run()
    _, text = coding.run(sales__csv="a,b,c")

    assert "1\n" in text


@pytest.mark.parametrize("name", ["n" * 300, "..", "a\0b"])
def test_a_name_that_is_none_is_a_failed_result(processes: KernelCodeExecutor, name: str):
    coding = Coding(processes, f"name{name[:2]!r}", "print('ran')")

    ok, text = coding.run(**{name: "x"})

    assert not ok and "was not written" in text and "ran" in text


def test_more_names_than_are_looked_at_are_told(executor: KernelCodeExecutor):
    code = "import os\nos.mkdir('d')\nfor n in range(10_050): open(f'{n}', 'w').close()"
    coding = Coding(executor, "many", code)

    ok, text = coding.run()

    assert ok and len(coding.artifacts) == 20
    assert "beyond 10,000 names" in text or "more than 20 files" in text
    assert len(text) < 5_000


def test_the_time_limit_is_for_reading_the_files_too(processes: KernelCodeExecutor, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(child_kernel, "FILES_SECONDS", 0.0)
    monkeypatch.setattr(processes, "timeout_seconds", 0.5)
    coding = Coding(processes, "slow", "1", "open('a', 'w').close()\nwhile True: pass")
    coding.run()

    ok, text = coding.run()

    assert not ok and "longer than 0.5 seconds" in text and coding.artifacts == {}


DEEP = """
import os
start = os.getcwd()
for level in range(1_500):
    os.mkdir("deep")
    os.chdir("deep")
os.chdir(start)
os.mkdir("shut"); os.mkdir("shut/in"); os.symlink({home!r}, "shut/home"); os.chmod("shut", 0)
print(start)
"""


@pytest.mark.parametrize("isolation", [pytest.param("sandbox", marks=has_sandbox), "auto"])
def test_a_folder_of_any_depth_is_deleted_in_the_end_and_what_it_links_to_is_not(home: Path, isolation: Any):
    executor = KernelCodeExecutor(isolation=isolation)
    home.chmod(0o755)
    try:
        ok, text = Coding(executor, "s2", DEEP.format(home=str(home))).run()
        assert ok, text
        work = Path(text.split()[-1])
        assert work.parent.exists()
    finally:
        sync.run(executor.close())

    assert not work.parent.exists()
    assert (home / "id_rsa").read_text() == SECRET and home.stat().st_mode & 0o777 == 0o755


@has_sandbox
def test_a_process_in_a_sandbox_leaves_no_folder_however_deep(home: Path):
    executor = UnsafeLocalCodeExecutor(isolation="sandbox")

    result = executor.execute_code(None, CodeExecutionInput(code=DEEP.format(home=str(home))))  # type: ignore[arg-type]

    assert (result.exit_code, result.stderr) == (0, "")
    assert not Path(result.stdout.strip()).parent.exists()
    assert (home / "id_rsa").read_text() == SECRET


@has_sandbox
def test_a_link_to_this_python_opens_no_other_file_beside_it(home: Path, monkeypatch: pytest.MonkeyPatch):
    (home / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(home / "python"))
    available.cache_clear()
    try:
        executor = UnsafeLocalCodeExecutor(isolation="sandbox")
        code = CodeExecutionInput(code=f"import os; print(os.path.exists({str(home / 'id_rsa')!r}))")
        result = executor.execute_code(None, code)  # type: ignore[arg-type]
    finally:
        available.cache_clear()

    assert (result.stdout, result.stderr) == ("False\n", "")
