"""A model behind HTTP is asked by the page's own fetch, with a key that was typed and stays in the page's memory."""

import json

import pytest
from lite_page import BOOT, LitePage
from model_server import ModelServer
from selenium.webdriver import Keys

pytestmark = pytest.mark.lite

SECRET = "sk-test-1234567890abcdefghij"
OPENAI = """
from adk_nb import Agent
from adk_nb.models import OpenAILlm
guide = Agent(name="guide", model=OpenAILlm(model="local", base_url="{url}/v1"))
"""
GEMINI = """
from adk_nb import Agent
from adk_nb.models import Gemini
guide = Agent(name="guide", model=Gemini(model="gemini-local", base_url="{url}"))
"""


def storage(page: LitePage) -> str:
    """All that the page has stored in the browser, as text."""
    return json.dumps(
        page.js(
            """
        const all = { ...localStorage, ...sessionStorage };
        for (const { name } of await indexedDB.databases()) {
            const db = await new Promise((done) => { indexedDB.open(name).onsuccess = (e) => done(e.target.result); });
            for (const store of db.objectStoreNames) {
                const request = db.transaction(store).objectStore(store).getAll();
                await new Promise((done) => { request.onsuccess = done; });
                all[`${name}/${store}`] = request.result;
            }
            db.close();
        }
        return all;"""
        )
    )


@pytest.mark.parametrize(
    ("provider", "source", "header"),
    [("openai", OPENAI, "authorization"), ("gemini", GEMINI, "x-goog-api-key")],
)
def test_a_typed_key_asks_a_model_whose_answer_streams(page: LitePage, provider: str, source: str, header: str):
    with ModelServer().running() as models:
        page.open("00_start_here.ipynb")
        page.run_cell(1, timeout=BOOT)
        page.write(2, f"%key {provider}")
        page.run_cell(2, wait=False)
        page.wait(".jp-Stdin-input", timeout=BOOT).send_keys(SECRET, Keys.ENTER)
        page.until(lambda: "is set, from your input" in page.text(2), "the key")
        page.write(3, source.format(url=models.url))
        page.run_cell(3, timeout=BOOT)
        page.write(4, "%chat guide How is the weather?")

        page.run_cell(4, wait=False)

        page.until(lambda: any("It is" in text for _, text in page.rows()), "the first piece", BOOT)
        assert "raining" not in page.text(4)
        models.rest.set()
        page.until(lambda: "It is raining." in page.text(4), "the answer", BOOT)
        assert SECRET in models.headers[-1][header]
        page.save()
        saved = json.dumps(page.saved())
        assert "It is raining." in saved
        for text in (saved, storage(page), page.browser.page_source):
            assert SECRET not in text


REDIRECTED = """
from adk_nb import Agent
from adk_nb.models import Claude, Gemini, HttpLlm, OpenAILlm
openai = Agent(name="openai", model=OpenAILlm(model="local", base_url="{url}/v1", api_key="{key}"))
gemini = Agent(name="gemini", model=Gemini(model="gemini-local", base_url="{url}", api_key="{key}"))
claude = Agent(name="claude", model=Claude(model="claude-local", base_url="{url}", api_key="{key}"))
service = Agent(name="service", model=HttpLlm(url="{url}/chat", headers={{"x-own": "{key}"}}))
"""


def test_no_key_goes_where_a_service_redirects_a_page_to(page: LitePage):
    with ModelServer().running() as stranger, ModelServer(redirects_to=stranger).running() as models:
        page.open("00_start_here.ipynb")
        page.run_cell(1, timeout=BOOT)
        page.write(2, REDIRECTED.format(url=models.url, key=SECRET))
        page.run_cell(2, timeout=BOOT)
        for place, name in enumerate(("openai", "gemini", "claude", "service"), 3):
            page.insert(place, f"%chat {name} How is the weather?")
            page.run_cell(place, allow_errors=True, timeout=BOOT)
            text = page.text(place)
            assert "redirects are not followed" in text and "write the address" in text, text
            assert SECRET not in text

        assert len(models.headers) == 4  # no attempt is repeated
        assert all(SECRET in json.dumps(headers) for headers in models.headers)
        assert not stranger.asked
