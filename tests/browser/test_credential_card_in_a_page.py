"""A tool that has to be let in, by a person with a page: a link to open, a field to paste into, a no."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from chats import SETUP
from lab import Lab, Page
from letting_in import SEEN, asked, at

from tests.auth.auth_server import REDIRECT, AuthServer, auth_server

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]
CONTRAST = Path(__file__).with_name("contrast.js").read_text()
ANSWER = "You have one mail."


@pytest.fixture
def server() -> Iterator[AuthServer]:
    with auth_server() as running:
        yield running


def where_the_link_leads(page: Page) -> str:
    """Open the card's link as a person does, and copy the address that its page ends at."""
    browser = page.browser
    [handle] = browser.window_handles
    page.click(".adknb-link")
    page.until(lambda: len(browser.window_handles) == 2, "another window")
    browser.switch_to.window(next(item for item in browser.window_handles if item != handle))
    try:
        return page.until(lambda: (url := browser.current_url).startswith(REDIRECT) and url, "the redirect")
    finally:
        browser.close()
        browser.switch_to.window(handle)


def answered(page: Page, cell: int = 3) -> None:
    """Wait until the reply that came after the card stands in the cell that asked."""
    page.until(lambda: ANSWER in page.text(cell), "the reply")
    page.wait(".adknb-summary", ANSWER)


def test_a_link_is_opened_its_address_is_pasted_and_the_tool_runs(lab: Lab, server: AuthServer):
    page = asked(lab, SETUP, at(server), SEEN)
    assert not page.running(3)
    asks = page.wait(".adknb-ask").text
    assert asks.startswith("⚠ clerk calls mail,")
    assert asks.endswith("sign-in")
    pasted = where_the_link_leads(page)

    page.type(".adknb-card input", "http://localhost/callback?code=x&state=of-another-request")
    page.button("Continue").click()
    page.wait(".adknb-card .adknb-problem", "its `state` does not match")
    page.type(".adknb-card input", pasted)
    page.button("Continue").click()
    answered(page)

    page.run_cell(4)
    [log] = json.loads(page.text(4))
    assert log["oauth2"]["access_token"] in server.access_tokens
    notebook = page.saved()
    saved = json.dumps([notebook.cells[:4], notebook.metadata])
    code = pasted.partition("code=")[2].partition("&")[0]
    assert [item for item in (pasted, code, *server.access_tokens) if item in saved] == []


def test_a_key_is_typed_into_a_field_that_does_not_show_it(lab: Lab):
    page = asked(lab, SETUP, "by_key", SEEN, "print(json.dumps([e.model_dump_json() for e in _run.events]))")
    field = page.wait(".adknb-card input")
    assert (field.get_attribute("type"), field.get_attribute("autocomplete")) == ("password", "new-password")

    page.button("Continue").click()
    page.wait(".adknb-problem", "key: nothing was typed")
    assert page.js("return document.activeElement.matches('.adknb-card input')")
    page.type(".adknb-card input", "a-persons-key\n")
    answered(page)

    page.run_cell(4)
    assert json.loads(page.text(4)) == [{"auth_type": "apiKey", "api_key": "a-persons-key"}]
    page.run_cell(5)
    assert "a-persons-key" not in page.text(5)
    assert "a-persons-key" not in json.dumps(page.saved().metadata) + page.text(3)


def test_a_name_and_a_password_are_two_fields(lab: Lab):
    page = asked(lab, SETUP, "by_password", SEEN)
    name, password = page.all(".adknb-card input")
    assert [item.get_attribute("type") for item in (name, password)] == ["text", "password"]

    name.send_keys("ada")
    password.send_keys("love:lace")
    page.button("Continue").click()
    answered(page)

    page.run_cell(4)
    [log] = json.loads(page.text(4))
    assert log["http"]["credentials"] == {"username": "ada", "password": "love:lace"}


def test_a_no_is_told_to_the_model_and_the_tool_does_not_run(lab: Lab):
    page = asked(lab, SETUP, "by_key", SEEN)

    page.button("Refuse").click()
    answered(page)

    page.run_cell(4)
    assert json.loads(page.text(4)) == []


def test_a_service_that_refuses_the_answer_is_asked_again_on_a_new_card(lab: Lab, server: AuthServer):
    page = asked(lab, SETUP, at(server), SEEN)
    pasted = where_the_link_leads(page)
    server.codes.clear()

    page.type(".adknb-card input", pasted)
    page.button("Continue").click()
    page.wait(".adknb-card .adknb-problem", "invalid_grant")

    assert [card.get_attribute("data-state") for card in page.all(".adknb-card")] == ["given", "asked"]
    page.screenshot("let-in-again")
    page.type(".adknb-card[data-state=asked] input", where_the_link_leads(page))
    page.button("Continue").click()
    answered(page)


def test_an_answer_in_another_cell_closes_the_card(lab: Lab):
    page = asked(lab, SETUP, "by_key", "_run.answer('a-persons-key')")

    page.run_cell(4)

    answered(page, 4)


def test_a_card_whose_kernel_is_gone_says_so(lab: Lab):
    page = asked(lab, SETUP, "by_key")

    page.js("await panel.sessionContext.session.kernel.restart()")

    page.wait(".adknb-notice", "run the cell again")
    page.until(lambda: not page.all(".adknb-card input"), "no field")


@pytest.mark.parametrize(("theme", "width"), [("Light", 1000), pytest.param("Dark", 1000), pytest.param("Light", 500)])
def test_the_cards_are_readable(lab: Lab, server: AuthServer, theme: str, width: int):
    text = f"clerk = clerk_of({at(server)}, call('refund', order='A17', amount=250.0), refund)"
    page = asked(lab, SETUP, "by_key", text, "%chat --new clerk Is there mail, and money?")
    page.js("for (const cell of panel.content.widgets) cell.inputHidden = true;")
    page.run_cell(4)
    page.run_cell(5)
    page.wait(".adknb-card .adknb-link")
    page.theme(f"JupyterLab {theme}")
    page.resize(width, 900)
    page.scroll_to(".adknb-card .adknb-link")
    page.screenshot(f"let-in-{theme.lower()}-{width}")
    assert page.js(CONTRAST) == []
    small = """const targets = document.querySelectorAll('.adknb-root button, .adknb-root input, .adknb-root a');
        return [...targets].filter((one) => one.offsetParent && (one.offsetHeight < 24 || one.offsetWidth < 24))
            .map((one) => one.outerHTML)"""
    assert page.js(small) == []
    output = """const card = document.querySelector('.adknb-link').closest('.adknb-card');
        const field = card.querySelector('input');
        return [card.getAttribute('role'), card.contains(document.activeElement), field.labels.length,
            document.querySelector('.adknb-root .adknb-hidden[role=status]').textContent]"""
    role, has_focus, labels, message = page.js(output)
    assert (role, has_focus, labels) == ("alertdialog", False, 1)
    assert message.strip().startswith("⚠ clerk calls mail,")
    assert message.strip().endswith("key (header X-Key)")
