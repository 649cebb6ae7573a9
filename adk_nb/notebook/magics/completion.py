"""Tab in the lines and cells of our magics: options, and the names that belong behind each."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from IPython.core.completer import CompletionContext, SimpleCompletion

from adk_nb.notebook.magics.arguments import Grammar, Option
from adk_nb.notebook.magics.grammar import GRAMMARS

_ID = "adk_nb"
_NAMES = "|".join(GRAMMARS)
_CELL = re.compile(rf"\s*%%({_NAMES})(?:\s|$)")
_LINE = re.compile(rf"(?:^|=)\s*%({_NAMES})\s(.*)$", re.DOTALL)
_VARIABLE = re.compile(r"(?<!\{)\{\{(\w*)$")
_STATE_KEY = re.compile(r"(?<![{$])\{((?:\w+:)?\w*)$")
_NODE = re.compile(r"(?:^|[>(,→])\s*(\w*)$")
_TEAM = re.compile(r"--kind[\s=]+(?!llm\b)\w")
_NAMED = {"workflow": "node", "team": "agent"}
"""Magic -> what its body names."""
_TYPES = {"always|never": "value"}


class Knows(Protocol):
    """Who can say what names there are: of agents, tools, models, sessions, state, functions, variables, approvals,
    nodes.
    """

    def names(self, kind: str, /) -> Iterable[str]: ...


def install(shell: Any, knows: Knows) -> None:
    """Complete in `shell`."""
    completer = getattr(shell, "Completer", None)
    if completer is not None:
        completer.custom_matchers.append(_matcher(knows))


def remove(shell: Any) -> None:
    """Undo `install`."""
    completer = getattr(shell, "Completer", None)
    if completer is not None:
        kept = [one for one in completer.custom_matchers if getattr(one, "matcher_identifier", "") != _ID]
        completer.custom_matchers[:] = kept


def _matcher(knows: Knows) -> Callable[[CompletionContext], Any]:
    def adk_nb_matcher(context: CompletionContext) -> Any:
        found = candidates(context.full_text, context.cursor_line, context.text_until_cursor, knows)
        if found is None:
            return {"completions": [], "suppress": False}
        fragment, names, kind = found
        fitting = [SimpleCompletion(text=one, type=kind) for one in names if one.startswith(fragment)]
        return {"completions": fitting, "suppress": True, "matched_fragment": fragment, "ordered": True}

    # What IPython's own (untyped) decorator context_matcher would set.
    marked: Any = adk_nb_matcher
    marked.matcher_api_version, marked.matcher_identifier, marked.matcher_priority = 2, _ID, 200
    return adk_nb_matcher


def candidates(cell: str, line: int, before: str, knows: Knows) -> tuple[str, list[str], str] | None:
    """What could stand at the cursor.

    Args:
        cell: All of it.
        line: The cursor's, from 0.
        before: That line up to the cursor.
        knows: Who knows the names.

    Returns:
        What is typed of it so far, the names, and what kind they are; None if this is not ours to complete.
    """
    first = next((at for at, one in enumerate(cell.split("\n")) if one.strip()), 0)
    of_cell = _CELL.match(cell.split("\n")[first])
    if of_cell and line > first:
        is_team = of_cell[1] == "agent" and _TEAM.search(cell.split("\n")[first])
        return _in_body("team" if is_team else of_cell[1], before, knows)
    if of_cell and line == first and len(before) > of_cell.end(1):
        return _on_line(GRAMMARS[of_cell[1]], before[of_cell.end(1) :], knows)
    if not of_cell and (of_line := _LINE.search(before)):
        return _on_line(GRAMMARS[of_line[1]], of_line[2], knows)
    return None


def _in_body(magic: str, before: str, knows: Knows) -> tuple[str, list[str], str] | None:
    if magic in ("agent", "chat") and (found := _VARIABLE.search(before)):
        return found[1], list(knows.names("variable")), "variable"
    if magic in _NAMED and (found := _NODE.search(before)):
        return found[1], list(knows.names(_NAMED[magic])), _NAMED[magic]
    if magic == "agent" and (found := _STATE_KEY.search(before)):
        return found[1], [*knows.names("state"), "user:", "app:", "temp:", "artifact."], "state"
    return None


def _on_line(grammar: Grammar, typed: str, knows: Knows) -> tuple[str, list[str], str] | None:
    words = typed.split()
    fragment = "" if not words or typed[-1].isspace() else words.pop()
    option = grammar.option(words[-1]) if words and words[-1].startswith("-") else None
    if option and option.value and not option.bare and "=" not in words[-1]:
        return _value(option, fragment, knows)
    if fragment.startswith("--") and "=" in fragment and (option := grammar.option(fragment)):
        return _value(option, fragment.partition("=")[2], knows)
    if fragment.startswith("-"):
        return fragment, _options(grammar, words), "option"
    return _word(grammar, words, fragment, knows)


def _options(grammar: Grammar, words: list[str]) -> list[str]:
    given = {id(grammar.option(word)) for word in words}
    return [f"--{one.name}" for one in grammar.options if one.many or id(one) not in given]


def _word(grammar: Grammar, words: list[str], fragment: str, knows: Knows) -> tuple[str, list[str], str] | None:
    plain = _plain(grammar, words)
    places = grammar.words
    if not places or (len(plain) >= len(places) and not places[-1].many):
        return None
    kind = places[min(len(plain), len(places) - 1)].names
    if "=" in kind:  # by the word before
        kind = dict(one.split("=") for one in kind.split("|")).get(plain[-1], "")
    if "|" in kind:
        return fragment, kind.split("|"), "value"
    return (fragment, list(knows.names(kind)), kind) if kind else None


def _plain(grammar: Grammar, words: list[str]) -> list[str]:
    """The words that are neither options nor their values."""
    found: list[str] = []
    is_value = False
    for word in words:
        option = grammar.option(word) if word.startswith("-") else None
        if not is_value and not word.startswith("-"):
            found.append(word)
        is_value = bool(option and option.value and option.bare is None and "=" not in word)
    return found


def _value(option: Option, typed: str, knows: Knows) -> tuple[str, list[str], str] | None:
    if not option.names:
        return None
    if "|" in option.names:
        return typed, option.names.split("|"), _TYPES.get(option.names, "value")
    if option.names == "field":
        return typed, [f"{one}=" for one in knows.names("field")], "field"
    if option.convert is str:
        return typed, list(knows.names(option.names)), option.names
    *named, fragment = typed.split(",")
    return fragment, [one for one in knows.names(option.names) if one not in named], option.names
