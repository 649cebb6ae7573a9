"""What an OpenAPI document can say, and what a request looks like then: styles, bodies, ways to be let in, YAML."""

import http.server
import sys
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.auth import AuthCredential, AuthCredentialTypes, HttpAuth, HttpCredentials, OAuth2Auth, ServiceAccount
from adk_nb.errors import ConfigurationError
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.runtime import credentials, interrupts
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import CREDENTIALS
from adk_nb.tools.openapi_tool import OpenAPIToolset
from adk_nb.tools.openapi_tool.auth import auth_helpers
from adk_nb.tools.openapi_tool.auth.auth_helpers import dict_to_auth_scheme, token_to_scheme_credential
from tests.auth.auth_server import CLIENT, CLIENT_SECRET, REDIRECT, auth_server
from tests.models import live_server
from tests.support.each import each
from tests.support.late import late
from tests.support.talk import Talk

fastapi_models = late("fastapi.openapi.models")


def results(events: list[Event]) -> list[Any]:
    return [response.response for event in events for response in event.get_function_responses()]


class Asked:
    """A toolset of one operation `f`, and the requests that it sends: they are answered with `{}`."""

    def __init__(self, operation: dict[str, Any], path: str = "/f", method: str = "post", **options: Any) -> None:
        self.sent: list[tuple[httpx2.Request, bytes]] = []
        self.status = iter([200] * 9)
        document = {
            "openapi": "3.1.0",
            "servers": [{"url": "https://shop.example/v1"}],
            "paths": {path: {method: {"operationId": "f"} | operation}},
        } | options.pop("document", {})
        self.tools = OpenAPIToolset(
            spec_dict=document,
            httpx_client_factory=lambda: httpx2.AsyncClient(transport=httpx2.MockTransport(self.answer)),
            allow_private_network_access=True,
            **options,
        )

    def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append((request, request.read()))
        return httpx2.Response(next(self.status), json={})

    def ask(self, **args: Any) -> Any:
        """What the model gets."""
        talk = Talk(LlmAgent(name="a", model=ScriptedLlm(call("f", **args), "done"), tools=[self.tools]))
        events = talk.say()
        assert talk.error is None
        return results(events)[-1]

    def says(self, **args: Any) -> tuple[httpx2.Request, bytes]:
        """The request that is sent."""
        assert self.ask(**args) == {}
        return self.sent[-1]

    @property
    def schema(self) -> Any:
        tool = self.tools.get_tool("f")
        assert tool and tool.declaration
        return tool.declaration.parameters_json_schema


def parameter(place: str, **kwargs: Any) -> dict[str, Any]:
    return {"parameters": [{"name": "a", "in": place, "required": True, "schema": {}} | kwargs]}


LIST, OBJECT = ["x,y", "z"], {"R": 100, "G": "a b"}


@each(
    "style, explode, value, step",
    [
        ("simple", False, "a b/c", "a%20b%2Fc"),
        ("simple", False, LIST, "x%2Cy,z"),
        ("simple", True, LIST, "x%2Cy,z"),
        ("simple", False, OBJECT, "R,100,G,a%20b"),
        ("simple", True, OBJECT, "R=100,G=a%20b"),
        ("label", False, 5, ".5"),
        ("label", False, LIST, ".x%2Cy,z"),
        ("label", True, LIST, ".x%2Cy.z"),
        ("label", False, OBJECT, ".R,100,G,a%20b"),
        ("label", True, OBJECT, ".R=100.G=a%20b"),
        ("matrix", False, 5, ";a=5"),
        ("matrix", False, LIST, ";a=x%2Cy,z"),
        ("matrix", True, LIST, ";a=x%2Cy;a=z"),
        ("matrix", False, OBJECT, ";a=R,100,G,a%20b"),
        ("matrix", True, OBJECT, ";R=100;G=a%20b"),
    ],
)
def test_a_value_in_a_path_has_its_style(style: str, explode: bool, value: Any, step: str):
    sent_request = Asked(parameter("path", style=style, explode=explode), "/p/{a}/end")

    request, _ = sent_request.says(a=value)

    assert request.url.raw_path.decode() == f"/v1/p/{step}/end"


@each(
    "response, value, query",
    [
        ({}, LIST, "a=x%2Cy&a=z"),
        ({"explode": False}, LIST, "a=x%2Cy,z"),
        ({}, OBJECT, "R=100&G=a%20b"),
        ({"explode": False}, OBJECT, "a=R,100,G,a%20b"),
        ({"style": "spaceDelimited"}, LIST, "a=x%2Cy%20z"),
        ({"style": "spaceDelimited", "explode": True}, LIST, "a=x%2Cy&a=z"),
        ({"style": "pipeDelimited"}, LIST, "a=x%2Cy%7Cz"),
        ({"style": "pipeDelimited"}, OBJECT, "a=R%7C100%7CG%7Ca%20b"),
        ({"style": "deepObject"}, {"a": {"b": [1, 2]}, "c": True}, "a%5Ba%5D%5Bb%5D=1&a%5Ba%5D%5Bb%5D=2&a%5Bc%5D=true"),
        ({"allowReserved": True}, "a/b?c=d&e#f", "a=a/b?c%3Dd%26e%23f"),
        ({"schema": {"type": "array"}}, [], ""),
        ({"name": "filter[x]"}, "y", "filter%5Bx%5D=y"),
        ({"content": {"application/json": {"schema": {}}}}, {"b": "ü"}, "a=%7B%22b%22%3A%20%22%C3%BC%22%7D"),
    ],
)
def test_a_value_in_a_query_has_its_style(response: dict[str, Any], value: Any, query: str):
    sent_request = Asked(parameter("query", **response))
    [name] = sent_request.schema["properties"]

    request, _ = sent_request.says(**{name: value})

    assert request.url.query.decode() == query


def test_a_path_may_have_a_query_of_its_own():
    request, _ = Asked(parameter("query"), "/f?version=2").says(a=1)

    assert request.url.query == b"version=2&a=1"


@pytest.mark.parametrize(
    ("explode", "value", "header"),
    [(False, [1, "b"], "1,b"), (False, OBJECT, "R,100,G,a b"), (True, OBJECT, "R=100,G=a b")],
)
def test_a_value_in_a_header_has_its_style(explode: bool, value: Any, header: str):
    request, _ = Asked(parameter("header", name="X-A", explode=explode)).says(x_a=value)

    assert request.headers["x-a"] == header


def body(kind: str, properties: dict[str, Any], encoding: Any = None, **kwargs: Any) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": {"type": "object", "properties": properties}}
    return {"requestBody": {"content": {kind: content | ({"encoding": encoding} if encoding else {})}} | kwargs}


FORM, PARTS = "application/x-www-form-urlencoded", "multipart/form-data"


@pytest.mark.parametrize(
    ("encoding", "value", "form"),
    [
        (None, ["x y", "z"], "a=x+y&a=z"),
        (None, {"b": 1}, "a=%7B%22b%22%3A+1%7D"),
        (None, True, "a=true"),
        ({"style": "deepObject", "explode": True}, {"b": 1}, "a%5Bb%5D=1"),
        ({"style": "form", "explode": False}, ["x", "z"], "a=x,z"),
        ({"explode": True}, {"b": 1, "c": 2}, "b=1&c=2"),
        ({"contentType": "application/json"}, [1], "a=%5B1%5D"),
    ],
)
def test_a_field_of_a_form_is_encoded_as_the_document_says(encoding: Any, value: Any, form: str):
    request = Asked(body(FORM, {"a": {}}, encoding and {"a": encoding}))

    assert request.says(a=value)[1].decode() == form


BINARY = {"type": "string", "format": "binary"}


@each(
    "schema, encoding, value, parts",
    [
        ({}, None, "x", ['name="a"\r\n\r\nx']),
        (BINARY, None, "x", ['name="a"; filename="a"\r\nContent-Type: application/octet-stream\r\n\r\nx']),
        (BINARY, {"contentType": "image/png, image/*"}, "x", ["Content-Type: image/png\r\n\r\nx"]),
        ({"anyOf": [BINARY, {"type": "null"}]}, None, "x", ['filename="a"']),
        ({"type": "array", "items": BINARY}, None, ["x", "y"], ["octet-stream\r\n\r\nx", "octet-stream\r\n\r\ny"]),
        ({}, None, ["x", 2], ['name="a"\r\n\r\nx', 'name="a"\r\n\r\n2']),
        ({}, None, {"b": 1}, ['Content-Type: application/json\r\n\r\n{"b": 1}']),
        ({}, {"contentType": "application/json"}, "x", ['Content-Type: application/json\r\n\r\n"x"']),
        ({"type": "string", "contentEncoding": "base64"}, None, "aGk=", ["octet-stream\r\n\r\nhi"]),
    ],
)
def test_a_part_is_sent_as_the_document_says(schema: Any, encoding: Any, value: Any, parts: list[str]):
    request = Asked(body(PARTS, {"a": schema}, encoding and {"a": encoding}))

    text = request.says(a=value)[1].decode()

    assert all(part in text for part in parts) and text.count('form-data; name="a"') == len(parts)


@pytest.mark.parametrize(("required", "payload"), [(True, b"{}"), (False, b"")])
def test_a_body_that_is_needed_is_sent_empty(required: bool, payload: bytes):
    assert Asked(body("application/json", {"a": {}}, required=required)).says()[1] == payload


@pytest.mark.parametrize(
    ("kind", "payload"),
    [("*/*", "application/octet-stream"), ("image/*", "application/octet-stream"), ("text/*", "text/plain")],
)
def test_a_range_of_media_types_is_sent_as_one_of_them(kind: str, payload: str):
    request, say = Asked({"requestBody": {"content": {kind: {"schema": {"type": "string"}}}}}).says(body="hi")

    assert (request.headers["content-type"], say) == (payload, b"hi")


def test_a_body_in_several_media_types_is_sent_as_json():
    content = {kind: {"schema": {"properties": {"a": {}}}} for kind in ("application/xml", FORM, "application/json")}

    request, say = Asked({"requestBody": {"content": content}}).says(a=1)

    assert (request.headers["content-type"], say) == ("application/json", b'{"a": 1}')


def test_null_is_sent_where_it_is_a_value_that_is_needed():
    operation = body("application/json", {"a": {"type": ["string", "null"]}, "b": {"type": ["string", "null"]}})
    operation["requestBody"]["content"]["application/json"]["schema"]["required"] = ["a"]

    assert Asked(operation).says(a=None, b=None)[1] == b'{"a": null}'


def test_a_default_of_a_parameter_is_sent_and_that_of_a_field_is_left_to_the_service():
    operation = parameter("query", schema={"default": 5}, required=False) | body(
        "application/json", {"b": {"default": 1}}
    )

    request, say = Asked(operation).says()

    assert (request.url.query, say) == (b"a=5", b"")


def test_names_that_are_one_in_snake_case_are_told_apart():
    names = [("petId", "query"), ("pet_id", "query"), ("pet-id", "query"), ("petID", "header")]
    names += [("日本", "query"), ("$", "query")]
    sent_request = Asked({"parameters": [{"name": name, "in": place, "schema": {}} for name, place in names]})

    properties = list(sent_request.schema["properties"])
    request, _ = sent_request.says(**{name: index for index, name in enumerate(properties)})

    assert properties == ["pet_id", "query_pet_id", "query_pet_id_2", "header_pet_id", "query", "query_query"]
    assert request.url.query.decode() == "petId=0&pet_id=1&pet-id=2&%E6%97%A5%E6%9C%AC=4&%24=5"
    assert request.headers["petID"] == "3"


def test_types_that_json_does_not_have_are_not_told():
    request = Asked(
        body("application/json", {"a": {"type": "Any"}, "b": {"type": "String"}, "c": {"type": ["File", "null"]}})
    )

    assert request.schema["properties"] == {"a": {}, "b": {"type": "string"}, "c": {"type": ["null"]}}


def test_a_union_is_told_as_any_of_with_what_says_which():
    union = {
        "oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}],
        "discriminator": {"propertyName": "kind"},
    }
    pet = {"type": "object", "properties": {"kind": {"type": "string"}}}
    schemas = {"components": {"schemas": {"Cat": pet, "Dog": pet}}}
    request = Asked({"requestBody": {"content": {"application/json": {"schema": union}}}}, document=schemas)

    assert request.schema["properties"]["body"] == {
        "anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
        "description": "'kind' says which: Cat, Dog.",
    }
    assert request.says(body={"kind": "Dog"})[1] == b'{"kind": "Dog"}'  # which fits both


def test_the_operation_has_a_server_of_its_own():
    variables = {"at": {"default": "eu", "enum": ["eu", "us"]}}
    request = Asked(
        {"servers": [{"url": "https://{at}.example/{v}/", "variables": variables | {"v": {"default": "v2"}}}]}
    )

    assert str(request.says()[0].url) == "https://eu.example/v2/f"


SCHEMES = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "token": {"type": "http", "scheme": "bearer"},
    "password": {"$ref": "#/components/securitySchemes/basic"},
    "basic": {"type": "http", "scheme": "Basic"},
    "implicit": {"type": "oauth2", "flows": {"implicit": {"authorizationUrl": "https://a.example", "scopes": {}}}},
    "code": {
        "type": "oauth2",
        "flows": {"authorizationCode": {"authorizationUrl": "/in", "tokenUrl": "token", "scopes": {}}},
    },
    "openid": {"type": "openIdConnect", "openIdConnectUrl": "https://a.example/.well-known/openid-configuration"},
    "certificate": {"type": "mutualTLS"},
}
KEY = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="a-long-key")
BEARER = AuthCredential(
    auth_type=AuthCredentialTypes.HTTP,
    http=HttpAuth(scheme="bearer", credentials=HttpCredentials(token="a-long-token")),
)
BASIC = AuthCredential(
    auth_type=AuthCredentialTypes.HTTP,
    http=HttpAuth(scheme="basic", credentials=HttpCredentials(username="u", password="p")),
)


def secured(security: Any, everywhere: Any = None, **options: Any) -> Asked:
    document: dict[str, Any] = {"components": {"securitySchemes": SCHEMES}}
    if everywhere is not None:
        document["security"] = everywhere
    return Asked({} if security is None else {"security": security}, document=document, **options)


def way(*names: str) -> dict[str, list[str]]:
    return {name: [] for name in names}


ALL = {"key": KEY, "token": BEARER, "password": BASIC, "basic": BASIC, "implicit": BEARER}


@each(
    "security, everywhere, credential, view",
    [
        ([way("key")], None, KEY, {"x-key": "a-long-key"}),
        (None, [way("key")], KEY, {"x-key": "a-long-key"}),
        ([way("token")], [way("key")], BEARER, {"authorization": "Bearer a-long-token"}),
        ([], [way("key")], None, {}),
        ([way("password")], None, BASIC, {"authorization": "Basic dTpw"}),
        ([way("implicit")], None, BEARER, {"authorization": "Bearer a-long-token"}),
        ([way("code")], None, BEARER, {"authorization": "Bearer a-long-token"}),
        ([way("openid"), way("key")], None, KEY, {"x-key": "a-long-key"}),
        ([way("key", "token")], None, ALL, {"x-key": "a-long-key", "authorization": "Bearer a-long-token"}),
        ([way("openid"), way("basic"), way("key")], None, ALL, {"authorization": "Basic dTpw"}),
        ([way("key"), {}], None, None, {}),
        ([way("key"), {}], None, KEY, {"x-key": "a-long-key"}),
        ([way("certificate")], None, None, {}),
        ([way("certificate", "key")], None, KEY, {"x-key": "a-long-key"}),
        ([way("nowhere")], None, None, {}),
    ],
)
def test_a_credential_is_shown_as_the_document_says(
    security: Any, everywhere: Any, credential: Any, view: dict[str, str]
):
    if isinstance(credential, dict):
        names = {name for item in security for name in item}
        credential = {name: value for name, value in ALL.items() if name in names}
    question = secured(security, everywhere, auth_credential=credential)

    request, _ = question.says()

    assert {name: request.headers[name] for name in ("x-key", "authorization") if name in request.headers} == view


KEY_PLACES = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "key"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "key"},
}


@each("by_author", [False, True])
@each(
    "place, name, sent",
    [
        ("header", "X-Key", ["a-long-key"]),
        ("header", "x-key", ["a-long-key"]),
        ("query", "key", ["a-long-key"]),
        ("query", "KEY", ["a-long-key"]),
        ("cookie", "key", ["key=a-long-key"]),
        ("cookie", "Key", ["key=a-long-key"]),
    ],
)
def test_a_parameter_that_is_the_schemes_key_is_no_argument_and_sent_once(
    place: str, name: str, sent: list[str], by_author: bool
):
    scheme = KEY_PLACES[place]
    document: dict[str, Any] = {"components": {"securitySchemes": {"s": scheme}}}
    options = {"auth_scheme": dict_to_auth_scheme(scheme)} if by_author else {}
    other = {"name": "limit", "in": "query", "schema": {"type": "integer"}}
    operation = {
        "parameters": [{"name": name, "in": place, "required": True, "schema": {"type": "string"}}, other],
        **({} if by_author else {"security": [{"s": []}]}),
    }
    request = Asked(operation, method="get", document=document, auth_credential=KEY, **options)

    assert set(request.schema["properties"]) == {"limit"} and "required" not in request.schema
    asked = request.says(limit=1, **{name.replace("-", "_").lower(): "the-models"})[0]
    found = asked.headers.get_list(name)
    if place == "query":
        found = [value for key, value in asked.url.params.multi_items() if key.lower() == "key"]
    assert (asked.headers.get_list("cookie") if place == "cookie" else found) == sent


def test_a_parameter_with_the_name_of_a_key_in_another_place_is_an_argument():
    document: dict[str, Any] = {"components": {"securitySchemes": {"s": KEY_PLACES["query"]}}}
    operation = {"security": [{"s": []}], "parameters": [{"name": "key", "in": "header", "schema": {}}]}
    request = Asked(operation, method="get", document=document, auth_credential=KEY)

    asked = request.says(key="mine")[0]
    assert asked.headers["key"] == "mine" and asked.url.params.get_list("key") == ["a-long-key"]


@pytest.mark.parametrize("place", KEY_PLACES)
def test_no_other_argument_brings_a_second_key(place: str):
    """An object in a query names its parameters itself, and an author's headers may differ in case."""
    document: dict[str, Any] = {"components": {"securitySchemes": {"s": KEY_PLACES[place]}}}
    more = {"name": "more", "in": "query", "schema": {"type": "object"}}
    request = Asked(
        {"security": [{"s": []}], "parameters": [more]},
        method="get",
        document=document,
        auth_credential=KEY,
        header_provider=lambda context: {"x-key": "another", "cookie": "key=another; lang=en"},
    )

    asked = request.says(more={"key": "the-models", "page": 2} | ({"KEY": "another"} if place == "query" else {}))[0]
    assert "KEY" not in asked.url.params
    expected = {
        "header": (["the-models"], ["a-long-key"], "key=another; lang=en"),
        "query": (["a-long-key"], ["another"], "key=another; lang=en"),
        "cookie": (["the-models"], ["another"], "lang=en; key=a-long-key"),
    }
    found = asked.url.params.get_list("key"), asked.headers.get_list("x-key"), asked.headers["cookie"]
    assert found == expected[place] and asked.url.params["page"] == "2"


ELSEWHERE = [{"url": "https://elsewhere.example/v1"}]


@each(
    "servers, host",
    [
        (ELSEWHERE, None),
        ([{"url": "http://shop.example/v1"}], None),
        ([{"url": "https://shop.example:8443/v1"}], None),
        ([{"url": "https://shop.example.evil.example"}], None),
        ([{"url": "https://SHOP.example:443/v2"}], "shop.example"),
        ([], "shop.example"),
    ],
)
@each("level", ["operation", "path"])
@each("given", ["credential", "scheme", "headers"])
def test_an_operation_on_another_host_does_not_get_what_the_author_gave_for_the_documents(
    servers: Any, host: str | None, level: str, given: str
):
    document: dict[str, Any] = {"components": {"securitySchemes": SCHEMES}, "security": [way("key")]}
    operation: dict[str, Any] = {"operationId": "f"} | ({"servers": servers} if level == "operation" else {})
    document["paths"] = {"/f": {"get": operation} | ({"servers": servers} if level == "path" else {})}
    options: dict[str, Any] = {
        "credential": {"auth_credential": KEY},
        "scheme": {"auth_credential": KEY, "auth_scheme": dict_to_auth_scheme(SCHEMES["key"])},
        "headers": {"header_provider": lambda context: {"X-Key": "a-long-key"}},
    }[given]
    request = Asked({}, document=document, **options)

    answer = request.ask()

    if host:
        assert answer == {} and request.sent[0][0].url.host == host
        assert request.sent[0][0].headers["x-key"] == "a-long-key"
        return
    assert request.sent == [] and "https://shop.example/v1" in answer["error"]
    way_out = "header_provider" if given == "headers" else "configure_auth_credential"
    assert f"get_tool('f').{way_out}" in answer["error"]
    tool = request.tools.get_tool("f")
    assert tool
    if given == "headers":
        tool.header_provider = lambda context: {"X-Key": "a-long-key"}
    else:
        tool.configure_auth_credential(KEY)
    assert request.says()[0].headers["x-key"] == "a-long-key"


def test_a_persons_key_for_the_documents_server_is_not_used_on_another_host():
    document: dict[str, Any] = {"components": {"securitySchemes": SCHEMES}, "security": [way("key")]}
    document["paths"] = {"/f": {"get": {"operationId": "f"}}, "/g": {"get": {"operationId": "g", "servers": ELSEWHERE}}}
    request = Asked({}, document=document, auth_scheme=dict_to_auth_scheme(SCHEMES["key"]), credential_key="mine")

    here, there = request.tools.get_tool("f"), request.tools.get_tool("g")
    assert here and there and here.auth_config and there.auth_config
    assert here.auth_config.credential_key == "mine" != there.auth_config.credential_key


@pytest.mark.parametrize(
    ("server", "what"),
    [
        (
            {"url": "https://{at}", "variables": {"at": {"default": "evil.example", "enum": ["shop.example"]}}},
            '"default": "shop.example"',
        ),
        ({"url": "https://{at}/v1"}, '"variables"'),
    ],
)
@pytest.mark.parametrize("level", ["document", "operation"])
def test_a_host_that_the_document_does_not_list_is_refused(server: dict[str, Any], what: str, level: str):
    at = {"parameters": [{"name": "at", "in": "path"}]}

    with pytest.raises(ConfigurationError, match=what):
        if level == "document":
            Asked(at, document={"servers": [server]})
        else:
            Asked(at | {"servers": [server]})


def asked_for(request: Asked) -> list[tuple[str, str]]:
    """What a person is asked for: the kind of scheme, and under which name it is kept."""
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(call("f"), "done"), tools=[request.tools]))
    talk.say()
    interrupts = open_interrupts(talk.stored().events, CREDENTIALS)
    return [
        (interrupt.auth_config.auth_scheme.type_.value, interrupt.auth_config.credential_key)
        for interrupt in interrupts
    ]


def test_a_person_is_asked_for_what_the_document_wants_and_its_author_does_not_have(monkeypatch: pytest.MonkeyPatch):
    document = {
        "openapi": "3.1.0",
        "components": {"securitySchemes": SCHEMES},
        "security": [way("key")],
        "paths": {"/f": {"get": {"operationId": "f"}}, "/g": {"get": {"operationId": "g", "security": [way("token")]}}},
    }

    def toolset(server: str, **options: Any) -> Any:
        request = Asked({})
        request.tools = OpenAPIToolset(spec_dict=document | {"servers": [{"url": server}]}, **options)
        return request

    [(kind, key)] = asked_for(toolset("https://a.example"))
    [(_, second)] = asked_for(toolset("https://b.example"))

    assert kind == "apiKey" and key != second  # the key for one service is not shown to another
    assert asked_for(toolset("https://a.example", auth_credential=BEARER)) == [("apiKey", key)]
    assert asked_for(toolset("https://a.example", credential_key="shop")) == [("apiKey", "shop/key")]


def test_a_token_that_the_service_rejects_is_renewed_once_and_then_a_person_is_asked_again():
    client = OAuth2Auth(client_id=CLIENT, client_secret=CLIENT_SECRET, redirect_uri=REDIRECT)
    credential = AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=client)
    with auth_server() as server:
        flow = {"authorizationUrl": f"{server.url}/authorize", "tokenUrl": f"{server.url}/token", "scopes": {}}
        schemes = {"in": {"type": "oauth2", "flows": {"authorizationCode": flow}}}
        document = {"components": {"securitySchemes": schemes}, "security": [{"in": []}]}
        request = Asked({}, document=document, auth_credential=credential)
        request.status = iter([401, 200, 401, 401, 401])
        answers = [call("f"), "one", call("f"), "two", call("f"), "three"]
        talk = Talk(LlmAgent(name="a", model=ScriptedLlm(*answers), tools=[request.tools]))
        talk.say()
        [interrupt] = open_interrupts(talk.stored().events, CREDENTIALS)
        value = {"authResponseUri": server.let_in(interrupt.auth_uri or "")}

        first = talk.say(types.Content(role="user", parts=[interrupts.answer(interrupt, value)]))
        second = talk.say()
        server.refresh_tokens.clear()  # the consent is withdrawn
        third = talk.say()

        assert [request["grant_type"] for request in server.asked] == [
            "authorization_code", "refresh_token", "refresh_token", "refresh_token"
        ]  # fmt: skip
    tokens = [request.headers["authorization"] for request, _ in request.sent]
    assert results(first) == [{}] and results(second) == [{"error": "f: HTTP 401: {}"}]
    assert len(tokens) == 5 and tokens[1] == tokens[2] and tokens[3] == tokens[4] and len(set(tokens)) == 3
    assert results(third) == [credentials.placeholder()] and open_interrupts(talk.stored().events, CREDENTIALS)


def test_the_authors_scheme_stands_above_the_documents():
    question = secured([way("key")], auth_scheme=dict_to_auth_scheme(SCHEMES["token"]), auth_credential=BEARER)

    request, _ = question.says()

    assert request.headers["authorization"] == "Bearer a-long-token" and "x-key" not in request.headers


def test_a_tool_is_configured_as_in_adk():
    question = secured([way("key")], auth_credential=KEY)
    tool = question.tools.get_tool("f")
    assert tool and tool.auth_credential == KEY

    tool.configure_auth_scheme({"type": "apiKey", "in": "query", "name": "k"})
    tool.configure_auth_credential(KEY.model_copy(update={"api_key": "another"}).model_dump_json())
    tool.configure_credential_key("kept")
    tool.set_default_headers({"X-Default": "d", "Accept": "ignored"})
    request, _ = question.says()

    assert tool.auth_config and tool.auth_config.credential_key == "kept"
    assert request.url.query == b"k=another" and "x-key" not in request.headers
    assert request.headers["x-default"] == "d" and request.headers["accept"] != "ignored"


@pytest.mark.parametrize(
    ("built", "type_", "credential"),
    [
        (token_to_scheme_credential("apikey", "query", "k", "v"), "apiKey", "apiKey"),
        (token_to_scheme_credential("apikey", "header", "k"), "apiKey", None),
        (token_to_scheme_credential("oauth2Token", "header", "Authorization", "t"), "http", "http"),
        (token_to_scheme_credential("oauth2Token"), "http", None),
        (
            auth_helpers.service_account_dict_to_scheme_credential({"private_key": "k", "client_email": "e"}, ["s"]),
            "http",
            "serviceAccount",
        ),
        (
            auth_helpers.service_account_scheme_credential(ServiceAccount(use_default_credential=True)),
            "http",
            "serviceAccount",
        ),
        (
            auth_helpers.openid_dict_to_scheme_credential(
                {"authorization_endpoint": "https://a.example", "token_endpoint": "https://a.example"},
                ["openid"],
                {"web": {"client_id": "i", "client_secret": "s", "redirect_uri": "https://c.example"}},
            ),
            "openIdConnect",
            "openIdConnect",
        ),
    ],
)
def test_a_scheme_and_a_credential_are_made_of_few_words(built: Any, type_: str, credential: str | None):
    scheme, value = built

    assert scheme.type_.value == type_ and (value and value.auth_type.value) == credential


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: token_to_scheme_credential("apikey", None, "k", "v"), "'apiKey' .* security scheme"),
        (lambda: token_to_scheme_credential("basic"), "'apikey' or 'oauth2Token', got 'basic'"),  # type: ignore[arg-type]
        (lambda: dict_to_auth_scheme({"type": "magic"}), "'magic' .* security scheme"),
        (lambda: auth_helpers.openid_dict_to_scheme_credential({}, [], {}), "has wrong: "),
        (
            lambda: auth_helpers.openid_dict_to_scheme_credential(
                {"authorization_endpoint": "a", "token_endpoint": "b"}, [], {"client_id": "i"}
            ),
            "OpenID Connect .* client_secret",
        ),
    ],
)
def test_an_invalid_scheme_is_reported_at_once(wrong: Any, message: str):
    with pytest.raises(ConfigurationError, match=message):
        wrong()


def yaml(text: str) -> OpenAPIToolset:
    return OpenAPIToolset(spec_str=text, spec_str_type="yaml")


HEAD = """
openapi: 3.1.0
servers: [{url: https://shop.example}]
paths: {/a: {get: {parameters: [{name: a, in: query, schema: {"""


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("enum: [NO, yes, on, off, y]", {"enum": ["NO", "yes", "on", "off", "y"]}),
        ("default: true", {"default": True}),
        ("default: 2020-01-01", {"default": "2020-01-01"}),
        ("default: 2020-01-01T10:00:00Z", {"default": "2020-01-01T10:00:00Z"}),
        ("default: ~, type: string", {"default": None, "type": "string"}),
        ("minimum: 1.5", {"minimum": 1.5}),
    ],
)
def test_yaml_is_read_as_json_would_be_written(text: str, schema: Any):
    tool = yaml(f"{HEAD}{text}" + "}}]}}}").get_tool("a_get")

    assert tool and tool.operation.schema["properties"]["a"] == schema


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30)
)


@each(
    "text, message",
    [
        ("openapi: !!python/object/apply:os.system ['echo hi']", "could not determine a constructor"),
        ("openapi: !!python/name:os.system", "could not determine a constructor"),
        ("openapi: !!python/object:adk_nb.agents.LlmAgent {}", "could not determine a constructor"),
        (BOMB, "more than 2000000 values"),
        ("a: &a [*a]", "a recursive alias"),
        ("a: &a {b: *a}", "a recursive alias"),
        ("[" * 900, "more than 200 levels deep"),
        ("[" * 100_000, "levels deep|nesting depth"),  # libyaml has a limit of its own: 1,000 brackets
        ("\n".join(" " * n + "a:" for n in range(300)), "more than 200 levels deep"),
        ("? [a]\n: b", "is not valid YAML"),
        ("a: *nothing", "undefined alias"),
    ],
)
def test_yaml_that_does_more_than_say_values_is_refused(text: str, message: str):
    with pytest.raises(ConfigurationError, match=message):
        yaml(text)


def test_json_that_is_too_deep_is_refused():
    with pytest.raises(ConfigurationError, match="valid JSON"):
        OpenAPIToolset(spec_str="[" * 100_000)


def deep_schema() -> Any:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(sys.getrecursionlimit()):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def own_schema() -> Any:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}
    return schema


@pytest.mark.parametrize("schema", [deep_schema(), own_schema()], ids=["deep", "its own"])
def test_a_schema_that_is_too_deep_is_refused(schema: Any):
    body = {"content": {"application/json": {"schema": schema}}}
    paths = {"/x": {"post": {"operationId": "x", "requestBody": body, "responses": {}}}}
    servers = [{"url": "https://shop.example"}]

    with pytest.raises(ConfigurationError, match="too deep"):
        OpenAPIToolset(spec_dict={"openapi": "3.1.0", "servers": servers, "paths": paths})


@pytest.mark.parametrize("url", ["https://user:word@shop.example", "https://user@shop.example/v1"])
def test_a_server_with_a_password_in_its_address_is_refused(url: str):
    with pytest.raises(ConfigurationError, match="absolute URL"):
        Asked({"servers": [{"url": url}]})


class Secret(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture(scope="module")
def encrypted() -> Iterator[str]:
    """A service whose certificate nobody vouches for."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Secret) as service:
        service.socket = live_server.server_tls().wrap_socket(service.socket, server_side=True)
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{service.server_address[1]}"
        service.shutdown()
        thread.join(30)


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(
    ("verify", "trusted"),
    [
        (None, False),
        (True, False),
        (False, True),
        (str(live_server.certificate_folder() / "cert.pem"), True),
        (live_server.client_tls(), True),
    ],
    ids=["not said", "yes", "no", "a file", "a context"],
)
def test_a_servers_certificate_is_checked_as_the_author_says(encrypted: str, verify: Any, trusted: bool, later: bool):
    document = {"openapi": "3.1.0", "servers": [{"url": encrypted}], "paths": {"/f": {"post": {"operationId": "f"}}}}
    options: dict[str, Any] = {} if later else {"ssl_verify": verify}
    request = Asked({})
    request.tools = OpenAPIToolset(spec_dict=document, allow_private_network_access=True, **options)
    if later:
        request.tools.configure_ssl_verify_all(verify)

    answer = request.ask()

    assert answer == {} if trusted else "certificate verify failed" in answer["error"]


@each(
    "scheme, credential, place, value",
    lambda: [
        (
            fastapi_models.APIKey(**{"in": fastapi_models.APIKeyIn.query, "name": "key"}),
            AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="k-1"),
            ("key", "query"),
            "k-1",
        ),
        (
            fastapi_models.HTTPBearer(),
            AuthCredential(
                auth_type=AuthCredentialTypes.HTTP,
                http=HttpAuth(scheme="bearer", credentials=HttpCredentials(token="t-1")),
            ),
            ("Authorization", "header"),
            "Bearer t-1",
        ),
        (
            fastapi_models.OAuth2(flows=fastapi_models.OAuthFlows()),
            AuthCredential(
                auth_type=AuthCredentialTypes.OAUTH2,
                http=HttpAuth(scheme="bearer", credentials=HttpCredentials(token="t-2")),
            ),
            ("Authorization", "header"),
            "Bearer t-2",
        ),
    ],
)
def test_a_credential_has_its_place_under_a_scheme_of_fastapi_too(
    scheme: Any, credential: AuthCredential, place: tuple[str, str], value: str
):
    parameter, values = auth_helpers.credential_to_param(scheme, credential)

    assert parameter and values
    assert (parameter.original_name, parameter.param_location) == place
    assert values == {parameter.py_name: value}
    with pytest.raises(ConfigurationError, match="takes no credential"):
        auth_helpers.credential_to_param(fastapi_models.HTTPBearer(), AuthCredential(auth_type="apiKey", api_key="k"))
