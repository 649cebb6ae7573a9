"""The colours of cells on the site: a lexer of Pygments, which takes magics and options from their grammars.

Its tokens are those that `editors/jupyterlab/src` gives to the same cells in JupyterLab.
"""

import ast
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import Lexer, RegexLexer, bygroups, inherit, using
from pygments.lexers.data import YamlLexer
from pygments.lexers.markup import MarkdownLexer
from pygments.lexers.python import PythonLexer
from pygments.lexers.special import TextLexer
from pygments.token import Comment, Error, Generic, Keyword, Name, Operator, Punctuation, String, Text

from adk_nb.notebook.magics import catalog
from adk_nb.notebook.magics.grammar import Grammar

__all__ = ["BlockLexer", "CellLexer"]

Section = tuple[str, str]
"""What a part of a cell is, and its text."""

GRAMMARS = catalog.grammars()
_CELL = re.compile(rf"\s*%%({'|'.join(GRAMMARS)})(?![\w.]).*\n?")
_LINE = re.compile(r"^[ \t]*(?:[^\s=%()#][^=%()#\n]*=[ \t]*)?%{1,2}[a-z]\w*\b.*\n?", re.MULTILINE)
_HEAD = re.compile(r"([ \t]*)([^%\n]*?)(=?)([ \t]*)(%{1,2}(\w+))(\??)")
_FRONT_MATTER = re.compile(r"\s*^---[ \t]*\n.*?^---[ \t]*(?:\n|\Z)", re.MULTILINE | re.DOTALL)
_TEAM = re.compile(r"--kind[\s=]+(?!llm\b)\w|^kind[ \t]*:[ \t]*(?!llm\b)\w", re.MULTILINE)
_WORD = re.compile(
    r"""(?P<blank>\s+)|(?P<string>"(?:[^"\\]|\\.)*"?|'[^']*'?)|(?P<end>;\s*$)|(?P<comment>#.*)"""
    r"""|(?P<operator><<|=)|(?P<option>--?[A-Za-z][\w-]*)|(?P<word>[^\s="']+)"""
)
_NAME = r"[^\W\d]\w*"
_VARIABLE = rf"(?<![\\{{])\{{\{{{_NAME}(?:\.{_NAME}|\[[^\]\n]*\])*\}}\}}(?!\}})"
_STATE = rf"(?<![${{\\])\{{(?:(?:(?:app|user|temp):)?{_NAME}|artifact\.[^\s{{}}?]+)\??\}}(?!\}})"


class CellLexer(Lexer):
    """A cell of a notebook: of one of our magics, or Python with lines of magics in it."""

    name, aliases = "Cell of adk_nb", ["adk-nb"]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Read each section as what it is."""
        start = 0
        for kind, part in sections(text):
            for at, token, value in _READERS[kind](part):
                yield start + at, token, value
            start += len(part)


class BlockLexer(CellLexer):
    """A block of which nobody said what it is: a cell, Python, or the text of a terminal."""

    name, aliases = "Cell of adk_nb, or text", ["adk-nb-or-text"]

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, Any, str]]:
        """Read a block with a magic, or of valid Python, as a cell."""
        if not _LINE.search(text):
            try:
                ast.parse(text)
            except SyntaxError:
                return TextLexer().get_tokens_unprocessed(text)
        return super().get_tokens_unprocessed(text)


def sections(text: str) -> Iterator[Section]:
    """The parts of a cell, in order; together they are the cell."""
    head = _CELL.match(text)
    if head is None:
        yield from _python_sections(text)
        return
    grammar, body = GRAMMARS[head[1]], text[head.end() :]
    yield "line", head[0]
    if grammar.body in ("python", ""):
        yield from _python_sections(body)
        return
    if not grammar.takes_text and (matter := _FRONT_MATTER.match(body)):
        yield "yaml", matter[0]
        body = body[matter.end() :]
    options = text[: len(text) - len(body)]
    if grammar.body == "table":
        yield "table" if body.lstrip().startswith("|") else "yaml", body
    elif grammar.name == "agent" and _TEAM.search(options):
        yield "team", body
    elif grammar.body == "prose":
        yield "text" if "--raw" in head[0].split() else "message" if grammar.takes_text else "prose", body
    else:
        yield grammar.body, body


def _python_sections(text: str) -> Iterator[Section]:
    start = 0
    for line in _LINE.finditer(text):
        if line.start() > start:
            yield "python", text[start : line.start()]
        yield "line", line[0]
        start = line.end()
    if text[start:]:
        yield "python", text[start:]


def _line(text: str) -> Iterator[tuple[int, Any, str]]:
    """A line of a magic. What follows the agent of `%chat` is text, and has no strings in it."""
    head: Any = _HEAD.match(text)
    for group, token in enumerate((Text, Name, Operator, Text, Keyword.Namespace), 1):
        yield head.start(group), token, head[group]
    yield head.start(7), Operator, head[7]
    grammar = GRAMMARS.get(head[6])
    is_text = grammar is not None and grammar.takes_text and not head[5].startswith("%%")
    options = _options(grammar)
    defines = grammar is not None and grammar.body in ("prose", "edges") and not grammar.takes_text
    needs_value = False
    at = head.end()
    while word := _WORD.match(text, at):
        kind, at = str(word.lastgroup), word.end()
        is_name = kind == "word" and re.match(r"\s+-", text[at:])
        if is_text and kind in ("word", "string", "comment") and not needs_value and not is_name:
            yield word.start(), Text, text[word.start() :]
            return
        if kind == "option" and grammar and word[0] not in options:
            yield word.start(), Error, word[0]
        elif kind == "word" and defines and not needs_value:
            yield word.start(), Name.Function, word[0]
            defines = False
        else:
            yield word.start(), _WORDS[kind], word[0]
        if kind != "blank" and word[0] != "=":
            needs_value = options.get(word[0], False)


_WORDS = {
    "blank": Text,
    "string": String,
    "end": Operator,
    "comment": Comment,
    "operator": Operator,
    "option": Name.Attribute,
    "word": Text,
}


def _options(grammar: Grammar | None) -> dict[str, bool]:
    """The spellings of a magic's options -> whether a value follows."""
    options = grammar.all_options if grammar else ()
    return {token: option.needs_value for option in options for token in option.spellings}


def _prose(text: str, pattern: str) -> Iterator[tuple[int, Any, str]]:
    """Markdown, with the values in braces that are put into it."""
    start = 0
    for braces in re.finditer(pattern, text):
        for at, token, value in MarkdownLexer().get_tokens_unprocessed(text[start : braces.start()]):
            yield start + at, token, value
        yield braces.start(), Name.Variable if braces[0].startswith("{{") else Name.Variable.Instance, braces[0]
        start = braces.end()
    for at, token, value in MarkdownLexer().get_tokens_unprocessed(text[start:]):
        yield start + at, token, value


class _Edges(RegexLexer):
    """The graph of a workflow."""

    tokens: ClassVar = {
        "root": [
            (r"#.*", Comment),
            (r"(-\[)([^\]\n]*)(\]->)", bygroups(Punctuation, String, Punctuation)),
            (r"->|→|[(),]", Punctuation),
            (r"\b(?:START|END)\b", Keyword.Constant),
            (rf"{_NAME}|\s+", Text),
            (r".", Error),
        ]
    }


class _Team(_Edges):
    """The members of a team, and the condition that ends a loop."""

    tokens: ClassVar = {
        "root": [(r"^([ \t]*)(until)([ \t]*:)(.*)", bygroups(Text, Keyword, Operator, using(PythonLexer))), inherit]
    }


class _Table(RegexLexer):
    """Cases of an evaluation; the first row names the columns."""

    tokens: ClassVar = {
        "root": [
            (r"(?<!\\)\|", Punctuation, "heading"),
            (r"\s+|.", Text),
        ],
        "heading": [
            (r"\n", Text, "rows"),
            (r"(?<!\\)\|", Punctuation),
            (r"(?:\\\||[^|\n])+", Generic.Heading),
        ],
        "rows": [
            (r"(?<!\\)\||(?<=\|)\s*:?-+:?\s*(?=\|)", Punctuation),
            (r"(?:\\\||[^|\n])+|\n", Text),
        ],
    }


_READERS: dict[str, Any] = {
    "line": _line,
    "yaml": YamlLexer().get_tokens_unprocessed,
    "python": PythonLexer().get_tokens_unprocessed,
    "text": MarkdownLexer().get_tokens_unprocessed,
    "prose": lambda text: _prose(text, f"{_VARIABLE}|{_STATE}"),
    "message": lambda text: _prose(text, _VARIABLE),
    "edges": _Edges().get_tokens_unprocessed,
    "team": _Team().get_tokens_unprocessed,
    "table": _Table().get_tokens_unprocessed,
}
