"""Text that must stay text, and a reader of html that says whether it did."""

import re
from html.parser import HTMLParser

from adk_nb.notebook.view.writers import html as foreign
from adk_nb.notebook.view.writers.elements import ATTRIBUTES, ISOLATED, STYLES, TAGS
from adk_nb.notebook.view.writers.markdown_html import is_drawable

PAYLOADS = [
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    '<a href="java&#x09;script:alert(1)">x</a>',
    "[x](javascript:alert(1))",
    "[x](<javascript:alert(1)>)",
    "[x](\njavascript:alert(1))",
    "[x](JaVaScRiPt&colon;alert(1))",
    "[x](java\\script:alert(1)) [x](javascript\\:alert(1))",
    "[x](java&#x09;script:alert(1))",
    "[x](vbscript:alert(1)) [x](file:///etc/passwd) [x](//evil.example) [x](#jp-main)",
    "[x](javascript://example.org/%0aalert(1)) javascript://example.org/%0aalert(1)",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x][1]\n\n[1]: javascript:alert(1)",
    "> [1]:\n> javascript:alert(1)\n\n[x][1] [1]",
    "<javascript:alert(1)> <data:text/html,x>",
    '[x](https://example.org "onmouseover=alert(1) x=\'\\"><img src=x onerror=alert(1)>")',
    "![](http://127.0.0.1:9/beacon?d=SECRET)",
    "![a](javascript:alert(1)) [![b](http://127.0.0.1:9/b.png)](javascript:alert(1))",
    "![b [c]](http://127.0.0.1:9/b.png) ![d]\n\n[d]: http://127.0.0.1:9/d.png",
    '<iframe srcdoc="<script>alert(1)</script>"></iframe>',
    "<form action=//e><button>x</button></form>",
    "<base href=//e>",
    '<meta http-equiv=refresh content="0;url=//e">',
    "<style>*{display:none}</style>",
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<!--<img title='--><img src=1 onerror=alert(1)>'>",
    '<math><mtext><table><mglyph><style><!--</style><img title="--><img src=1 onerror=alert(1)>">',
    '<button data-commandlinker-command="notebook:run-all-cells">x</button>',
    "$\\href{javascript:alert(1)}{x}$",
    "$$\\href{javascript:alert(1)}{x}$$",
    "\\\\(\\href{javascript:alert(1)}{x}\\\\) \\(\\href{javascript:alert(1)}{x}\\) \\[a\\] \\\\[b\\\\]",
    "\\begin{equation}\\href{javascript:alert(1)}{x}\\end{equation}",
    "\\begin{align*}\n\n<img src=x onerror=alert(1)>\n\\end{align*}",
    "`$\\href{javascript:alert(1)}{x}$` ``<img src=x onerror=alert(1)>`` `a`` <img src=x onerror=alert(1)> `",
    '```mermaid\ngraph TD\nclick A href "javascript:alert(1)"\n```',
    "~~~ mermaid\ngraph TD\n~~~\n- ```mermaid\n  graph TD",
    '```vega\n{"signals": [{"on": [{"events": "click", "update": "alert(1)"}]}]}\n```',
    "```html\n<img src=x onerror=alert(1)>\n</code></pre><img src=x onerror=alert(1)>",
    "```\nnot closed <img src=x onerror=alert(1)>",
    "    <img src=x onerror=alert(1)>\n\n\t<svg onload=alert(1)>",
    "<a id=jupyter-config-data></a>",
    "# <img src=x onerror=alert(1)>\n\n| a |\n|:-:|\n| <img src=x onerror=alert(1)> |",
    "*a*{onclick=alert(1)} [b]{.c onclick=alert(1)} {: onclick=alert(1)} {{ alert(1) }} {% raw %}",
    "\x1b[31mred\x1b[0m \x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07 \x9b31m \x1b]0;title\x1b\\ \x07\x08",
    "abc\u202egnp.exe\u2066 \u200e\u200b\ufeff\U000e0041 \x00 \x7f \u2028 &#x202e; &#27;",
    "\ud800 half a character",
]

DEAD = {"script", "style", "iframe", "object", "embed", "form", "base", "meta", "link", "img", "svg", "math", "button"}
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


class Page(HTMLParser):
    """What a page is made of: its elements with their attributes, and the runs of text that MathJax would look at."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in ("br", "hr", "img", "meta", "link", "input", "base"):
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag):
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data):
        if not {"pre", "code", "script", "style"} & set(self._open):
            self.texts.append(data)

    def handle_comment(self, data):
        self.elements.append(("#comment", {}))

    def handle_decl(self, decl):
        self.elements.append(("#declaration", {}))


def assert_harmless(html: str, *, also: dict[str, set[str]] | None = None, may_have_formulas: bool = False) -> None:
    """Only elements and attributes of the list, links that a click may follow, nothing for MathJax, nothing unseen.

    `also`: elements with attributes that another program adds around ours. `may_have_formulas`: drawable ones.
    """
    page = Page(html)
    for tag, attributes in page.elements:
        if tag == "iframe":
            assert_isolated(attributes)
            continue
        allowed = set(ATTRIBUTES.get(tag, ())) | (also or {}).get(tag, set())
        assert tag in TAGS or tag in (also or {}), f"<{tag}> in {html}"
        assert set(attributes) <= allowed, f"<{tag} {attributes}> in {html}"
        assert attributes.get("style", "text-align: left") in STYLES or tag in (also or {}), f"<{tag} {attributes}>"
        if not (also or {}).get(tag):
            assert_safe_link(attributes, html)
    for text in page.texts:
        words = _FORMULA.sub(_undrawable, text) if may_have_formulas else text
        assert not begins_math(words), f"{text!r} in {html}"
    assert_nothing_unseen(html)


_FORMULA = re.compile(r"\\[(\[](.*?)\\[)\]]", re.DOTALL)


def _undrawable(found: re.Match[str]) -> str:
    return "" if is_drawable(found[1]) else found[0]


def assert_isolated(frame: dict[str, str]) -> None:
    """Nothing in it runs or is loaded, it is of no origin, and it cannot lead the page around it elsewhere."""
    page = frame.pop("srcdoc")
    start = foreign.isolated_page("")
    assert page.startswith(start) and "default-src 'none'" in start
    for tag, attributes in Page(page.removeprefix(start)).elements:
        assert tag in foreign.TAGS and "http" not in "".join(
            value for name, value in attributes.items() if name not in ("href", "title", "xmlns")
        ), f"<{tag} {attributes}> in {page}"
    assert frame == {"title": frame["title"], **ISOLATED}
    assert set(frame["sandbox"].split()) == {"allow-popups", "allow-popups-to-escape-sandbox"}


def assert_safe_link(attributes: dict[str, str], html: str) -> None:
    if "href" in attributes:
        assert re.match(r"(https?://|mailto:)\S+$", attributes["href"]), f"{attributes} in {html}"
        assert "noopener" in attributes["rel"]


def assert_nothing_unseen(text: str) -> None:
    assert not (found := _UNSEEN.search(text)), f"{found[0]!r} in {text!r}"
    text.encode("utf-8")


def begins_math(text: str) -> bool:
    """Whether MathJax may see a delimiter in one run of text; one alone in its element begins nothing."""
    return text not in ("$", "\\") and ("$" in text or "\\" in text)
