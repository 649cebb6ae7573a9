"""Command lines of `adk-nb`, in this process or in one of their own, and notebooks to name in them."""

import atexit
import io
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from adk_nb import google_adk
from adk_nb.command_line.main import main
from adk_nb.models.default_model import MODEL_VARIABLE
from adk_nb.notebook.magics.extension import unload_ipython_extension


@dataclass(frozen=True)
class Ran:
    """What a command line did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    variables = dict(os.environ)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv(MODEL_VARIABLE, "offline")
    monkeypatch.delenv("ADK_NB_DISPLAY", raising=False)
    yield
    for name in os.environ.keys() - variables:  # what .env files brought
        del os.environ[name]


@pytest.fixture
def adk_nb(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Callable[..., Ran]]:
    """Run a command line in this process, each in a shell of its own."""

    def run(*arguments: str, typed: str | bytes = "") -> Ran:
        InteractiveShell.clear_instance()
        capsys.readouterr()
        for name in ("shop", "shop.agent"):  # of other tests in this process
            monkeypatch.delitem(sys.modules, name, raising=False)
        folder, path, modules = os.getcwd(), [*sys.path], {*sys.modules}
        piped = io.StringIO(typed) if isinstance(typed, str) else io.TextIOWrapper(io.BytesIO(typed), "utf-8")
        monkeypatch.setattr(sys, "stdin", piped)
        try:
            code = main(arguments)
        except SystemExit as error:
            code = int(error.code or 0)
        finally:
            os.chdir(folder)
            sys.path[:] = path
            for name in {*sys.modules} - modules:
                if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
                    del sys.modules[name]
            _end()
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    yield run
    _end()


def _end() -> None:
    if InteractiveShell.initialized():
        for kind in InteractiveShell.__subclasses__():
            if kind.initialized():
                ip: Any = kind.instance()
                unload_ipython_extension(ip)
                atexit.unregister(ip.atexit_operations)
                ip.atexit_operations()
                ip.restore_sys_module_state()
                kind.clear_instance()
    google_adk.give_google_adk_back()


@pytest.fixture
def notebook(tmp_path: Path) -> Callable[..., str]:
    """Write a notebook of code cells; a cell with tags is a pair. Returns its name."""

    def write(*cells: str | tuple[str, list[str]], name: str = "shop.ipynb") -> str:
        pairs = [(cell, list[str]()) if isinstance(cell, str) else cell for cell in cells]
        written = [
            {"cell_type": "code", "id": f"c{n}", "metadata": {"tags": tags} if tags else {}, "source": source,
             "outputs": [], "execution_count": None}
            for n, (source, tags) in enumerate(pairs)
        ]  # fmt: skip
        content = {"cells": written, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
        return name

    return write


def process(*arguments: str, typed: str = "", **environment: str) -> Ran:
    """Run the installed command in a process of its own."""
    command = [str(Path(sys.executable).with_name("adk-nb")), *arguments]
    done = subprocess.run(
        command, input=typed, capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def free_port() -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
