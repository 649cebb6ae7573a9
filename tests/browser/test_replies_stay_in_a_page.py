"""A reply stays where its view ran: on the page, in the saved file, and in a page that is loaded again."""

import pytest
from chats import SETUP
from lab import Lab, Page

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]

TALKER = "talker = Agent(name='talker', model=ScriptedLlm(*(f'Answer **{n}**.' for n in range(1, 9))))"
CELLS = [
    "%chat talker first\nprint('printed after')",
    "for word in ['second', 'third']:\n    %chat talker {{word}}",
    "ans = %chat talker fourth",
    "%chat talker fifth",
]
ANSWERS = [["Answer 1."], ["Answer 2.", "Answer 3."], ["Answer 4."], ["Answer 5."]]


def answers(page: Page, cell: int) -> list[str]:
    """The lines of a cell's outputs that are answers, as a reader sees them."""
    return [line for line in page.text(cell).splitlines() if line.startswith("Answer ")]


def test_replies_stay_in_order_on_the_page_in_the_file_and_after_a_reload(lab: Lab):
    page = lab.open(lab.write("replies.ipynb", SETUP, TALKER, *CELLS))

    page.run_all()

    for cell, answer in enumerate(ANSWERS, start=2):
        page.until(lambda cell=cell, text=answer: answers(page, cell) == text, f"the replies of cell {cell}")
    page.scroll_to(".jp-Cell:nth-child(4) .jp-OutputArea")
    page.screenshot("replies_stay")
    lines = [
        [output.data["text/plain"].partition(" > ")[2] for output in cell.outputs if "data" in output]
        for cell in page.saved().cells[2:]
    ]
    assert lines == [[answer.replace(answer[7], f"**{answer[7]}**") for answer in answer] for answer in ANSWERS]
    page.reload()
    for cell, answer in enumerate(ANSWERS, start=2):
        page.until(lambda cell=cell, text=answer: answers(page, cell) == text, f"the replies of cell {cell}, again")
