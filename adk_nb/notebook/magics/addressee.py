"""The agent that a line of `%chat` is for: its first word may be the name of one, a misspelt name, or text."""

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
    first: str, agents: Sequence[str], removed: Collection[str] = (), conversations: Mapping[str, str] | None = None
) -> bool:
    """Return True if the first word of a line is an agent's name.

    Args:
        first: The word.
        agents: Names.
        removed: Agents that are gone.
        conversations: Chats and apps by their names -> how to use them.

    Raises:
        InputError: It is one of `removed`, or of `conversations`.
        AgentNotFoundError: It is none, and so like one that it must be a slip.
    """
    if first in agents:
        return True
    if first in removed:
        raise InputError(f"agent {first!r} was removed; define it again, or write `--` before your text")
    if conversations and first in conversations:
        raise InputError(f"{first!r} is no agent; write {conversations[first]}, or `--` before your text")
    if any(_is_slip(first, name) for name in agents):
        hint = "if it is the beginning of your text, write `--` before it"
        raise AgentNotFoundError("agent", first, agents, hint=hint)
    return False


def supposed_name(text: str, agents: Sequence[str]) -> str:
    """Return the first word of a text that named no agent, if it may be meant as the name of one; else "".

    Where there is one agent alone a verb begins as many texts: then only `my_agent`, `agent2` and `agent What ...`
    look like names.
    """
    first, _, rest = text.partition(" ")
    rest = rest.lstrip()
    if not (rest and first.isidentifier()) or first.lower() in _FUNCTION_WORDS:
        return ""
    if all(first[:1].isupper() != name[:1].isupper() for name in agents):
        return ""
    is_likely = "_" in first or not first.isalpha() or rest[:1].isupper()
    return first if is_likely or len(agents) > 1 else ""


def _is_slip(first: str, name: str) -> bool:
    """At most two letters off, less in a short name; the first in the same case; no word of everyday English."""
    if first.lower() in _FUNCTION_WORDS or first[:1].isupper() != name[:1].isupper():
        return False
    return _distance(first, name) <= min(2, (len(name) - 1) // 2)


def _distance(left: str, right: str) -> int:
    """Letters to add, drop, change or swap with their neighbour (optimal string alignment)."""
    rows = [list(range(len(right) + 1))]
    for i, a in enumerate(left, 1):
        rows.append([i])
        for j, b in enumerate(right, 1):
            cost = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a != b))
            if i > 1 < j and a == right[j - 2] and left[i - 2] == b:
                cost = min(cost, rows[i - 2][j - 2] + 1)
            rows[i].append(cost)
    return rows[-1][-1]
