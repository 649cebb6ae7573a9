"""Show a stored run as if it had just ended: its log, its state and all panels."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.events.event import Event
from adk_nb.notebook.chat.desk import schema_of
from adk_nb.notebook.chat.reply import Reply
from adk_nb.notebook.place import Mode
from adk_nb.notebook.view.answers import answer_in, turn_outcome
from adk_nb.notebook.view.display import show_run
from adk_nb.notebook.view.reply_view import ReplyView
from adk_nb.notebook.view.run_view import Clicks, TurnInfo
from adk_nb.runtime.history import open_interrupts
from adk_nb.sessions.session import Session


async def show_stored_run(
    agent: BaseAgent,
    question: str,
    events: Sequence[Event],
    start_state: Mapping[str, Any],
    mode: Mode,
    *,
    how_to_answer: str,
) -> Reply:
    """Show the events of a run; nothing of it runs again, and it cannot be answered here.

    Args:
        agent: The agent that ran.
        question: The first message of the user.
        events: All events of the session, oldest first.
        start_state: The state that the session began with.
        mode: As of the notebook's setting `display`.
        how_to_answer: The line that answers its open interrupts.
    """
    view = show_run(agent, question, None, partial(schema_of, agent), mode)
    session = Session(id="stored", app_name="stored", user_id="user", state=dict(start_state))

    def refuse(key: str, value: Any, /, *, as_asked: bool = False) -> None:
        view.reopen_card(key, f"not here; type {how_to_answer}")

    view.begin(session, Clicks(stop=lambda: None, answered=refuse), TurnInfo())
    for event in events:
        view.event(event)
    open_ = open_interrupts(events)
    status, error = turn_outcome(events, "pending" if open_ else "done", None)
    text, answered_by = answer_in(events)
    reply_view = ReplyView(
        question=question,
        shows_question=view.shows_question,
        agent=agent.name,
        events=list(events),
        text=text,
        answered_by=answered_by,
        team=agent,
        status=status,
        interrupts=open_,
        error=error,
        trace=view.trace,
        notices=view.notices,
        live=view.final_view_id,
        is_displayed=view.shows_reply,
    )
    with view.end_lock():
        view.end(reply_view)
        for interrupt in open_:
            view.patch_card(interrupt.id, {"how": how_to_answer})
        if not open_:
            view.close()
    return Reply(reply_view)
