"""A real shell for each test, with the magics loaded and nothing kept from the last one."""

import atexit
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import comm
import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config
from wire import Pages, Wire

from adk_nb.models.default_model import MODEL_VARIABLE
from adk_nb.notebook.magics.extension import unload_ipython_extension


@dataclass
class Shell:
    """Cells typed into an IPython shell, and what came of them."""

    ip: InteractiveShell
    capsys: pytest.CaptureFixture[str]
    printed: str = ""
    """What the last cell printed, errors included."""
    results: list[Any] = field(default_factory=list)

    def cell(self, source: str) -> Any:
        """Run a cell that has to succeed; its result."""
        result = self.run(source)
        assert result.success, self.printed
        return result.result

    def fails(self, source: str) -> str:
        """Run a cell that has to fail; what was printed of it, without the end of the line."""
        result = self.run(source)
        assert not result.success, f"it did not fail: {result.result!r}"
        return self.printed.rstrip("\n")

    def broke_off(self, source: str) -> Any:
        """Run a cell whose turn has to end with an error; the reply."""
        assert "TurnFailedError: the turn of " in self.fails(source)
        return self.names["_run"]

    def run(self, source: str) -> Any:
        self.capsys.readouterr()
        result = self.ip.run_cell(source, store_history=True)
        said = self.capsys.readouterr()
        self.printed = said.out + said.err
        return result

    @property
    def names(self) -> dict[str, Any]:
        return self.ip.user_ns

    def complete(self, cell: str, cursor: int | None = None) -> list[str]:
        """What Tab proposes, as a front end asks for it."""
        self.ip.Completer.use_jedi = False
        at = len(cell) if cursor is None else cursor
        with provisionalcompleter():
            found = list(self.ip.Completer.completions(cell, at))
        return [cell[: one.start] + one.text + cell[one.end :] for one in found]


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    """A shell in which nothing is loaded."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv(MODEL_VARIABLE, raising=False)
    InteractiveShell.clear_instance()
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "nocolor"
    ip = InteractiveShell.instance(config=config)
    yield Shell(ip, capsys)
    unload_ipython_extension(ip)
    atexit.unregister(ip.atexit_operations)
    ip.atexit_operations()
    ip.restore_sys_module_state()  # its __main__ is not the one that new processes need
    InteractiveShell.clear_instance()


@pytest.fixture
def shell(bare: Shell) -> Shell:
    """A shell with the magics."""
    bare.cell("%load_ext adk_nb")
    return bare


@pytest.fixture
def pages(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Pages:
    """A notebook that is shown in a page."""
    views = Pages()

    def connected(**kwargs: Any) -> Wire:
        views.put(view := Wire(**kwargs))
        return view

    monkeypatch.setattr(comm, "create_comm", connected)
    monkeypatch.setattr(shell.ip, "kernel", object(), raising=False)
    shell.cell("%config AdkNb.display = 'widget'")
    return views
