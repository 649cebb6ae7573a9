"""The last words of each member of a team or a workflow, beside the answer, for a run that is folded."""

from collections.abc import Sequence

from adk_nb.events.event import Event
from adk_nb.notebook.view.event_words import who_said
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.view_state import Json
from adk_nb.notebook.view.writers.elements import words_of
from adk_nb.notebook.view.writers.markdown_html import to_html
from adk_nb.runtime.branches import calls_to

MAX_MEMBERS = 8
_LONGEST = 300


def last_words(events: Sequence[Event], answered_by: str, answer: str) -> list[Json]:
    """`{"who", "text"}` of each agent that spoke besides the one that answered, in the order of their last words.

    Args:
        events: Of the turn. What was said for a call is a result of that call, and is left out.
        answered_by: Who gave the answer.
        answer: Its words, which are not repeated.
    """
    said: dict[str, str] = {}
    for event in events:
        who = who_said(event)
        called = calls_to(event.branch, event.node_info.path)
        if event.author == "user" or event.partial or called or not event.text.strip():
            continue
        said.pop(who, None)
        said[who] = event.text
    if said.pop(answered_by, None) is None:  # a workflow hands on the words of its last agent
        equal = [who for who, text in said.items() if text.strip() == answer.strip()]
        said = {who: text for who, text in said.items() if who not in equal[-1:]}
    members = list(said.items())
    shown = [
        {"who": one_line(who, 100), "text": one_line(words_of(to_html(text[: 4 * _LONGEST])), _LONGEST)}
        for who, text in members[-MAX_MEMBERS:]
    ]
    left = len(members) - len(shown)
    return [*([{"who": "", "text": f"{left} more agents, in the events"}] if left else []), *shown]
