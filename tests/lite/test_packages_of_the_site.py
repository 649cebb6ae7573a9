"""`%pip` and `%key` know what the site has: that is loaded, and for all else one sentence says what to do."""

import pytest
from conftest import ElsewhereProxy
from lite_page import BOOT, LitePage
from selenium.webdriver import Keys

pytestmark = pytest.mark.lite


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("%pip install emoji", ["this site has no emoji", "await micropip.install(['emoji'])"]),
        ("%pip install 'openai>=999'", ["this site has openai 2.", "not openai>=999", "%pip install openai"]),
        ("%pip install 'adk-nb[a2a]'", ["this site has no", "a2a-sdk"]),
    ],
)
def test_what_the_site_lacks_is_told_in_a_sentence(page: LitePage, source: str, words: list[str]):
    page.open("00_start_here.ipynb")
    page.write(1, source)

    page.run_cell(1, allow_errors=True, timeout=BOOT)

    text = page.text(1)
    assert all(word in text for word in words), text
    assert "Traceback" not in text and "File /" not in text and len(text.splitlines()) == 1, text


def test_the_sentence_asks_pypi_for_what_the_site_lacks(page: LitePage, elsewhere: ElsewhereProxy):
    page.open("00_start_here.ipynb")
    page.write(1, "import micropip; await micropip.install(['emoji'])")

    page.run_cell(1, allow_errors=True, timeout=BOOT)

    assert any("pypi.org" in request for request in elsewhere.requests)
    elsewhere.requests.clear()


def test_an_extra_that_the_site_has_is_loaded(page: LitePage):
    page.open("00_start_here.ipynb")
    page.write(1, "%pip install 'adk-nb[openai]'\nimport openai")

    page.run_cell(1, timeout=BOOT)

    assert "openai 2." in page.text(1)


def test_a_key_of_openai_asks_for_no_installation(page: LitePage):
    page.open("00_start_here.ipynb")
    page.run_cell(1, timeout=BOOT)
    page.write(2, "%key openai")
    page.run_cell(2, wait=False)
    page.wait(".jp-Stdin-input", timeout=BOOT).send_keys("sk-test-1234567890abcdefghij", Keys.ENTER)

    page.until(lambda: "is set, from your input" in page.text(2), "the key")

    assert "pip" not in page.text(2)
    page.write(3, "%doctor")
    page.run_cell(3, timeout=BOOT)
    assert "adk-nb[openai]" not in page.text(3)
