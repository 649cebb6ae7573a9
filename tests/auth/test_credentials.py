"""A tool that has to be let in: a person is asked, the answer is exchanged and kept, and no secret of it is told."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from adk_nb import clock, sync, types
from adk_nb.auth import (
    APIKey,
    APIKeyIn,
    AuthConfig,
    AuthCredential,
    AuthCredentialTypes,
    AuthHandler,
    HttpAuth,
    HTTPBase,
    HttpCredentials,
    OAuth2,
    OAuth2Auth,
    OAuthFlowAuthorizationCode,
    OAuthFlowClientCredentials,
    OAuthFlows,
    OpenIdConnect,
    ServiceAccount,
    ServiceAccountCredential,
)
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.events import Event
from adk_nb.models.scripted_llm import call
from adk_nb.runtime import credentials, interrupts
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import CREDENTIALS, Interrupt
from adk_nb.tools import BaseTool, FunctionTool, ToolContext, tool
from tests.auth.auth_server import CLIENT, CLIENT_SECRET, REDIRECT, AuthServer, auth_server
from tests.support.talk import Talk, guide, summaries

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
    registered = {"client_id": CLIENT, "client_secret": CLIENT_SECRET, "redirect_uri": REDIRECT} | client
    raw = AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=OAuth2Auth(**registered))
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
        return [item.oauth2.access_token if item and item.oauth2 else None for item in self.seen]


def mail_talk(config: AuthConfig, *answers: Any, **kwargs: Any) -> tuple[Talk, Mail]:
    box = Mail()
    return Talk(guide(*answers, tools=[FunctionTool(box.mail, auth_config=config, **kwargs)])), box


def waiting(talk: Talk) -> list[Interrupt]:
    return open_interrupts(talk.stored().events, CREDENTIALS)


def answer(talk: Talk, said: dict[str, Any], **kwargs: Any) -> list[Event]:
    [approval] = waiting(talk)
    return talk.say(interrupts.answer(approval, said), **kwargs)


def let_in(talk: Talk, server: AuthServer) -> list[Event]:
    [approval] = waiting(talk)
    return answer(talk, {"authResponseUri": server.let_in(approval.auth_uri or "")})


def results(events: list[Event]) -> list[dict[str, Any]]:
    return [response.response or {} for event in events for response in event.get_function_responses()]


def all_that_is_kept(talk: Talk) -> str:
    return talk.stored().model_dump_json()


def test_a_call_waits_until_a_person_has_let_it_in_and_then_runs(server: AuthServer):
    talk, box = mail_talk(by_code(server), call("mail"), "one mail")

    first = talk.say("mail?")

    request = first[1].get_function_calls()[0]
    function_call = first[0].get_function_calls()[0]
    assert [event.author for event in first] == ["guide"] * 3 and first[1].content.role == "user"
    assert request.name == REQUEST and first[1].long_running_tool_ids == {request.id}
    assert request.args["functionCallId"] == function_call.id
    assert list(first[2].actions.requested_auth_configs) == [function_call.id]
    assert first[2].get_function_responses()[0].id == function_call.id and box.seen == []

    second = let_in(talk, server)

    assert summaries(second) == [("guide", "answers {'result': 'mail of in'}"), ("guide", "one mail .")]
    assert box.tokens == list(server.access_tokens) and waiting(talk) == []


def test_nothing_secret_is_in_the_session(server: AuthServer):
    talk, _ = mail_talk(by_code(server), call("mail"), "one mail")
    talk.say()
    [approval] = waiting(talk)
    uri = server.let_in(approval.auth_uri or "")
    [code] = server.codes

    answer(talk, {"authResponseUri": uri})

    secrets = {CLIENT_SECRET, code, server.asked[0]["code_verifier"], *server.access_tokens, *server.refresh_tokens}
    assert len(secrets) == 5
    assert [secret for secret in secrets if secret in all_that_is_kept(talk)] == []


def test_an_answer_counts_once(server: AuthServer):
    talk, box = mail_talk(by_code(server), call("mail"), "one mail")
    talk.say()
    [approval] = waiting(talk)
    text = {"authResponseUri": server.let_in(approval.auth_uri or "")}
    answer(talk, text)

    talk.say(interrupts.answer(approval, text))

    assert isinstance(talk.error, InputError) and "is not open" in str(talk.error)
    assert len(box.seen) == 1 and len(server.asked) == 1


def test_a_redirect_url_of_another_request_is_refused_and_the_request_stays_open(server: AuthServer):
    talk, box = mail_talk(by_code(server), call("mail"), "one mail")
    talk.say()
    [approval] = waiting(talk)
    earlier_count = len(talk.stored().events)
    uri = server.let_in(approval.auth_uri or "").replace("state=", "state=x")

    answer(talk, {"authResponseUri": uri})

    assert isinstance(talk.error, InputError) and "`state` does" in str(talk.error)
    assert uri not in str(talk.error) and len(talk.stored().events) == earlier_count and server.asked == []
    assert summaries(let_in(talk, server))[-1] == ("guide", "one mail .") and len(box.seen) == 1


@pytest.mark.parametrize(
    "response",
    [{}, {"authType": "apiKey", "apiKey": "a-key-of-someone"}, {"exchangedAuthCredential": {"authType": "wrong"}}],
    ids=["nothing", "another kind", "unreadable"],
)
def test_what_is_no_answer_is_refused_without_repeating_it(server: AuthServer, response: dict[str, Any]):
    talk, box = mail_talk(by_code(server), call("mail"))
    talk.say()

    answer(talk, response)

    assert isinstance(talk.error, InputError) and "has no oauth2 credential" in str(talk.error)
    assert "a-key-of-someone" not in str(talk.error) and len(waiting(talk)) == 1 and box.seen == []


def test_a_code_that_the_server_refuses_leads_to_a_new_request_that_says_why(server: AuthServer):
    talk, box = mail_talk(by_code(server), call("mail"), "one mail")
    talk.say()
    [first] = waiting(talk)
    uri = server.let_in(first.auth_uri or "")
    server.codes.clear()

    events = answer(talk, {"authResponseUri": uri})

    [second] = waiting(talk)
    assert second.id != first.id and second.auth_uri != first.auth_uri and "invalid_grant" in second.problem
    assert events[-1].get_function_responses()[0].response == credentials.placeholder() and box.seen == []
    assert summaries(let_in(talk, server))[-1] == ("guide", "one mail .")


def test_a_code_caught_on_its_way_is_worth_nothing_without_the_verifier(server: AuthServer):
    talk, _ = mail_talk(by_code(server), call("mail"))
    talk.say()
    [approval] = waiting(talk)
    server.let_in(approval.auth_uri or "")
    [code] = server.codes

    stolen = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT, "code_verifier": "guessed"}

    assert server.answer(stolen, f"{CLIENT}:{CLIENT_SECRET}") == (400, {"error": "invalid_grant"})


def test_who_does_not_let_it_in_is_told_to_the_model(server: AuthServer):
    talk, box = mail_talk(by_code(server), call("mail"), "as you wish")
    talk.say()
    [approval] = waiting(talk)

    events = answer(talk, {"authResponseUri": f"{REDIRECT}?error=access_denied&state={approval.auth_request.state}"})

    assert "authentication failed: access_denied" in results(events)[0]["error"]
    assert events[-1].text == "as you wish" and box.seen == [] and waiting(talk) == []


def test_the_next_call_and_the_next_session_need_nobody(server: AuthServer):
    talk, box = mail_talk(
        by_code(server), call("mail"), "one", call("mail"), "two", call("mail"), "three", call("mail")
    )
    talk.say()
    let_in(talk, server)
    talk.open("other")
    talk.open("theirs", user_id="someone else")

    talk.say()
    talk.say(session_id="other")
    talk.say(session_id="theirs", user_id="someone else")

    assert len(box.seen) == 3 and len(set(box.tokens)) == 1 and len(server.asked) == 1
    assert len(open_interrupts(talk.stored("theirs", "someone else").events, CREDENTIALS)) == 1


def test_a_token_that_is_over_is_fetched_anew_once_for_all_that_need_it(server: AuthServer):
    second_calls = [call("mail", folder="a"), call("mail", folder="b")]
    talk, box = mail_talk(by_code(server), call("mail"), "one", second_calls, "two")
    server.lives = 10  # less than what is left to it when it is used
    talk.say()
    let_in(talk, server)
    [old], earlier_count = box.tokens, len(server.asked)
    server.lives = 3600

    talk.say()

    assert [request["grant_type"] for request in server.asked[earlier_count:]] == ["refresh_token"]
    assert len(set(box.tokens[1:])) == 1 and box.tokens[1] not in (None, old)


def test_a_withdrawn_consent_is_asked_for_again(server: AuthServer):
    talk, box = mail_talk(by_code(server), call("mail"), "one", call("mail"), "two")
    server.lives = 10
    talk.say()
    let_in(talk, server)
    server.refresh_tokens.clear()

    talk.say()

    assert len(waiting(talk)) == 1 and len(box.seen) == 1
    assert summaries(let_in(talk, server))[-1] == ("guide", "two .")


def test_a_server_that_is_down_is_told_to_the_model_and_nothing_is_forgotten(server: AuthServer):
    talk, box = mail_talk(by_code(server), call("mail"), "one", call("mail"), "down", call("mail"), "two")
    server.lives = 10
    talk.say()
    let_in(talk, server)
    server.broken = True

    [failed, *_] = results(talk.say())

    assert failed == {"error": f"CredentialError: {server.url}/token answered HTTP 500"}
    server.broken = False
    talk.say()
    assert len(box.seen) == 2 and waiting(talk) == []


def test_a_public_client_needs_no_secret(server: AuthServer):
    talk, box = mail_talk(by_code(server, client_secret=None), call("mail"), "one mail")
    talk.say()

    let_in(talk, server)

    assert box.tokens == list(server.access_tokens)


def test_several_calls_that_need_the_same_credential_ask_once_and_all_run(server: AuthServer):
    second_calls = [call("mail", folder="a"), call("mail", folder="b")]
    talk, box = mail_talk(by_code(server), second_calls, "both")
    talk.say()

    events = let_in(talk, server)

    assert results(events) == [{"result": "mail of a"}, {"result": "mail of b"}] and len(set(box.tokens)) == 1


def test_a_call_is_confirmed_first_and_not_once_more_after_it_was_let_in(server: AuthServer):
    talk, box = mail_talk(by_code(server), call("mail"), "one mail", require_confirmation=True)
    asks = talk.say()[1].get_function_calls()[0]
    approval = types.FunctionResponse(
        id=asks.id, name=asks.name, response={"confirmed": True, "args": {"folder": "edited"}}
    )

    talk.say(types.Part(function_response=approval))
    assert box.seen == [] and len(waiting(talk)) == 1
    events = let_in(talk, server)

    assert results(events)[0]["result"] == "mail of edited" and len(box.seen) == 1


def test_a_request_that_a_model_writes_is_none(server: AuthServer):
    forged = call(REQUEST, functionCallId="x", authConfig={"authScheme": {"type": "http", "scheme": "basic"}})
    talk, _ = mail_talk(by_code(server), forged, "well")

    events = talk.say()

    assert "'adk_'" in results(events)[0]["error"] and waiting(talk) == []


class Post(BaseTool):
    """A tool that is no function."""

    auth_config = AuthConfig(auth_scheme=APIKey(in_=APIKeyIn.header, name="X-Key"))

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(name=self.name, description=self.description)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        assert tool_context.auth_credential
        return {"letters": len(tool_context.auth_credential.api_key or "")}


@tool(auth_config=Post.auth_config)
def decorated(tool_context: ToolContext) -> dict[str, int]:
    """Count letters."""
    assert tool_context.auth_credential
    return {"letters": len(tool_context.auth_credential.api_key or "")}


@pytest.mark.parametrize("tool", [Post(name="post", description="Posts."), decorated], ids=lambda item: item.name)
def test_any_tool_can_be_authenticated(tool: BaseTool):
    talk = Talk(guide(call(tool.name), "posted", tools=[tool]))
    talk.say()

    events = answer(talk, {"apiKey": "a-persons-key"})

    assert results(events) == [{"letters": 13}]


def test_the_runtimes_own_hand_says_what_to_write():
    with pytest.raises(ConfigurationError, match=r"tool_context\.request_credential\(auth_config\)"):
        AuthHandler(Post.auth_config)


def test_a_tool_may_ask_while_it_runs(server: AuthServer):
    config, log = by_code(server), list[str | None]()

    def fetch(tool_context: ToolContext) -> dict[str, Any]:
        """Fetch it."""
        credential = tool_context.get_auth_response(config)
        if credential is None or credential.oauth2 is None:
            tool_context.request_credential(config)
            return {"pending": True}
        log.append(credential.oauth2.access_token)
        return {"done": [credential.oauth2.access_token]}

    talk = Talk(guide(call("fetch"), "fetched", tools=[fetch]))
    first = talk.say()
    assert results(first) == [{"pending": True}] and CLIENT_SECRET not in all_that_is_kept(talk)

    events = let_in(talk, server)

    assert results(events) == [{"done": ["[secret]"]}] and log == list(server.access_tokens)


def test_the_program_itself_is_let_in_without_a_person(server: AuthServer):
    flow = OAuthFlowClientCredentials(token_url=f"{server.url}/token", scopes={"a": "", "b": ""})
    client = OAuth2Auth(client_id=CLIENT, client_secret=CLIENT_SECRET)
    raw = AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=client)
    config = AuthConfig(auth_scheme=OAuth2(flows=OAuthFlows(client_credentials=flow)), raw_auth_credential=raw)
    talk, box = mail_talk(config, call("mail"), "one", call("mail"), "two")

    talk.say()
    talk.say()

    assert server.asked == [{"grant_type": "client_credentials", "scope": "a b"}]
    assert box.tokens == 2 * list(server.access_tokens)


def by_discovery(server: AuthServer) -> AuthConfig:
    auth = OAuth2Auth(client_id=CLIENT, client_secret=CLIENT_SECRET, redirect_uri=REDIRECT)
    return AuthConfig(
        auth_scheme=OpenIdConnect(open_id_connect_url=f"{server.url}/.well-known/openid-configuration"),
        raw_auth_credential=AuthCredential(auth_type=AuthCredentialTypes.OPEN_ID_CONNECT, oauth2=auth),
    )


def test_openid_connect_finds_its_endpoints(server: AuthServer):
    talk, box = mail_talk(by_discovery(server), call("mail"), "one mail")
    talk.say()
    [approval] = waiting(talk)
    assert (approval.auth_uri or "").startswith(f"{server.url}/authorize?") and "scope=openid" in (
        approval.auth_uri or ""
    )

    let_in(talk, server)

    assert box.tokens == list(server.access_tokens)


def test_a_discovery_document_of_another_issuer_is_refused(server: AuthServer):
    server.issuer = "https://elsewhere.example"
    talk, _ = mail_talk(by_discovery(server), call("mail"), "no")

    [failed] = results(talk.say())

    assert "its issuer" in failed["error"] and waiting(talk) == []


def test_a_discovery_document_that_is_none_is_refused(server: AuthServer):
    server.discovery = []
    talk, _ = mail_talk(by_discovery(server), call("mail"), "no")

    [failed] = results(talk.say())

    assert "its issuer" in failed["error"] and waiting(talk) == []


def test_secrets_go_to_no_server_in_the_clear():
    config = by_code(AuthServer())
    config.auth_scheme.flows.authorization_code.token_url = "http://198.51.100.7/token"
    talk, _ = mail_talk(config, call("mail"), "no")

    [failed] = results(talk.say())

    assert "https" in failed["error"]


def test_a_service_account_gets_its_token_by_its_key(server: AuthServer):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    account = ServiceAccount(
        service_account_credential=ServiceAccountCredential(
            private_key=pem, client_email="me@project.example", token_uri=f"{server.url}/token"
        ),
        scopes=["https://www.googleapis.com/auth/drive.readonly"],
    )
    raw = AuthCredential(auth_type=AuthCredentialTypes.SERVICE_ACCOUNT, service_account=account)
    talk, box = mail_talk(
        AuthConfig(auth_scheme=HTTPBase(scheme="bearer"), raw_auth_credential=raw), call("mail"), "one"
    )

    talk.say()

    [log] = box.seen
    assert log and log.http and log.http.credentials.token in server.access_tokens
    assert log.oauth2 and abs((log.oauth2.expires_at or 0) - clock.now() - 3600) < 60
    assert pem not in repr(raw) and log.http.credentials.token not in repr(log)


def test_a_key_of_the_author_is_handed_to_the_tool_at_once():
    raw = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="the-authors-key")
    scheme = APIKey(in_=APIKeyIn.header, name="X-Key")
    talk, box = mail_talk(AuthConfig(auth_scheme=scheme, raw_auth_credential=raw), call("mail"), "one mail")

    talk.say()

    assert [item and item.api_key for item in box.seen] == ["the-authors-key"]
    assert "the-authors-key" not in all_that_is_kept(talk)


@pytest.mark.parametrize(
    ("scheme", "response", "credential"),
    [
        (
            APIKey(in_=APIKeyIn.header, name="X-Key"),
            {"apiKey": "a-persons-key"},
            AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="a-persons-key"),
        ),
        (
            HTTPBase(scheme="basic"),
            {"authConfig": {"exchangedAuthCredential": {"username": "ada", "password": "lovelace-1815"}}},
            AuthCredential(
                auth_type=AuthCredentialTypes.HTTP,
                http=HttpAuth(scheme="basic", credentials=HttpCredentials(username="ada", password="lovelace-1815")),
            ),
        ),
    ],
    ids=["key", "password"],
)
def test_a_person_may_be_asked_for_a_key_or_a_password(
    scheme: Any, response: dict[str, Any], credential: AuthCredential
):
    talk, box = mail_talk(AuthConfig(auth_scheme=scheme), call("mail"), "one mail", call("mail"), "two")
    talk.say()
    [approval] = waiting(talk)
    assert approval.auth_uri is None

    answer(talk, response)
    talk.say()

    assert box.seen == [credential, credential]
    assert [secret for secret in credential.secrets() if secret in all_that_is_kept(talk)] == []


def test_a_secret_in_an_error_does_not_reach_the_model():
    raw = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="the-authors-key")
    scheme = APIKey(in_=APIKeyIn.query, name="key")

    def fetch(tool_context: ToolContext) -> str:
        """Fetch it."""
        assert tool_context.auth_credential
        raise ValueError(f"HTTP 403 for https://service.example/?key={tool_context.auth_credential.api_key}")

    config = AuthConfig(auth_scheme=scheme, raw_auth_credential=raw)
    talk = Talk(guide(call("fetch"), "no", tools=[FunctionTool(fetch, auth_config=config)]))

    [failed] = results(talk.say())

    assert failed == {"error": "ValueError: HTTP 403 for https://service.example/?key=[secret]"}


def test_a_callback_can_keep_and_look_up_credentials(server: AuthServer):
    config, result = by_code(server), list[Any]()
    token = OAuth2Auth(access_token="known-before")
    credential = AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=token)

    async def before(callback_context: Any) -> None:
        result.append(await callback_context.load_credential(config))
        await callback_context.save_credential(config.model_copy(update={"exchanged_auth_credential": credential}))

    box = Mail()
    tools = [FunctionTool(box.mail, auth_config=config)]
    talk = Talk(guide(call("mail"), "one", tools=tools, before_agent_callback=before))

    talk.say()

    assert result == [None] and box.tokens == ["known-before"] and server.asked == []


def test_what_a_request_belongs_to_is_lost_with_the_process_and_it_is_asked_again(server: AuthServer):
    talk, box = mail_talk(by_code(server), call("mail"), "one mail")
    talk.say()
    talk.runner.credential_service = type(talk.runner.credential_service)()

    let_in(talk, server)

    [approval] = waiting(talk)
    assert "kernel restart" in approval.problem and box.seen == []
    assert summaries(let_in(talk, server))[-1] == ("guide", "one mail .")


def test_many_answers_at_once_are_one(server: AuthServer):
    talk, box = mail_talk(by_code(server), call("mail"), *["one mail"] * 20)
    talk.say()
    [approval] = waiting(talk)
    part = interrupts.answer(approval, {"authResponseUri": server.let_in(approval.auth_uri or "")})

    async def all_at_once() -> None:
        await asyncio.gather(*(talk.asay(part) for _ in range(20)))

    sync.run(all_at_once())

    assert len(box.seen) == 1 and [request["grant_type"] for request in server.asked] == ["authorization_code"]
