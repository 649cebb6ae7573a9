"""A real IPython kernel for tests: run a cell, watch it, interrupt it.

Take the fixture `kernel` and mark the test `kernel`. Every wait is for a message and bounded by `TIMEOUT`.

    cell = kernel.start("while True: print('busy', flush=True)")   # comes back at once
    kernel.until_printed(cell, "busy")
    seconds = kernel.interrupt(cell)                               # until the kernel is idle again
    assert cell.error == "KeyboardInterrupt"
    assert kernel.run("6 * 7").text == "42"                        # fails with the traceback if the cell raises
    kernel.click(kernel.card("pay"), decision="approve")           # as a page does it

It is a kernel of a reader at a screen: it may ask for input, and knows nothing of pytest and of this machine.
"""

import os
import queue
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.support.polling import patience
from tests.support.warm import WARM

TIMEOUT = 30.0
"""Seconds that any one wait may take, on a machine that does nothing else."""
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Cell:
    """One cell that was sent, and what has come back of it so far."""

    source: str
    outputs: list[dict[str, Any]] = field(default_factory=list)
    """Streams, results, displays, errors, in order; each with its `output_type`."""
    answered: bool = False
    idle: bool = False
    failed: dict[str, Any] = field(default_factory=dict)
    """The reply to it, if that is an error: it stops Run All, also where no output shows the error."""

    @property
    def ended(self) -> bool:
        return self.answered and self.idle

    @property
    def printed(self) -> str:
        return "".join(one["text"] for one in self.outputs if one.get("name") == "stdout")

    @property
    def complained(self) -> str:
        """What it wrote to stderr."""
        return "".join(one["text"] for one in self.outputs if one.get("name") == "stderr")

    @property
    def shown(self) -> str:
        """The plain text of its displays as they are now, those that came after its end among them."""
        return "\n".join(one["data"].get("text/plain", "") for one in self.outputs if "data" in one)

    @property
    def error(self) -> str | None:
        """The name of the exception it ended with."""
        return next((one["ename"] for one in self._errors), None)

    @property
    def traceback(self) -> str:
        told = [line for one in self._errors for line in one["traceback"]]
        return _ANSI.sub("", "\n".join(told))

    @property
    def has_error_output(self) -> bool:
        return any(one["output_type"] == "error" for one in self.outputs)

    @property
    def _errors(self) -> list[dict[str, Any]]:
        shown = [one for one in self.outputs if one["output_type"] == "error"]
        return shown or ([self.failed] if self.failed else [])

    @property
    def text(self) -> str:
        """What a reader of the plain text sees: prints, and then displays and the result."""
        return "\n".join(filter(None, [self.printed.rstrip(), self.shown])).strip()


class Kernel:
    """One kernel and the one client that talks to it."""

    def __init__(self, manager: KernelManager, client: BlockingKernelClient, log: Path) -> None:
        self._manager, self._client, self._log = manager, client, log
        self.log_start = 0
        """Where the log of the process that runs now begins."""
        self._cells: dict[str, Cell] = {}
        self.comm_messages = 0
        """How many messages of widgets came, whichever cell they belong to."""
        self.cards: dict[tuple[str, str], dict[str, Any]] = {}
        """Widget and card id -> the card as that widget shows it."""
        self.views: list[str] = []
        """The widgets, in the order in which they were made."""
        self.rows: list[dict[str, Any]] = []
        """What came to the logs of all widgets."""
        self.updates: list[str] = []
        """The plain text of displays that were changed."""
        self.lines: list[str] = []
        """What the reader types when a cell asks for input."""
        self.prompts: list[str] = []
        self.page: Callable[[dict[str, Any]], list[dict[str, Any]]] | None = None
        """Answers what the kernel asks of the cells of a page."""
        self.states: list[str] = []
        """What the kernel said it is: busy or idle."""

    @property
    def session(self) -> str:
        """The id of who sends the cells."""
        return self._client.session.session

    def run(self, source: str, *, raises: bool = False) -> Cell:
        """Run a cell to its end."""
        cell = self.start(source)
        self.until_ended(cell)
        assert raises or cell.error is None, cell.traceback
        return cell

    def start(self, source: str) -> Cell:
        """Send a cell and come back at once."""
        cell = Cell(source)
        self._cells[self._client.execute(source, allow_stdin=True)] = cell
        return cell

    def until_ended(self, cell: Cell) -> None:
        self.until(lambda: cell.ended, f"the end of {cell.source!r}")

    def look_up(self, *, subshell_id: str | None = None, **request: Any) -> None:
        """Send the request of an extension of the page, which asks nobody, and wait for its end."""
        content = {"code": "", "silent": True, "store_history": False, "allow_stdin": False, **request}
        self._request("execute_request", content, {"subshell_id": subshell_id} if subshell_id else {})

    def subshell(self) -> str:
        """Make a subshell; its id."""
        channel = self._client.control_channel
        message = self._client.session.msg("create_subshell_request", {})
        channel.send(message)
        while True:
            reply = channel.get_msg(timeout=patience(TIMEOUT))
            if reply["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                return reply["content"]["subshell_id"]

    def _request(self, kind: str, content: dict[str, Any], header: dict[str, Any]) -> None:
        message = self._client.session.msg(kind, {"user_expressions": {}, **content})
        message["header"].update(header)
        request = self._cells[message["header"]["msg_id"]] = Cell(content["code"])
        self._client.shell_channel.send(message)
        self.until_ended(request)

    def until_printed(self, cell: Cell, words: str) -> None:
        self.until(lambda: words in cell.printed or cell.error is not None, f"{words!r}")
        assert words in cell.printed, cell.traceback

    def interrupt(self, cell: Cell) -> float:
        """Interrupt the kernel and wait until the cell has ended.

        Returns:
            Seconds that took.
        """
        began = time.monotonic()
        self._manager.interrupt_kernel()
        self.until_ended(cell)
        return time.monotonic() - began

    def card(self, tool: str, state: str = "asked") -> tuple[str, str]:
        """Wait for a card of that tool that stands so; its key in `cards`."""

        def found() -> list[tuple[str, str]]:
            return [key for key, one in self.cards.items() if (one["tool"], one["state"]) == (tool, state)]

        self.until(lambda: bool(found()), f"a card of {tool} that is {state}")
        return found()[-1]

    def click(self, card: tuple[str, str], **answer: Any) -> None:
        """Answer a card, as a page does."""
        self.tell(card[0], kind="answer", id=card[1], **answer)

    def tell(self, view: str, **content: Any) -> None:
        """Say something to a widget, as a page does."""
        said = {"method": "custom", "content": content}
        self._client.shell_channel.send(self._client.session.msg("comm_msg", {"comm_id": view, "data": said}))

    def kill(self) -> None:
        """End the kernel as the system does when memory runs out."""
        self._manager.signal_kernel(signal.SIGKILL)
        self.until(lambda: not self._manager.is_alive(), "the end of the kernel")

    def restart(self) -> None:
        """Restart the kernel, as the menu of a page does: an interrupt, then a request to end; it begins anew."""
        self._manager.restart_kernel(now=False)
        self._client.wait_for_ready(timeout=60)
        self.log_start = self._log.stat().st_size  # ipykernel may have found its sockets closed when the cell ended

    def until(self, what: Callable[[], bool], why: str) -> None:
        """Take in messages until `what()` holds."""
        began = time.monotonic()
        while not what():
            waited = time.monotonic() - began
            assert waited < patience(TIMEOUT), f"waited {waited:.0f} s in vain for {why}"
            self._take_in()

    def _take_in(self) -> None:
        with suppress(queue.Empty):
            self._on_output(self._client.get_iopub_msg(timeout=0.1))
        while self._client.shell_channel.msg_ready():
            reply = self._client.get_shell_msg(timeout=1)
            if cell := self._cells.get(reply["parent_header"].get("msg_id")):
                cell.answered = True
                cell.failed = reply["content"] if reply["content"].get("status") == "error" else {}
        while self.lines and self._client.stdin_channel.msg_ready():
            self.prompts.append(self._client.get_stdin_msg(timeout=1)["content"]["prompt"])
            self._client.input(self.lines.pop(0))

    def _on_output(self, message: dict[str, Any]) -> None:
        kind, content = message["msg_type"], message["content"]
        self._on_widget(kind, content)
        if kind == "status":
            self.states.append(content["execution_state"])
        cell = self._cells.get(message["parent_header"].get("msg_id", ""))
        if cell is None:
            return
        if kind == "status":
            cell.idle = content["execution_state"] == "idle"
        elif kind == "stream" and cell.outputs and cell.outputs[-1].get("name") == content["name"]:
            cell.outputs[-1]["text"] += content["text"]  # as a page does
        elif kind in ("stream", "execute_result", "display_data", "error"):
            cell.outputs.append({"output_type": kind, **content})

    def _on_widget(self, kind: str, content: dict[str, Any]) -> None:
        self.comm_messages += kind in ("comm_open", "comm_msg")
        for op in _ops(content.get("data", {})) if kind == "comm_msg" else ():
            if op["op"] == "card":
                self.cards[content["comm_id"], op["card"]["id"]] = op["card"]
            elif op["op"] == "append":
                self.rows.append(op["row"])
        if kind == "comm_msg" and content["comm_id"] == "adk_nb.cells" and self.page:
            for answer in self.page(content["data"]):
                said = {"id": content["data"]["id"], **answer}
                self._client.control_channel.send(self._client.session.msg("adk_nb_cells", said))
        if kind == "comm_open":
            self.views.append(content["comm_id"])
        if kind == "update_display_data":
            self.updates.append(content["data"].get("text/plain", ""))
            for output in (output for cell in self._cells.values() for output in cell.outputs):
                if output.get("transient", {}).get("display_id", "") == content["transient"]["display_id"]:
                    output.update(data=content["data"], metadata=content["metadata"])


def _ops(data: dict[str, Any]) -> list[dict[str, Any]]:
    """What a message of a widget has its page do."""
    said = data.get("content") or {}
    return said.get("ops", [])


@contextmanager
def running_kernel(folder: Path) -> Iterator[Kernel]:
    """A kernel that works in `folder`; after it, its log must hold no word of lost tasks and lost errors."""
    places = {name: str(folder / name.lower()) for name in ("HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR")}
    kept = {
        name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG", "TMPDIR", "SYSTEMROOT") if name in os.environ
    }
    manager, log = KernelManager(kernel_name=WARM), folder / "kernel.log"
    with log.open("wb") as told:
        manager.start_kernel(
            cwd=str(folder), env={"OLLAMA_HOST": "127.0.0.1:9", **kept, **places}, stdout=told, stderr=told
        )
        client = manager.blocking_client()
        client.start_channels()
        kernel = Kernel(manager, client, log)
        try:
            client.wait_for_ready(timeout=patience(60))
            yield kernel
        finally:
            client.stop_channels()
            manager.shutdown_kernel()
            manager.cleanup_resources()
    logged = log.read_bytes()[kernel.log_start :].decode(errors="replace")
    said = logged + "".join(cell.complained for cell in kernel._cells.values())
    for sign in LOST:
        assert sign not in said, said


LOST = ("Task was destroyed", "never retrieved", "never awaited", "Exception ignored", "Traceback")
"""Words with which Python tells of work that nobody looked after."""
