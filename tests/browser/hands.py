"""A reader's hands and eyes at one cell of a page, and the list of what they have done."""

import json
import sys
from typing import Any

from lab import Page
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

OUTSIDE = "return document.activeElement.closest('.adknb-root') === null"
"""True if no element of a view has the focus."""


class Steps:
    """What a reader has done, in order; each step is added when what it must lead to has been seen, and printed."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def __call__(self, kind: str) -> None:
        assert kind not in self.done, f"done twice: {kind}"
        self.done.append(kind)
        sys.stdout.write(f"{len(self.done):3}  {kind}\n")


def within(page: Page, cell: int, css: str) -> list[WebElement]:
    """What one can see in the output of a cell."""
    node = page.js("return panel.content.widgets[arguments[0]].node", cell)
    return [
        element
        for element in node.find_elements(By.CSS_SELECTOR, f".jp-Cell-outputArea {css}")
        if element.is_displayed()
    ]


def rows(page: Page, cell: int) -> list[str]:
    return [row.text for row in within(page, cell, ".adknb-row .adknb-what")]


def press(page: Page, cell: int, label: str) -> WebElement:
    """Click the button of a cell that says so, when it is there."""

    def find_match() -> WebElement | None:
        return next((element for element in within(page, cell, ".adknb-button") if element.text == label), None)

    button = page.until(find_match, f"a button {label}")
    page.js("arguments[0].scrollIntoView({block: 'center'})", button)
    button = page.steady(find_match, label)
    button.click()
    return button


def card(page: Page, cell: int, state: str = "asked") -> WebElement:
    until = page.until(lambda: within(page, cell, f".adknb-card[data-state={state}]"), f"a card that is {state}")
    return until[-1]


def says(page: Page, cell: int, text: str) -> None:
    page.until(lambda: text in page.text(cell), f"{text!r} in cell {cell}")


def keys(page: Page, *pressed: str) -> None:
    ActionChains(page.browser).send_keys(*pressed).perform()


def unfold(page: Page, cell: int) -> None:
    """Open a view that is folded over its answer."""
    for element in within(page, cell, ".adknb-fold"):
        element.click()


def ran(page: Page, cell: int) -> list[Any]:
    """The JSON that a cell prints when it is run."""
    page.run_cell(cell)
    return json.loads(page.text(cell))
