"""OpenAPI documents as tools, against a service on this machine that tells what it was sent."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from adk_nb import parts, sync, types
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
    OAuthFlows,
)
from adk_nb.auth.auth_credential import HIDDEN
from adk_nb.errors import ConfigurationError
from adk_nb.models import ScriptedLlm, call
from adk_nb.runtime import credentials
from adk_nb.tools import web_access
from adk_nb.tools.openapi_tool import OpenAPIToolset, RestApiTool
from adk_nb.tools.openapi_tool.operation import in_path
from tests.support.each import each
from tests.support.talk import Talk, summaries

LOOK_UP = socket.getaddrinfo
PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)
ANSWERS: dict[str, tuple[int, str, bytes]] = {
    "/text": (200, "text/plain", b"just words"),
    "/list": (200, "application/json", b"[1, 2]"),
    "/nothing": (204, "", b""),
    "/picture": (200, "image/png", PNG),
    "/wrong": (404, "application/json", b'{"detail": "no such pet"}'),
    "/broken": (500, "text/html", b"<p>" + b"x" * 9_000),
    "/much": (200, "text/plain", b"y" * 5_000),
    "/elsewhere": (302, "", b""),
}


class Service(BaseHTTPRequestHandler):
    """Answers what `ANSWERS` says for a path, and for all others with what was asked, as JSON."""

    def answer(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        status, kind, data = ANSWERS.get(url.path, (200, "application/json", b""))
        if url.path not in ANSWERS:
            request = {
                "method": self.command,
                "path": url.path,
                "query": parse_qsl(url.query, keep_blank_values=True),
                "headers": {key.lower(): value for key, value in self.headers.items()},
                "body": body.decode("utf-8", "replace"),
            }
            data = json.dumps(request).encode()
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        if status == 302:
            self.send_header("Location", "http://127.0.0.1:1/secret")
        self.send_header("Set-Cookie", "known=you; Path=/")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as service:
        service.daemon_threads = True
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{service.server_address[1]}"
        service.shutdown()
        thread.join(30)


def document(paths: dict[str, Any], server: str = "https://example.com", **kwargs: Any) -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "servers": [{"url": server}],
        "paths": paths,
    } | kwargs


def toolset(server: str, paths: dict[str, Any], more: dict[str, Any] | None = None, **options: Any) -> OpenAPIToolset:
    options = {"allow_private_network_access": True} | options
    return OpenAPIToolset(spec_dict=document(paths, server, **(more or {})), **options)


def ask(tools: OpenAPIToolset, name: str, /, **args: Any) -> Any:
    """What the model gets when it calls a tool."""
    model = ScriptedLlm(call(name, **args), "done")
    talk = Talk(LlmAgent(name="a", model=model, tools=[tools]))
    events = talk.say()
    assert talk.error is None
    [response] = events[1].get_function_responses()
    return response.response


def schema_of(tools: OpenAPIToolset, name: str) -> Any:
    tool = tools.get_tool(name)
    assert tool and tool.declaration
    return tool.declaration.parameters_json_schema


PETS: dict[str, Any] = {
    "/pets/{petId}": {
        "parameters": [{"name": "petId", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 1}}],
        "get": {
            "operationId": "getPet",
            "summary": "One pet.",
            "parameters": [
                {"$ref": "#/components/parameters/fields"},
                {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                {"name": "lang", "in": "cookie", "schema": {"type": "string", "default": "en"}},
                {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
            ],
        },
        "put": {
            "operationId": "update-pet",
            "description": "Changes a pet.",
            "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}},
        },
        "delete": {"summary": "Takes a pet away."},
    },
}
COMPONENTS = {
    "components": {
        "parameters": {
            "fields": {"name": "fields", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}}
        },
        "schemas": {
            "Pet": {
                "type": "object",
                "required": ["petId", "name", "id"],
                "properties": {
                    "id": {"type": "integer", "readOnly": True},
                    "petId": {"type": "string"},
                    "name": {"type": "string", "description": "What it is called.", "maxLength": 10},
                    "tag": {"type": "string", "nullable": True},
                    "friends": {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}},
                },
            }
        },
    }
}


def test_each_operation_is_a_tool():
    tools = toolset("https://example.com/v1/", PETS, COMPONENTS)

    matches: list[Any] = sync.run(tools.get_tools())

    assert [repr(match) for match in matches] == [
        "RestApiTool(get_pet: GET https://example.com/v1/pets/{petId})",
        "RestApiTool(update_pet: PUT https://example.com/v1/pets/{petId})",
        "RestApiTool(pets_pet_id_delete: DELETE https://example.com/v1/pets/{petId})",
    ]
    assert [match.description for match in matches] == ["One pet.", "Changes a pet.", "Takes a pet away."]
    assert all(isinstance(match, RestApiTool) for match in matches)


def test_the_model_is_told_of_every_place_and_of_the_fields_of_a_body():
    tools = toolset("https://example.com", PETS, COMPONENTS)

    assert schema_of(tools, "update_pet") == {
        "type": "object",
        "properties": {
            "pet_id": {"type": "integer", "minimum": 1},
            "body_pet_id": {"type": "string"},
            "name": {"type": "string", "description": "What it is called.", "maxLength": 10},
            "tag": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "friends": {"type": "array", "items": {"$ref": "#/$defs/Pet"}},
        },
        "required": ["pet_id", "body_pet_id", "name"],
        "$defs": {
            "Pet": {
                "type": "object",
                "required": ["petId", "name"],
                "properties": {
                    "petId": {"type": "string"},
                    "name": {"type": "string", "description": "What it is called.", "maxLength": 10},
                    "tag": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "friends": {"type": "array", "items": {"$ref": "#/$defs/Pet"}},
                },
            }
        },
    }


def test_arguments_go_where_the_document_says(server: str):
    tools = toolset(server, PETS, COMPONENTS)

    reply = ask(tools, "get_pet", pet_id=3, fields=["a b", "c"], x_trace="t1", authorization="mine")

    assert (reply["method"], reply["path"], reply["query"]) == ("GET", "/pets/3", [["fields", "a b"], ["fields", "c"]])
    assert reply["headers"]["x-trace"] == "t1"
    assert reply["headers"]["cookie"] == "lang=en"
    assert "authorization" not in reply["headers"]


def test_a_body_is_sent_under_the_names_of_the_service(server: str):
    reply = ask(toolset(server, PETS, COMPONENTS), "update_pet", pet_id=3, body_pet_id="x", name="Rex", tag=None)

    assert (reply["method"], reply["path"]) == ("PUT", "/pets/3")
    assert json.loads(reply["body"]) == {"petId": "x", "name": "Rex"}
    assert reply["headers"]["content-type"] == "application/json"


def test_names_can_be_kept_and_repeated_names_are_numbered():
    paths: dict[str, Any] = {
        "/a": {"get": {"operationId": "go", "parameters": [{"name": "someThing", "in": "query", "schema": {}}]}},
        "/b": {"get": {"operationId": "Go"}},
        "/3d": {"get": {}},
        "/" + "long" * 30: {"get": {}},
    }
    tools = toolset("https://example.com", paths, preserve_property_names=True)

    names = [tool.name for tool in sync.run(tools.get_tools())]

    assert names == ["go", "go_2", "_3d_get", ("long" * 30)[:60]]
    assert list(schema_of(tools, "go")["properties"]) == ["someThing"]
    assert schema_of(tools, "go_2") is None


@pytest.mark.parametrize(
    ("response", "value", "query"),
    [
        ({}, [1, 2], [["q", "1"], ["q", "2"]]),
        ({"explode": False}, ["a", "b"], [["q", "a,b"]]),
        ({"style": "pipeDelimited", "explode": False}, ["a", "b"], [["q", "a|b"]]),
        ({"style": "deepObject"}, {"a": 1, "b": True}, [["q[a]", "1"], ["q[b]", "true"]]),
        ({}, {"a": "x"}, [["a", "x"]]),
        ({"explode": False}, {"a": 1}, [["q", "a,1"]]),
        ({"content": {"application/json": {"schema": {}}}}, {"a": 1}, [["q", '{"a": 1}']]),
        ({}, "ü &=", [["q", "ü &="]]),
        ({}, False, [["q", "false"]]),
    ],
)
def test_a_value_in_a_query_has_the_form_that_the_document_asks_for(
    server: str, response: dict[str, Any], value: Any, query: list[list[str]]
):
    paths = {"/q": {"get": {"operationId": "q", "parameters": [{"name": "q", "in": "query", "schema": {}} | response]}}}

    assert ask(toolset(server, paths), "q", q=value)["query"] == query


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("a/b..c d", "/p/a%2Fb..c%20d/end"),
        ("?x#y", "/p/%3Fx%23y/end"),
        (".git", "/p/.git/end"),
        *[(text, None) for text in ("..", ".", "", "../../admin", "a/../b", "..\\x", "a\r\nX: 1", "a\x00")],
    ],
)
def test_a_value_in_a_path_stays_one_step(server: str, value: str, path: str | None):
    paths = {
        "/p/{step}/end": {
            "get": {"operationId": "p", "parameters": [{"name": "step", "in": "path", "schema": {"type": "string"}}]}
        }
    }

    answer = ask(toolset(server, paths), "p", step=value)

    assert answer.get("path") == path
    if path is None:
        assert answer == {"error": f"p() was not called: step={value!r} is not allowed in a URL path"}


@pytest.mark.parametrize("value", [["a\nb"], {"a\x00": 1}, {"a": "b\rc"}])
def test_a_control_character_of_an_item_is_refused_in_a_path(value: Any):
    with pytest.raises(ValueError, match="not allowed in a URL path"):
        in_path("id", "simple", False, value)


def body_of(kind: str, schema: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
    return {"/b": {"post": {"operationId": "b", "requestBody": {"content": {kind: {"schema": schema}}} | kwargs}}}


FIELDS = {"type": "object", "properties": {"name": {"type": "string"}, "more": {}, "file": {"format": "binary"}}}


def test_a_form_is_sent_as_a_form(server: str):
    reply = ask(toolset(server, body_of("application/x-www-form-urlencoded", FIELDS)), "b", name="a b&c", more=[1, 2])

    assert reply["body"] == "name=a+b%26c&more=1&more=2"
    assert reply["headers"]["content-type"] == "application/x-www-form-urlencoded"


def test_a_file_is_sent_as_a_part_of_a_form(server: str):
    reply = ask(toolset(server, body_of("multipart/form-data", FIELDS)), "b", name="x", file="bytes of it")

    assert reply["headers"]["content-type"].startswith("multipart/form-data; boundary=")
    assert 'name="file"; filename="file"\r\nContent-Type: application/octet-stream\r\n\r\nbytes of it' in reply["body"]
    assert 'name="name"\r\n\r\nx\r\n' in reply["body"]


@pytest.mark.parametrize(
    ("kind", "schema", "value", "body"),
    [
        ("text/plain", {"type": "string"}, "words", "words"),
        ("application/octet-stream", {"type": "string", "contentEncoding": "base64"}, "aGk=", "hi"),
        ("application/json", {"type": "array", "items": {"type": "integer"}}, [1, 2], "[1, 2]"),
        ("application/json", {"type": "string"}, "a", '"a"'),
        ("application/json", {"oneOf": [{"type": "object"}, {"type": "null"}]}, {"a": 1}, '{"a": 1}'),
        ("application/merge-patch+json", {"type": "object"}, {"a": 1}, '{"a": 1}'),
    ],
)
def test_a_body_that_is_no_object_of_known_fields_is_one_argument(
    server: str, kind: str, schema: dict[str, Any], value: Any, body: str
):
    reply = ask(toolset(server, body_of(kind, schema)), "b", body=value)

    assert (reply["body"], reply["headers"]["content-type"]) == (body, kind)


def test_a_body_made_of_several_schemas_has_the_fields_of_all():
    schema = {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"properties": {"age": {}}, "required": ["age"]}]}
    tools = toolset("https://example.com", body_of("application/json", schema), COMPONENTS)

    told_of = schema_of(tools, "b")

    assert list(told_of["properties"]) == ["pet_id", "name", "tag", "friends", "age"]
    assert told_of["required"] == ["pet_id", "name", "age"]


def test_the_limits_of_version_3_0_are_told_as_json_schema_tells_them():
    schema = {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False}
    tools = toolset("https://example.com", body_of("application/json", schema, required=False))

    assert schema_of(tools, "b") == {
        "type": "object",
        "properties": {"body": {"type": "number", "exclusiveMinimum": 0, "maximum": 9}},
    }


@pytest.mark.parametrize(
    ("args", "wrong"),
    [
        ({}, "'pet_id' is a required property"),
        ({"pet_id": 0}, "pet_id: 0 is less than the minimum of 1"),
        ({"pet_id": "x"}, "pet_id: 'x' is not of type 'integer'"),
    ],
)
def test_arguments_that_do_not_fit_go_back_to_the_model_and_nothing_is_sent(args: dict[str, Any], wrong: str):
    answer = ask(toolset("http://127.0.0.1:9", PETS, COMPONENTS), "get_pet", **args)

    assert answer == {
        "error": f"get_pet() was not called: wrong arguments: {wrong}. Call it again with arguments that fit."
    }


def answers_of(server: str, path: str, **options: Any) -> Any:
    return ask(toolset(server, {path: {"get": {"operationId": "f"}}}, **options), "f")


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/text", {"text": "just words"}),
        ("/list", {"result": [1, 2]}),
        ("/nothing", {"text": ""}),
        ("/wrong", {"error": 'f: HTTP 404: {"detail": "no such pet"}'}),
        ("/broken", {"error": "f: HTTP 500: <p>" + "x" * 1_997}),
        ("/elsewhere", {"error": "f: ConnectError: All connection attempts failed"}),
        ("/picture", {"content": {"media": "image/png", "bytes": 28, "part": 1}, "media_type": "image/png"}),
    ],
)
def test_what_is_answered_is_the_result(server: str, path: str, answer: dict[str, Any]):
    assert answers_of(server, path) == answer


def test_no_more_is_read_than_the_limit(server: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(web_access, "MAX_BYTES", 1_000)

    assert answers_of(server, "/much") == {"text": "y" * 1_000, "note": "the answer was cut after 1000 bytes"}


def test_a_service_that_is_not_there_is_an_error_for_the_model():
    answer = answers_of("http://127.0.0.1:9", "/text")

    assert answer["error"].startswith("f: ConnectError: ")


def test_what_a_service_sets_is_not_sent_with_the_next_request(server: str):
    tools = toolset(server, {"/echo": {"get": {"operationId": "f"}}})
    ask(tools, "f")

    assert "cookie" not in ask(tools, "f")["headers"]


def test_headers_of_the_author_are_sent_and_not_told(server: str):
    async def key(context: Any) -> dict[str, str]:
        return {"X-Tenant": f"tenant of {context.user_id}", "X-Key": f"secret of {context.user_id}"}

    paths = {"/echo": {"get": {"operationId": "f"}}}
    tools = toolset(server, paths, header_provider=key)

    headers = ask(tools, "f")["headers"]

    assert (headers["x-tenant"], headers["x-key"]) == ("tenant of u", HIDDEN)
    assert schema_of(tools, "f") is None


def api_key(place: str) -> APIKey:
    return APIKey(in_=APIKeyIn(place), name="k")


def http(scheme: str, **kwargs: str) -> AuthCredential:
    auth = HttpAuth(scheme=scheme, credentials=HttpCredentials(**kwargs), additional_headers={"X-More": "1"})
    return AuthCredential(auth_type=AuthCredentialTypes.HTTP, http=auth)


KEY = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="a-long-key")
TOKEN = AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=OAuth2Auth(access_token="a-long-token"))


@pytest.mark.parametrize(
    ("scheme", "credential", "header", "value"),
    [
        (api_key("header"), KEY, "k", "a-long-key"),
        (api_key("cookie"), KEY, "cookie", "lang=en; k=a-long-key"),
        (HTTPBase(scheme="bearer"), http("bearer", token="a-long-token"), "authorization", "Bearer a-long-token"),
        (HTTPBase(scheme="basic"), http("basic", username="u", password="p"), "authorization", "Basic dTpw"),
        (HTTPBase(scheme="bearer"), http("bearer", token="a-long-token"), "x-more", "1"),
        (OAuth2(flows=OAuthFlows()), TOKEN, "authorization", "Bearer a-long-token"),
    ],
)
def test_a_credential_is_shown_as_the_scheme_says_and_hidden_from_the_model(
    server: str, scheme: Any, credential: AuthCredential, header: str, value: str
):
    tools = toolset(server, PETS, COMPONENTS, auth_scheme=scheme, auth_credential=credential)

    reply = ask(tools, "get_pet", pet_id=1)

    assert reply["headers"][header] == value.replace("a-long-key", HIDDEN).replace("a-long-token", HIDDEN)


def test_a_key_may_be_part_of_the_query(server: str):
    tools = toolset(server, PETS, COMPONENTS, auth_scheme=api_key("query"), auth_credential=KEY)

    assert ask(tools, "get_pet", pet_id=1, fields=["a"])["query"] == [["fields", "a"], ["k", HIDDEN]]


def test_a_person_is_asked_for_a_key_and_again_if_the_service_rejects_it(server: str):
    ANSWERS["/closed"] = (401, "text/plain", b"who are you?")
    paths = {"/closed": {"get": {"operationId": "f"}}}
    tools = toolset(server, paths, auth_scheme=api_key("header"), credential_key="shop")
    model = ScriptedLlm(call("f"), "I asked.", "Again.")
    talk = Talk(LlmAgent(name="a", model=model, tools=[tools]))
    ids = [call.id for event in talk.say() for call in event.get_function_calls() if call.name == credentials.REQUEST]

    result = parts.result(ids[0] or "", credentials.REQUEST, {"apiKey": "a-long-key"})
    answer = types.Content(role="user", parts=[result])
    events = talk.say(answer)

    repeated_ids = [
        call.id for event in events for call in event.get_function_calls() if call.name == credentials.REQUEST
    ]
    assert len(repeated_ids) == 1 and repeated_ids != ids
    assert "a-long-key" not in talk.stored().model_dump_json()


def test_a_key_of_the_author_that_is_rejected_is_an_error(server: str):
    ANSWERS["/closed"] = (401, "text/plain", b"who are you?")

    answer = answers_of(server, "/closed", auth_scheme=api_key("header"), auth_credential=KEY)

    assert answer == {"error": "f: HTTP 401: who are you?"}


@each("host", [
        "127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254", "localhost.",
        "10.0.0.1", "100.64.0.1", "[fd00::1]", "[64:ff9b::7f00:1]", "0.0.0.0", "[::127.0.0.1]",
    ])  # fmt: skip
def test_this_machine_and_private_networks_are_not_reached_unless_the_author_says_so(
    host: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("socket.getaddrinfo", lambda host, *args, **kwargs: LOOK_UP(host.rstrip("."), *args, **kwargs))

    answer = answers_of(f"http://{host}:9", "/text", allow_private_network_access=False)

    assert "allow_private_network_access=True" in answer["error"]


def test_a_name_is_looked_up_once_and_reached_at_the_address_that_was_checked(
    server: str, monkeypatch: pytest.MonkeyPatch
):
    looked_up: list[str] = []
    port = urlsplit(server).port

    def rebinding(host: str, *args: Any, **kwargs: Any) -> Any:
        looked_up.append(host)
        return [(2, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr("socket.getaddrinfo", rebinding)
    monkeypatch.setattr(web_access, "is_public", lambda address: len(looked_up) == 1)

    answers = answers_of(f"http://shop.example:{port}", "/echo", allow_private_network_access=False)

    assert (answers["path"], answers["headers"]["host"]) == ("/echo", f"shop.example:{port}")
    assert looked_up[0] == "shop.example" and "shop.example" not in looked_up[1:]


def test_one_private_address_among_several_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        "socket.getaddrinfo",
        lambda host, port, *args: [(2, 1, 6, "", (text, port)) for text in ("8.8.8.8", "10.0.0.1")],
    )

    answer = answers_of("http://shop.example", "/text", allow_private_network_access=False)

    assert "'shop.example'" in answer["error"]


@pytest.mark.parametrize("asks", [True, lambda pet_id: pet_id > 2, "pet_id > 2", "pet_id < 9 and name > 2"])
def test_a_person_can_be_asked_before_a_request_is_sent(server: str, asks: Any):
    model = ScriptedLlm(call("get_pet", pet_id=3), "done")
    tools = toolset(server, PETS, COMPONENTS, require_confirmation=asks)

    events = Talk(LlmAgent(name="a", model=model, tools=[tools])).say()

    assert [line for _, line in summaries(events) if "adk_request_confirmation" in line]


def test_an_expression_lets_a_request_pass_that_needs_nobody_and_names_what_some_operation_has(server: str):
    model = ScriptedLlm(call("get_pet", pet_id=3), "done")
    tools = toolset(server, PETS, COMPONENTS, require_confirmation="pet_id > 3")

    events = Talk(LlmAgent(name="a", model=model, tools=[tools])).say()

    assert not [line for _, line in summaries(events) if "adk_request_confirmation" in line]
    with pytest.raises(ConfigurationError, match=r"^OpenAPIToolset: .* there is no 'petid'; did you mean pet_id\?"):
        toolset(server, PETS, COMPONENTS, require_confirmation="petid > 3")


def test_an_approval_holds_for_the_service_that_was_asked_about(server: str):
    model = ScriptedLlm(call("get_pet", pet_id=3), "done")
    agent = LlmAgent(name="a", model=model, tools=[toolset(server, PETS, COMPONENTS, require_confirmation=True)])
    talk = Talk(agent)
    [function_call] = talk.say()[1].get_function_calls()
    agent.tools[:] = [toolset(f"{server}/other", PETS, COMPONENTS, require_confirmation=True)]
    yes = types.FunctionResponse(id=function_call.id, name=function_call.name, response={"confirmed": True})

    events = talk.say(types.Content(role="user", parts=[types.Part(function_response=yes)]))

    assert "redefined" in summaries(events)[0][1]


def test_text_in_json_and_yaml_is_read():
    text = "openapi: 3.0.3\nservers: [{url: 'https://{at}.example', variables: {at: {default: eu}}}]\n" + (
        "paths:\n  /now:\n    get:\n      parameters: [{name: day, in: query, schema: {default: 2020-01-01}}]\n"
    )
    yaml = OpenAPIToolset(spec_str=text, spec_str_type="yaml")
    in_json = OpenAPIToolset(spec_str=json.dumps(document(PETS, **COMPONENTS)))

    [tool] = sync.run(yaml.get_tools())

    assert repr(tool) == "RestApiTool(now_get: GET https://eu.example/now)"
    assert schema_of(yaml, "now_get")["properties"] == {"day": {"default": "2020-01-01"}}
    assert in_json.get_tool("get_pet")


@each(
    "options, message",
    [
        ({}, "one document"),
        ({"spec_dict": {}, "spec_str": "{}"}, "one document"),
        ({"spec_dict": {"swagger": "2.0"}}, "not an OpenAPI 3 document"),
        ({"spec_str": "{"}, "not valid JSON"),
        (
            {"spec_dict": document({}), "auth_credential": KEY},
            "; write auth_scheme=",
        ),
        (
            {"spec_dict": document({}), "auth_credential": "the-key"},
            "got str; .* AuthCredential",
        ),
        ({"spec_dict": document({}), "auth_credential": {"key": "the-key"}}, "security scheme, .*got str;"),
        ({"spec_dict": "openapi: 3.0.3"}, "got str; .* spec_str=..., spec_str_type="),
        ({"spec_str": "a: [", "spec_str_type": "yaml"}, "not valid YAML"),
        ({"spec_str": "[]"}, "an object, got"),
        ({"spec_str": "", "spec_str_type": "toml"}, "'json' or 'yaml', got 'toml'"),
        ({"spec_dict": document({"/a": {"get": {}}}, "/v1")}, "'/v1', which .* absolute URL"),
        ({"spec_dict": document({"/a": {"get": {}}}, "file:///etc")}, "'file:///etc', which .* absolute URL"),
        ({"spec_dict": document({"/a": {"$ref": "http://127.0.0.1/x"}})}, "'http://127.0.0.1/x', which is not"),
        ({"spec_dict": document({"/a": {"get": {"parameters": [{"$ref": "#/no"}]}}})}, "'#/no', which is not"),
        (
            {"spec_dict": document({"/a": {"$ref": "#/components/x"}}, components={"x": {"$ref": "#/components/x"}})},
            "in a circle",
        ),
    ],
)
def test_a_document_that_cannot_be_used_is_told_at_once(options: dict[str, Any], message: str):
    with pytest.raises(ConfigurationError, match=message):
        OpenAPIToolset(**options)


@pytest.mark.parametrize(
    "again", [{"memo": None}, {"x_note": None}, {"to": "bob"}, {"to": None}, {"made_up": 1}, {"amount": 1.0}]
)
def test_a_repeated_call_is_known_by_what_it_sends(server: str, again: dict[str, Any]):
    fields = {"amount": {"type": "number"}, "to": {"type": "string", "default": "bob"}, "memo": {"type": "string"}}
    body = {"content": {"application/json": {"schema": {"type": "object", "properties": fields}}}}
    header = {"name": "x-note", "in": "header", "schema": {"type": "string"}}
    paths = {"/pay": {"post": {"operationId": "pay", "parameters": [header], "requestBody": body, "responses": {}}}}
    tools = toolset(server, paths, require_confirmation="amount > 100")
    model = ScriptedLlm(call("pay", amount=1), call("pay", **({"amount": 1} | again)), "done")
    events = Talk(LlmAgent(name="a", model=model, tools=[tools])).say()
    sent = [
        one.response for event in events for one in event.get_function_responses() if "path" in (one.response or {})
    ]
    assert len(sent) == 1
