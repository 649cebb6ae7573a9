"""Markdown as it streams: at every moment what a reader sees is markup, and what stood complete stands."""

import re
import time

import pytest

from adk_nb.notebook.view.view_state import ViewState
from adk_nb.notebook.view.writers.markdown_html import MAX_OPEN, StreamedMarkdown, to_html
from tests.support.each import each

ANSWER = """# The plan

Some **bold text**, *a word*, `code`, __more__ and [a link](https://example.org), costs $5, and $x_1 = 2$ or \\(y\\).

- one **two**
- three

1. first
2. second

| city | degrees |
|---|--:|
| Oslo | **9** |

```python
print("x * y")
```

$$
a = \\frac{b}{c}
$$

The end."""
MARKS = re.compile(r"\*\*|__|`|\]\(|https?:|\||# |\\frac|\$x")
ADDRESSES = re.compile('(?<=href=")[^"]*')
FORMULAS = re.compile(r"\\\(.*?\\\)|\\\[.*?\\\]", re.DOTALL)


def streamed(text: str, step: int) -> list[tuple[str, str]]:
    """What is complete, and the open end, after each piece."""
    stream, complete, seen = StreamedMarkdown(), "", list[tuple[str, str]]()
    for start in range(0, len(text), step):
        more, tail = stream.feed(text[start : start + step])
        complete += more
        seen.append((complete, tail))
    return seen


@pytest.mark.parametrize("step", [1, 3, 17])
def test_no_mark_is_ever_seen_as_text(step: int):
    for complete, tail in streamed(ANSWER, step):
        words = FORMULAS.sub("", ADDRESSES.sub("", complete + tail))
        assert not MARKS.search(words), words[-200:]


@pytest.mark.parametrize("step", [1, 3, 17])
def test_at_the_end_it_is_what_the_whole_text_is(step: int):
    complete, tail = streamed(ANSWER, step)[-1]

    assert (complete + tail).replace("\n", "") == to_html(ANSWER).replace("\n", "")


def test_only_the_last_block_is_drawn_again():
    tails = [tail for _, tail in streamed(ANSWER, 1)]

    assert max(map(len, tails)) < 400 < len(to_html(ANSWER))


@each(
    "text, shown",
    [
        ("It is **bo", "<p>It is <strong>bo</strong></p>"),
        ("It is *it", "<p>It is <em>it</em></p>"),
        ("2 * 3 * 4", "<p>2 * 3 * 4</p>"),
        ("a `co", "<p>a <code>co</code></p>"),
        ("see [the no", "<p>see</p>"),
        ("see [1] and", "<p>see [1] and</p>"),
        ("so $x = \\fr", "<p>so</p>"),
        ("a title\n-", "<p>a title</p>"),
        ("```py\nx = 1\n``", "<pre><code>x = 1</code></pre>"),
    ],
)
def test_open_calls_are_closed_or_wait(text: str, shown: str):
    assert StreamedMarkdown().feed(text)[1] == shown


@pytest.mark.slow
@pytest.mark.parametrize("text", ["word " * 20_000, "```\n" + "line\n" * 20_000, "- item\n" * 15_000, "[" * 50_000])
def test_a_piece_costs_the_same_however_long_the_text_is(text: str):
    stream = StreamedMarkdown()
    for start in range(0, len(text), 10_000):
        stream.feed(text[start : start + 10_000])

    before = time.process_time()
    _, tail = stream.feed(text[:100])

    assert time.process_time() - before < 0.2
    assert len(tail) < 6 * MAX_OPEN


def test_a_row_that_streams_markdown_is_whole_in_the_snapshot():
    view = ViewState()
    view.apply({"op": "append", "row": {"id": "s", "author": "a", "kind": "text", "html": "", "streaming": True}})
    op = view.apply({"op": "text", "id": "s", "s": "One.\n\n**Tw"})
    [row] = view.snapshot(1)["rows"]

    assert (op["html"], op["tail"]) == (row["html"], row["tail"]) == ("<p>One.</p>", "<p><strong>Tw</strong></p>")
    assert row["text"] == "One.\n\n**Tw"

    view.apply(
        {"op": "patch", "id": "s", "html": "<p>One.</p>\n<p><strong>Two</strong></p>", "text": "One.\n\n**Two**"}
    )
    assert view.snapshot(2)["rows"][0]["tail"] == ""
