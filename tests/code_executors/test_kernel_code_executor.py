"""Code of a model in a kernel of its own: what it keeps, what it gives, and how it is stopped. One kernel for all."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adk_nb import sync, types
from adk_nb.agents import LlmAgent
from adk_nb.artifacts import FileArtifactService
from adk_nb.code_executors import KernelCodeExecutor, child_kernel
from adk_nb.errors import ConfigurationError
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm
from tests.support.polling import SECONDS
from tests.support.talk import Talk

pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def executor() -> Iterator[KernelCodeExecutor]:
    executor = KernelCodeExecutor(memory_limit_mb=512)
    yield executor
    sync.run(executor.close())


def block(code: str) -> str:
    return f"```python\n{code}\n```"


def talking(executor: KernelCodeExecutor, *answers: str) -> Talk:
    return Talk(LlmAgent(name="a", model=ScriptedLlm(*answers), code_executor=executor))


def coding(executor: KernelCodeExecutor, *codes: str) -> Talk:
    """A talk with a model that answers each message with a block of code, and then with `ok`."""
    return talking(executor, *(answer for code in codes for answer in (block(code), "ok")))


def gave(events: list[Event]) -> tuple[bool, str]:
    """Whether the code of a turn ran to its end, and what the model was told of it."""
    (result,) = [part.code_execution_result for event in events for part in event.parts if part.code_execution_result]
    return result.outcome == types.Outcome.OUTCOME_OK, result.output or ""


def runs(executor: KernelCodeExecutor, *codes: str) -> list[tuple[bool, str]]:
    talk = coding(executor, *codes)
    return [gave(talk.say()) for _ in codes]


def until_read(fifo: Path) -> str:
    """What is written to a named pipe until its last writer is gone: waits for a writer, too."""
    return sync.run(_read(fifo))


async def _read(fifo: Path, seconds: float = SECONDS) -> str:
    async with asyncio.timeout(seconds):
        return await sync.blocking(fifo.read_text, thread=True)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


def test_code_finds_what_the_code_of_earlier_turns_defined_and_its_last_value_is_told(executor: KernelCodeExecutor):
    talk = coding(executor, "x = 20\nprint('set')", "x + 1", "import sys; print('careful', file=sys.stderr)")

    assert gave(talk.say()) == (True, "Code execution result:\nset\n\n")
    assert gave(talk.say()) == (True, "Code execution result:\n21\n\n")
    assert gave(talk.say()) == (True, "Code execution result:\n\n\nStderr:\ncareful\n\n")
    assert talk.stored().state["_code_execution_context"] == {"execution_session_id": "s"}


def test_it_is_another_process_without_this_ones_variables_keys_and_folder(
    executor: KernelCodeExecutor, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GOOGLE_API_KEY", "secret")
    ok, text = runs(executor, "import os; print(os.getpid(), os.getcwd(), sorted(os.environ), 'pytest' in dir())")[0]

    assert ok
    assert str(os.getpid()) not in text.split()
    assert os.getcwd() not in text.split()
    assert "API_KEY" not in text
    assert text.split()[-1] == "False"


def test_a_user_does_not_see_the_variables_of_anothers_session_of_the_same_id(executor: KernelCodeExecutor):
    talk = coding(executor, "mine = 1", "'mine' in dir()", "'mine' in dir()")
    talk.open("s", user_id="v")

    talk.say()

    assert "False" in gave(talk.say(user_id="v"))[1]
    assert "True" in gave(talk.say())[1]


def test_a_kernel_needs_no_port_that_another_process_may_take(executor: KernelCodeExecutor):
    code = "from ipykernel import get_connection_info\nprint(get_connection_info(unpack=True)['transport'])"

    ((ok, output),) = runs(executor, code)

    assert ok and "ipc" in output


def test_two_that_share_a_kernel_take_turns_from_whatever_loop_they_run_on(executor: KernelCodeExecutor):
    first, second = coding(executor, "n = 1\nn"), coding(executor, "n = 2\nn")

    async def run_pair() -> list[list[Event]]:
        return await asyncio.gather(first.asay(), second.asay())

    text = [gave(events)[1] for events in asyncio.run(run_pair())]

    assert text == ["Code execution result:\n1\n\n", "Code execution result:\n2\n\n"]


def test_code_that_raises_is_told_with_its_traceback_in_plain_words(executor: KernelCodeExecutor):
    (ok, text), (still, extra) = runs(executor, "y = 5\n1/0", "y")

    assert not ok
    assert "ZeroDivisionError: division by zero" in text
    assert "\x1b" not in text
    assert (still, "5" in extra) == (True, True)


def test_pictures_and_files_become_artifacts(executor: KernelCodeExecutor):
    code = (
        "from IPython.display import Image, display\n"
        "display(Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + b'0' * 16, format='png'))\n"
        "open('table.csv', 'w').write('a,b')\n"
        "import os; os.mkdir('folder'); os.symlink('/etc/passwd', 'passwd'); os.mkfifo('pipe'); None"
    )
    talk = coding(executor, code, "1")

    result = talk.say()[1]
    later_event = talk.say()[1]

    assert result.actions.artifact_delta == {"image_1.png": 0, "table.csv": 0}
    assert "Saved artifacts:\n`image_1.png`,`table.csv`" in gave([result])[1]
    assert later_event.actions.artifact_delta == {}


FORGING = """
kernel = get_ipython().kernel
def send(kind, content):
    kernel.session.send(kernel.iopub_socket, kind, content, parent=kernel.get_parent())
{forged}
"""


@pytest.mark.parametrize(
    "forged",
    [
        "send('display_data', {'data': {'image/png': 'abcde'}, 'metadata': {}})",
        "send('display_data', {'data': {'image/png': ['abcd']}, 'metadata': {}})",
        "send('display_data', {'data': {'image/svg+xml': {'a': 1}}, 'metadata': {}})",
        "send('display_data', {'data': ['image/png'], 'metadata': {}})",
        "send('display_data', {})",
        "send('stream', {'name': 'stdout'})",
        "send('stream', {'name': 'stdout', 'text': ['a']})",
        "send('stream', {'name': 'stderr', 'text': 7})",
        "send('error', {'traceback': [1]})",
        "send('status', [])",
        "kernel.iopub_socket.send_multipart([b'nonsense'])",
        "kernel.iopub_socket.send_multipart([b'<IDS|MSG>', b'signature', b'{', b'{', b'{', b'{'])",
        "kernel.iopub_socket.send_multipart([b'<IDS|MSG>', kernel.session.sign([b'['] * 4), *[b'['] * 4])",
    ],
)
def test_what_is_no_message_of_a_kernel_fails_the_code_and_not_the_turn(executor: KernelCodeExecutor, forged: str):
    talk = coding(executor, FORGING.format(forged=forged) + "print('went on')", "print('still here')")

    ok, text = gave(talk.say())

    assert talk.error is None
    assert not ok and "went on" in text
    assert gave(talk.say()) == (True, "Code execution result:\nstill here\n\n")


def test_text_that_cannot_be_sent_is_replaced(executor: KernelCodeExecutor):
    forged = (
        "s = kernel.session\n"
        "frames = [s.pack(s.msg_header('stream')), s.pack(kernel.get_parent()['header']), s.pack({})]\n"
        'frames.append(b\'{"name": "stdout", "text": "a\\\\ud800b"}\')\n'
        "kernel.iopub_socket.send_multipart([b'<IDS|MSG>', s.sign(frames), *frames])"
    )
    talk = coding(executor, FORGING.format(forged="pass") + forged)

    ok, text = gave(talk.say())

    assert ok and "a?b" in text and talk.error is None


def test_a_displayed_picture_has_the_limit_of_a_file(executor: KernelCodeExecutor):
    code = (
        "from IPython.display import Image, display\n"
        "for size in (21, 24, 1): display(Image(data=b'\\x89PNG\\r\\n\\x1a\\n' + bytes(size * 2**20), format='png'))\n"
        "for _ in range(25): display(Image(data=b'\\x89PNG\\r\\n\\x1a\\n', format='png'))"
    )
    talk = coding(executor, code)

    result = talk.say()[1]

    ok, text = gave([result])
    assert ok and "larger than 20 MB" in text and "more than 20 files" in text
    assert len(result.actions.artifact_delta) == 20


def test_a_name_too_long_for_the_store_is_told_and_the_output_kept(executor: KernelCodeExecutor, tmp_path: Path):
    talk = coding(executor, "open('é' * 120 + '.txt', 'w').close(); open('n' * 255, 'w').close(); print('done')")
    talk.runner.artifact_service = FileArtifactService(tmp_path)

    ok, text = gave(talk.say())

    assert talk.error is None
    assert ok and "done" in text and "nnn" in text


def test_a_data_file_lies_in_the_folder_of_the_code(executor: KernelCodeExecutor, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(executor, "optimize_data_file", True)
    data = types.Blob(data=b"x,y\n1,a\n2,b\n3,\n", mime_type="text/csv")
    talk = coding(executor, "import glob; name, = glob.glob('data_*.csv'); globals()[name[:-4]].x.sum()")

    events = talk.say([types.Part(inline_data=data), types.Part(text="sum?")])

    looked, summed = (gave([event]) for event in events if event.has_trailing_code_execution_result())
    assert looked[0], looked[1]
    assert "3 rows, 2 columns" in looked[1]
    assert "['a', 'b']" in looked[1]
    assert summed[0]
    assert "6" in summed[1]


def test_code_that_runs_too_long_is_interrupted_and_the_kernel_keeps_its_variables(
    executor: KernelCodeExecutor, monkeypatch: pytest.MonkeyPatch
):
    talk = coding(executor, "z = 1", "while True: pass", "z")
    talk.say()
    with monkeypatch.context() as patched:
        patched.setattr(executor, "timeout_seconds", 0.2)
        ok, text = gave(talk.say())

    assert not ok
    assert "longer than 0.2 seconds" in text
    assert "KeyboardInterrupt" in text
    assert gave(talk.say()) == (True, "Code execution result:\n1\n\n")


def test_a_cancelled_run_interrupts_its_code_and_the_kernel_keeps_its_variables(
    executor: KernelCodeExecutor, fifo: Path
):
    endless = f"w = 1\nopen({str(fifo)!r}, 'w').close()\nwhile True: pass"
    talk = talking(executor, block(endless), block("w"), "ok")

    turn = sync.start(talk.asay())
    until_read(fifo)
    assert turn.cancel()

    assert talk.stored().events[-1].error_code == "INVOCATION_ABORTED"
    assert gave(talk.say()) == (True, "Code execution result:\n1\n\n")


def test_code_that_takes_too_much_memory_fails_and_the_kernel_keeps_its_variables(executor: KernelCodeExecutor):
    (ok, text), (still, extra) = runs(executor, "v = 1\nlen(bytearray(10**9))", "v")

    assert not ok
    assert "MemoryError" in text
    assert (still, extra) == (True, "Code execution result:\n1\n\n")


def test_long_output_is_truncated_and_the_rest_counted(executor: KernelCodeExecutor):
    ok, text = runs(executor, "print('x' * 1_000_000)")[0]

    assert ok
    assert len(text) < 51_000
    assert "[950,001 more characters" in text.rstrip()


def test_code_cannot_ask_the_user(executor: KernelCodeExecutor):
    ok, text = runs(executor, "input('password: ')")[0]

    assert not ok
    assert "StdinNotImplementedError" in text


def test_a_kernel_that_its_code_ends_is_told_and_followed_by_a_fresh_one_that_says_so(
    executor: KernelCodeExecutor, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(child_kernel, "INTERRUPT_SECONDS", 0.1)
    deaf = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    talk = coding(executor, "u = 1", "import os\nos._exit(3)", "'u' in dir()", deaf)

    talk.say()
    ended = gave(talk.say())
    fresh = gave(talk.say())
    monkeypatch.setattr(executor, "timeout_seconds", 0.2)
    killed = gave(talk.say())

    assert ended == (
        False,
        "the kernel ended with status 3; what earlier code defined is gone; the next code begins in a fresh kernel\n",
    )
    assert fresh == (
        True,
        "Code execution result:\n[this kernel is fresh: what earlier code of this conversation defined is gone]\n"
        "False\n\n",
    )
    assert not killed[0]
    assert "signal SIGKILL" in killed[1]


def test_for_one_kernel_more_than_there_may_be_the_longest_idle_is_ended_with_all_it_started(fifo: Path):
    executor = KernelCodeExecutor(max_kernels=1)
    holds_the_pipe = f"import subprocess\nheld = subprocess.Popen('exec sleep 600 > {fifo}', shell=True)"
    talk = coding(executor, holds_the_pipe, "1")
    talk.open("t")
    try:
        process = sync.start(_read(fifo))
        talk.say()
        assert not process.done()

        assert gave(talk.say(session_id="t"))[0]

        assert process.result(SECONDS) == ""
    finally:
        sync.run(executor.close())


def test_a_process_that_ends_takes_its_kernels_along(fifo: Path):
    script = (
        "from adk_nb import run\n"
        "from adk_nb.code_executors.child_kernel import ChildKernel\n"
        "from adk_nb.code_executors.isolation import available\n"
        "async def main():\n"
        "    kernel = await ChildKernel.start(512, available())\n"
        "    return kernel, await kernel.run(code, [], 10)\n"
        f"code = 'import subprocess; held = subprocess.Popen(\\'exec sleep 600 > {fifo}\\', shell=True)'\n"
        "kernel, result = run(main())\n"
        "print(result.exit_code)\n"
    )
    process = sync.start(_read(fifo, 60))

    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)

    assert (output.stdout, output.stderr) == ("0\n", "")
    assert process.result(SECONDS) == ""


def test_without_jupyter_client_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "jupyter_client.asynchronous", None)
    talk = coding(KernelCodeExecutor(), "1")

    talk.say()

    assert "'jupyter_client'" in str(talk.error) and "type: %pip install ipykernel" in str(talk.error)


def test_a_kernel_that_keeps_nothing_is_refused():
    with pytest.raises(ConfigurationError, match="use UnsafeLocalCodeExecutor"):
        KernelCodeExecutor(stateful=False)
