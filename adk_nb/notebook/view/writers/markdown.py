"""Documents as markdown that no renderer turns into raw html, a script, a loaded image or active TeX."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import singledispatch
from typing import Any

from adk_nb.notebook.view import document as doc
from adk_nb.notebook.view.document import Block, Inline, Line, parts_of
from adk_nb.notebook.view.plain_text import cleaned, is_safe_link, shortened
from adk_nb.notebook.view.writers.markdown_html import formula_at
from adk_nb.notebook.view.writers.text import CELL, code_text, safe, single_blanks

_BEGINS = re.compile(r"^(\d{0,9})([#+=-]|(?<=\d)[.)])")
_STYLES = {"strong": "**{}**", "em": "*{}*", "small": "*{}*"}


def write(blocks: Sequence[Block]) -> str:
    """`blocks` as markdown."""
    return "\n\n".join(part for block in blocks for part in _parts(block) if part)


def _line(line: Line) -> str:
    return "".join(map(_inline, parts_of(line))).strip()


def _escaped_start(line: str) -> str:
    """`line` escaped so that it begins a paragraph, not a heading or a list."""
    return _BEGINS.sub(lambda match: f"{match[1]}&#{ord(match[2])};", line)


def _inline(part: Inline) -> str:
    text = safe(part)
    if isinstance(part, doc.Link):
        return f"[{markdown_line(text)}](<{part.url}>)" if is_safe_link(part.url) else markdown_line(text)
    if isinstance(part, str) or not text.strip():
        return markdown_line(text)
    if part.style != "code":
        return _STYLES.get(part.style, "{}").format(markdown_line(text))
    return f"<code>{_as_entities(text)}</code>" if _RISKY.search(text) or {"|", "`"} & set(text) else f"`{text}`"


@singledispatch
def _parts(block: Any) -> Iterable[str]:
    raise TypeError(f"{type(block).__name__} is not a block")


@_parts.register
def _(block: doc.Heading) -> Iterable[str]:
    return [f"**{_line(block.line)}**"]


@_parts.register
def _(block: doc.Text) -> Iterable[str]:
    line = _line(block.line)
    return [f"*{line}*" if block.small and line else _escaped_start(line)]


@_parts.register
def _(block: doc.Lines) -> Iterable[str]:
    return ["  \n".join(_escaped_start(markdown_line(cleaned(line)).strip()) for line in block.lines)]


@_parts.register
def _(block: doc.Markdown) -> Iterable[str]:
    return [markdown_safe(block.source).strip()]


@_parts.register
def _(block: doc.Code) -> Iterable[str]:
    return [_code(block.line, block.language)]


@_parts.register
def _(block: doc.Table) -> Iterable[str]:
    table = _table(block) if block.head or block.rows else f"*[{markdown_line(cleaned(block.title))}]*"
    return [table, f"*{markdown_line(cleaned(block.note))}*" if block.note else ""]


@_parts.register
def _(block: doc.Items) -> Iterable[str]:
    return ["\n".join(_items(block))]


@_parts.register
def _(block: doc.Image) -> Iterable[str]:
    return [f"*[{markdown_line(cleaned(block.alt))}]*"]


@_parts.register
def _(block: doc.Picture) -> Iterable[str]:
    return [_code(block.text) if block.text else f"*[{markdown_line(cleaned(block.title))}]*"]


@_parts.register
def _(block: doc.Page) -> Iterable[str]:
    return [f"*[{markdown_line(cleaned(block.title))}]*"]


@_parts.register
def _(block: doc.Fold) -> Iterable[str]:
    size = f" ({markdown_line(cleaned(block.size))})" if block.size else ""
    notices = "".join(f" · {markdown_line(cleaned(notice.label))}" for notice in block.notices)
    return (f"{_line(block.summary)}{size}{notices}:", write(block.blocks))


@_parts.register
def _(block: doc.Frame | doc.Beside) -> Iterable[str]:
    return [write(block.blocks)]


@_parts.register
def _(block: doc.Card) -> Iterable[str]:
    lines = "\n\n".join(filter(None, (_line(block.title), write(block.blocks)))).split("\n")
    return ["\n".join(f"> {line}".rstrip() for line in lines)]


@_parts.register
def _(block: doc.Notice) -> Iterable[str]:
    return [f"*{markdown_line(cleaned(block.line)).strip()}*"]


@_parts.register
def _(block: doc.Speech) -> Iterable[str]:
    return _parts(block.block) if block.block else ()


@_parts.register
def _(block: doc.Section) -> Iterable[str]:
    return [write(block.blocks)]


@_parts.register
def _(block: doc.Only) -> Iterable[str]:
    return [write(block.blocks) if "text/markdown" in block.forms else ""]


def _code(line: Line, language: str = "") -> str:
    text = "".join(map(code_text, parts_of(line)))
    if _RISKY.search(text) or "`" in text:
        return f"<pre><code>{_as_entities(text)}</code></pre>"
    return f"```{language if language == 'sql' else ''}\n{text}\n```"


def _items(items: doc.Items) -> Iterator[str]:
    for number, item in enumerate(items.items, 1):
        yield f"{f'{number}.' if items.numbers else '-'} {_line(item.line)}".rstrip()
        if item.below:
            yield from (f"  {line}" for line in _items(item.below))


def _table(table: doc.Table) -> str:
    lines = [[_cell(cell) for cell in line] for line in table.rows]
    head = [_cell(cell) for cell in table.head] or [""] * (len(lines[0]) if lines else 0)
    numbers = table.numbers
    ruled = [head, ["---:" if column in numbers else "---" for column in range(len(head))], *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in ruled)


def _cell(line: Line) -> str:
    if isinstance(line, str):
        return markdown_line(shortened(safe(line).strip(" "), CELL))
    return _line(line)


# ---- untrusted markdown. Renderers differ in what they read as code, so html, links, images, mathematics and
# directives are escaped everywhere, also in code; only formulas that pass `mathematics.formula_at` stay.

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
_PUNCTUATION = re.compile(r"[^\w\s,;.='\"/%^+-]")
_CELL = re.compile(r"[&<>|`*\[\]~!$\\]|(?<![^\W_])_|_(?![^\W_])|\{(?=[:.#{%=])")


def markdown_safe(text: str) -> str:
    """Untrusted markdown as markdown that no renderer turns into raw html, a script, a loaded image or active TeX.

    Emphasis, lists, tables, code, links to http, https and mailto and TeX that `mathematics` allows are kept; an image
    becomes a link.
    """
    text, parts, position = cleaned(text), list[str](), 0
    while match := _SOURCE.search(text, position):
        parts.append(text[position : match.start()])
        drawn = formula_at(text, match.start()) if match[0][0] in "$\\" else None
        if drawn:  # in dollar signs, which most renderers know; `<` is replaced, so that others read no tag
            delimiter = "$$" if drawn.display else "$"
            tex = drawn.tex.replace("<", "\\lt ").replace(">", "\\gt ")
            parts.append(f"{delimiter}{tex}{delimiter}")
        else:
            parts.append(_safe_source(match))
        position = drawn.end if drawn else match.end()
    return "".join([*parts, text[position:]])


def markdown_line(text: str) -> str:
    """Cleaned text as one line of markdown that is displayed literally, also in a table."""
    return _CELL.sub(lambda match: _entity(match[0]), single_blanks(text))


def _safe_source(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if match["fence"]:
        return _block(match)
    if match["diagram"]:
        return match["diagram"] + "text "
    if match["ticks"]:
        inline = match["inline"]
        return f"<code>{_as_entities(inline.strip())}</code>" if _RISKY.search(inline) else match[0]
    if kind == "image":
        return ""
    if match["number"]:
        return match["number"] + _entity(match["dot"])
    return _entity(match["literal"] or match[0])


def _block(match: re.Match[str]) -> str:
    block, language = match["block"], match["language"]
    if _RISKY.search(block) or _RISKY.search(language):
        return f"<pre><code>{_as_entities(block)}</code></pre>"
    return f"{match['fence']}{language}\n{block}{match['fence']}"


def _as_entities(text: str) -> str:
    return _PUNCTUATION.sub(lambda match: f"&#{ord(match[0])};", text).replace("_", "&#95;")


def _entity(character: str) -> str:
    if character == "<":
        return "&lt;"
    if character == "&":
        return "&amp;"
    entity = f"&#{ord(character)};"
    return f"<span>{entity}</span>" if character in "$\\" else entity
