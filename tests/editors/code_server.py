"""VS Code in headless Chromium: code-server on loopback, with a home of its own and the extension from its `.vsix`."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab import SCREENSHOTS
from selenium.common.exceptions import TimeoutException
from selenium.webdriver import Chrome
from selenium.webdriver.support.ui import WebDriverWait

from tests.front_end.view_build import NODE

ENTRY = (
    Path(__file__).parents[2] / "build" / "code_server" / "node_modules" / "code-server" / "out" / "node" / "entry.js"
)
BOOT = 120.0
"""Seconds that VS Code may take to be there."""
THEMES = {"light": "Light 2026", "dark": "Dark 2026"}
"""VS Code's own, the ones it begins with."""
_QUIET = {
    "chat.disableAIFeatures": True,
    "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False,
    "git.enabled": False,
    "notebook.stickyScroll.enabled": False,
    "security.workspace.trust.enabled": False,
    "telemetry.telemetryLevel": "off",
    "window.commandCenter": False,
    "workbench.editorAssociations": {"*.ipynb": "jupyter-notebook"},
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
}
_OPTIONS = (
    *("--auth", "none", "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"),
    "--disable-getting-started-override",
)
_LINES = """
    const rows = [...document.querySelectorAll('.notebookOverlay .code-cell-row')];
    const parent = rows.find((row) => row.innerText.replaceAll('\\u00a0', ' ').includes(arguments[0]));
    return [...(parent?.querySelectorAll('.view-line > span > span') ?? [])].map((span) => {
        const { color, fontStyle, fontWeight } = getComputedStyle(span);
        return [span.innerText.replaceAll('\\u00a0', ' ').trim(), `${color} ${fontStyle} ${fontWeight}`];
    }).filter(([text]) => text);"""


class CodeServer:
    """One code-server on a loopback port; `root` is the folder that it opens."""

    def __init__(self, home: Path) -> None:
        self.root = home / "files"
        self.root.mkdir()
        self._home, self._log = home, home / "server.log"
        self._port = 0

    def choose(self, theme: str) -> None:
        """Write the settings, with the light or the dark theme, that pages opened from now on have."""
        settings = self._home / "data" / "User" / "settings.json"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(json.dumps({**_QUIET, "workbench.colorTheme": THEMES[theme]}), encoding="utf-8")

    def install(self, vsix: Path) -> list[str]:
        """Install an extension as a person does in a terminal; the extensions that are then there."""
        done = self._run("--install-extension", str(vsix))
        assert "successfully installed" in done, done
        return [line for line in self._run("--list-extensions", "--show-versions").splitlines() if "@" in line]

    def address(self, path: Path) -> str:
        """The address of a page that opens a file."""
        uri = f"vscode-remote://127.0.0.1:{self._port}{path}"
        return f"http://127.0.0.1:{self._port}/?folder={self.root}&payload={json.dumps([['openFile', uri]])}"

    @contextmanager
    def running(self) -> Iterator["CodeServer"]:
        """Run the server; leaving ends it, and what it started."""
        command = self._command("--bind-addr=127.0.0.1:0")
        with (
            self._log.open("wb") as log,
            subprocess.Popen(command, env=self._environment(), stdout=log, stderr=log) as process,
        ):
            try:
                WebDriverWait(process, BOOT, poll_frequency=0.2).until(self._is_up, f"no code-server, see {self._log}")
                yield self
            finally:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()

    def _run(self, *arguments: str) -> str:
        done = subprocess.run(
            self._command(*arguments), env=self._environment(), capture_output=True, text=True, timeout=BOOT
        )
        return done.stdout

    def _command(self, *arguments: str) -> list[str]:
        folders = [f"--user-data-dir={self._home / 'data'}", f"--extensions-dir={self._home / 'extensions'}"]
        return [str(NODE / "node"), str(ENTRY), *_OPTIONS, *folders, *arguments]

    def _environment(self) -> dict[str, str]:
        nowhere = {"serviceUrl": "http://127.0.0.1:9", "itemUrl": "http://127.0.0.1:9"}
        home = {"HOME": str(self._home), "XDG_CONFIG_HOME": str(self._home), "XDG_RUNTIME_DIR": str(self._home)}
        return {"PATH": os.environ["PATH"], "EXTENSIONS_GALLERY": json.dumps(nowhere), **home}

    def _is_up(self, process: subprocess.Popen[bytes]) -> bool:
        """Whether it says on which port it listens; it chooses one itself."""
        log = self._log.read_text(encoding="utf-8")
        if process.poll() is not None:
            raise RuntimeError(f"code-server ended at once:\n{log[-3000:]}")
        said = re.search(r"server listening on http://127\.0\.0\.1:(\d+)/", log)
        self._port = int(said[1]) if said else 0
        return bool(said)


class Editor:
    """A page of VS Code with one file in it."""

    def __init__(self, server: CodeServer, browser: Chrome) -> None:
        self.server, self.browser = server, browser

    def open(self, path: Path, theme: str) -> None:
        """Load a new page that shows a file, in the light or the dark theme."""
        self.server.choose(theme)
        self.browser.get(self.server.address(path))

    def until(self, condition: Callable[[], Any], reason: str, timeout: float) -> None:
        """Ask until the answer is true."""
        try:
            WebDriverWait(self.browser, timeout, poll_frequency=0.2).until(lambda _: condition())
        except TimeoutException:
            self.screenshot("vscode-timeout")
            raise AssertionError(f"waited {timeout} s in vain for {reason}; see {SCREENSHOTS}") from None

    def looks(self, cell: str) -> dict[str, str]:
        """The texts of the cell that contains `cell` -> their colour, style and weight."""
        return dict(self.browser.execute_script(_LINES, cell))

    def screenshot(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.browser.save_screenshot(str(SCREENSHOTS / f"{name}.png"))
