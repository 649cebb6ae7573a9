"""The cells at the top of the README do what it says, typed as they stand there."""

import re
from pathlib import Path

from tests.notebook.conftest import Shell

README = (Path(__file__).parents[2] / "README.md").read_text()
CELLS = re.findall(r"^```\n(%.*?)\n```", README, re.MULTILINE | re.DOTALL)


def test_the_first_cells_of_the_readme_lead_to_a_card_and_the_approved_call_to_an_answer(bare: Shell):
    assert [cell.split()[0] for cell in CELLS] == ["%load_ext", "%%tool", "%%agent", "%chat"]

    *_, reply = [bare.cell(cell) for cell in CELLS]
    [interrupt] = reply.interrupts

    assert (interrupt.call.name, interrupt.call.args) == ("pay", {"to": "Anna", "amount": 250})
    assert "250 euros to" in bare.cell("%confirm --yes").text
