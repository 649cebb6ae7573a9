"""A conversation in the forms that a saved notebook keeps: questions, answers, calls and approvals."""

from collections.abc import Sequence
from typing import Protocol

from adk_nb.events.event import Event
from adk_nb.notebook.view.event_words import question_text
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.notebook.view.render import Bundle, ShownReply, bundle, heading
from adk_nb.notebook.view.writers.elements import Html, element
from adk_nb.notebook.view.writers.markdown import markdown_cell

_QUESTION = 2_000
"""Characters of a question that are kept."""


class ShownTurn(ShownReply, Protocol):
    """A reply, and what was asked."""

    @property
    def question(self) -> str | None:
        """None: the turn answers what was asked outside this conversation."""
        ...

    @property
    def history(self) -> list[Event]:
        """As `bundle` takes it."""
        ...


def said_so_far(turns: Sequence[ShownTurn]) -> Bundle:
    """A conversation, oldest turn first; empty forms while nothing was said."""
    forms = [(_question(turn), heading(turn), bundle(turn, history=turn.history)) for turn in turns]
    plain = [(f"you > {asked}\n" if asked else "") + form["text/plain"] for asked, _, form in forms]
    markdown = [
        (f"**you:** {markdown_cell(asked)}\n\n" if asked else "")
        + f"**{markdown_cell(who)}:**\n\n{form['text/markdown']}"
        for asked, who, form in forms
    ]
    html = [
        element(
            "section",
            *([element("p", element("strong", "you:"), " " + asked)] if asked else []),
            element("p", element("strong", f"{who}:")),
            Html(form["text/html"]),
        )
        for asked, who, form in forms
    ]
    return {
        "text/plain": "\n\n".join(plain),
        "text/markdown": "\n\n".join(markdown),
        "text/html": "\n".join(html),
    }


def _question(turn: ShownTurn) -> str:
    return one_line(question_text(turn.question, turn.events), _QUESTION)
