"""Interrupted runs, as a kernel that dies leaves them: find them in a session, drop them, and say how to resume."""

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.open_calls import close_interrupted_run
from adk_nb.runtime.run_config import ResumabilityConfig
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.sessions.journal import Journal, Run, this_process
from adk_nb.sessions.session import Session

_RESUMABLE = ResumabilityConfig(is_resumable=True)
_MAX_MESSAGE = 60
"""Characters of the message that a run answers."""


async def interrupted_runs(service: BaseSessionService, session: Session | None) -> list[Run]:
    """The runs of a session that did not end and that no process works on, oldest first."""
    if session is None or not isinstance(service, Journal):
        return []
    dead = [run for run in await service.unfinished(session) if not run.is_alive]
    return [run for run in dead if history_of(session).first_index(run.id) is not None]


async def active_run(service: BaseSessionService, session: Session | None) -> Run | None:
    """The run of a session that this process or another one works on. None: there is none."""
    if session is None or not isinstance(service, Journal):
        return None
    return next((run for run in await service.unfinished(session) if run.is_alive), None)


async def drop(service: BaseSessionService, session: Session, run: Run) -> None:
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
    """The setting that lets workflow agents write checkpoints; None for LLM agents alone, which resume without."""
    return None if _has_only_llm_agents(agent) else _RESUMABLE


def _has_only_llm_agents(agent: BaseAgent) -> bool:
    return isinstance(agent, LlmAgent) and all(map(_has_only_llm_agents, agent.members))


def interrupted_notice(run: Run, session: Session, magic: str) -> str:
    """A notice of an interrupted run, with what to type to resume it or to give it up."""
    first = history_of(session).run(run.id)[0]
    answers = f" that answers {one_line(first.text, _MAX_MESSAGE)!r}" if first.author == "user" and first.text else ""
    resume, drop = resume_commands(magic)
    return (
        f"the run{answers} in session {session.id!r} was interrupted; resume it with {resume}, or give it up with "
        f"{drop}"
    )


def short_interrupted_notice(magic: str) -> str:
    """The notice for places that name the session already."""
    resume, drop = resume_commands(magic)
    return f"a run was interrupted: {resume}, or {drop}"


def edited_notice(agent: str, magic: str) -> str:
    """The notice that an agent or a tool changed since a run was interrupted, with the choices."""
    resume, drop = resume_commands(magic)
    resume_edited = f"{resume} --edited" if magic else "chat.resume(edited=True)"
    return (
        f"{agent} or a tool of it was edited since this run was interrupted; resume it as it is now with "
        f"{resume_edited}, or give it up with {drop}"
    )


def resume_commands(magic: str) -> tuple[str, str]:
    """The lines to type to resume a run and to drop it.

    Args:
        magic: The `%confirm` line of the session, whose options name it; empty for a chat that only Python code
            reaches.
    """
    if not magic:
        return "chat.resume()", "chat.drop()"
    options = magic.removeprefix("%confirm")
    return f"%session resume{options}", f"%session drop{options}"
