"""The cards of the approvals of an evaluation or a table: one for each tool, which answers all calls of it."""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import UserError
from adk_nb.evaluation.row_runs import approval_label
from adk_nb.events.event import Event
from adk_nb.notebook.place import Mode
from adk_nb.notebook.view.display import show_run
from adk_nb.notebook.view.document import Text, document
from adk_nb.notebook.view.evaluation_tables import approval_lines
from adk_nb.notebook.view.interrupt_text import Verdict
from adk_nb.notebook.view.run_view import Clicks, RunView
from adk_nb.notebook.view.writers import bundle
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.sessions.session import Session

Decide = Callable[[str, bool], Awaitable[None]]
"""Answers all open approvals of a tool: `(tool, is_approved)`."""


class ApprovalCards:
    """The cards of one evaluation or table, one for each tool.

    Args:
        view: Displays them.
        tools: Id of a card -> its tool.
    """

    def __init__(self, view: RunView, tools: Mapping[str, str]) -> None:
        self._view, self._tools, self._open = view, tools, set(tools)

    def answered(self, is_approved: bool, tool: str | None = None, place: str = "") -> None:
        """Show the answer on the card of a tool, or on all that are open.

        Args:
            is_approved: The answer.
            tool: None: all tools.
            place: Where it was typed, as `in [8]`; empty: it was clicked.
        """
        keys = {key for key in self._open if tool in (None, self._tools[key])}
        if not keys:
            return
        self._open -= keys
        verdict = Verdict("approved" if is_approved else "rejected", place=place, is_click=not place)
        self._view.answered_elsewhere(dict.fromkeys(keys, verdict), last=not self._open)
        if not self._open:
            self._view.close()


async def show_approvals(
    counts: Counter[str],
    runs: AsyncGenerator[Sequence[Event], None],
    agent: BaseAgent,
    mode: Mode,
    decide: Decide,
    magic: str,
) -> ApprovalCards | None:
    """Show a card for each tool, with its first call and the number of others; nothing where no page can click.

    Args:
        counts: Tool -> the number of its pending calls.
        runs: The events of the pending runs.
        agent: Their agent.
        mode: The notebook's setting `display`.
        decide: Called with the tool and the answer when a card is clicked.
        magic: Answers in a cell, followed by `approve` and the tool.

    Returns:
        The cards; None where no page can click.
    """
    view = show_run(agent, None, None, _no_edits, mode)
    if not view.is_live:
        return None
    events, cards = await _first_calls(runs, set(counts))
    view.open_interrupts = lambda: list(cards)
    session = Session(id="approvals", app_name="approvals", user_id="user", events=events)
    texts = bundle(document(*map(Text, approval_lines(counts, magic))))
    tools = {card.id: approval_label(card) for card in cards}
    shown = ApprovalCards(view, tools)
    view.show_open_cards(set(tools), session, _clicks(view, shown, tools, decide), texts)
    for card in cards:
        tool = tools[card.id]
        others = counts[tool] - 1
        note = f"applies to {others} more {'call' if others == 1 else 'calls'} of {tool}, too" if others else ""
        view.patch_card(card.id, {"note": note, "how": f"{magic} approve {tool}"})
    return shown


def _no_edits(interrupt: Interrupt) -> None:
    """Return no schema of arguments, so that they cannot be edited: the answer is for many calls."""


async def _first_calls(
    runs: AsyncGenerator[Sequence[Event], None], tools: set[str]
) -> tuple[list[Event], list[Interrupt]]:
    """The events of the first pending run of each tool, and the approvals in them."""
    events, cards = list[Event](), list[Interrupt]()
    async with aclosing(runs):
        async for run in runs:
            approvals = {approval_label(one): one for one in open_interrupts(run) if one.is_approval}
            if first := approvals.keys() & tools:
                events += run
                cards += [approval for label, approval in approvals.items() if label in first]
                tools -= first
            if not tools:
                break
    return events, cards


def _clicks(view: RunView, shown: ApprovalCards, tools: Mapping[str, str], decide: Decide) -> Clicks:
    async def answer(key: str, is_approved: bool) -> None:
        try:
            await decide(tools[key], is_approved)
        except UserError as error:
            view.reopen_card(key, str(error))
            return
        shown.answered(is_approved, tools[key])

    def answered(key: str, value: Any, /, *, as_asked: bool = False) -> None:
        decision = cast(dict[str, Any], value) if isinstance(value, dict) else {"confirmed": value}
        if decision.get("args"):
            view.reopen_card(key, "arguments can be edited for one call only; approve or reject all calls as they are")
        else:
            view.resume_in_cell(lambda: answer(key, bool(decision.get("confirmed"))))

    return Clicks(stop=lambda: None, answered=answered)
