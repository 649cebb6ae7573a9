"""Every block in every form, with text in each of its fields that must stay text."""

import re
from dataclasses import fields
from typing import Any

import pytest
from inline_snapshot import snapshot

from adk_nb.notebook.magics.output import Output
from adk_nb.notebook.magics.output import text as lines_of
from adk_nb.notebook.view import document as blocks
from adk_nb.notebook.view.document import (
    Beside,
    Block,
    Card,
    Code,
    Document,
    Fold,
    Frame,
    Heading,
    Image,
    Item,
    Items,
    Lines,
    Link,
    Markdown,
    Note,
    Notice,
    Only,
    Picture,
    Section,
    Span,
    Speech,
    Table,
    Text,
    document,
    in_html,
    plain,
    rich,
)
from adk_nb.notebook.view.document import Page as ForeignPage
from adk_nb.notebook.view.plain_text import cleaned
from adk_nb.notebook.view.writers import bundle
from adk_nb.redaction import remember
from tests.support.each import each
from tests.support.hostile_texts import DEAD, PAYLOADS, Page, assert_harmless, assert_nothing_unseen, begins_math
from tests.support.late import late

nbconvert = late("nbconvert")

FORMS = ["text/plain", "text/markdown", "text/html"]
STYLES = ("", "strong", "em", "small", "code", "removed", "inserted")


def every_block(text: str) -> list[Block]:
    """One of each kind, and of those with choices one of each choice, with `text` in every field that takes text."""
    line = (
        text,
        *(Span(text, style, exact) for style in STYLES for exact in (False, True)),
        Link(text, text),
        Link(text, "https://example.org/a"),
    )
    shapes = [{"tag": "text", "at": {"x": text}, "text": text, "tip": text}, {"tag": "rect", "at": {"fill": text}}]
    return [
        Heading(line),
        Heading(line, is_near=True),
        Text(line),
        Text(text),
        Text(line, small=True),
        Lines((text, Note(text))),
        Markdown(text),
        Code(line),
        Code(text),
        Table([text, line], [[text, line], [line, text]]),
        Table([], [[line, line]], width=20),
        *(Items([Item(line, Items([Item(text)])), Item(text)], numbers) for numbers in ("", "1", "[1]")),
        Image("data:image/png;base64,AA==", text),
        Picture(shapes, 10, 10, text, text),
        ForeignPage(text, text, 76),
        Fold(line, (Text(line),)),
        Fold(line, (Text(line),), text, is_open=True, notices=[Notice(text, text)]),
        Frame(line, (Text(line),), [text]),
        Beside(Picture(shapes, 10, 10, text, text), (Text(line),)),
        Card(line, (Text(line), Code(text))),
        Notice(text),
        Speech(text, text, Markdown(text), text),
        Section((Text(line),)),
        Only(("text/html",), (Text(text),)),
        rich(Text(text)),
        plain(Text(text)),
    ]


def test_every_kind_of_block_is_among_them():
    kinds = {kind for kind in vars(blocks).values() if isinstance(kind, type) and hasattr(kind, "__dataclass_fields__")}

    assert kinds - {type(block) for block in every_block("a")} == {Span, Link, Item, Document}


@pytest.mark.slow
@each("payload", PAYLOADS)
def test_hostile_text_is_only_text_in_every_block_and_form(payload: str):
    for block in every_block(payload):
        forms = bundle(document(block))
        added = _ADDED if isinstance(block, Picture | Image | Lines | Beside) else {}

        assert_harmless(forms["text/html"], also=added, may_have_formulas=True)
        for form in FORMS:
            assert_nothing_unseen(forms[form])
        page = Page(nbconvert.filters.markdown2html(forms["text/markdown"]))
        assert not {tag for tag, _ in page.elements} & DEAD, (block, forms["text/markdown"])
        names = [name for _, attributes in page.elements for name in attributes]
        assert not any(name.startswith(("on", "src", "data-")) for name in names), forms["text/markdown"]


_SVG = {"xmlns", "role", "aria-label", "viewbox", "width", "height", "style", "font-family", "font-size"}
_ADDED: dict[str, set[str]] = {
    "svg": _SVG, "text": {"x"}, "tspan": set(), "title": set(), "rect": {"fill"}, "div": {"style"},
    "img": {"src", "alt", "style"},
}  # fmt: skip
"""What drawings, images and lines are made of besides the list that models' markdown has."""


@pytest.mark.slow
@each("payload", PAYLOADS)
def test_hostile_text_begins_no_formula_except_in_markdown(payload: str):
    for block in every_block(payload):
        if isinstance(block, Markdown | Speech):
            continue
        html = bundle(document(block))["text/html"]
        assert not any(begins_math(text) for text in Page(re.sub(r' srcdoc="[^"]*"', "", html)).texts), block


@each("payload", PAYLOADS)
def test_hostile_text_is_shown_and_not_swallowed(payload: str):
    visible = " ".join(cleaned(payload).split())[:150]
    for block in (Heading(payload), Text(payload), Notice(payload), Card(payload), Fold("a", (Text(payload),))):
        html = re.sub(r"</?span>", "", bundle(document(block))["text/html"])
        assert visible in " ".join(" ".join(Page(html).texts).split()), block


def test_a_cell_stays_one_cell():
    for payload in PAYLOADS:
        markdown = bundle(document(Table([payload, "b"], [[payload, "c"]])))["text/markdown"]
        tags = [tag for tag, _ in Page(nbconvert.filters.markdown2html(markdown)).elements if tag in ("tr", "th", "td")]
        assert tags == ["tr", "th", "th", "tr", "td", "td"], payload


def test_a_key_is_hidden_in_every_block_and_form():
    secret = "correct horse battery staple"
    remember(secret)
    for block in every_block(secret):
        for form, text in bundle(document(block)).items():
            assert secret not in text, (form, block)


def test_a_call_to_be_approved_is_exact():
    """Invisible characters are spelled out, not left out, and what only looks like a key is shown: it may run."""
    call = "pay(to=\u202eeno, key=sk-ant-api03-0123456789abcdefghijklmnopqrstuvwxyz)"
    forms = bundle(document(Card((Span("Asks for approval:", "strong"), " ", Span(call, "code", exact=True)))))

    for text in forms.values():
        assert "\\u202e" in re.sub(r"</?span>|&#92;", lambda found: "\\" if found[0] == "&#92;" else "", text)
        assert "0123456789abcdefghijklmnopqrstuvwxyz" in text


def test_only_links_that_a_click_may_follow_are_links():
    forms = bundle(document(Text((Link("good", "https://example.org/"), " ", Link("bad", "javascript:alert(1)")))))

    assert [attributes["href"] for tag, attributes in Page(forms["text/html"]).elements if tag == "a"] == [
        "https://example.org/"
    ]
    assert forms["text/markdown"] == "[good](<" + "https://example.org/" + ">) bad"


def test_a_paragraph_is_no_list_and_no_heading():
    for text in ("# a", "1. a", "- a", "+ a", "=== a", "12) a"):
        page = Page(nbconvert.filters.markdown2html(bundle(document(Text(text)))["text/markdown"]))
        assert [tag for tag, _ in page.elements] == ["p"], text


def test_a_document_in_three_forms():
    shown = document(
        Heading("Model call 1"),
        Text(("asks ", Span("fast", "code"), " twice")),
        Items([Item("Paris"), Item("Oslo", Items([Item("Oslo, Norway")]))], "1"),
        Card("waiting for you", (Text("type it"),)),
        Fold(("2 events, ", Span("1 failed", "strong")), (Table(["who", "event"], [["you", "Hi | there"]]),)),
        in_html(Text("seen")),
        plain(Text("read")),
        Heading("Answer"),
        Code("  two\n    lines"),
        Notice("a stand-in"),
    )

    assert bundle(shown) == snapshot(
        {
            "text/plain": """\
Model call 1
asks fast twice
1  Paris
2  Oslo
  - Oslo, Norway
waiting for you
    type it
read

Answer
      two
        lines
(a stand-in)\
""",
            "text/markdown": """\
**Model call 1**

asks `fast` twice

1. Paris
2. Oslo
  - Oslo, Norway

> waiting for you
>
> type it

2 events, **1 failed**:

| who | event |
| --- | --- |
| you | Hi &#124; there |

**Answer**

```
  two
    lines
```

*a stand-in*\
""",
            "text/html": """\
<p><strong>Model call 1</strong></p>
<p>asks <code>fast</code> twice</p>
<ol>
<li>Paris</li>
<li>Oslo<ul>
<li>Oslo, Norway</li>
</ul></li>
</ol>
<blockquote style="background: rgba(245, 124, 0, 0.08); border: 1px solid rgba(127, 127, 127, 0.4); border-left: 3px solid #f57c00; border-radius: 6px; font-family: var(--jp-ui-font-family, system-ui, sans-serif); font-size: var(--jp-ui-font-size1, 13px); line-height: 1.45; margin: 2px calc(-2 * var(--jp-notebook-padding, 0px)) 6px 0; padding: 6px 12px 0"><p>waiting for you</p><p>type it</p></blockquote>
<details><summary>2 events, <strong>1 failed</strong></summary><table>
<thead><tr><th style="text-align: left">who</th><th style="text-align: left">event</th></tr></thead>
<tbody>
<tr><td style="text-align: left">you</td><td style="text-align: left">Hi | there</td></tr>
</tbody>
</table></details>
<p>seen</p>
<p><strong>Answer</strong></p>
<pre><code>  two
    lines</code></pre>
<p><small>a stand-in</small></p>\
""",
        }
    )


def test_a_table_is_cut_to_the_width_of_a_terminal():
    table = Table(["name", "what it is"], [["a", "b" * 100]], width=40)

    assert [len(line) for line in bundle(document(table))["text/plain"].splitlines()] == [40 - 24, 40, 40]


def test_lines_are_plain_text_unless_one_has_a_mark():
    assert lines_of("one", "", "two").forms == {"text/plain": "one\ntwo"}
    marked = lines_of("one", Note("look")).forms
    assert marked.keys() == {"text/plain", "text/html"}
    assert marked["text/html"].count("border-left") == 1


def test_lines_go_below_an_output():
    forms = Output(Table(["a"], [["1"]])).below("<b>").forms

    assert forms["text/plain"].endswith("\n<b>")
    assert forms["text/html"].endswith("<p>&lt;b&gt;</p>")


def test_blocks_cannot_be_changed():
    for block in every_block("a"):
        with pytest.raises((AttributeError, TypeError)):
            setattr(block, fields(_as_any(block))[0].name, "b")


def _as_any(block: Any) -> Any:
    return block
