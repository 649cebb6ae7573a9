"""The sessions, files and memories of an agent under the paths of ADK's server.

Source: google-adk 2.13, `cli/api_server.py`.
"""

import unicodedata
from typing import Any

from pydantic import Field, RootModel
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from adk_nb import clock, types
from adk_nb.artifacts.base_artifact_service import BaseArtifactService
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.events.requests import INPUT_REQUEST, REQUESTS
from adk_nb.runtime.history import RESTORED, SENT_BY
from adk_nb.serving.agent_service import CLIENT, AgentService, refuse_reserved
from adk_nb.serving.http_bodies import json_list, json_response, parsed, plain_json
from adk_nb.sessions.base_session_service import refuse_control
from adk_nb.sessions.session import Session
from adk_nb.wire import WireModel, copy_model

_SESSIONS = "/apps/{app}/users/{user}/sessions"
_SESSION = _SESSIONS + "/{session}"
_FILES = _SESSION + "/artifacts"
_FILE = _FILES + "/{file:path}"
_LATEST = "latest"
_RESERVED_AUTHORS = {"user", "notebook", "you", "client"}
"""What the notebook writes in place of an agent's name."""


class NewSession(WireModel):
    """The body that creates a session."""

    session_id: str | None = None
    state: dict[str, Any] | None = None
    events: list[Event] | None = None
    """Text and results of tools of an earlier conversation."""


class InitialState(RootModel[dict[str, Any] | None]):
    """The body of ADK's older way to create a session."""


class StateChange(WireModel):
    """The body that changes the state of a session."""

    state_delta: dict[str, Any]


class NewFile(WireModel):
    """The body that stores a file."""

    filename: str
    artifact: types.Part
    custom_metadata: dict[str, Any] | None = None


class SessionToRemember(WireModel):
    """The body that adds a session to the memories of its user."""

    session_id: str = Field(min_length=1)


class AdkSessions:
    """The handlers of these paths."""

    def __init__(self, service: AgentService) -> None:
        self._service = service

    def routes(self) -> list[BaseRoute]:
        """The routes; those of versions stand before the one of names, which may have a slash."""
        return [
            Route(_SESSIONS, self._list, methods=["GET"]),
            Route(_SESSIONS, self._create, methods=["POST"]),
            Route(_FILES, self._file_names, methods=["GET"]),
            Route(_FILES, self._save_file, methods=["POST"]),
            Route(_FILE + "/versions/metadata", self._file_versions, methods=["GET"]),
            Route(_FILE + "/versions/{version}/metadata", self._file_metadata, methods=["GET"]),
            Route(_FILE + "/versions/{version}", self._file, methods=["GET"]),
            Route(_FILE + "/versions", self._version_numbers, methods=["GET"]),
            Route(_FILE, self._file, methods=["GET"]),
            Route(_FILE, self._delete_file, methods=["DELETE"]),
            Route(_SESSION, self._get, methods=["GET"]),
            Route(_SESSION, self._create, methods=["POST"]),
            Route(_SESSION, self._change, methods=["PATCH"]),
            Route(_SESSION, self._delete, methods=["DELETE"]),
            Route("/apps/{app}/users/{user}/memory", self._remember, methods=["PATCH"]),
        ]

    # ---- sessions

    async def _list(self, request: Request) -> Response:
        runner = self._runner(request)
        refuse_control(user_id=request.path_params["user"])
        listed = await runner.session_service.list_sessions(
            app_name=runner.app_name, user_id=request.path_params["user"]
        )
        return json_list(self._public(session) for session in listed.sessions)

    async def _create(self, request: Request) -> Response:
        body = NewSession()
        if name := request.path_params.get("session"):  # ADK's older form: the body is the state
            state = (await parsed(request, InitialState)).root if await request.body() else None
            body = NewSession(session_id=name, state=state)
        elif await request.body():
            body = await parsed(request, NewSession)
        runner, user = self._runner(request), request.path_params["user"]
        events = [_restored(number, event) for number, event in enumerate(body.events or ())]
        numbers = dict[str, int]()
        for number, event in enumerate(events):
            if (first := numbers.setdefault(event.id, number)) != number:
                raise HTTPException(
                    400, f"event {number} has the id of event {first}; give each an id of its own, or none"
                )
        session = await runner.session_service.create_session(
            app_name=runner.app_name, user_id=user, state=body.state, session_id=body.session_id
        )
        for event in events:
            await runner.session_service.append_event(session, event)
        return json_response(self._public(session))

    async def _get(self, request: Request) -> Response:
        return json_response(self._public(await self._session(request)))

    async def _change(self, request: Request) -> Response:
        body, session = await parsed(request, StateChange), await self._session(request)
        event = Event(
            invocation_id=f"p-{clock.new_id()}",
            author="user",
            actions=EventActions(state_delta=body.state_delta),
            custom_metadata={SENT_BY: CLIENT},
        )
        await self._service.runner.session_service.append_event(session, event)
        return json_response(self._public(session))

    async def _delete(self, request: Request) -> Response:
        await self._runner(request).session_service.delete_session(**self._key(request))
        return plain_json(None)

    async def _remember(self, request: Request) -> Response:
        runner, body = self._runner(request), await parsed(request, SessionToRemember)
        if runner.memory_service is None:
            raise HTTPException(400, "this agent has no memory service")
        session = await self._service.session(request.path_params["user"], body.session_id)
        if session is None:
            raise _no_session(body.session_id)
        await runner.memory_service.add_session_to_memory(session)
        return plain_json(None)

    # ---- files

    async def _file_names(self, request: Request) -> Response:
        return plain_json(await self._files(request).list_artifact_keys(**self._key(request)))

    async def _save_file(self, request: Request) -> Response:
        body, files, key = await parsed(request, NewFile), self._files(request), self._key(request)
        version = await files.save_artifact(
            **key, filename=body.filename, artifact=body.artifact, custom_metadata=body.custom_metadata
        )
        return json_response(await files.get_artifact_version(**key, filename=body.filename, version=version))

    async def _file(self, request: Request) -> Response:
        version = _version(request.path_params.get("version") or request.query_params.get("version"))
        part = await self._files(request).load_artifact(**self._file_key(request), version=version)
        if part is None:
            raise _no_file(request)
        return json_response(part)

    async def _file_metadata(self, request: Request) -> Response:
        version = _version(request.path_params["version"])
        metadata = await self._files(request).get_artifact_version(**self._file_key(request), version=version)
        if metadata is None:
            raise _no_file(request)
        return json_response(metadata)

    async def _file_versions(self, request: Request) -> Response:
        return json_list(await self._files(request).list_artifact_versions(**self._file_key(request)))

    async def _version_numbers(self, request: Request) -> Response:
        return plain_json(await self._files(request).list_versions(**self._file_key(request)))

    async def _delete_file(self, request: Request) -> Response:
        await self._files(request).delete_artifact(**self._file_key(request))
        return plain_json(None)

    # ---- what a path names

    def _runner(self, request: Request) -> Any:
        check_app(self._service, request.path_params["app"])
        return self._service.runner

    def _files(self, request: Request) -> BaseArtifactService:
        files = self._runner(request).artifact_service
        if files is None:
            raise HTTPException(400, "this agent has no artifact service")
        return files

    def _key(self, request: Request) -> dict[str, Any]:
        return self._service.key(request.path_params["user"], request.path_params["session"])

    def _file_key(self, request: Request) -> dict[str, Any]:
        return {**self._key(request), "filename": request.path_params["file"]}

    async def _session(self, request: Request) -> Session:
        self._runner(request)
        name = request.path_params["session"]
        session = await self._service.session(request.path_params["user"], name)
        if session is None:
            raise _no_session(name)
        return session

    def _public(self, session: Session) -> Session:
        """The session under the name that callers know the agent by."""
        return copy_model(session, app_name=self._service.name)


def check_app(service: AgentService, name: str | None) -> None:
    """Refuse the name of another agent.

    Raises:
        HTTPException: 404.
    """
    if name != service.name:
        raise HTTPException(404, f"no agent {name!r} is served here; there is {service.name!r}")


def _no_session(name: str) -> HTTPException:
    return HTTPException(404, f"no session {name!r}; create it with POST .../sessions/{name}")


def _no_file(request: Request) -> HTTPException:
    return HTTPException(404, f"no such version of artifact {request.path_params['file']!r}")


def _version(text: str | None) -> int | None:
    if text is None or text == _LATEST:
        return None
    if not text.isdecimal():
        raise HTTPException(422, f"{text!r} is no version; use a number or {_LATEST!r}")
    return int(text)


def _restored(number: int, event: Event) -> Event:
    """An event of an earlier conversation, with the name of who wrote it here.

    Raises:
        HTTPException: It could open or answer an interrupt, or change the state (source: google-adk 2.13); or it has an
            author or metadata of this package.
    """
    names = {call.name for call in event.get_function_calls()}
    names |= {response.name for response in event.get_function_responses()}
    if event.long_running_tool_ids or event.actions != EventActions() or names & {*REQUESTS, INPUT_REQUEST}:
        raise HTTPException(400, f"event {number} has actions or requests, which only a run here can write")
    author = unicodedata.normalize("NFKC", event.author)
    if author != "user" and (not author.isidentifier() or author.casefold() in _RESERVED_AUTHORS):
        raise HTTPException(400, f"event {number} is of {event.author!r:.40}; write 'user', or the name of an agent")
    metadata = event.custom_metadata or {}
    refuse_reserved(metadata, f"event {number}")
    return copy_model(event, custom_metadata={**metadata, SENT_BY: CLIENT, RESTORED: True})
