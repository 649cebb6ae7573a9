"""The panel of an installed package, in a real page."""

from pathlib import Path

import pytest
from lab import Lab

from tests.support import example_package

pytestmark = pytest.mark.browser


def test_the_panel_of_a_package_is_a_tab_of_the_view(lab: Lab, tmp_path: Path):
    site = example_package.install(tmp_path)
    cells = [
        f"import sys; sys.path.insert(0, {str(site)!r})",
        "%load_ext adk_nb",
        "%%agent brief -m offline --at-most 5\nAnswer.",
        "%chat brief Hello there",
        "%words --of question",
    ]
    page = lab.open(lab.write("extension.ipynb", *cells))
    page.run_all()

    page.click(".adknb-fold")
    page.click(".adknb-tab", "Words")
    page.wait(".adknb-words p", "user: 2 words")
    assert "2 words" in page.text(4)
