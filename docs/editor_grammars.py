"""What the highlighting of editors takes from the grammars of the magics: names for JupyterLab, rules for VS Code."""

import json
from collections.abc import Iterable
from typing import Any

from adk_nb.notebook.magics import catalog
from adk_nb.notebook.magics.grammar import Grammar, Option

Rule = dict[str, Any]


def magics_json() -> str:
    """Return the magics and their options as JSON, a line each, for the extension of JupyterLab."""
    lines = [f"  {json.dumps(name)}: {json.dumps(_magic(grammar))}" for name, grammar in catalog.grammars().items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _magic(grammar: Grammar) -> dict[str, Any]:
    options = {token: _option(option) for option in grammar.all_options for token in option.spellings}
    return {"body": grammar.body, "text": grammar.takes_text, "options": options}


def _option(option: Option) -> dict[str, Any]:
    """Whether the next word is its value, the kind of names it takes, and its only values."""
    choices = [*option.choices, *filter(None, [option.default])]
    facts = {"value": option.needs_value, "names": option.names, "choices": choices}
    return {name: fact for name, fact in facts.items() if fact}


# ---- VS Code: https://macromates.com/manual/en/language_grammars

_TARGET = r"^\s*(?:[^\s=%()#][^=%()#]*(=)\s*)?"
"""The beginning of `answer = %chat ...`, which may be left out."""
_TEAM = r"(?=\s.*--kind[\s=]+(?!llm\b)\w)"
_SCOPE = "adk-nb.cells"
_NEVER = "(?!)"
_MAGIC, _OPERATOR, _NAME = "keyword.control.magic.adk-nb", "keyword.operator.adk-nb", "entity.name.function.adk-nb"
# Embedded: brackets of Python are coloured in pairs.
_MESSAGE = "meta.message.adk-nb meta.embedded.block.markdown"
_STRING = {"match": r""" "(?:[^"\\]|\\.)*"?|'[^']*'? """.strip(), "name": "string.quoted.adk-nb"}
_COMMENT = {"match": r"(?<![^\s])#.*$", "name": "comment.line.number-sign.adk-nb"}
_ARROW = {"match": r"-\[|\]->|->|→", "name": _OPERATOR}
_ROUTES = {"match": r"(?<=-\[)[^\]]*(?=\]->)", "name": "string.unquoted.route.adk-nb"}
_END = {"match": r"\b(?:START|END)\b", "name": "constant.language.adk-nb"}
_UNTIL = {
    "begin": r"^\s*(until)\s*(:)",
    "beginCaptures": {"1": {"name": "keyword.control.adk-nb"}, "2": {"name": _OPERATOR}},
    "end": "$",
    "patterns": [{"include": "source.python"}],
}
_ROW = [
    {"match": r"(?<!\\)\|", "name": "punctuation.separator.adk-nb"},
    {"match": r"(?<=\|)\s*:?-+:?\s*(?=\||$)", "name": "punctuation.separator.adk-nb"},
]
_HEADING = {"begin": r"\G", "end": "$", "name": "markup.heading.adk-nb", "patterns": _ROW}
_CASES = [{"begin": r"^(?=\s*\|)", "end": _NEVER, "patterns": [_HEADING, *_ROW]}, {"include": "source.yaml"}]
_MARKDOWN = [{"include": "text.html.markdown#block"}]
_BODIES: dict[str, tuple[str, list[Rule]]] = {
    "prose": ("meta.prose.adk-nb meta.embedded.block.markdown", _MARKDOWN),
    "message": (_MESSAGE, _MARKDOWN),
    "edges": ("meta.edges.adk-nb", [_COMMENT, _ROUTES, _ARROW, _END]),
    "team": ("meta.edges.adk-nb", [_COMMENT, _UNTIL, _ARROW]),
    "table": ("meta.cases.adk-nb", _CASES),
}
"""The kind of a body -> its scopes and rules."""
_FRONT_MATTER = {
    "begin": r"^---\s*$",
    "end": r"^---\s*$",
    "captures": {"0": {"name": "punctuation.definition.front-matter.adk-nb"}},
    "contentName": "meta.embedded.block.yaml",
    "patterns": [{"include": "source.yaml"}],
}


def cells_tmlanguage() -> str:
    """Return the grammar that VS Code injects into Python: cells and lines of magics."""
    grammars = catalog.grammars()
    cells = [_cell(grammar, "message" if grammar.takes_text else grammar.body) for grammar in grammars.values()]
    content = {
        "scopeName": _SCOPE,
        "injectionSelector": "L:source.python -string -comment -meta.body.adk-nb",
        "patterns": [_cell(grammars["agent"], "team"), *cells, *map(_line_magic, grammars.values())],
        "repository": {f"line-{name}": {"patterns": _options(grammar)} for name, grammar in grammars.items()},
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _cell(grammar: Grammar, body: str) -> Rule:
    """A cell whose first line has the magic; `python` and an empty body leave the lines below it to Python."""
    # \A: a cell is a document of its own.
    begin = rf"\A\s*(%%{grammar.name})(?=\s|$|\?)" + _TEAM * (body == "team")
    line = {"begin": r"\G", "end": "$", "patterns": _line(grammar)}
    rule: Rule = {"begin": begin, "beginCaptures": {"1": {"name": _MAGIC}}}
    if body not in _BODIES:
        return {**rule, "end": "$", "patterns": line["patterns"]}
    scopes, patterns = _BODIES[body]
    matter = [_FRONT_MATTER] if body in ("prose", "edges", "team") else []
    below = {"begin": r"^(?=\s*\S)", "end": _NEVER, "name": scopes, "patterns": patterns}
    return {**rule, "end": _NEVER, "name": "meta.body.adk-nb", "patterns": [line, *matter, below]}


def _line_magic(grammar: Grammar) -> Rule:
    """A line among Python, with or without a variable for its result."""
    begin = rf"{_TARGET}(%{grammar.name})(?=[\s;?]|$)"
    captures: dict[str, Rule] = {"1": {"name": _OPERATOR}, "2": {"name": _MAGIC}}
    if not grammar.takes_text:
        return {"begin": begin, "beginCaptures": captures, "end": "$", "patterns": _line(grammar)}
    option = rf"(?:{_any(grammar, value=True)})(?:=|\s+)\S+|(?:{_any(grammar, value=False)})(?!\S)"
    begin += rf"((?:\s+(?:{option}))*)(\s+\w+(?:\s+(?:{option}))+)?"
    captures |= {group: {"patterns": _line(grammar)} for group in ("3", "4")}
    return {"begin": begin, "beginCaptures": captures, "end": "$", "contentName": _MESSAGE}


def _line(grammar: Grammar) -> list[Rule]:
    """What a line has behind its magic."""
    # By its full name: Objective-C in markdown includes `$base`, these rules, and `#` is then a name of its grammar.
    return [{"include": f"{_SCOPE}#line-{grammar.name}"}]


def _options(grammar: Grammar) -> list[Rule]:
    """Rules for the options of a line."""
    defines = [{"match": r"\G\s+\w+", "name": _NAME}] if grammar.body in ("prose", "edges") else []
    return [
        *defines,
        {"match": rf"(?<=\s)(?:{_any(grammar)})(?=[\s=]|$)", "name": "entity.other.attribute-name.adk-nb"},
        {"match": r"(?<=\s)--?[A-Za-z][\w-]*", "name": "invalid.illegal.unknown-option.adk-nb"},
        _STRING,
        *([] if grammar.takes_text else [_COMMENT]),
        {"match": "=|<<|;$", "name": _OPERATOR},
    ]


def _any(grammar: Grammar, *, value: bool | None = None) -> str:
    """The spellings of its options, the longest first; of those alone that need a value, or need none."""
    options = [option for option in grammar.all_options if value is None or option.needs_value is value]
    names: Iterable[str] = (token for option in options for token in option.spellings)
    return "|".join(sorted(names, key=len, reverse=True)) or "(?!)"
