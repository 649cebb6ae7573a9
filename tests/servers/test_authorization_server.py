"""Tools that are let in at an authorization server of others: oidc-provider, which `make servers` has installed."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
import pytest
from joserfc.jwk import RSAKey
from programs import FOLDER, free_port, node, served

from adk_nb.auth import (
    AuthConfig,
    AuthCredential,
    AuthCredentialTypes,
    OAuth2,
    OAuth2Auth,
    OAuthFlowClientCredentials,
    OAuthFlows,
    OpenIdConnect,
    OpenIdConnectWithConfig,
)
from adk_nb.models.scripted_llm import call
from adk_nb.runtime import interrupts
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import CREDENTIALS, Interrupt
from tests.auth.test_credentials import answer, mail_talk, results, waiting

pytestmark = pytest.mark.servers
SECRET = "the-clients-secret-which-has-to-be-long"
REDIRECT = "http://127.0.0.1:9/callback"
KEY = RSAKey.generate_key(2048, private=True)
SECRETS = {
    "client_secret_basic": SECRET,
    "client_secret_post": SECRET,
    "client_secret_jwt": SECRET,
    "private_key_jwt": KEY.as_pem(private=True).decode(),
    "none": None,
}
"""How a client may show who it is -> with what."""
CLIENTS = [
    {
        "client_id": f"by-{method}",
        "token_endpoint_auth_method": method,
        "redirect_uris": [REDIRECT],
        "grant_types": ["authorization_code", "refresh_token", *(["client_credentials"] if secret else [])],
        **({"jwks": {"keys": [KEY.as_dict(private=False)]}} if method == "private_key_jwt" else {}),
        **({"client_secret": secret} if secret == SECRET else {}),
    }
    for method, secret in SECRETS.items()
]
BY_BASIC = ("by-client_secret_basic", SECRET)


@dataclass
class Server:
    """Where it is."""

    url: str

    def let_in(self, uri: str, author: str = "ada") -> str:
        """What a person's browser is sent to after they logged in and said yes at `uri`."""
        with httpx2.Client(timeout=30) as browser:
            page = browser.get(uri)
            for _ in range(12):
                if page.is_redirect:
                    uri = urljoin(str(page.url), page.headers["location"])
                    if uri.startswith(REDIRECT):
                        return uri
                    page = browser.get(uri)
                else:
                    assert page.status_code == 200, page.text
                    prompt = re.findall(r'name="prompt" value="(\w+)"', page.text)[0]
                    action = re.findall(r'<form[^>]* action="([^"]+)"', page.text)[0]
                    text = {"prompt": prompt, **({"login": author, "password": "x"} if prompt == "login" else {})}
                    page = browser.post(urljoin(str(page.url), action), data=text)
        raise AssertionError(f"it led nowhere: {page.url}")

    def who(self, token: str | None) -> str | None:
        """Whose token it is, as the server says; None: it is not good any more."""
        text = httpx2.get(f"{self.url}/me", headers={"Authorization": f"Bearer {token}"})
        return text.json().get("sub") if text.status_code == 200 else None

    def ask(self, path: str, **kwargs: str) -> httpx2.Response:
        return httpx2.post(f"{self.url}{path}", data=kwargs, auth=BY_BASIC)

    def by_person(self, client: str = BY_BASIC[0], **kwargs: Any) -> AuthConfig:
        scheme = OpenIdConnectWithConfig(
            authorization_endpoint=f"{self.url}/auth",
            token_endpoint=f"{self.url}/token",
            scopes=["openid", "offline_access"],
        )
        return self.config(scheme, client, **kwargs)

    def config(self, scheme: Any, client: str = BY_BASIC[0], **kwargs: Any) -> AuthConfig:
        secret = SECRETS.get(client.removeprefix("by-"), SECRET)
        auth = OAuth2Auth(client_id=client, client_secret=secret, redirect_uri=REDIRECT, **kwargs)
        kind = AuthCredentialTypes(scheme.type_.value)
        return AuthConfig(auth_scheme=scheme, raw_auth_credential=AuthCredential(auth_type=kind, oauth2=auth))


def running(seconds: int) -> Iterator[Server]:
    port = free_port()
    script = str(Path(__file__).with_name("authorization.mjs"))
    with served([node(), script, str(FOLDER), str(port), json.dumps(CLIENTS), str(seconds)], port):
        yield Server(f"http://127.0.0.1:{port}")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    yield from running(3600)


@pytest.fixture(scope="module")
def hasty() -> Iterator[Server]:
    """One whose tokens hold no longer than they take to be used."""
    yield from running(30)


def say_yes(talk: Any, server: Server, author: str = "ada") -> Any:
    [approval] = waiting(talk)
    return answer(talk, {"authResponseUri": server.let_in(approval.auth_uri or "", author)})


@pytest.mark.parametrize("method", SECRETS)
def test_a_person_lets_the_tool_in_whichever_way_its_client_shows_who_it_is(server: Server, method: str):
    config = server.by_person(f"by-{method}", token_endpoint_auth_method=method)
    talk, box = mail_talk(config, call("mail"), "one mail")
    talk.say()

    say_yes(talk, server)

    assert talk.error is None and [approval.problem for approval in waiting(talk)] == []
    [token] = box.tokens
    assert server.who(token) == "ada"
    stored = talk.stored().model_dump_json()
    assert [item for item in (SECRET, "PRIVATE KEY", str(token)) if item in stored] == []


def test_its_endpoints_are_found_and_its_answers_say_whose_they_are(server: Server):
    scheme = OpenIdConnect(open_id_connect_url=f"{server.url}/.well-known/openid-configuration")
    talk, box = mail_talk(server.config(scheme), call("mail"), "one mail")
    talk.say()
    [approval] = waiting(talk)
    uri = server.let_in(approval.auth_uri or "")
    assert parse_qs(urlsplit(uri).query)["iss"] == [server.url]

    answer(talk, {"authResponseUri": uri})

    assert server.who(box.tokens[0]) == "ada"


def test_without_the_word_of_who_it_is_no_answer_of_it_is_taken(server: Server):
    scheme = OpenIdConnect(open_id_connect_url=f"{server.url}/.well-known/openid-configuration")
    talk, box = mail_talk(server.config(scheme), call("mail"))
    talk.say()
    [approval] = waiting(talk)

    answer(talk, {"authResponseUri": server.let_in(approval.auth_uri or "").partition("&iss=")[0]})

    assert box.seen == [] and f"not from {server.url}" in waiting(talk)[0].problem


def test_each_user_has_their_own_credentials(server: Server):
    talk, box = mail_talk(server.by_person(), call("mail"), "one", call("mail"), "two")
    talk.say()
    say_yes(talk, server, "ada")
    talk.open("theirs", user_id="grace")
    talk.say(session_id="theirs", user_id="grace")
    [request] = _pending(talk, "theirs", "grace")

    answer_of_grace = {"authResponseUri": server.let_in(request.auth_uri or "", "grace")}
    talk.say(interrupts.answer(request, answer_of_grace), session_id="theirs", user_id="grace")

    assert [server.who(token) for token in box.tokens] == ["ada", "grace"]


def test_a_code_is_good_once_and_only_for_who_asked(server: Server):
    talk, _ = mail_talk(server.by_person(), call("mail"), "one mail")
    talk.say()
    [approval] = waiting(talk)
    uri = server.let_in(approval.auth_uri or "")
    code = parse_qs(urlsplit(uri).query)["code"][0]
    stolen = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT, "code_verifier": "x" * 64}
    assert server.ask("/token", **stolen).json()["error"] == "invalid_grant"

    answer(talk, {"authResponseUri": uri})

    assert server.ask("/token", **stolen).json()["error"] == "invalid_grant"


def test_a_token_that_is_over_is_fetched_anew_without_a_person(hasty: Server):
    talk, box = mail_talk(hasty.by_person(), call("mail"), "one", call("mail"), "two")
    talk.say()
    say_yes(talk, hasty)

    talk.say()

    first, second = box.tokens
    assert first != second and hasty.who(second) == "ada" and waiting(talk) == []


def test_a_consent_that_was_withdrawn_is_asked_for_again(hasty: Server):
    talk, box = mail_talk(hasty.by_person(), call("mail"), "one", call("mail"), "two")
    talk.say()
    say_yes(talk, hasty)
    [stored_refresh_token] = _refresh_tokens(talk)
    assert hasty.ask("/token/revocation", token=stored_refresh_token).status_code == 200

    talk.say()
    assert len(waiting(talk)) == 1 and len(box.seen) == 1
    say_yes(talk, hasty)

    assert hasty.who(box.tokens[-1]) == "ada"


def test_the_client_itself_is_authenticated(server: Server):
    flow = OAuthFlowClientCredentials(token_url=f"{server.url}/token", scopes={"mail": ""})
    talk, box = mail_talk(server.config(OAuth2(flows=OAuthFlows(client_credentials=flow))), call("mail"), "one mail")

    assert results(talk.say()) == [{"result": "mail of in"}]

    payload = server.ask("/token/introspection", token=str(box.tokens[0])).json()
    assert (payload["active"], payload["client_id"], payload["scope"]) == (True, BY_BASIC[0], "mail")


def test_a_client_that_the_server_does_not_know_is_told_to_the_model(server: Server):
    flow = OAuthFlowClientCredentials(token_url=f"{server.url}/token", scopes={"mail": ""})
    config = server.config(OAuth2(flows=OAuthFlows(client_credentials=flow)), "nobody")
    talk, box = mail_talk(config, call("mail"), "no")

    [failed] = results(talk.say())

    assert "gave no token: invalid_client" in failed["error"] and SECRET not in failed["error"] and box.seen == []


def _pending(talk: Any, session: str, user: str) -> list[Interrupt]:
    return open_interrupts(talk.stored(session, user).events, CREDENTIALS)


def _refresh_tokens(talk: Any) -> list[str]:
    stored = talk.runner.credential_service._credentials.values()
    return [item.oauth2.refresh_token for item in stored if item.oauth2 and item.oauth2.refresh_token]
