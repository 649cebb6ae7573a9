"""The editor's rules are those of the package: what it takes for a placeholder or an option is one for a cell."""

import json
import random
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import view_build
from pygments.token import Comment, Error, Name

from adk_nb.errors import InputError
from adk_nb.notebook.cells.templates import parse
from adk_nb.notebook.magics.catalog import grammars
from tests.support.late import late

ROOT = Path(__file__).parents[2]
PIECES = (
    *("{", "}", "{{", "}}", "a", "user:", "?", "\\", "$", " ", "\n", "1", ".b", "artifact.", "[0]", "['c']", "ä"),
    *("{a", "a}", "{{a", "a}}", "{user:a", "{artifact.a", "{a}", "{{ä}}", "{temp:_1?}", "{{a.b[0]}}"),
)


class Anything(str):
    """A text that has every attribute and every item."""

    def __getattr__(self, name: str) -> "Anything":
        if name.startswith("_"):
            raise AttributeError(name)
        return self

    def __getitem__(self, key: Any) -> "Anything":
        return self


class Variables(defaultdict[str, Any]):
    def __contains__(self, name: object) -> bool:
        return True


def ask(script: str, argument: Any) -> Any:
    """What an expression of the editor's modules returns for `argument`."""
    imports = 'import * as cells from "./cells.js"; import * as lines from "./lines.js";'
    program = f"{imports} const argument = JSON.parse(process.argv[1]); console.log(JSON.stringify({script}));"
    done = view_build.run(
        "node", "--input-type=module", "--eval", program, "--", json.dumps(argument), cwd=view_build.EDITOR
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("keys", [True, False])
def test_what_is_marked_in_prose_is_what_a_cell_fills_in(keys: bool):
    chosen = random.Random(5)
    texts = ["".join(chosen.choices(PIECES, k=chosen.randint(1, 8))) for _ in range(2000)]
    script = (
        "argument.texts.map((text) => lines.placeholders(text, argument).map(({from, to}) => text.slice(from, to)))"
    )

    marked = ask(script, {"texts": texts, "keys": keys})

    variables = Variables(lambda: Anything("anything"))
    filled = [[piece.source for piece in parse(text, variables, keys=keys).pieces if piece.source] for text in texts]
    assert dict(zip(texts, marked, strict=True)) == dict(zip(texts, filled, strict=True))
    assert sum(map(len, marked)) > 200


def test_nothing_is_wrong_in_the_examples_of_the_help():
    examples = [example for grammar in grammars().values() for example in grammar.examples]

    cells = ask("argument.map((cell) => cell.split('\\n').flatMap(cells.magicTokens))", examples)

    assert not [token for tokens in cells for token in tokens if "problem" in token]
    assert sum(map(bool, cells)) > 50


def test_an_option_is_wrong_in_the_editor_if_its_line_is_refused():
    lines = [f"a {option}" for option in ("--root", "--nope", "-m x", "-x", "--mode chat", "--mode odd", "--raw")]

    wrong = ask("argument.map((line) => cells.magicTokens('%%agent ' + line).some(({ problem }) => problem))", lines)

    assert wrong == [is_refused(line) for line in lines]
    assert set(wrong) == {True, False}


def test_the_site_colours_the_line_of_a_magic_as_the_editor_does():
    kinds = {Name.Attribute: "option", Name.Function: "definition", Comment: "comment", Error: "wrong"}
    tutorials = [json.loads(path.read_text()) for path in sorted(ROOT.glob("notebooks/*.ipynb"))]
    code = [cell["source"] for tutorial in tutorials for cell in tutorial["cells"] if cell["cell_type"] == "code"]
    typed = [line for source in code for line in "".join(source).splitlines() if "%" in line]
    typed += [example.splitlines()[0] for grammar in grammars().values() for example in grammar.examples]

    editor = {
        line: [(token["type"], line[token["from"] : token["to"]]) for token in tokens]
        for line, tokens in zip(typed, ask("argument.map(cells.magicTokens)", typed), strict=True)
        if tokens
    }

    assert len(editor) > 250
    lexer = late("docs.cells_lexer").CellLexer()
    for line, tokens in editor.items():
        on_site = [(kinds[token], text) for token, text in lexer.get_tokens(line) if token in kinds]
        assert on_site == [token for token in tokens if token[0] in kinds.values()], line


def is_refused(line: str) -> bool:
    try:
        grammars()["agent"].parse(line, "Hi.")
    except InputError:
        return True
    return False
