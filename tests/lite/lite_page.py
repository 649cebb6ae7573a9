"""A notebook of the site in JupyterLite."""

from pathlib import Path
from typing import Any

import nbformat
from lab import Page
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import Chrome

BOOT = 90
"""Seconds until Python answers, on a machine that does little else."""


class LitePage(Page):
    """As `Page`; its Python is in the page, and its files are in the browser."""

    def __init__(self, site: str, browser: Chrome) -> None:
        self.site, self.browser, self.path = site, browser, Path()

    def open(self, name: str) -> "LitePage":
        """Load the page of a notebook, with a new Python."""
        self.path = Path(name)
        self.browser.get("about:blank")
        stored = {"origin": self.site, "storageTypes": "indexeddb,local_storage"}  # what was open, and edited
        self.browser.execute_cdp_cmd("Storage.clearDataForOrigin", stored)
        self.browser.get(f"{self.site}/lab/index.html?path={name}")
        self.ready()
        return self

    def ready(self) -> None:
        script = """return Boolean(panel?.context?.isReady && panel.sessionContext?.session?.kernel
            && panel.context.path === arguments[0])"""

        def up() -> bool:
            try:
                return bool(self.js(script, str(self.path)))
            except (WebDriverException, AssertionError):  # the lab is still being loaded
                return False

        self.until(up, f"{self.path} on the page", BOOT)

    def saved(self) -> Any:
        return nbformat.from_dict(self.js("return panel.content.model.toJSON()"))

    def write(self, index: int, source: str) -> None:
        """Replace the source of a cell."""
        self.js("panel.content.widgets[arguments[0]].model.sharedModel.setSource(arguments[1])", index, source)

    def insert(self, index: int, source: str) -> None:
        """Put a code cell at a place of the notebook."""
        script = "panel.content.model.sharedModel.insertCell(arguments[0], { cell_type: 'code', source: arguments[1] })"
        self.js(script, index, source)

    def line(self) -> str:
        """What the page says below the notebook while it loads Python."""
        return self.js("return document.getElementById('adk-nb-loading')?.innerText ?? ''")
