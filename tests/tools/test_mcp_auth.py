"""MCP servers that let in only who shows a credential: a key, or a token that a person has let the agent get."""

from collections.abc import Iterator
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.agents import LlmAgent
from adk_nb.auth import (
    APIKey,
    APIKeyIn,
    AuthCredential,
    AuthCredentialTypes,
    HttpAuth,
    HTTPBase,
    HttpCredentials,
    OAuth2,
    OAuth2Auth,
    OAuthFlowAuthorizationCode,
    OAuthFlows,
)
from adk_nb.errors import ConfigurationError
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.runtime import interrupts
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import CREDENTIALS, Interrupt
from adk_nb.tools.mcp_tool import McpToolset, StreamableHTTPConnectionParams
from tests.auth.auth_server import CLIENT, CLIENT_SECRET, REDIRECT, AuthServer, auth_server
from tests.support.talk import Talk, summaries
from tests.tools.mcp_talk import Service, answer_in, stdio


class Guard:
    """Lets requests through that show one of its tokens, and refuses the others."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.tokens: set[str] = {"Bearer the-authors-own-token"}
        self.seen: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            sent = dict(scope["headers"]).get(b"authorization", b"").decode()
            self.seen.append(sent)
            if sent not in self.tokens:
                await send(
                    {"type": "http.response.start", "status": 401, "headers": [(b"www-authenticate", b"Bearer")]}
                )
                await send({"type": "http.response.body", "body": b"who are you?"})
                return
        await self.app(scope, receive, send)


@pytest.fixture
def guarded() -> Iterator[tuple[Service, Guard]]:
    guards: list[Guard] = []
    service = Service(behind=lambda app: guards.append(Guard(app)) or guards[0])
    yield service, guards[0]
    service.stop()


@pytest.fixture
def server() -> Iterator[AuthServer]:
    with auth_server() as running:
        yield running


def toolset_at(service: Service, scheme: Any = None, credential: AuthCredential | None = None) -> McpToolset:
    params = StreamableHTTPConnectionParams(url=service.address, timeout=20)
    return McpToolset(connection_params=params, auth_scheme=scheme, auth_credential=credential)


def by_code(service: Service, server: AuthServer) -> McpToolset:
    flow = OAuthFlowAuthorizationCode(
        authorization_url=f"{server.url}/authorize", token_url=f"{server.url}/token", scopes={"tools": "use tools"}
    )
    client = OAuth2Auth(client_id=CLIENT, client_secret=CLIENT_SECRET, redirect_uri=REDIRECT)
    raw = AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=client)
    return toolset_at(service, OAuth2(flows=OAuthFlows(authorization_code=flow)), raw)


def talk_with(toolset: McpToolset, *answers: Any) -> Talk:
    return Talk(LlmAgent(name="a", model=ScriptedLlm(*answers), tools=[toolset]))


def asked(talk: Talk) -> Interrupt:
    [one] = open_interrupts(talk.stored().events, CREDENTIALS)
    return one


def let_in(talk: Talk, server: AuthServer, guard: Guard) -> list[Event]:
    request = asked(talk)
    uri = server.let_in(request.auth_uri or "")
    guard.tokens = _Any(server)
    return talk.say(interrupts.answer(request, {"authResponseUri": uri}))


class _Any(set[str]):
    """The tokens that the authorization server has given by now."""

    def __init__(self, server: AuthServer) -> None:
        self._server = server

    def __contains__(self, sent: object) -> bool:
        return str(sent).removeprefix("Bearer ") in self._server.access_tokens


def test_an_author_s_own_token_is_shown_when_tools_are_listed_and_called(guarded: tuple[Service, Guard]):
    service, guard = guarded
    bearer = HttpAuth(scheme="bearer", credentials=HttpCredentials(token="the-authors-own-token"))
    raw = AuthCredential(auth_type=AuthCredentialTypes.HTTP, http=bearer)
    toolset = toolset_at(service, HTTPBase(scheme="bearer"), raw)
    talk = talk_with(toolset, call("add", a=1), "done")

    answer = answer_in(talk.say(), talk)

    sync.run(toolset.close())
    assert answer["structuredContent"] == {"result": 2}
    assert set(guard.seen) == {"Bearer the-authors-own-token"}
    assert "the-authors-own-token" not in talk.stored().model_dump_json()


def test_without_a_credential_the_log_says_what_the_server_wants(
    guarded: tuple[Service, Guard], caplog: pytest.LogCaptureFixture
):
    toolset = toolset_at(guarded[0])
    talk = talk_with(toolset, "alone")

    assert summaries(talk.say()) == [("a", "alone .")]

    sync.run(toolset.close())
    assert (
        "HTTP 401; give" in caplog.text
        and "McpToolset(auth_scheme=..." in caplog.text
        and "auth_credential=...)" in caplog.text
    )


def test_a_person_is_asked_before_the_tools_are_known_and_then_the_message_is_answered(
    guarded: tuple[Service, Guard], server: AuthServer
):
    service, guard = guarded
    toolset = by_code(service, server)
    talk = talk_with(toolset, call("add", a=1), "two")

    first = talk.say("add")
    request = asked(talk)
    second = let_in(talk, server, guard)

    [event] = first
    [made] = event.get_function_calls()
    assert made.name == "adk_request_credential" and event.long_running_tool_ids == {made.id}
    assert (made.args or {})["functionCallId"].startswith("_adk_toolset_auth_")
    assert request.auth_uri and request.calls[0].call.name == "McpToolset"
    assert "'result': 2" in summaries(second)[1][1] and second[-1].text == "two"
    assert open_interrupts(talk.stored().events, CREDENTIALS) == []
    kept = talk.stored().model_dump_json()
    assert not [one for one in (*server.access_tokens, CLIENT_SECRET) if one in kept]
    sync.run(toolset.close())


def test_the_next_message_needs_nobody(guarded: tuple[Service, Guard], server: AuthServer):
    service, guard = guarded
    toolset = by_code(service, server)
    talk = talk_with(toolset, "in", call("add", a=1), "two")
    talk.say("add")
    let_in(talk, server, guard)

    events = talk.say("add")

    sync.run(toolset.close())
    assert "'result': 2" in summaries(events)[1][1] and len(server.asked) == 1


def test_a_no_is_a_turn_without_the_tools(
    guarded: tuple[Service, Guard], server: AuthServer, caplog: pytest.LogCaptureFixture
):
    toolset = by_code(guarded[0], server)
    talk = talk_with(toolset, "alone")
    talk.say("add")

    events = talk.say(interrupts.answer(asked(talk), {"error": "not today"}))

    sync.run(toolset.close())
    assert summaries(events) == [("a", "alone .")] and open_interrupts(talk.stored().events, CREDENTIALS) == []
    assert "tools of McpToolset: authentication failed" in caplog.text


def test_an_answer_that_leads_nowhere_is_asked_for_again(guarded: tuple[Service, Guard], server: AuthServer):
    toolset = by_code(guarded[0], server)
    talk = talk_with(toolset)
    talk.say("add")
    first = asked(talk)
    uri = server.let_in(first.auth_uri or "")
    server.codes.clear()

    talk.say(interrupts.answer(first, {"authResponseUri": uri}))

    sync.run(toolset.close())
    assert asked(talk).id != first.id and "invalid_grant" in asked(talk).problem


def test_a_token_that_the_server_rejects_is_renewed_when_tools_are_listed(
    guarded: tuple[Service, Guard], server: AuthServer
):
    service, guard = guarded
    toolset = by_code(service, server)
    talk = talk_with(toolset, "in", call("add", a=1), "two")
    talk.say("add")
    let_in(talk, server, guard)
    server.access_tokens.clear()
    sync.run(toolset.close())  # it is asked anew what it has

    events = talk.say("add")

    sync.run(toolset.close())
    assert "'result': 2" in summaries(events)[1][1]
    assert [one["grant_type"] for one in server.asked] == ["authorization_code", "refresh_token"]


def test_a_token_that_is_withdrawn_before_a_call_is_renewed_for_it(guarded: tuple[Service, Guard], server: AuthServer):
    service, guard = guarded
    toolset = by_code(service, server)
    talk = talk_with(toolset, "in", call("add", a=1), "two")
    talk.say("add")
    let_in(talk, server, guard)

    def withdraw(callback_context: Any, llm_request: Any) -> None:
        server.access_tokens.clear()

    talk.runner.agent.before_model_callback = withdraw
    events = talk.say("add")

    sync.run(toolset.close())
    assert "'result': 2" in summaries(events)[1][1]


@pytest.mark.parametrize("anew", [True, False])
def test_one_that_cannot_be_renewed_is_asked_for_again(guarded: tuple[Service, Guard], server: AuthServer, anew: bool):
    service, guard = guarded
    toolset = by_code(service, server)
    talk = talk_with(toolset, "in", call("add", a=1), "two")
    talk.say("add")
    let_in(talk, server, guard)
    server.access_tokens.clear()
    server.refresh_tokens.clear()
    if anew:
        sync.run(toolset.close())

    talk.say("add")
    waiting = asked(talk)
    events = let_in(talk, server, guard)

    sync.run(toolset.close())
    assert waiting.is_toolset is anew and waiting.auth_uri
    assert "'result': 2" in "".join(words for _, words in summaries(events)) and events[-1].text == "two"


def test_what_cannot_be_shown_is_refused_at_once(guarded: tuple[Service, Guard]):
    key = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="k")

    with pytest.raises(ConfigurationError, match="key 'key'"):
        toolset_at(guarded[0], APIKey(name="key", in_=APIKeyIn.query), key)
    with pytest.raises(ConfigurationError, match=r"with StdioServerParameters\(env="):
        McpToolset(connection_params=stdio(), auth_scheme=APIKey(name="key", in_=APIKeyIn.header), auth_credential=key)
