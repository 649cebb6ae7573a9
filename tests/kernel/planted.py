"""Runs in a kernel: secrets of every kind, each in the words or the locals of something that fails.

`plant` reads them from a file, so that no cell holds one. Each function of `FAILURES` raises.
"""

import base64
import json
import logging
import os
import pickle
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import keyring
from keyring.backend import KeyringBackend
from pydantic import SecretStr

from adk_nb import redaction, sync, types
from adk_nb.agents import LlmAgent
from adk_nb.auth import (
    APIKey,
    APIKeyIn,
    AuthConfig,
    AuthCredential,
    AuthCredentialTypes,
    HttpAuth,
    HTTPBase,
    HttpCredentials,
    OAuth2,
    OAuth2Auth,
    OAuthFlowAuthorizationCode,
    OAuthFlows,
    ServiceAccount,
    ServiceAccountCredential,
)
from adk_nb.auth.credential_service import FileCredentialService, KeyringCredentialService
from adk_nb.models import Gemini, RecordedLlm, ScriptedLlm, call
from adk_nb.runners import Runner
from adk_nb.sessions import InMemorySessionService
from adk_nb.tools import FunctionTool, ToolContext
from adk_nb.tools.auth import oauth
from adk_nb.tools.auth.exchange import fetch_token
from adk_nb.tools.mcp_tool import (
    McpToolset,
    StdioConnectionParams,
    StdioServerParameters,
    StreamableHTTPConnectionParams,
)
from adk_nb.tools.openapi_tool import OpenAPIToolset


class Secrets(dict[str, str]):
    """What each secret is for -> the secret. A traceback with values shows this too, before all of them are known."""

    def __repr__(self) -> str:
        return f"<{len(self)} secrets>"


S = Secrets()
FAILURES: dict[str, Callable[[], Any]] = {}
SESSIONS = InMemorySessionService()
IN_ENVIRONMENT = {
    "GOOGLE_API_KEY": "{gemini key}",
    "STRIPE_API_KEY": "{variable}",
    "BILLING_PASSWORD": "{password in a variable}",
    "DATABASE_URL": "postgres://app:{database password}@127.0.0.1/db",
    "HTTP_PROXY": "http://me:{proxy password}@127.0.0.1:1",
    "NO_PROXY": "127.0.0.1",
    "CHAIN_TOKEN": "{cause}",
    "CONTEXT_TOKEN": "{context}",
    "NOTE_TOKEN": "{note}",
    "GROUP_TOKEN": "{group}",
    "LOG_TOKEN": "{log}",
    "ODD_SECRET": "{odd}",
}


def plant(file: str = "secrets.json") -> None:
    S.update(json.loads(Path(file).read_text()))
    for name, value in IN_ENVIRONMENT.items():
        for what, secret in S.items():
            value = value.replace(f"{{{what}}}", secret)
        os.environ[name] = value
    log_to("log.txt")


def log_to(file: str) -> None:
    """All that any library logs."""
    logging.basicConfig(filename=file, level=logging.DEBUG, force=True)


def tell_everything() -> None:
    """As if nothing were hidden: no secret is known, and nothing looks like one."""
    hides_nothing: Any = redaction
    hides_nothing._is_long_enough = lambda value: False
    hides_nothing.redacted = lambda value, name="": value
    hides_nothing._without_lookalikes = lambda text: text
    hides_nothing._IN_URLS = hides_nothing._ELSEWHERE = hides_nothing.re.compile("(?!)")
    redaction.forget()


def failure(raises: Callable[[], Any]) -> Callable[[], Any]:
    FAILURES[raises.__name__] = raises
    return raises


class Echo(BaseHTTPRequestHandler):
    """Refuses every request, and says what was in it."""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        body = json.dumps({"error": {"code": 400, "status": "BAD", "message": f"{self.path} {dict(self.headers)}"}})
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    do_POST = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
threading.Thread(target=server.serve_forever, daemon=True).start()
URL = f"http://127.0.0.1:{server.server_port}"


def run(name: str, agent: LlmAgent) -> None:
    runner = Runner(app_name="app", agent=agent, session_service=SESSIONS, auto_create_session=True)
    for _ in runner.run(user_id="u", session_id=name, new_message="go on"):
        pass


def by_a_tool(name: str, tool: Any, *, goes_on: bool = True) -> None:
    """The tool's error as the model is told of it, and then as it ends a run."""
    if goes_on:
        run(name, LlmAgent(name="told", model=ScriptedLlm(call(tool.name), "never mind"), tools=[tool]))
    run(name, LlmAgent(name="ended", model=ScriptedLlm(call(tool.name)), tools=[tool], tool_errors="raise"))


def oauth_scheme() -> OAuth2:
    flow = OAuthFlowAuthorizationCode(authorization_url=f"{URL}/let", token_url=f"{URL}/token", scopes={})
    return OAuth2(flows=OAuthFlows(authorization_code=flow))


def bearer(token: str) -> AuthCredential:
    http = HttpAuth(scheme="bearer", credentials=HttpCredentials(token=token))
    return AuthCredential(auth_type=AuthCredentialTypes.HTTP, http=http)


def credentials() -> list[AuthConfig]:
    """One of each kind."""
    http = HttpCredentials(username="me", password=S["basic password"])
    more = {"X-More": S["additional header"]}
    client = OAuth2Auth(
        client_id="me",
        client_secret=S["client secret"],
        access_token=S["access token"],
        refresh_token=S["refresh token"],
        id_token=S["id token"],
    )
    kinds = AuthCredentialTypes
    return [
        AuthConfig(
            auth_scheme=APIKey(in_=APIKeyIn.header, name="X-Key"),
            raw_auth_credential=AuthCredential(auth_type=kinds.API_KEY, api_key=S["api key"]),
        ),
        AuthConfig(auth_scheme=HTTPBase(scheme="bearer"), raw_auth_credential=bearer(S["bearer"])),
        AuthConfig(
            auth_scheme=HTTPBase(scheme="basic"),
            raw_auth_credential=AuthCredential(
                auth_type=kinds.HTTP, http=HttpAuth(scheme="basic", credentials=http, additional_headers=more)
            ),
        ),
        AuthConfig(
            auth_scheme=oauth_scheme(), raw_auth_credential=AuthCredential(auth_type=kinds.OAUTH2, oauth2=client)
        ),
    ]


def tools_with_credentials() -> list[FunctionTool]:
    def quotes(tool_context: ToolContext) -> None:
        """Quotes what it was let in with."""
        shown = tool_context.auth_credential
        raise RuntimeError(f"refused: {shown.model_dump_json() if shown else ''}")

    return [FunctionTool(quotes, auth_config=config) for config in credentials()]


@failure
def a_tool_quotes_what_it_was_let_in_with() -> None:
    """Four tools, each let in with another kind."""
    refused: list[Exception] = []
    for tool in tools_with_credentials():
        try:
            by_a_tool("quotes", tool)
        except RuntimeError as error:
            refused.append(error)
    raise RuntimeError(" ".join(map(str, refused))) from refused[-1]


@failure
def an_answer_of_oauth_is_refused() -> None:
    asked = OAuth2Auth(client_id="me", state="s", redirect_uri=URL, code_verifier=S["code verifier"])
    given = OAuth2Auth(auth_response_uri=f"{URL}/back?state=s&code={S['code']}", state="s")
    try:
        sync.run(oauth.token_for_answer(oauth_scheme(), asked, given))
    except Exception as error:
        raise RuntimeError(f"{given.auth_response_uri} with {asked.code_verifier} was of no use") from error


@failure
def a_service_account_cannot_be_read() -> None:
    key = ServiceAccountCredential(private_key=S["private key"], client_email="me@example.com")
    try:
        sync.run(fetch_token(ServiceAccount(service_account_credential=key)))
    except Exception as error:
        raise RuntimeError(f"in {key.model_dump_json()}") from error


@failure
def an_openapi_service_refuses_and_says_why() -> None:
    def raise_on_error(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> None:
        raise RuntimeError(str(tool_response))

    refused: list[Exception] = []
    for place, secret in ((APIKeyIn.query, "key in the query"), (APIKeyIn.cookie, "cookie")):
        tools = OpenAPIToolset(
            spec_dict={
                "openapi": "3.1.0",
                "info": {"title": "t", "version": "1"},
                "servers": [{"url": URL}],
                "paths": {"/echo": {"get": {"operationId": "look", "responses": {}}}},
            },
            auth_scheme=APIKey(in_=place, name="k"),
            auth_credential=AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key=S[secret]),
            header_provider=lambda context: {"X-Api-Key": S["provided header"]},
            allow_private_network_access=True,
        )
        try:
            run("openapi", LlmAgent(name="told", model=ScriptedLlm(call("look"), "ok"), tools=[tools]))
            run(
                "openapi",
                LlmAgent(
                    name="ended",
                    model=ScriptedLlm(call("look")),
                    tools=[tools],
                    after_tool_callback=raise_on_error,
                ),
            )
        except RuntimeError as error:
            refused.append(error)
    raise RuntimeError(" ".join(map(str, refused))) from refused[-1]


def mcp_params() -> list[Any]:
    dies = "import os, sys; sys.exit('with ' + os.environ['MY_SETTING'])"
    program = StdioServerParameters(command=sys.executable, args=["-c", dies], env={"MY_SETTING": S["mcp variable"]})
    web = StreamableHTTPConnectionParams(
        url=f"http://127.0.0.1:1/mcp?token={S['mcp address']}", headers={"Authorization": f"Bearer {S['mcp header']}"}
    )
    return [StdioConnectionParams(server_params=program), web]


def mcp_toolsets() -> list[McpToolset]:
    return [McpToolset(connection_params=params) for params in mcp_params()]


@failure
def mcp_servers_are_not_reached() -> None:
    last: Exception | None = None
    for toolset in mcp_toolsets():
        try:
            sync.run(toolset.get_tools())
        except Exception as error:
            error.__cause__, last = last or error.__cause__, error
    raise RuntimeError(f"no server was reached with {S['mcp header']}") from last


def gemini() -> Gemini:
    return Gemini(
        base_url=f"{URL}/gateway?key={S['gateway key']}",
        api_key=SecretStr(S["own gemini key"]),
        http_options=types.HttpOptions(headers={"X-Gateway-Token": S["gateway header"]}),
    )


@failure
def gemini_is_refused() -> None:
    def quote(callback_context: Any, llm_request: Any, error: Exception) -> None:
        raise RuntimeError(
            f"{model.base_url} {model.http_options} {model.api_key and model.api_key.get_secret_value()}"
        )

    model = gemini()
    run("gemini", LlmAgent(name="told", model=model, on_model_error_callback=quote))


@failure
def gemini_is_not_reached_through_the_proxy() -> None:
    try:
        once = types.HttpRetryOptions(attempts=1)
        run("proxy", LlmAgent(name="ended", model=Gemini(base_url="http://gateway.invalid", retry_options=once)))
    except Exception as error:
        raise RuntimeError(f"{os.environ['HTTP_PROXY']} with {os.environ['GOOGLE_API_KEY']}: {error}") from None


class Store(KeyringBackend):
    """The system's own store."""

    priority = 1  # pyright: ignore[reportAssignmentType]

    def get_password(self, service: str, username: str) -> str | None:
        return bearer(S["in the keyring"]).model_dump_json(by_alias=True, exclude_none=True)

    def set_password(self, service: str, username: str, password: str) -> None:
        raise NotImplementedError

    def delete_password(self, service: str, username: str) -> None:
        raise NotImplementedError


@failure
def what_was_kept_is_refused() -> None:
    keyring.set_keyring(Store())
    config = credentials()[1]
    held = config.model_copy(update={"exchanged_auth_credential": bearer(S["in a file"])})
    redaction.forget()  # as in a new kernel, where only what is loaded is known
    told: list[str] = []

    async def use(tool_context: ToolContext) -> None:
        """Loads what is kept."""
        files = FileCredentialService("kept")
        await files.save_credential(held, tool_context)
        for service in (files, KeyringCredentialService()):
            kept = await service.load_credential(config, tool_context)
            told.append(kept.model_dump_json() if kept else "")
        raise PermissionError(" ".join(told))

    by_a_tool("kept", FunctionTool(use))


@failure
def a_tool_reads_its_environment() -> None:
    def pay() -> None:
        """Pays."""
        key, password = os.environ["STRIPE_API_KEY"], os.environ["BILLING_PASSWORD"]
        logging.getLogger("adk_nb.tools.pay").debug("paying with %s", os.environ["LOG_TOKEN"])
        raise KeyError(f"{key} at {os.environ['DATABASE_URL']}", password)

    by_a_tool("pay", FunctionTool(pay))


@failure
def errors_are_chained() -> None:
    def chain() -> None:
        """Chains."""
        try:
            try:
                raise ValueError(os.environ["CONTEXT_TOKEN"])
            except ValueError:
                raise LookupError(os.environ["CHAIN_TOKEN"])  # noqa: B904  # the context is what this is about
        except LookupError as error:
            odd = os.environ["ODD_SECRET"]
            noted = RuntimeError(f"noted {odd} {odd!r} {json.dumps(odd)}")
            noted.add_note(f"with {os.environ['NOTE_TOKEN']}")
            logging.getLogger("library").exception("it failed")
            raise noted from error

    by_a_tool("chain", FunctionTool(chain))


@failure
def errors_come_in_a_group() -> None:
    raise ExceptionGroup("several", [ValueError(os.environ["GROUP_TOKEN"]), KeyError("other")])


@failure
def a_secret_that_the_author_names() -> None:
    redaction.remember(S["named by the author"])
    long = f"{'x' * 60}{S['named by the author']}{'y' * 60}"
    raise RuntimeError(f"{long} {base64.b64encode(b'anything').decode()}")


def pickled() -> list[str]:
    """The names of what was pickled, into files; and why the others were not."""
    told: list[str] = []
    things = {
        "credential": credentials()[0].raw_auth_credential,
        "config": credentials()[3],
        "mcp": mcp_toolsets()[0],
        "web": mcp_params()[1],
        "gemini": gemini(),
        "agent": LlmAgent(name="agent", model=gemini()),
        "tool": tools_with_credentials()[0],
        "environment": LlmAgent(name="agent", model=Gemini()),
    }
    for name, thing in things.items():
        try:
            Path(f"{name}.pickle").write_bytes(pickle.dumps(thing))
            told.append(name)
        except Exception as error:
            told.append(f"{name}: {type(error).__name__}")
    return told


def shown() -> list[Any]:
    """Whatever a reader may put at the end of a cell."""
    raw = [config.raw_auth_credential for config in credentials()]
    agent = LlmAgent(name="agent", model=gemini(), tools=[*tools_with_credentials()[:1], *mcp_toolsets()])
    return [agent, agent.model, agent.tools, credentials(), raw, mcp_params(), mcp_toolsets()]


def record() -> str:
    """A cassette of a conversation in which secrets are said, and a tool fails with one."""

    def fails() -> None:
        """Fails."""
        raise RuntimeError(os.environ["STRIPE_API_KEY"])

    path = Path("cassette.jsonl")
    path.unlink(missing_ok=True)
    answers = ScriptedLlm(call("fails"), "done")
    agent = LlmAgent(name="recorded", model=RecordedLlm(path, record=answers), tools=[fails])
    runner = Runner(app_name="app", agent=agent, session_service=InMemorySessionService(), auto_create_session=True)
    for _ in runner.run(user_id="u", session_id="s", new_message=f"pay with {os.environ['STRIPE_API_KEY']}"):
        pass
    return path.read_text()


def events(file: str) -> None:
    """All sessions so far, into `file`."""

    async def taken() -> list[str]:
        told: list[str] = []
        for one in (await SESSIONS.list_sessions(app_name="app", user_id="u")).sessions:
            where = {"app_name": "app", "user_id": "u", "session_id": one.id}
            session = await SESSIONS.get_session(**where)
            told.append(session.model_dump_json() if session else "")
            await SESSIONS.delete_session(**where)
        return told

    Path(file).write_text("\n".join(sync.run(taken())))
