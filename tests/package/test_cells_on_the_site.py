"""The colours of cells on the site: magics, options, and values in braces have their own, and no character is lost."""

import json
from itertools import groupby
from pathlib import Path
from typing import Any

from pygments.token import Comment, Error, Generic, Keyword, Name, Punctuation, String, Token

from adk_nb.notebook.magics.catalog import grammars
from docs.cells_lexer import BlockLexer, CellLexer
from tests.support.each import each

ROOT = Path(__file__).parents[2]
MAGIC, OPTION, DEFINED, VALUE, STATE = (
    Keyword.Namespace,
    Name.Attribute,
    Name.Function,
    Name.Variable,
    Name.Variable.Instance,
)


def coloured(cell: str, lexer: type[CellLexer] = CellLexer) -> list[tuple[Any, str]]:
    """The texts of a cell that have a colour, neighbours of the same one together."""
    found = [(token, text) for token, text in lexer().get_tokens(cell) if text.strip()]
    plain = (Token.Text, Token.Text.Whitespace)
    return [
        (token, "".join(text for _, text in some))
        for token, some in groupby(found, lambda it: it[0])
        if token not in plain
    ]


@each(
    "cell, colours",
    [
        (
            "%%agent guide -m offline --root # why\nPlan {days} days in {{city.name}} and say $5.",
            [
                (MAGIC, "%%agent"),
                (DEFINED, "guide"),
                (OPTION, "-m"),
                (OPTION, "--root"),
                (Comment, "# why"),
                (STATE, "{days}"),
                (VALUE, "{{city.name}}"),
            ],
        ),
        ("%%agent guide --raw\nPlan {days}.", [(MAGIC, "%%agent"), (DEFINED, "guide"), (OPTION, "--raw")]),
        ("%%agent guide --nope\nHi.", [(MAGIC, "%%agent"), (DEFINED, "guide"), (Error, "--nope")]),
        ("%chat guide -q What's -new in {{city}}?", [(MAGIC, "%chat"), (OPTION, "-q")]),
        ("%%chat guide\nWhat about {{city}} and {days}?", [(MAGIC, "%%chat"), (VALUE, "{{city}}")]),
        (
            "%%workflow write\nSTART -> draft -[ok]-> END # done",
            [
                (MAGIC, "%%workflow"),
                (DEFINED, "write"),
                (Keyword.Constant, "START"),
                (Punctuation, "->"),
                (Punctuation, "-["),
                (String, "ok"),
                (Punctuation, "]->"),
                (Keyword.Constant, "END"),
                (Comment, "# done"),
            ],
        ),
        (
            "%%eval guide\n| message | answer |\n|---|---|\n| Hi | Hello |",
            [
                (MAGIC, "%%eval"),
                (Punctuation, "|"),
                (Generic.Heading, " message "),
                (Punctuation, "|"),
                (Generic.Heading, " answer "),
                (Punctuation, "||---|---||"),
                (Punctuation, "|"),
                (Punctuation, "|"),
            ],
        ),
    ],
)
def test_a_cell_has_the_colours_of_what_it_says(cell: str, colours: list[tuple[Any, str]]):
    assert coloured(cell) == colours


def test_below_a_tool_and_around_a_line_of_a_magic_is_python():
    assert (Keyword, "def") in coloured("%%tool --confirm\ndef pay(to: str): ...")
    found = coloured("for city in cities:\n    reply = %chat -q guide {{city}}")
    assert found[0] == (Keyword, "for") and (MAGIC, "%chat") in found


def test_a_front_matter_is_yaml():
    assert (Name.Tag, "model") in coloured("%%agent guide\n---\nmodel: offline\n---\nPlan {days}.")


def test_what_is_no_cell_stays_plain_text():
    assert coloured("make demo\nmake test", BlockLexer) == []
    assert (Keyword, "def") in coloured("def f(): ...", BlockLexer)
    assert (MAGIC, "%chat") in coloured("%chat guide Hi", BlockLexer)


def cells() -> list[str]:
    """The cells of all tutorials, and the examples of the help."""
    books = [json.loads(path.read_text()) for path in sorted(ROOT.glob("notebooks/*.ipynb"))]
    code = ["".join(cell["source"]) for book in books for cell in book["cells"] if cell["cell_type"] == "code"]
    return code + [example for grammar in grammars().values() for example in grammar.examples]


def test_no_character_of_a_cell_is_lost_and_no_option_is_taken_for_an_error():
    read = {cell: list(CellLexer().get_tokens_unprocessed(cell)) for cell in cells()}

    assert len(read) > 300
    assert [cell for cell, tokens in read.items() if "".join(text for *_, text in tokens) != cell] == []
    assert {text for tokens in read.values() for _, token, text in tokens if token is Error} == set()
