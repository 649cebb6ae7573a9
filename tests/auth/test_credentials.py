"""A tool that has to be let in: a person is asked, the answer is exchanged and kept, and no secret of it is told."""

from collections.abc import Iterator
from typing import Any

import pytest

from adk_nb.agents import LlmAgent
from adk_nb.auth import (
    AuthConfig,
    AuthCredential,
    AuthCredentialTypes,
    OAuth2,
    OAuth2Auth,
    OAuthFlowAuthorizationCode,
    OAuthFlows,
)
from adk_nb.events import Event
from adk_nb.models.scripted_llm import call
from adk_nb.runtime import credentials
from adk_nb.runtime.credentials import PendingCredential
from adk_nb.tools import FunctionTool, ToolContext
from tests.auth.auth_server import CLIENT, CLIENT_SECRET, REDIRECT, AuthServer, auth_server
from tests.talk import Talk, guide, told

REQUEST = "adk_request_credential"


@pytest.fixture
def server() -> Iterator[AuthServer]:
    with auth_server() as running:
        yield running


def by_code(server: AuthServer, **client: Any) -> AuthConfig:
    """A person lets the client in, at the server's own page."""
    flow = OAuthFlowAuthorizationCode(
        authorization_url=f"{server.url}/authorize", token_url=f"{server.url}/token", scopes={"mail": "read mail"}
    )
    known = {"client_id": CLIENT, "client_secret": CLIENT_SECRET, "redirect_uri": REDIRECT} | client
    raw = AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=OAuth2Auth(**known))
    return AuthConfig(auth_scheme=OAuth2(flows=OAuthFlows(authorization_code=flow)), raw_auth_credential=raw)


class Mail:
    """A tool that notes what it was let in with."""

    def __init__(self) -> None:
        self.seen: list[AuthCredential | None] = []

    def mail(self, tool_context: ToolContext, folder: str = "in") -> str:
        """Read mail."""
        self.seen.append(tool_context.auth_credential)
        return f"mail of {folder}"

    @property
    def tokens(self) -> list[str | None]:
        return [one.oauth2.access_token if one and one.oauth2 else None for one in self.seen]


def mail_talk(config: AuthConfig, *answers: Any, **more: Any) -> tuple[Talk, Mail]:
    box = Mail()
    return Talk(guide(*answers, tools=[FunctionTool(box.mail, auth_config=config, **more)])), box


def waiting(talk: Talk) -> list[PendingCredential]:
    return credentials.pending(talk.stored().events)


def answer(talk: Talk, said: dict[str, Any], **more: Any) -> list[Event]:
    [asked] = waiting(talk)
    return talk.say(credentials.answer(asked.id, said), **more)


def let_in(talk: Talk, server: AuthServer) -> list[Event]:
    [asked] = waiting(talk)
    return answer(talk, {"authResponseUri": server.let_in(asked.auth_uri or "")})


def results(events: list[Event]) -> list[dict[str, Any]]:
    return [one.response or {} for event in events for one in event.get_function_responses()]


def all_that_is_kept(talk: Talk) -> str:
    return talk.stored().model_dump_json()


def test_a_call_waits_until_a_person_has_let_it_in_and_then_runs(server: AuthServer):
    talk, box = mail_talk(by_code(server), call("mail"), "one mail")

    first = talk.say("mail?")

    request = first[1].get_function_calls()[0]
    made = first[0].get_function_calls()[0]
    assert [event.author for event in first] == ["guide"] * 3 and first[1].content.role == "user"
    assert request.name == REQUEST and first[1].long_running_tool_ids == {request.id}
    assert request.args["functionCallId"] == made.id
    assert list(first[2].actions.requested_auth_configs) == [made.id]
    assert first[2].get_function_responses()[0].id == made.id and box.seen == []

    second = let_in(talk, server)

    assert told(second) == [("guide", "answers {'result': 'mail of in'}"), ("guide", "one mail .")]
    assert box.tokens == list(server.access_tokens) and waiting(talk) == []


def test_nothing_secret_is_in_the_session(server: AuthServer):
    talk, _ = mail_talk(by_code(server), call("mail"), "one mail")
    talk.say()
    [asked] = waiting(talk)
    uri = server.let_in(asked.auth_uri or "")
    [code] = server.codes

    answer(talk, {"authResponseUri": uri})

    secrets = {CLIENT_SECRET, code, server.asked[0]["code_verifier"], *server.access_tokens, *server.refresh_tokens}
    assert len(secrets) == 5
    assert [one for one in secrets if one in all_that_is_kept(talk)] == []
    assert isinstance(talk.runner.agent, LlmAgent)
