"""A notebook with an evaluation is a test: pytest --nbval-lax passes or fails with its score."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.kernel_all]

AGENT = """from adk_nb import Agent
from adk_nb.models import ScriptedLlm

clerk = Agent(name="clerk", model=ScriptedLlm(*["It is {price} euros."] * 2))"""
CASES = "%%eval clerk --min 1\n| message | answer |\n| --- | --- |\n| 300 grams? | 6.70 |\n| 250 grams? | 6.70 |"


@pytest.mark.parametrize(("price", "outcome"), [("6.70", "3 passed"), ("1.75", "1 failed")])
def test_a_score_below_the_minimum_fails_the_job(tmp_path: Path, price: str, outcome: str):
    notebook = nbformat.v4.new_notebook()
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    cells = ["%load_ext adk_nb", AGENT.format(price=price), CASES]
    notebook.cells = [nbformat.v4.new_code_cell(cell) for cell in cells]
    nbformat.write(notebook, tmp_path / "clerk.ipynb")

    command = [sys.executable, "-m", "pytest", "--nbval-lax", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    job = subprocess.run([*command, "clerk.ipynb"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert outcome in job.stdout, job.stdout
    assert (job.returncode == 0) == (price == "6.70")
