"""Who a line of `%chat` is for: does its first word name an agent, misspell one, or is it text?"""

from collections.abc import Collection, Mapping, Sequence

from adk_nb.errors import AgentNotFoundError, InputError

_EVERYDAY = (
    "a about after again all also am an and any are as ask at be been before but by can could did do does each for from"
    " get give had has have he hello help her here hey hi him his how i if in into is it its just let like list make"
    " may me might more most my no not now of on one or other our out over please say see shall she should show so some"
    " such tell than thank that the their them then there these they this those to too two up us use very was we well"
    " were what when where which while who whom whose why will with would write yes yet you your"
)
_FUNCTION_WORDS = frozenset(_EVERYDAY.split())


def first_word_names(
    word: str, known: Sequence[str], removed: Collection[str] = (), held: Mapping[str, str] | None = None
) -> bool:
    """Whether `word` is one of the agents in `known`.

    Args:
        word: The first of a line.
        known: Agents.
        removed: Agents that are gone.
        held: Conversations and apps by their names -> how they are asked.

    Raises:
        InputError: It is one of `removed`, or of `held`.
        AgentNotFoundError: It is none, and so like one that it must be a slip.
    """
    if word in known:
        return True
    if word in removed:
        raise InputError(f"agent {word!r} was removed; define it again, or write `--` before your text")
    if held and word in held:
        raise InputError(f"{word!r} is no agent; write {held[word]}, or `--` before your text")
    if any(_is_slip(word, name) for name in known):
        hint = "if it is the beginning of your text, write `--` before it"
        raise AgentNotFoundError("agent", word, known, hint=hint)
    return False


def supposed_name(text: str, known: Sequence[str]) -> str:
    """The first word of a text that named no agent, if it may have been meant as the name of one; else empty.

    Where one agent alone is `known` a verb begins as many texts: then only `my_agent`, `agent2` and `agent What ...`
    look like names.
    """
    word, _, rest = text.partition(" ")
    rest = rest.lstrip()
    if not (rest and word.isidentifier()) or word.lower() in _FUNCTION_WORDS:
        return ""
    if all(word[:1].isupper() != name[:1].isupper() for name in known):
        return ""
    is_likely = "_" in word or not word.isalpha() or rest[:1].isupper()
    return word if is_likely or len(known) > 1 else ""


def _is_slip(word: str, name: str) -> bool:
    """At most two letters off, less in a short name; the first in the same case; no word of everyday English."""
    if word.lower() in _FUNCTION_WORDS or word[:1].isupper() != name[:1].isupper():
        return False
    return _distance(word, name) <= min(2, (len(name) - 1) // 2)


def _distance(left: str, right: str) -> int:
    """Letters to add, drop, change or swap with their neighbour (optimal string alignment)."""
    before: list[int] = []
    last = list(range(len(right) + 1))
    for row, one in enumerate(left, 1):
        now = [row]
        for column, other in enumerate(right, 1):
            cost = min(last[column] + 1, now[-1] + 1, last[column - 1] + (one != other))
            if row > 1 < column and one == right[column - 2] and left[row - 2] == other:
                cost = min(cost, before[column - 2] + 1)
            now.append(cost)
        before, last = last, now
    return last[-1]
