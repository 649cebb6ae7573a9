"""A chat, a card and `%confirm` on the Jupyters that are supported, each in an environment and a kernel of its own.

python -m tests.package.versions [NAME...]    into build/versions; without a name, all of them
"""
# pyright: basic
# nbclient and nbformat carry no types.

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "versions"
JUPYTERS = {
    "floors": ["ipykernel>=6.29", "nbclient>=0.10"],
    "oldest": ["ipython==8.20.*", "ipykernel==6.29.*", "jupyterlab==4.2.*", "notebook==7.2.*"],
    "middle": ["ipython==9.0.*", "ipykernel==7.0.*", "jupyterlab==4.4.*", "notebook==7.4.*"],
    "classic": ["ipython==8.*", "ipykernel==6.*", "nbclassic>=1"],
    "newest": ["ipython", "ipykernel", "jupyterlab", "notebook"],
}
"""`floors` has the oldest of all that pyproject.toml names; in the others the rest is the newest."""
SHOWN = ("ipython", "ipykernel", "jupyterlab", "notebook", "nbclassic", "ipywidgets", "anywidget", "pydantic")
TOOL = """%%tool --confirm "amount > 100"
def pay(to: str, amount: float) -> str:
    '''Pay a person an amount in euros.'''
    return f"paid {amount:g} euros to {to}"
"""
CELLS = [
    "%load_ext adk_nb",
    TOOL,
    "%%agent clerk -t pay -m offline\nYou pay what is agreed.",
    '%chat clerk Pay 250 euros to "Anna"',
    "%confirm yes",
    '%chat clerk Pay 300 euros to "Bo"',
    "%confirm no",
]
PROBE = """
import json, sys
import nbformat
from importlib import metadata
from nbclient import NotebookClient
cells, shown = json.loads(sys.argv[1])
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in cells])
NotebookClient(book, timeout=180, kernel_name="python3", extra_arguments=["--log-level=ERROR"]).execute()
forms = [[one.get("data", {"text/plain": one.get("text", "")}) for one in cell.outputs] for cell in book.cells]
words = [" ".join("".join(form.get("text/plain", "")) for form in cell) for cell in forms]
assert "Asks for approval: pay(" in words[3] and "%confirm" in words[3], words[3]
assert "text/html" in {kind for form in forms[3] for kind in form}, forms[3]
assert "paid 250 euros to Anna" in words[4].lower().replace("anna", "Anna"), words[4]
assert "Asks for approval: pay(" in words[5] and "paid" not in words[6].lower(), words[5:]
def installed(name):
    try: return f"{name} {metadata.version(name)}"
    except metadata.PackageNotFoundError: return ""
print(", ".join(filter(None, map(installed, shown))))
"""


def try_out(name: str) -> None:
    """Install, talk, and look whether a lab lists the extension."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    packages = [*JUPYTERS[name], "nbclient>=0.10", str(ROOT)]
    if uv := shutil.which("uv"):
        run(uv, "venv", "-q", "--python", sys.executable, folder)
        lowest = ["--resolution", "lowest-direct"] if name == "floors" else []
        run(uv, "pip", "install", "-q", "--python", python, *lowest, *packages)
    elif name == "floors":
        print("floors: skipped, for uv is not installed, which alone resolves to the oldest")
        return
    else:
        run(sys.executable, "-m", "venv", folder)
        run(python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages)
    print(
        f"{name}: a chat, a card and %confirm on {run(python, '-c', PROBE, json.dumps([CELLS, SHOWN])).splitlines()[0]}"
    )
    if any(one.startswith("jupyterlab") for one in packages):
        listed = run(python, "-m", "jupyter", "labextension", "list")
        line = next((line for line in listed.splitlines() if "adk-nb " in line), "")
        assert "enabled" in line and "OK" in line, f"{name}: JupyterLab does not list the extension: {listed}"
        print(f"{name}: JupyterLab lists {' '.join(line.split()[:2])}")


def run(*command: object) -> str:
    """What a command prints; this program ends if it fails. Its environment lacks the keys of this one."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    kept |= {"OLLAMA_HOST": "127.0.0.1:9", "JUPYTER_PLATFORM_DIRS": "1", "NO_COLOR": "1"}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=kept, cwd=FOLDER)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command[:5]))[:200]} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout + done.stderr


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for wanted in sys.argv[1:] or JUPYTERS:
        try_out(wanted)
