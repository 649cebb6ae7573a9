"""Runs that were cut, by a kernel that died: found when their session is used again, gone on with, or left."""

from collections.abc import Sequence

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.events.event import Event
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.open_calls import close_interrupted_run
from adk_nb.runtime.run_config import ResumabilityConfig
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.journal import Journal, Run, this_process
from adk_nb.sessions.session import Session

_RESUMABLE = ResumabilityConfig(is_resumable=True)
_ASKED = 60
"""Characters of the message that a run answers."""


async def interrupted_runs(service: BaseSessionService, session: Session | None) -> list[Run]:
    """The runs of a session that did not end, and that nobody works on any more; oldest first."""
    if session is None or not isinstance(service, Journal):
        return []
    left = [run for run in await service.unfinished(session) if not run.is_alive]
    return [run for run in left if history_of(session).began(run.id) is not None]


async def at_work(service: BaseSessionService, session: Session | None) -> Run | None:
    """The run of a session that someone works on, in this process or another; None: nobody does."""
    if session is None or not isinstance(service, Journal):
        return None
    return next((run for run in await service.unfinished(session) if run.is_alive), None)


async def leave(service: BaseSessionService, session: Session, run: Run) -> None:
    """Close an interrupted run without resuming it; open calls get the results that are known.

    Raises:
        SessionBusyError: Another run works on the session.
    """
    if not isinstance(service, Journal):
        return
    lease = await service.claim(session, run.id, owner=this_process())
    outcome = None
    try:
        nobody = BaseAgent(name="nobody")
        at = InvocationContext(agent=nobody, session=session, session_service=service)
        await close_interrupted_run(at, run.id)
        outcome = "cancelled"
    finally:
        await lease.release(outcome)


def resumability(agent: BaseAgent) -> ResumabilityConfig | None:
    """Let agents that run others write checkpoints, so that a run can be resumed. None: only models work here, and
    their runs are resumed without.
    """
    return None if _is_of_models(agent) else _RESUMABLE


def _is_of_models(agent: BaseAgent) -> bool:
    return isinstance(agent, LlmAgent) and all(map(_is_of_models, agent.members))


def interrupted_notice(run: Run, events: Sequence[Event], session: str, ways: tuple[str, str]) -> str:
    """A notice of an interrupted run, with what to type to resume it or to give it up."""
    first = next(event for event in events if event.invocation_id == run.id)
    answers = f" that answers {one_line(first.text, _ASKED)!r}" if first.author == "user" and first.text else ""
    go_on, stop = ways
    return f"the run{answers} in session {session!r} was interrupted; resume it with {go_on}, or give it up with {stop}"


def short_interrupted_notice(magic: str) -> str:
    """The short notice, where the session is known."""
    go_on, stop = ways(magic)
    return f"a run was interrupted: {go_on}, or {stop}"


def edited_notice(agent: str, magic: str) -> str:
    """The notice that an agent or a tool changed since a run was interrupted, with the choices."""
    go_on, stop = ways(magic)
    anyway = f"{go_on} --edited" if magic else "chat.resume(edited=True)"
    return (
        f"{agent} or a tool of it was edited since this run was interrupted; resume it as it is now with {anyway}, "
        f"or give it up with {stop}"
    )


def ways(magic: str) -> tuple[str, str]:
    """Return what to type to resume, and to give up. `magic`: the `%confirm` of the session; empty in Python alone."""
    if not magic:
        return "chat.resume()", "chat.drop()"
    where = magic.removeprefix("%confirm")
    return f"%session resume{where}", f"%session drop{where}"
