import html
import re
import time
from collections.abc import Callable
from importlib.util import find_spec, module_from_spec

import mistune
import pytest
from inline_snapshot import snapshot
from markdown_it import MarkdownIt
from markdown_it.ruler import Ruler

from adk_nb.notebook.view.document import Markdown, Table, document
from adk_nb.notebook.view.plain_text import cleaned
from adk_nb.notebook.view.writers import bundle
from adk_nb.notebook.view.writers.elements import ATTRIBUTES, TAGS, element, visible_text
from adk_nb.notebook.view.writers.markdown import markdown_safe
from adk_nb.notebook.view.writers.markdown_html import MAX_RENDERED, to_html
from tests.support.each import each
from tests.support.hostile_texts import DEAD, PAYLOADS, Page, assert_harmless, assert_nothing_unseen, begins_math
from tests.support.late import late

nbconvert = late("nbconvert")

NESTED = [
    "{}",
    "- a\n  - {}",
    "> {}",
    "1. x\n\n   {}",
    "| a | b |\n|---|---|\n| {} | c |",
    "**{}**",
    "a `{}` b",
    "```\n{}\n```",
    "[{}](https://example.org)",
    "![{}](https://example.org/a.png)",
    "[a](https://example.org/{})",
    "x](https://example.org)\n{}\n===",
    "``` {}\nx\n```",
    "`` ` {} `",
    "<b>{}",
]


def _with_nbconvert(text: str) -> str:
    return nbconvert.filters.markdown2html(text)


def _with_mistune(text: str) -> str:
    return str(
        mistune.create_markdown(escape=False, plugins=["table", "url", "strikethrough", "footnotes", "math"])(text)
    )


def _with_commonmark(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


def _is_safe(attributes: dict[str, str]) -> bool:
    href = attributes.get("href", "http:")
    anchor = attributes.get("class") == "anchor-link" and href.startswith("#")  # nbconvert's own, beside a heading
    return anchor or href.lower().startswith(("http:", "https:", "mailto:"))


@each("payload", PAYLOADS)
def test_html_is_only_of_the_listed_elements_and_attributes(payload: str):
    for around in NESTED:
        assert_harmless(to_html(around.replace("{}", payload)))


@pytest.mark.slow
@each("payload", PAYLOADS)
@each("render", [_with_nbconvert, _with_mistune, _with_commonmark])
def test_markdown_is_harmless_whatever_renders_it(payload: str, render: Callable[[str], str]):
    for around in NESTED:
        safe = markdown_safe(around.replace("{}", payload))
        assert_nothing_unseen(safe)
        page = Page(render(safe))
        for tag, attributes in page.elements:
            assert tag not in DEAD and not tag.startswith("#"), safe
            assert not any(name.startswith(("on", "src", "data-")) for name in attributes), safe
            assert attributes.get("style", "text-align:").startswith("text-align:"), safe
            assert _is_safe(attributes), safe
        assert not any(begins_math(text) for text in page.texts), safe


@each("payload", PAYLOADS)
def test_a_cell_of_a_markdown_table_shows_what_was_written(payload: str):
    table = bundle(document(Table(["a", "b"], [[payload, "end"]])))["text/markdown"]

    cells = re.findall("<td>(.*)</td>", _with_commonmark(table))

    assert [html.unescape(re.sub("</?span>", "", cell)) for cell in cells] == [
        " ".join(cleaned(payload).split()),
        "end",
    ]


CODE = """```%s
@deco
def area(r: float):  # of <b>

    return None or "a < b" + str(0x1F)
-- "the rest
```"""


def pieces(language: str) -> list[str]:
    """The pieces of the code that a saved notebook shows in colours."""
    saved = bundle(document(Markdown(CODE % language)))["text/html"]
    assert visible_text(saved).strip() == CODE.partition("\n")[2].removesuffix("\n```"), "colours change no letter"
    assert "\n\n" not in saved
    return [html.unescape(piece) for _, piece in re.findall('<span style="([^"]*)">([^<]*)</span>', saved)]


def test_code_in_a_saved_answer_has_colours():
    assert pieces("python") == ["@deco", "def", "area", "# of <b>", "return", "None", "or", '"a < b"', "str", "0x1F"]
    assert '-- "the rest' in pieces("sql")
    assert pieces("text") == pieces("") == []


@each("payload", PAYLOADS)
def test_code_with_colours_is_as_harmless_as_without(payload: str):
    for language in ("python", "sql", "js", "json"):
        coloured = to_html(f"```{language}\n{payload}\n```", in_colour=True)

        assert re.sub(r'<span style="[\w\s:;.,#()-]*">|</span>', "", coloured) == to_html(f"```\n{payload}\n```")


@pytest.mark.parametrize("text", ['"\\' * 9_999, "\"\"\" '''" * 3_000, "/*" * 9_999, "'a" * 9_999, "(a" * 9_999])
def test_colours_take_no_longer_for_code_that_does_not_end(text: str):
    began = time.process_time()
    to_html(f"```js\n{text}\n```", in_colour=True)

    assert time.process_time() - began < 3


def test_the_numbers_of_a_list_have_the_room_they_take():
    assert to_html("105. That is the count.").splitlines()[0] == '<ol start="105" style="padding-left: 3em">'
    assert to_html("2030\\. No list.\n\n999999999) One.").splitlines()[1] == (
        '<ol start="999999999" style="padding-left: 9em">'
    )


def test_what_people_write_looks_as_they_meant_it():
    assert to_html("# Title\n\nA **bold** _word_, `code < 3`, ~~no~~ for $5\\\nor <mailto:a@b.org>") == snapshot("""\
<h4>Title</h4>
<p>A <strong>bold</strong> <em>word</em>, <code>code &lt; 3</code>, <s>no</s> for <span>$</span>5<br>
or <a href="mailto:a@b.org" rel="noopener noreferrer">mailto:a@b.org</a></p>\
""")
    assert to_html("[link](https://example.org/?a=1&b=2)") == snapshot(
        '<p><a href="https://example.org/?a=1&amp;b=2" rel="noopener noreferrer">link</a></p>'
    )
    assert to_html("3. three\n4. four\n\n```python\nif a < b:\n    pass\n```") == snapshot("""\
<ol start="3">
<li>three</li>
<li>four</li>
</ol>
<pre><code>if a &lt; b:
    pass
</code></pre>\
""")
    assert to_html("| a | b |\n|:--|--:|\n| 1 | 2 |") == snapshot("""\
<table>
<thead>
<tr>
<th style="text-align: left">a</th>
<th style="text-align: right">b</th>
</tr>
</thead>
<tbody>
<tr>
<td style="text-align: left">1</td>
<td style="text-align: right">2</td>
</tr>
</tbody>
</table>\
""")


def test_markdown_stays_markdown_where_it_is_harmless():
    assert markdown_safe(
        "# Title\n\nA **bold** `word`, [link](https://example.org/), 1 < 2 & 3, \\*stars\\*\n\n"
        "```python\nprint('hi')\n```\n\n```html\n<b>\n```\n\n![chart](https://example.org/a.png)"
    ) == snapshot("""\
# Title

A **bold** `word`, [link](https://example.org/), 1 &lt; 2 &amp; 3, &#42;stars&#42;

```python
print('hi')
```

<pre><code>&#60;b&#62;
</code></pre>

[chart](https://example.org/a.png)\
""")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("105.", "<p>105.</p>"),
        ("7)", "<p>7)</p>"),
        ("-", "<p>-</p>"),
        ("12 times 8 is\n\n96.\n", "<p>12 times 8 is</p>\n<p>96.</p>"),
        ("- 5.", "<ul>\n<li>\n<p>5.</p>\n</li>\n</ul>"),
        ("1. a\n2.\n3. b", "<ol>\n<li>a</li>\n<li></li>\n<li>b</li>\n</ol>"),
        ("1.\n   a", "<ol>\n<li>a</li>\n</ol>"),
    ],
)
def test_a_number_with_a_point_is_a_list_only_where_it_has_a_text(text: str, html: str):
    assert to_html(text) == html


@each("render", [_with_nbconvert, _with_mistune, _with_commonmark])
@each(
    "text, number",
    [("105.", "105."), ("12 times 8 is\n\n96.", "96."), ("96)\n\nThat is all.", "96)"), (" 3. ", "3.")],
)
def test_a_number_with_a_point_stays_a_text_in_any_renderer(render: Callable[[str], str], text: str, number: str):
    rendered = render(markdown_safe(text))

    assert "<li" not in rendered and number in html.unescape(rendered)


def test_an_image_is_a_link_under_its_description():
    assert to_html("![a *cat*](https://example.org/cat.png)") == snapshot(
        '<p><a href="https://example.org/cat.png" rel="noopener noreferrer">a cat</a></p>'
    )
    assert to_html("![](https://example.org/cat.png) ![dog](javascript:alert(1))") == snapshot(
        '<p><a href="https://example.org/cat.png" rel="noopener noreferrer">image</a> ![dog](javascript:alert(1))</p>'
    )


def test_keys_are_masked():
    key = "AIza" + "Sy0123456789abcdefghijklmnopqrstu-vwx"

    assert key not in to_html(f"use {key}") + markdown_safe(f"use {key}")
    assert key not in str(bundle(document(Table(["note"], [[f"use {key}"]]))))


def test_a_very_long_text_is_shown_as_it_was_written():
    long = "<b> " * MAX_RENDERED

    assert to_html(long) == f"<pre>{'&lt;b&gt; ' * MAX_RENDERED}</pre>"


@pytest.mark.slow
@each(
    "piece", ["[", "![", "](", "`", "*a ", "_*", "**x", "> ", "- ", "<", "&#x", "|a", "\\", "~~", "[a](", "\x1b[", "$"]
)
def test_no_text_holds_up_the_run_that_it_comes_from(piece: str):
    """The worst of these takes 0.7 s on two shared cores; without limits on length and brackets it would be 11 s."""
    text = piece * (MAX_RENDERED // len(piece))

    before = time.process_time()
    to_html(text)
    markdown_safe(text)

    assert time.process_time() - before < 5


def test_markup_that_is_not_in_the_list_cannot_be_made():
    assert not TAGS & DEAD
    assert set().union(*ATTRIBUTES.values()) == {"href", "open", "rel", "start", "style", "title"}
    with pytest.raises(ValueError, match="<img> with"):
        element("img")
    with pytest.raises(ValueError, match="style"):
        element("td", style="position: fixed")
    with pytest.raises(ValueError, match="onclick"):
        element("p", onclick="alert(1)")


def test_the_rules_of_markdown_are_put_together_before_two_threads_render_at_once(monkeypatch: pytest.MonkeyPatch):
    spec = find_spec(to_html.__module__)
    assert spec and spec.loader
    spec.loader.exec_module(fresh := module_from_spec(spec))
    unready: list[Ruler] = []
    monkeypatch.setattr(Ruler, "__compile__", unready.append)

    assert fresh.to_html("# *a* $x$\n\n- b") == to_html("# *a* $x$\n\n- b")
    assert unready == []
