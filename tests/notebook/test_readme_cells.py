"""The cells on the front page run as they stand there, without a key."""

import re
from pathlib import Path

from tests.notebook.conftest import Shell

README = Path(__file__).parents[2] / "README.md"


def test_the_cells_of_the_readme_run(shell: Shell):
    first, *cells = re.findall(r"^```\n(%.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)

    assert first.split() == ["%load_ext", "adk_nb"] and len(cells) == 3  # the fixture has run the first
    for cell in cells:
        shell.cell(cell)
    shell.cell("%confirm --yes")

    assert shell.cell("_run.text").startswith("Paid 250 euros to Anna.")
