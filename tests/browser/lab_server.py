"""What the browser tests run on: one JupyterLab server that knows nothing of this machine, and one Chromium."""

import json
import os
import secrets
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.warm import kernelspec

EXTENSION = Path(__file__).parents[2] / "editors" / "jupyterlab" / "labextension"
"""The extension of this checkout."""
KERNELS = Path(__file__).parents[2] / "build" / "kernels"
"""A folder for each other ipykernel, named by its version; `make kernels` fills it."""
_SIZE = (1200, 900)
_FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic --disable-sync --no-first-run "
    "--disable-background-networking --disable-component-update --disable-default-apps --force-device-scale-factor=1 "
    # What Chromium asks its makers by itself: accounts, updates of its parts, the time, hints for pages, forms.
    "--gaia-url=http://127.0.0.1:9 --component-updater=url-source=http://127.0.0.1:9/ "
    "--disable-features=AutofillServerCommunication,NetworkTimeServiceQuerying,OptimizationHints,"
    "PasswordLeakDetection"
)
_TRAP = """
    window.alerts = [];
    for (const name of ["alert", "confirm", "prompt"])
        window[name] = (said) => { try { window.top.alerts.push(String(said)); } catch { window.alerts.push(name); } };
"""
_SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "notebook-extension/tracker": {"windowingMode": "none"},
    "docmanager-extension/plugin": {"autosave": False},
}


class LabServer:
    """One `jupyter lab` on a free loopback port; `root` is the folder it serves."""

    def __init__(self, home: Path) -> None:
        self.root = home / "notebooks"
        self.log = home / "server.log"
        self.token = secrets.token_hex(16)
        self.url = ""
        """Known once the server runs: it chooses its own port, since one that is free now may be taken by then."""
        self.root.mkdir(parents=True)
        for name, settings in _SETTINGS.items():
            path = home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(settings))
        labextensions = home / "data" / "labextensions"
        labextensions.mkdir(parents=True)
        (labextensions / "adk-nb").symlink_to(EXTENSION)
        for folder in KERNELS.glob("*/"):
            spec = home / "data" / "kernels" / f"ipykernel-{folder.name}" / "kernel.json"
            spec.parent.mkdir(parents=True)
            spec.write_text(json.dumps(_kernelspec(folder)))
        warm = home / "data" / "kernels" / "python3" / "kernel.json"
        warm.parent.mkdir(parents=True)
        warm.write_text(json.dumps(kernelspec()))
        self._home = home

    @contextmanager
    def running(self) -> Iterator["LabServer"]:
        """Run the server; leaving ends it and its kernels."""
        command, environment = self._command(), self._environment()
        with (
            self.log.open("wb") as log,
            subprocess.Popen(command, cwd=self.root, env=environment, stdout=log, stderr=log) as process,
        ):
            try:
                self._wait_until_up(process)
                yield self
            finally:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()

    def ask(self, method: str, path: str) -> Any:
        """The JSON answer of the server's REST interface, None when it is empty."""
        request = urllib.request.Request(
            f"{self.url}/api/{path}", method=method, headers={"Authorization": f"token {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or "null")

    def end_kernels(self) -> None:
        """Shut down every kernel, so that tests do not share any."""
        for session in self.ask("GET", "sessions"):
            self.ask("DELETE", f"sessions/{session['id']}")

    def _command(self) -> list[str]:
        options = {
            "ServerApp.ip": "127.0.0.1",
            "ServerApp.port": 0,
            "ServerApp.open_browser": False,
            "ServerApp.root_dir": self.root,
            "ServerApp.allow_root": True,
            "IdentityProvider.token": self.token,
            "LabApp.expose_app_in_browser": True,
            "JupyterNotebookApp.expose_app_in_browser": True,
            "LabApp.user_settings_dir": self._home / "settings",
            "LabApp.workspaces_dir": self._home / "workspaces",
        }
        return [sys.executable, "-m", "jupyterlab", *(f"--{name}={value}" for name, value in options.items())]

    def _environment(self) -> dict[str, str]:
        places = {
            "HOME": "home",
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "IPYTHONDIR": "ipython",
            "XDG_CACHE_HOME": "cache",
        }
        stored = {
            name: os.environ[name]
            for name in ("PATH", "PYTHONPATH", "LANG", "TMPDIR", "SYSTEMROOT")
            if name in os.environ
        }
        stored["OLLAMA_HOST"] = "127.0.0.1:9"  # none
        # The extension of this checkout before that of the environment, which is as it was when it was installed.
        stored["JUPYTER_PREFER_ENV_PATH"] = "0"
        return {**stored, **{name: str(self._home / place) for name, place in places.items()}}

    def _wait_until_up(self, process: subprocess.Popen[bytes]) -> None:
        def up(_: object) -> bool:
            if process.poll() is not None:
                raise RuntimeError(f"jupyter lab ended at once:\n{self.log.read_text()[-3000:]}")
            try:
                info = json.loads((self._home / "runtime" / f"jpserver-{process.pid}.json").read_text())
                self.url = f"http://127.0.0.1:{info['port']}"
                return bool(self.ask("GET", "status"))
            except (FileNotFoundError, json.JSONDecodeError, urllib.error.URLError, ConnectionError):
                return False

        WebDriverWait(process, 60, poll_frequency=0.1).until(up, f"jupyter lab did not answer, see {self.log}")  # type: ignore[type-var]


def _kernelspec(folder: Path) -> dict[str, Any]:
    """This Python, with all that it has, and another ipykernel before its own."""
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": f"ipykernel {folder.name}",
        "language": "python",
        "metadata": {"debugger": True},
        "env": {"PYTHONPATH": os.pathsep.join(paths)},
    }


@contextmanager
def chromium(profile: Path, *flags: str) -> Iterator[Chrome]:
    """One headless Chromium with an empty profile, whose pages cannot open a dialog.

    Args:
        profile: The folder of the profile.
        flags: In place of `--no-proxy-server`, which keeps a proxy of this machine out.
    """
    driver, binary = shutil.which("chromedriver"), shutil.which("chromium")
    if not driver or not binary:
        raise RuntimeError("browser tests need Debian's chromium and chromium-driver: apt-get install chromium-driver")
    options = ChromeOptions()
    options.binary_location = binary
    for flag in (
        *_FLAGS.split(),
        *(flags or ["--no-proxy-server"]),
        f"--user-data-dir={profile}",
        f"--window-size={_SIZE[0]},{_SIZE[1]}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = Chrome(options=options, service=Service(driver, log_output=subprocess.DEVNULL))
    try:
        browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": _TRAP})
        browser.set_script_timeout(300)
        yield browser
    finally:
        browser.quit()
