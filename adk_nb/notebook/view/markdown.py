"""Markdown that a model, a tool or a user wrote: as safe html, and as markdown that is safe in any other renderer."""

import re
from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from adk_nb.notebook.view.mathematics import Formula, formula_at
from adk_nb.notebook.view.plain_text import cleaned
from adk_nb.notebook.view.safe_html import (
    ATTRIBUTES,
    LINK_REL,
    TAGS,
    Html,
    code,
    element,
    escaped,
    formula,
    is_safe_link,
)

MAX_RENDERED = 32_000
"""Characters; a longer text is shown as it was written."""
_MAX_BRACKETS = 2_000
"""More opening brackets than this are no prose, and markdown-it's time grows with their square."""

_HEADINGS = {"h1": "h4", "h2": "h5", "h3": "h6"}
"""Ours are smaller than the notebook's own: an answer is no chapter of the page it stands on."""


def to_html(text: str) -> Html:
    """`text` as html: raw html is shown as text, links go to http, https and mailto only, nothing is loaded. TeX that
    `mathematics` knows stands there for the page to draw.

    A text over `MAX_RENDERED` is shown as it was written, so that no answer holds up the run that gave it.
    """
    text = cleaned(text)
    if len(text) > MAX_RENDERED or text.count("[") > _MAX_BRACKETS:
        return element("pre", code(text))
    return Html(_MARKDOWN.render(text).strip())


def blocks_of(text: str) -> list[tuple[str, int]]:
    """The kind of each block that is in no other, as markdown-it names it, and its first line, counted from 0."""
    tokens: list[Token] = []
    _MARKDOWN.block.parse(text, _MARKDOWN, {}, tokens)
    return [(token.type, token.map[0]) for token in tokens if token.level == 0 and token.map]


class _Renderer(RendererHTML):
    """markdown-it's renderer, held to our elements and attributes. A method per token type is its own way."""

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return escaped(cleaned(tokens[idx].content))  # again: an entity may have become a control character

    def code_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return element("code", code(tokens[idx].content))

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return element("pre", element("code", code(tokens[idx].content))) + "\n"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return self.code_block(tokens, idx, options, env)

    def html_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return escaped(tokens[idx].content)

    def html_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return escaped(tokens[idx].content)

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A link to the image under its description: a page that is only looked at sends nothing anywhere."""
        token = tokens[idx]
        url = str(token.attrs.get("src", ""))
        words = cleaned(self.renderInlineAsText(token.children, options, env)).strip() or "image"
        return element("a", words, href=url, rel=LINK_REL) if is_safe_link(url) else escaped(words)

    def math_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return formula(tokens[idx].content, display=tokens[idx].block)

    def math_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return element("p", formula(tokens[idx].content, display=True)) + "\n"

    def renderToken(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        token.tag = _HEADINGS.get(token.tag, token.tag)
        if token.tag and token.tag not in TAGS:
            return ""
        if token.tag in ("td", "th") and token.nesting == 1:
            side = str(token.attrs.get("style", "")).removeprefix("text-align:") or "left"
            token.attrs["style"] = f"text-align: {side}"
        digits = len(str(token.attrs.get("start", "")))
        if digits > 2:
            token.attrs["style"] = f"padding-left: {digits}em"
        if token.type == "link_open":
            token.attrs["rel"] = LINK_REL
        allowed = ATTRIBUTES.get(token.tag, frozenset())
        token.attrs = {name: value for name, value in token.attrs.items() if name in allowed}
        return super().renderToken(tokens, idx, options, env)


class _Markdown(MarkdownIt):
    def validateLink(self, url: str) -> bool:
        return is_safe_link(url)


def _unwrap_empty_lists(state: StateCore) -> None:
    """Turn lists without any text back into paragraphs: an answer of `105.` is a number, not an item 105."""
    tokens, kept = state.tokens, list[Token]()
    at = 0
    while at < len(tokens):
        end = _end_of_empty_list(tokens, at)
        kept += _paragraph(tokens[at:end]) if end else [tokens[at]]
        at = end or at + 1
    state.tokens = kept


def _end_of_empty_list(tokens: Sequence[Token], start: int) -> int:
    """The index behind the list that opens at `start`, if its items are all empty; else 0."""
    if tokens[start].type not in _LIST_OPEN:
        return 0
    at = start + 1
    while tokens[at].type in ("list_item_open", "list_item_close"):
        at += 1
    return at + 1 if tokens[at].type in _LIST_CLOSE else 0


def _paragraph(items: Sequence[Token]) -> list[Token]:
    markers = "\n".join(token.info + token.markup for token in items if token.type == "list_item_open")
    level, lines = items[0].level, items[0].map
    return [
        Token("paragraph_open", "p", 1, map=lines, level=level, block=True),
        Token("inline", "", 0, map=lines, level=level + 1, content=markers, children=[], block=True),
        Token("paragraph_close", "p", -1, level=level, block=True),
    ]


_LIST_OPEN = ("ordered_list_open", "bullet_list_open")
_LIST_CLOSE = ("ordered_list_close", "bullet_list_close")


def _math_inline(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    found = formula_at(state.src, state.pos)
    if not found or found.end > state.posMax:
        return False
    if not silent:
        token = state.push("math_inline", "", 0)
        token.content, token.block = found.tex, found.display
    state.pos = found.end
    return True


def _math_block(state: StateBlock, start: int, last: int, silent: bool) -> bool:
    """A formula that has its lines for itself: what in them looks like a list or a heading is none."""
    found = _on_own_lines(state, start, last) if state.sCount[start] - state.blkIndent < 4 else None
    if not found:
        return False
    if not silent:
        formula_found, after = found
        token = state.push("math_block", "", 0)
        token.content, token.map = formula_found.tex, [start, after]
        state.line = after
    return True


def _on_own_lines(state: StateBlock, start: int, last: int) -> tuple[Formula, int] | None:
    first = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    closing = {"$$": "$$", "\\[": "\\]"}.get(first[:2])
    if not closing:
        return None
    for line in range(start, min(last, start + _MOST_LINES)):
        if state.getLines(line, line + 1, 0, False).rstrip().endswith(closing) and (line > start or len(first) > 3):
            text = state.getLines(start, line + 1, state.blkIndent, False).strip()
            found = formula_at(text, 0)
            return (found, line + 1) if found and found.end == len(text) else None
    return None


_MOST_LINES = 100
_MARKDOWN = _Markdown("js-default", {"html": False, "linkify": False, "typographer": False}, renderer_cls=_Renderer)
_MARKDOWN.inline.ruler.before("escape", "math_inline", _math_inline)
_MARKDOWN.block.ruler.before("fence", "math_block", _math_block, {"alt": ["paragraph", "blockquote", "list"]})
_MARKDOWN.core.ruler.after("block", "empty_lists", _unwrap_empty_lists)

# ---- markdown for other renderers: what they take for html, a link, an image, mathematics or a directive is spelled
# out, whatever they take for code; of mathematics, what a page may draw stays. So it does not matter where their
# reading differs from this one's.

_SOURCE = re.compile(
    r"""
      ^[ ]{0,3}(?P<fence>`{3,}+|~{3,}+)[ \t]*+(?P<language>\w*+)[^\n]*+\n(?P<block>.*?)
          (?:^[ ]{0,3}(?P=fence)[`~]*+[ \t]*+$|\Z)
    | (?P<diagram>(?:(?<!`)`{3,}+|(?<!~)~{3,}+)[ \t]*+)(?=mermaid)
    | (?<!`)(?P<ticks>`{1,2})(?!`)(?P<inline>[^\n]{1,1000}?)(?<!`)(?P=ticks)(?!`)
    | (?:\A|(?<=\n\n))[ ]{0,3}(?P<number>[0-9]{1,9})(?P<dot>[.)])(?=[ \t]*+(?:\n[ \t]*\n|\s*+\Z))
    | \\(?P<literal>[!-/:-@\[-`{-~])
    | (?P<image>!)(?=\[[^\[\]\n]{0,300}\]\()
    | (?P<bang>!)(?=\[)
    | (?P<target>\])(?=\s*[(:])(?!\s*[(:]\s*(?:https?://|mailto:))
    | (?P<plain>[<&{}$\\])
    """,
    re.VERBOSE | re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_RISKY = re.compile(r"[<&$\\\]!]|mermaid", re.IGNORECASE)
_SPELLED = re.compile(r"[^\w\s,;.='\"/%^+-]")
_CELL = re.compile(r"[&<>|`*\[\]~!$\\]|(?<![^\W_])_|_(?![^\W_])|\{(?=[:.#{%=])")


def markdown_safe(text: str) -> str:
    """Untrusted markdown as markdown that no renderer turns into html, a script, a loaded image or TeX that acts.

    Emphasis, lists, tables, code, links to http, https and mailto and TeX that `mathematics` knows stay what they are;
    an image becomes a link.
    """
    text, parts, at = cleaned(text), list[str](), 0
    while found := _SOURCE.search(text, at):
        parts.append(text[at : found.start()])
        drawn = formula_at(text, found.start()) if found[0][0] in "$\\" else None
        parts.append(_formula_source(drawn) if drawn else _made_safe(found))
        at = drawn.end if drawn else found.end()
    return "".join([*parts, text[at:]])


def _formula_source(found: Formula) -> str:
    """In the delimiters that all renderers know. Where one knows none, nothing in it is a tag."""
    delimiter = "$$" if found.display else "$"
    tex = found.tex.replace("<", "\\lt ").replace(">", "\\gt ")
    return f"{delimiter}{tex}{delimiter}"


def markdown_cell(text: str) -> str:
    """Untrusted plain text as one cell of a markdown table: shown as it is."""
    return markdown_line(cleaned(text))


def markdown_line(text: str) -> str:
    """Text that was made safe to show, as one line of markdown."""
    return _CELL.sub(lambda found: _entity(found[0]), " ".join(text.split()))


def _made_safe(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if found["fence"]:
        return _block(found)
    if found["diagram"]:
        return found["diagram"] + "text "
    if found["ticks"]:
        inline = found["inline"]
        return f"<code>{_spelled_out(inline.strip())}</code>" if _RISKY.search(inline) else found[0]
    if kind == "image":
        return ""
    if found["number"]:
        return found["number"] + _entity(found["dot"])
    return _entity(found["literal"] or found[0])


def _block(found: re.Match[str]) -> str:
    block, language = found["block"], found["language"]
    if _RISKY.search(block) or _RISKY.search(language):
        return f"<pre><code>{_spelled_out(block)}</code></pre>"
    return f"{found['fence']}{language}\n{block}{found['fence']}"


def _spelled_out(text: str) -> str:
    return _SPELLED.sub(lambda found: f"&#{ord(found[0])};", text).replace("_", "&#95;")


def _entity(character: str) -> str:
    if character == "<":
        return "&lt;"
    if character == "&":
        return "&amp;"
    spelled = f"&#{ord(character)};"
    return f"<span>{spelled}</span>" if character in "$\\" else spelled
