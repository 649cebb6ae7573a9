"""The search of the site finds magics, and their options as they are typed."""

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from lab_server import chromium
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from tests.support.tiers import missing

pytestmark = [pytest.mark.docs, pytest.mark.skipif(bool(missing("browser")), reason=missing("browser"))]
FIELD = "[data-md-component=search-query]"
RESULTS = "return [...document.querySelectorAll('.md-search-result__link')].map((link) => link.href)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("chromium")) as it:
        yield it


@pytest.mark.parametrize(
    ("words", "page", "place"),
    [
        ("rewind", "magics", "rewind"),
        ("%rewind", "magics", "rewind"),
        ("confirm", "magics", "confirm"),
        ("--confirm", "magics", "tool"),
        ("--max-iterations", "magics", "agent"),
        ("LangGraph", "coming_from", "from-langgraph"),
    ],
)
def test_what_is_typed_is_found_on_its_page_first(browser: Chrome, address: str, words: str, page: str, place: str):
    browser.get(f"{address}/index.html")
    field = browser.find_element(By.CSS_SELECTOR, FIELD)
    browser.execute_script("arguments[0].focus(); arguments[0].value = arguments[1]", field, words)
    field.send_keys(Keys.END)

    WebDriverWait(browser, 30).until(lambda page: page.execute_script(RESULTS))
    found = [urlsplit(link) for link in browser.execute_script(RESULTS)]

    assert found[0].path == f"/{page}.html"
    assert place in [link.fragment for link in found if link.path == found[0].path]
