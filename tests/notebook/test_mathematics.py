"""TeX in answers: drawn where it is mathematics, and never where it could act, in html and in the saved markdown."""

import re
import time

import pytest
from markdown_it import MarkdownIt

from adk_nb.notebook.view.writers.markdown import markdown_safe
from adk_nb.notebook.view.writers.markdown_html import MAX_TEX, is_drawable, to_html
from tests.support.each import each
from tests.support.hostile_texts import DEAD, PAYLOADS, Page, assert_harmless
from tests.support.late import late

nbconvert = late("nbconvert")


@each(
    "written, html, markdown",
    [
        ("the root $x_1$ is", r"<p>the root \(x_1\) is</p>", "the root $x_1$ is"),
        (r"so \(a * b * c\).", r"<p>so \(a * b * c\).</p>", "so $a * b * c$."),
        ("$a < b$", r"<p>\(a &lt; b\)</p>", r"$a \lt  b$"),
        (r"$$\frac{1}{2}$$", r"<p>\[\frac{1}{2}\]</p>", r"$$\frac{1}{2}$$"),
        ("$$\na\n- b\n= c\n$$", "<p>\\[a\n- b\n= c\\]</p>", "$$a\n- b\n= c$$"),
        ("so\n\\[\nx = 1\n\\]\nand", "<p>so</p>\n<p>\\[x = 1\\]</p>\n<p>and</p>", "so\n$$x = 1$$\nand"),
        ("- $k$-means\n- $n$th", "<ul>\n<li>\\(k\\)-means</li>\n<li>\\(n\\)th</li>\n</ul>", "- $k$-means\n- $n$th"),
        (r"$\begin{cases} 1 & 2 \\[2pt] 3 & 4 \end{cases}$",
         r"<p>\(\begin{cases} 1 &amp; 2 \\[2pt] 3 &amp; 4 \end{cases}\)</p>",
         r"$\begin{cases} 1 & 2 \\[2pt] 3 & 4 \end{cases}$"),
    ],
)  # fmt: skip
def test_formulas_stand_as_the_page_draws_them(written: str, html: str, markdown: str):
    assert to_html(written) == html
    assert markdown_safe(written) == markdown


@each(
    "written",
    [
        "It costs $5 and $10.",
        "from $5-$10, or 5$/kg and 3$/kg",
        "$20, that is 5$ less",
        "US$5 and A$6",
        r"\$5 and 6\$",
        "`$x$` and ``\\(y\\)``",
        r"cited\[1\]\[2\] and \[a note\]",
        "$a\n\nb$",
        "$x",
        r"\(x",
        "$}{$",
        f"${'x' * (MAX_TEX + 1)}$",
    ],
)
def test_what_is_no_formula_stays_words(written: str):
    html = re.sub("<code>.*?</code>", "", to_html(written))
    markdown = re.sub("`.*?`|<code>.*?</code>", "", markdown_safe(written))

    assert not re.search(r"\\[(\[]", html)
    assert "$" not in markdown


ACTS = [
    r"\href{javascript:alert(1)}{x}",
    r"\url{javascript:alert(1)}",
    r"\class{jp-Button}{x}",
    r"\style{position: fixed}{x}",
    r"\cssId{x}{y}",
    r"\data{command=x}{y}",
    r"\htmlData{command=x}{y}",
    r"\includegraphics{http://127.0.0.1:9/b.png}",
    r"\require{html}",
    r"\def\x{\x\x}\x",
    r"\newcommand{\frac}{x}",
    r"\let\frac\sqrt",
    r"\unicode{x202e}",
    r"\bbox[position: fixed]{x}",
    r"\color{white}{x}",
    r"\rlap{x}",
    r"\hspace{-50em}{x}",
    r"a \\[-50em] b",
    r"\begin{html}x\end{html}",
    r"\frac\hre" + "f{javascript:alert(1)}{x}",
    r"[x](javascript:alert(1)) = 1",
    "{" * 100 + "x" + "}" * 100,
]


@each("tex", ACTS)
def test_tex_that_links_styles_loads_defines_or_moves_is_not_drawn(tex: str):
    assert not is_drawable(tex)
    for written in (f"${tex}$", f"$${tex}$$", f"\\({tex}\\)", f"\\[\n{tex}\n\\]"):
        shown = to_html(written)
        assert "\\(" not in shown and "\\[" not in shown
        assert "$" not in markdown_safe(written).replace("&#36;", "")


def _with_commonmark(text: str) -> str:
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(text)


@pytest.mark.slow
@each("payload", PAYLOADS)
@each("around", ["${}$", "$$\n{}\n$$", "\\({}\\)", "\\[x = {}\\]", "$x = {}", "{}$", "| ${} | a$ |\n|-|-|"])
def test_hostile_words_in_a_formula_are_harmless_in_every_renderer(payload: str, around: str):
    written = around.replace("{}", payload)

    assert_harmless(to_html(written), may_have_formulas=True)
    for page in (
        Page(_with_commonmark(markdown_safe(written))),
        Page(nbconvert.filters.markdown2html(markdown_safe(written))),
    ):
        for tag, attributes in page.elements:
            assert tag not in DEAD and not tag.startswith("#")
            assert not any(name.startswith(("on", "src", "data-")) for name in attributes)
            assert attributes.get("href", "http:").lower().startswith(("http:", "https:", "mailto:", "#"))
        assert not any("\\href" in text and "$" in text for text in page.texts)


@pytest.mark.slow
@each("piece", ["$", "$a ", "$$", "$$a", "\\(", "\\(a ", "\\[", "\\[\n", "$$\n", "${", "$\\a", "\\begin{"])
def test_no_text_holds_up_the_run_that_it_comes_from(piece: str):
    text = piece * (32_000 // len(piece))

    before = time.process_time()
    to_html(text)
    markdown_safe(text)

    assert time.process_time() - before < 5
