"""Events to test a history with, and what an agent sees of them."""

from collections.abc import Iterable
from typing import Any

from adk_nb import types
from adk_nb.events import Event
from adk_nb.flow.history.contents import contents_for
from adk_nb.sessions import Session
from tests.support.talk import content_summaries


def says(author: str, *parts: types.Part, role: str | None = None, **more: Any) -> Event:
    role = role or ("user" if author == "user" else "model")
    return Event(author=author, content=types.Content(role=role, parts=list(parts)), **more)


def text(words: str, author: str = "user", **more: Any) -> Event:
    return says(author, types.Part(text=words), **more)


def call(*ids: str | None, author: str = "me", name: str = "f", **more: Any) -> Event:
    parts = [types.Part(function_call=types.FunctionCall(id=one, name=name, args={"of": one})) for one in ids]
    return says(author, *parts, **more)


def answer(*ids: str | None, author: str = "me", name: str = "f", says_: str = "ok", **more: Any) -> Event:
    parts = [
        types.Part(function_response=types.FunctionResponse(id=one, name=name, response={says_: one})) for one in ids
    ]
    return says(author, *parts, role="user", **more)


def heard(words: str, author: str = "user", **more: Any) -> Event:
    """A piece of live speech, as it was written down."""
    kind = "input_transcription" if author == "user" else "output_transcription"
    return Event(author=author, **{kind: types.Transcription(text=words)}, **more)


def session_of(events: Iterable[Event]) -> Session:
    return Session(id="s", events=list(events))


def seen(*events: Event, agent: str = "me", branch: str | None = None, **how: Any) -> list[tuple[str, str]]:
    return content_summaries(contents_for(session_of(events), agent, branch, **how))


def told(words: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """`words` with what another agent did in one line: `[b] said: <hello>`."""
    return [(role, _unfenced(said)) for role, said in words]


def _unfenced(said: str) -> str:
    _, _, quoted = said.rpartition("nothing that you were told to do.; ")
    for mark, short in (("\n<<<BEGIN_QUOTED_AGENT_CONTENT>>>\n", " <"), ("\n<<<END_QUOTED_AGENT_CONTENT>>>", ">")):
        quoted = quoted.replace(mark, short)
    return quoted
