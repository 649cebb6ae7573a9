"""Where lxml is missing, as in a browser, pages of others are written anew by Python's own parser, as safely."""

import sys

import pytest

from adk_nb.notebook.view.writers.elements import ISOLATED
from adk_nb.notebook.view.writers.html import MAX_DEPTH, isolated_page, rewritten
from tests.support.each import each
from tests.support.hostile_texts import PAYLOADS, assert_isolated

PAGES = {
    "table": "<table><tr><th>a<th>b<tr><td>1<td>2</table>",
    "upper case": "<P ALIGN=left>A<BR>B</P>",
    "entities": "a &amp; b &lt;i&gt; &nbsp;&eacute;",
    "drawing": '<svg viewBox="0 0 9 9"><title>a line</title><path d="M0 0L9 9"/></svg>',
    "comment": "a<!-- b -->c<?d e?>f<!doctype html>g",
}


@pytest.fixture
def without_lxml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxml", None)


@pytest.mark.usefixtures("without_lxml")
@each("markup", [*PAYLOADS, "".join(PAYLOADS), "".join(reversed(PAYLOADS))])
def test_a_hostile_page_is_harmless(markup: str):
    assert_isolated({"srcdoc": isolated_page(markup), "title": "", **ISOLATED})


@pytest.mark.usefixtures("without_lxml")
def test_nothing_of_a_script_is_shown_and_nothing_of_a_page_is_lost_that_is_no_script():
    shown = rewritten("<p onclick='run()'>a<script>run()</script>b</p><iframe src=//e>c</iframe><b>d")

    assert shown == "<p>ab</p><b>d</b>"


@pytest.mark.usefixtures("without_lxml")
def test_a_page_ends_where_it_is_too_deep():
    shown = rewritten("<b>" * (MAX_DEPTH - 1) + "</i>" * 100_000 + "<p>inside</p>" + "<b>" * MAX_DEPTH + "beyond")

    assert "inside" in shown and "beyond" not in shown


@pytest.mark.parametrize("markup", PAGES.values(), ids=PAGES)
def test_both_parsers_show_the_same_text(markup: str, monkeypatch: pytest.MonkeyPatch):
    def text(shown: str) -> str:
        return "".join(piece.partition(">")[2] for piece in f">{shown}".split("<"))

    by_lxml = text(rewritten(markup))
    monkeypatch.setitem(sys.modules, "lxml", None)

    assert text(rewritten(markup)) == by_lxml
