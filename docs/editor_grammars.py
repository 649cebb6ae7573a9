"""What the highlighting of editors takes from the grammars of the magics."""

import json
from typing import Any

from adk_nb.notebook.magics import catalog
from adk_nb.notebook.magics.grammar import Grammar, Option


def magics_json() -> str:
    """Return the magics and their options as JSON, a line each, for the extension of JupyterLab."""
    lines = [f"  {json.dumps(name)}: {json.dumps(_magic(grammar))}" for name, grammar in catalog.grammars().items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _magic(grammar: Grammar) -> dict[str, Any]:
    options = {token: _option(option) for option in grammar.options for token in option.spellings}
    return {"body": grammar.body, "text": grammar.takes_text, "options": options}


def _option(option: Option) -> dict[str, Any]:
    """Whether the next word is its value, the kind of names it takes, and its only values."""
    choices = [*option.choices, *filter(None, [option.default])]
    facts = {"value": option.needs_value, "names": option.names, "choices": choices}
    return {name: fact for name, fact in facts.items() if fact}
