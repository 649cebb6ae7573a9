"""Run by the Python of a fresh environment: types cells into a notebook's kernel, one after the other.

python walker.py    reads cells as JSON lines, answers each with one: seconds, whether it failed, what it showed
"""

import json
import sys
import time
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError


def shown(cell: Any) -> str:
    texts: list[str] = []
    for output in cell.outputs:
        texts += [output.get("text", ""), output.get("data", {}).get("text/plain", "")]
        texts += [f"{output.get('ename', '')}: {output.get('evalue', '')}" if "ename" in output else ""]
    return "\n".join(text for text in texts if text)


notebook = nbformat.v4.new_notebook()
client = NotebookClient(notebook, timeout=600)
with client.setup_kernel():
    for line in sys.stdin:
        cell = nbformat.v4.new_code_cell(json.loads(line))
        notebook.cells.append(cell)
        began = time.perf_counter()
        try:
            client.execute_cell(cell, len(notebook.cells) - 1)
            failed = False
        except CellExecutionError:
            failed = True
        told = {"seconds": time.perf_counter() - began, "failed": failed, "shown": shown(cell)}
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
