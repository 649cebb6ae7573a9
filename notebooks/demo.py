"""Run a tutorial with no key, print the conversation it had, and keep it as a notebook and as a page.

python notebooks/demo.py notebooks/01_first_agent.ipynb --out build/demo
"""
# pyright: basic
# nbformat and nbconvert carry no types.

import argparse
import os
import sys
import textwrap
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter
from nbformat import NotebookNode

KEYS = (
    *("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
    *("ADK_NB_REPLAY", "ADK_NB_DEFAULT_MODEL"),
)
NO_OLLAMA = "127.0.0.1:9"
SPEAKS = ("%%chat", "%chat", "%confirm", "%trace")


def execute(path: Path, *, before: str = "") -> NotebookNode:
    """The notebook at `path`, its outputs made anew; it runs in its own folder, as it does in JupyterLab.

    `before` is Python that the kernel runs before the first cell.
    """
    for key in KEYS:
        os.environ.pop(key, None)
    os.environ["OLLAMA_HOST"] = NO_OLLAMA
    notebook = nbformat.read(path, as_version=4)
    # ipykernel warns that the traffic on this machine's loopback is not encrypted
    options = ["--log-level=ERROR", *([f"--IPKernelApp.exec_lines={before}"] if before else [])]
    place = {"metadata": {"path": str(path.parent)}}
    # a busy kernel sends one text in several messages; pages put them together
    NotebookClient(notebook, timeout=120, resources=place, extra_arguments=options, coalesce_streams=True).execute()
    return notebook


def said(cell: NotebookNode) -> str:
    """What a cell printed and answered, as plain text, in order."""
    texts: list[str] = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream" and output.name == "stdout":
            texts.append(output.text)
        elif output.output_type in ("execute_result", "display_data"):
            texts.append(output.data.get("text/plain", ""))
    return "\n".join(text.rstrip() for text in texts if text.strip())


def conversation(notebook: NotebookNode) -> str:
    """The cells that speak to an agent or ask what it did, each with what came back."""
    return "\n\n".join(
        textwrap.indent(cell.source.strip(), "> ") + "\n" + said(cell)
        for cell in notebook.cells
        if cell.cell_type == "code" and (cell.source.startswith(SPEAKS) or ".ask(" in cell.source)
    )


def keep(notebook: NotebookNode, name: str, folder: Path) -> list[Path]:
    """Write the notebook and its page to `folder`; the files written."""
    folder.mkdir(parents=True, exist_ok=True)
    page, _ = HTMLExporter().from_notebook_node(notebook, resources={"metadata": {"name": name}})
    files = [folder / f"{name}.ipynb", folder / f"{name}.html"]
    files[0].write_text(nbformat.writes(notebook), encoding="utf-8")
    files[1].write_text(page, encoding="utf-8")
    return files


def main() -> int:
    """Exit status 1, and the cell's own error, when a cell fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder of the executed notebook and page")
    asked = parser.parse_args()
    try:
        notebook = execute(asked.notebook)
    except CellExecutionError as error:
        print(error, file=sys.stderr)
        return 1
    print(conversation(notebook))
    print("\nThe executed notebook and its page:")
    for path in keep(notebook, asked.notebook.stem, asked.out):
        print(f"  {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
