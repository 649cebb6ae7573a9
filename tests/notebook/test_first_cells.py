"""The cells at the top of the README do what it says, typed as they stand there."""

import re
from pathlib import Path

from tests.notebook.conftest import Shell

README = (Path(__file__).parents[2] / "README.md").read_text()
CELLS = re.findall(r"^```\n(%.*?)\n```", README, re.MULTILINE | re.DOTALL)


def test_the_first_cells_of_the_readme_lead_to_an_answer_that_was_counted(bare: Shell):
    assert [cell.split()[0] for cell in CELLS] == ["%load_ext", "%%tool", "%%agent", "%chat"]

    *_, reply = [bare.cell(cell) for cell in CELLS]

    assert [call.name for event in reply.events for call in event.get_function_calls()] == ["days_until"]
    assert re.search(r"\d", reply.text)
