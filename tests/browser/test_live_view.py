"""The live view in a real page, fed by hand: no agent, no model."""

import json
from pathlib import Path
from typing import Any

import pytest
from hand_made import CARD, ROWS, SETUP, answers, ops, shown, story
from hands import OUTSIDE
from lab import Lab
from selenium.webdriver import ActionChains, Keys

pytestmark = pytest.mark.browser


@pytest.mark.browser_all
def test_rows_are_there_before_the_cell_ends(lab: Lab):
    cell = (
        "view.push({'op': 'status', 'status': 'running', 'text': ''})\n"
        f"for row in {ROWS[:3]!r}: view.push({{'op': 'append', 'row': row}})\n"
        "view.push({'op': 'append', 'row': {'id': 's', 'author': 'weather', 'kind': 'text'}})\n"
        "for token in ['Paris ', 'is ', 'warm']: view.push({'op': 'text', 'id': 's', 's': token})\n"
        "wait_for('go')\n"
        "view.push({'op': 'patch', 'id': 's', 'html': '<p>Paris is <b>warm</b>.</p>'}); view.close_run()"
    )
    page = lab.open(lab.write("view.ipynb", SETUP, cell))
    page.run_cell(0)
    page.wait(".adknb-head")

    page.run_cell(1, wait=False)

    page.until(lambda: len(page.rows()) == 4 and page.rows()[3] == ("weather", "Paris is warm▌"), "the rows")
    assert page.running(1)
    assert page.rows()[:2] == [("you", "Is it warmer in Paris or Oslo?"), ("planner", "→ transfer to weather")]
    (lab.folder / "go").touch()
    page.wait(".adknb-html b", "warm")
    assert not page.all(".adknb-caret")


@pytest.mark.browser_all
def test_ten_thousand_tokens_arrive_whole_in_at_most_fifty_messages(lab: Lab):
    cell = (
        "tokens = [f'word{i} ' for i in range(10_000)]; counted.clear()\n"
        "view.push({'op': 'append', 'row': {'id': 's', 'author': 'weather', 'kind': 'text'}})\n"
        "for i, token in enumerate(tokens):\n"
        "    view.push({'op': 'text', 'id': 's', 's': token})\n"
        "    if i % 100 == 0: time.sleep(0.005)\n"
        "view.close_run(); print(len(counted))"
    )
    page = lab.open(lab.write("view.ipynb", SETUP, cell))
    page.run_cell(0)
    page.wait(".adknb-head")

    page.run_cell(1)

    expected = "".join(f"word{i} " for i in range(10_000))
    script = "const text = document.querySelector('.adknb-text'); return text && text.textContent"
    page.until(lambda: page.js(script) == expected, "the whole text")
    assert 3 < int(page.text(1)) <= 50


@pytest.mark.browser_all
def test_only_the_last_thousand_rows_stay_on_the_page(lab: Lab):
    cell = (
        "for i in range(1500): view.push({'op': 'append', 'row': {'id': str(i), 'author': 'a', 'text': f'row {i}'}})\n"
        "view.close_run()"
    )
    page = lab.open(lab.write("view.ipynb", SETUP, cell))
    page.run_cell(0)
    page.run_cell(1)

    page.wait(".adknb-earlier", "500 earlier rows")
    rows = page.rows()
    assert (len(rows), rows[0], rows[-1]) == (1000, ("a", "row 500"), ("a", "row 1499"))


@pytest.mark.browser_all
def test_a_click_on_approve_arrives_once_even_when_doubled(lab: Lab):
    page = shown(lab, *story())

    button = page.button("Approve")
    ActionChains(page.browser).double_click(button).perform()

    page.wait(".adknb-card", "approved")
    assert not page.all(".adknb-card button")
    assert answers(page) == [{"kind": "answer", "id": "c1", "value": {"confirmed": True}}]


@pytest.mark.browser_all
def test_a_card_shows_all_that_will_run(lab: Lab):
    args = {"order_id": "\u202e71", "amount": 250, "\u0430mount": 1, "note": "x" * 30_000}
    page = shown(lab, {"op": "card", "card": {**CARD, "args": args}})
    card = page.wait(".adknb-card")

    assert r'"\u202e71"' in card.text and "\u202e" not in card.text
    assert r"\u0430mount 1 (unknown)" in card.text
    page.click(".adknb-card .adknb-button", "Show all of note")
    page.until(lambda: len(page.wait(".adknb-whole").text) == 30_002, "the whole note")
    page.click(".adknb-edit")
    names = [label.text for label in page.all(".adknb-field-name")]
    assert r"\u0430mount unknown, number" in names
    assert page.wait(".adknb-form textarea").get_attribute("value") == r'"\u202e71"'
    page.click(".adknb-go", "Approve unchanged")

    page.wait(".adknb-card", "approved")
    assert answers(page)[0]["value"] == {"confirmed": True}


_TWICE_AT_ONE_PLACE = """
    const goes = () => [...document.querySelectorAll(".adknb-go")].filter((node) => node.offsetParent);
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    const before = goes().length;
    goes()[0].click();
    while (goes().length === before) await frame();
    const { left, top, width, height } = goes()[0].getBoundingClientRect();
    const there = document.elementFromPoint(left + width / 2, top + height / 2).closest("button");
    const wasOff = there.matches(":disabled");
    there.click();
    return wasOff;
"""
"""Clicks Approve, and then what has come to the place of the next one, as soon as it is there."""


def test_a_second_click_approves_no_card_that_has_just_come_under_the_pointer(lab: Lab):
    second = {"op": "card", "card": {**CARD, "id": "c2", "args": {**CARD["args"], "order_id": "90000"}}}
    page = shown(lab, *story(), second)
    page.until(lambda: len({card.get_attribute("data-card") for card in page.all(".adknb-card")}) == 2, "both cards")
    page.js("document.querySelector('[data-card=c2]').scrollIntoView({block: 'end'})")
    page.cards_are_on()

    assert page.js(_TWICE_AT_ONE_PLACE)
    assert [answer["id"] for answer in answers(page)] == ["c1"]

    page.button("Approve").click()
    page.until(lambda: page.js("return !document.querySelector('[data-state=asked]')"), "the second outcome")
    assert [answer["id"] for answer in answers(page)] == ["c1", "c2"]


@pytest.mark.browser_all
def test_a_second_enter_approves_no_other_card(lab: Lab):
    second = {"op": "card", "card": {**CARD, "id": "c2", "args": {**CARD["args"], "order_id": "90000"}}}
    page = shown(lab, *story(), second)
    page.until(lambda: len({card.get_attribute("data-card") for card in page.all(".adknb-card")}) == 2, "both cards")
    page.cards_are_on()

    page.button("Approve").send_keys(Keys.ENTER + Keys.ENTER)
    page.wait("[data-card=c1]", "approved")
    ActionChains(page.browser).send_keys(Keys.ENTER).perform()

    assert [answer["id"] for answer in answers(page)] == ["c1"]


def test_an_answer_in_one_view_closes_the_card_in_every_view(lab: Lab):
    page = lab.open(lab.write("view.ipynb", SETUP, "view", ops(*story()), "print(json.dumps(answers))"))
    page.run_all()
    page.until(lambda: len(page.all(".adknb-card")) == 2, "both cards")

    page.steady(lambda: page.all(".adknb-go")[1], "Approve").click()

    page.until(lambda: ["approved" in card.text for card in page.all(".adknb-card")] == [True, True], "both outcomes")
    page.run_cell(3)
    assert len(json.loads(page.text(3))) == 1


@pytest.mark.browser_all
def test_edited_arguments_are_checked_shown_as_a_difference_and_sent(lab: Lab):
    page = shown(lab, *story())
    page.button("Edit…").click()
    fields = {label.text.split()[0]: label.get_attribute("for") for label in page.all(".adknb-field-name")}

    page.type(f"#{fields['amount']}", "a lot")
    page.wait(".adknb-problem", "amount: a number is needed")
    page.type(f"#{fields['amount']}", "-1")
    page.wait(".adknb-problem", "amount: at least 0")
    page.type(f"#{fields['days']}", "1.5")
    page.wait(".adknb-problem", "days: a whole number is needed")
    page.type(f"#{fields['tags']}", '["late", ')
    page.wait(".adknb-problem", "tags: not JSON")
    assert not next(element for element in page.all(".adknb-go") if element.is_displayed()).is_enabled()
    page.screenshot("edit-form")

    page.type(f"#{fields['amount']}", "100")
    page.type(f"#{fields['days']}", "4")
    page.type(f"#{fields['tags']}", '["late", "kept"]')
    page.click(f"#{fields['notify']}")
    page.wait(".adknb-difference", "amount 250 → 100")
    page.button("Approve with these changes").click()

    page.wait(".adknb-card", "amount 250 → 100")
    edited = {**CARD["args"], "amount": 100, "days": 4, "tags": ["late", "kept"], "notify": True}
    assert answers(page) == [{"kind": "answer", "id": "c1", "value": {"confirmed": True, "args": edited}}]


@pytest.mark.browser_all
def test_enter_on_the_focused_button_approves(lab: Lab):
    page = shown(lab, *story())
    page.cards_are_on()

    page.button("Approve").send_keys(Keys.ENTER)

    page.wait(".adknb-card", "approved")
    assert len(answers(page)) == 1


@pytest.mark.browser_all
def test_an_answer_that_does_not_fit_can_be_given_again(lab: Lab):
    repeated = {"op": "card", "card": {"id": "c1", "state": "asked", "note": "amount: at most 200"}}
    page = lab.open(lab.write("view.ipynb", SETUP, ops(*story()), ops(repeated)))
    page.run_all()
    page.button("Edit…").click()
    fields = {label.text.split()[0]: label.get_attribute("for") for label in page.all(".adknb-field-name")}
    page.type(f"#{fields['amount']}", "240")
    page.button("Approve with these changes").click()
    page.wait(".adknb-card", "approved with changes")

    page.run_cell(2)

    page.wait(".adknb-card .adknb-problem", "amount: at most 200")
    assert page.wait(f"#{fields['amount']}").get_attribute("value") == "240", "what was typed is still there"
    page.button("Back").click()
    page.button("Reject…").click()
    page.button("Reject").click()
    page.wait(".adknb-card", "rejected")


@pytest.mark.browser_all
def test_a_reason_goes_with_a_rejection(lab: Lab):
    page = shown(lab, *story())

    page.button("Reject…").click()
    page.type(".adknb-form input", "too much")
    page.button("Reject").click()

    page.wait(".adknb-card", ": too much")
    assert answers(page) == [{"kind": "answer", "id": "c1", "value": {"confirmed": False, "reason": "too much"}}]


@pytest.mark.browser_all
def test_a_click_reaches_python_while_the_cell_blocks(lab: Lab):
    cell = (
        f"view.push({{'op': 'card', 'card': {CARD!r}}})\n"
        "view.push({'op': 'status', 'status': 'running', 'text': ''})\n"
        "two = threading.Event()\n"
        "view.on_answer(lambda said: len(answers) > 1 and two.set())\n"
        "two.wait(30)\n"
        "print([said['kind'] for said in answers])"
    )
    page = lab.open(lab.write("view.ipynb", SETUP, cell))
    page.run_cell(0)
    page.wait(".adknb-head")

    page.run_cell(1, wait=False)
    page.button("Approve").click()
    page.wait(".adknb-card", "approved")
    page.button("Stop").click()

    page.until(lambda: not page.running(1))
    assert page.text(1) == "['answer', 'stop']"


@pytest.mark.browser_all
def test_a_card_whose_kernel_is_gone_says_so_instead_of_doing_nothing(lab: Lab):
    page = shown(lab, *story())
    page.wait(".adknb-card")

    page.js("await panel.sessionContext.session.kernel.restart()")

    page.wait(".adknb-notice", "run the cell again")
    page.wait(".adknb-card", ": its kernel is gone")
    page.until(lambda: not [element for element in page.all(".adknb-button") if element.text == "Approve"], "no button")


@pytest.mark.browser_all
def test_a_reloaded_page_shows_the_snapshot_and_still_answers(lab: Lab):
    page = shown(lab, *story())
    page.wait(".adknb-card")
    previous = page.rows(), page.state()

    page.reload()

    page.wait(".adknb-card")
    assert (page.rows(), page.state()) == previous
    page.button("Approve").click()
    page.wait(".adknb-card", "approved")
    assert len(answers(page)) == 1


@pytest.mark.browser_all
def test_a_page_that_missed_a_batch_asks_for_the_whole(lab: Lab):
    cell = (
        "real = view.comm.publish_msg\n"
        "view.comm.publish_msg = lambda *said, **named: None\n"
        "view.push({'op': 'append', 'row': {'id': 'lost', 'author': 'a', 'text': 'lost'}}); view.flush()\n"
        "view.comm.publish_msg = real\n"
        "view.push({'op': 'append', 'row': {'id': 'next', 'author': 'a', 'text': 'next'}}); view.flush()"
    )
    page = lab.open(lab.write("view.ipynb", SETUP, cell))
    page.run_cell(0)
    page.wait(".adknb-head")
    page.run_cell(1)

    page.until(lambda: page.rows() == [("a", "lost"), ("a", "next")], "both rows")


HOSTILE = (
    "<img src=x onerror=alert(1)> </script><script>alert(2)</script> [x](javascript:alert(3)) "
    "<a href='javascript:alert(4)'>y</a> \x1b[31mred\x1b[0m \"'`"
)


def hostile_ops() -> list[dict[str, Any]]:
    h = HOSTILE
    kinds = ("user", "text", "thought", "call", "error", "marker", h)
    asks = {"agent": h, "tool": h, "needs": h, "how": h, "note": h, "fields": [{"label": h, "hint": h, "secret": True}]}
    to_be_let_in = {"kind": "credential", **asks}
    links = [h, "javascript:alert(6)", "data:text/html,<script>alert(7)</script>", " javascript:alert(8)"]
    fields = {"text": h, "tool": h, "args": h, "result": h, "detail": h, "author": h}
    change = {"key": h, "kind": "~", "old": h, "new": h}
    return [
        {"op": "status", "status": "running", "text": h},
        {"op": "notice", "text": h},
        {"op": "usage", "text": h},
        *({"op": "append", "row": {"id": kind + h, "kind": kind, **fields}} for kind in kinds),
        {
            "op": "append",
            "row": {"id": "html", "author": h, "kind": "text", "html": f"<p onclick='alert(5)'>{h}</p>{h}"},
        },
        {"op": "append", "row": {"id": "s", "author": h, "kind": "text"}},
        {"op": "text", "id": "s", "s": h},
        {"op": "state", "event": "text" + h, "changes": [change], "state": [{"key": h, "value": h}]},
        {
            "op": "card",
            "card": {
                "id": h,
                "agent": h,
                "tool": h,
                "hint": h,
                "args": {h: h, "list": [h]},
                "schema": {
                    "properties": {h: {"type": "string", "description": h}, "e": {"enum": [h], "description": h}}
                },
            },
        },
        {"op": "card", "card": {"id": "old", "agent": h, "tool": h, "args": {h: h}, "state": "rejected", "note": h}},
        *({"op": "card", "card": {**to_be_let_in, "id": f"in{n}", "link": link}} for n, link in enumerate(links)),
    ]


@pytest.mark.browser_all
def test_hostile_words_stay_words_everywhere(lab: Lab):
    page = shown(lab, *hostile_ops())
    page.wait(".adknb-card")
    for element in page.all(".adknb-row button"):
        element.click()
    page.wait(".adknb-detail")
    page.button("Edit…").click()
    page.wait(".adknb-form")

    script = """const root = document.querySelector('.adknb-root');
        for (const node of root.querySelectorAll('a, p')) node.click();
        const ours = (one) => /^--adknb-author-letters: \\d+;$/.test(one.value);
        const tags = ['SCRIPT', 'IMG', 'IFRAME', 'STYLE'], names = ['href', 'src', 'action', 'srcdoc', 'style'];
        return [...root.querySelectorAll('*')].filter((node) => tags.includes(node.tagName)
            || [...node.attributes].some((one) => /^on/i.test(one.name) || (names.includes(one.name) && !ours(one))))
            .map((node) => node.outerHTML)"""
    assert page.js(script) == []
    page.screenshot("hostile")
    page.button("Back").click()
    page.button("Approve").click()
    page.wait(".adknb-outcome", "approved")
    assert page.alerts() == []
    assert page.js("return document.querySelector('.adknb-notice').textContent") == HOSTILE


@pytest.mark.browser_all
def test_the_keyboard_walks_the_rows_and_opens_one(lab: Lab):
    page = shown(lab, *story())
    page.click(".adknb-row[data-id='r4'] .adknb-what")
    page.wait(".adknb-detail", '"city": "Paris"')
    keys = ActionChains(page.browser)

    keys.send_keys(Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ENTER).perform()
    page.gone(".adknb-detail")
    keys.send_keys(Keys.ENTER).perform()
    page.wait(".adknb-detail", "calls")
    assert page.js("return document.activeElement.dataset.id") == "r4"
    assert len(page.all(".adknb-row[tabindex='0']")) == 1

    keys.send_keys(Keys.ESCAPE).perform()
    assert page.js(OUTSIDE)


@pytest.mark.browser_all
def test_the_tail_is_followed_only_by_a_reader_who_is_there(lab: Lab):
    many = [{"op": "append", "row": {"id": str(i), "author": "a", "text": f"row {i}"}} for i in range(60)]
    page = shown(lab, *many)
    tail = "const log = document.querySelector('.adknb-log');return log.scrollHeight - log.scrollTop - log.clientHeight"
    page.until(lambda: len(page.rows()) == 60 and page.js(tail) < 2, "the tail")

    page.js("document.querySelector('.adknb-log').scrollTop = 100")
    one_more = ops({"op": "append", "row": {"id": "new", "author": "a", "text": "new"}})
    page.js("panel.content.widgets[1].model.sharedModel.setSource(arguments[0])", one_more)
    page.run_cell(1)

    page.until(lambda: len(page.rows()) == 61, "the new row")
    assert page.js("return document.querySelector('.adknb-log').scrollTop") == 100


CONTRAST = Path(__file__).with_name("contrast.js").read_text()


@pytest.mark.browser_all
@pytest.mark.parametrize(
    ("theme", "width"), [("Light", 1000), ("Dark", 1000), pytest.param("Light", 500, marks=pytest.mark.browser_all)]
)
def test_the_view_is_readable(lab: Lab, theme: str, width: int):
    page = lab.open(lab.write("view.ipynb", SETUP, ops(*story())))
    page.theme(f"JupyterLab {theme}")
    page.resize(width, 900)
    page.js("for (const cell of panel.content.widgets) cell.inputHidden = true;")
    page.run_all()
    page.wait(".adknb-card")
    page.click(".adknb-row[data-id='r4'] .adknb-what")
    page.wait(".adknb-detail")

    page.screenshot(f"live-{theme.lower()}-{width}")

    assert page.js(CONTRAST) == []
    small = """const targets = document.querySelectorAll('.adknb-root button, .adknb-root input, .adknb-row');
        return [...targets].filter((one) => one.offsetParent && (one.offsetHeight < 24 || one.offsetWidth < 24))
            .map((one) => one.outerHTML)"""
    assert page.js(small) == []
    assert [complaint for complaint in page.complaints() if "anywidget" in complaint] == []
    assert (
        page.js("const root = document.querySelector('.adknb-root'); return root.scrollWidth - root.clientWidth") == 0
    )
