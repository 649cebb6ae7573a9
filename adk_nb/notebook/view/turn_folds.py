"""The folds of a finished turn in a notebook's file: the order of its calls, and its prompts; nothing measured."""

import re
from collections.abc import Sequence

from adk_nb.events.event import Event
from adk_nb.notebook.view import prompt_words
from adk_nb.notebook.view.panels import waterfall
from adk_nb.notebook.view.panels.waterfall import Bar, bars
from adk_nb.notebook.view.writers.elements import Html, code, element
from adk_nb.runtime.trace import Trace

_PORT = re.compile(r"(?<=\b127\.0\.0\.1):\d+|(?<=\blocalhost):\d+")
"""Of a server on this machine: another one in each run."""
_BARS = 40
_PROMPTS = 6


def turn_folds(events: Sequence[Event], trace: Trace) -> Html:
    """At most some kilobytes, the same in every run of one notebook; it says how much is left out."""
    found = waterfall.in_steps(bars(events, trace))
    for bar in found:
        bar["name"] = _PORT.sub("", bar["name"])
    return Html("\n".join(filter(None, (_order(found), _prompts(found, trace)))))


def _order(found: list[Bar]) -> str:
    if sum(bar["kind"] != "agent" for bar in found) < 2:
        return ""
    return _fold("order of calls", waterfall.steps_as_text(found[:_BARS]), len(found) - _BARS)


def _prompts(found: list[Bar], trace: Trace) -> str:
    by_event = {sent.event_id: sent for sent in trace.requests}
    sent = [by_event[bar["event"]] for bar in found if bar["kind"] == "model" and bar["event"] in by_event]
    if not sent:
        return ""
    count = f"{len(sent)} prompts" if len(sent) > 1 else "1 prompt"
    return _fold(f"{count}, shortened", prompt_words.in_short(sent[:_PROMPTS], trace), len(sent) - _PROMPTS)


def _fold(summary: str, lines: list[str], more: int) -> str:
    rest = [f"… {more} more"] if more > 0 else []
    text = _PORT.sub("", "\n".join([*lines, *rest]))
    return element("details", element("summary", summary), element("pre", element("code", code(text))))
