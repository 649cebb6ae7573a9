"""Every operation of a service that FastAPI serves and describes, called by an agent through the toolset."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from adk_nb import sync, types
from adk_nb.agents import LlmAgent
from adk_nb.auth import AuthCredential, AuthCredentialTypes, HttpAuth, HttpCredentials, OAuth2Auth
from adk_nb.errors import ConfigurationError
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.runtime import credentials, interrupts
from adk_nb.runtime.history import open_interrupts
from adk_nb.tools.openapi_tool import OpenAPIToolset
from tests.support.each import each
from tests.support.talk import Talk
from tests.tools import shop_service
from tests.tools.shop_service import KEY, PASSWORD, TOKEN


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    with shop_service.served() as address:
        yield address


@pytest.fixture(scope="module")
def tools(shop: str) -> Iterator[OpenAPIToolset]:
    made = toolset(shop, auth_credential=CREDENTIALS)
    yield made
    sync.run(made.close())


API_KEY = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key=KEY)
CREDENTIALS = {
    **dict.fromkeys(("headerKey", "queryKey", "cookieKey"), API_KEY),
    "basic": AuthCredential(
        auth_type=AuthCredentialTypes.HTTP,
        http=HttpAuth(scheme="basic", credentials=HttpCredentials(username="ann", password=PASSWORD)),
    ),
    **dict.fromkeys(
        ("bearer", "password", "code", "openid"),
        AuthCredential(
            auth_type=AuthCredentialTypes.HTTP,
            http=HttpAuth(scheme="bearer", credentials=HttpCredentials(token=TOKEN)),
        ),
    ),
}


def toolset(shop: str, **options: Any) -> OpenAPIToolset:
    document = json.dumps(shop_service.app.openapi() | {"servers": [{"url": shop}]})
    return OpenAPIToolset(spec_str=document, allow_private_network_access=True, **options)


def ask(tools: OpenAPIToolset, name: str, /, **args: Any) -> Any:
    """What the model gets when it calls a tool."""
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(call(name, **args), "done"), tools=[tools]))
    events = talk.say()
    assert talk.error is None
    return results(events)[-1]


def results(events: list[Event]) -> list[Any]:
    return [one.response for event in events for one in event.get_function_responses()]


ITEM = {
    "name": "chair",
    "price": 9.5,
    "colours": ["red", "dark blue"],
    "size": {"width": 2, "height": None},
    "tags": {"legs": 4},
    "made_on": "2026-01-31",
    "parts": [{"name": "leg", "price": 1}],
}
LEG = {"name": "leg", "price": 1.0, "colours": [], "size": None, "tags": {}, "made_on": None, "parts": []}
IN = {"you": "are in"}
OPERATIONS: list[tuple[str, dict[str, Any], Any]] = [
    (
        "get_item",
        {"item_id": 7, "q": "ä b&c=d+e", "short": True, "x_trace": "t 1", "visit": "a;b"},
        {"id": 7, "q": "ä b&c=d+e", "short": True, "trace": "t 1", "visit": "a%3Bb"},
    ),
    (
        "get_item",
        {"item_id": 7, "q": None},
        {"id": 7, "q": None, "short": False, "trace": None, "visit": None},
    ),
    ("get_item", {"item_id": 404}, {"error": 'get_item: HTTP 404: {"detail":"no such item"}'}),
    ("get_file", {"path": "a/b ü?#.txt"}, {"path": "a/b ü?#.txt"}),
    (
        "get_colour",
        {"colour": "dark blue", "day": "2026-02-01", "at": "2026-02-01T10:00:00+01:00", "key": "a" * 32},
        {
            "colour": "dark blue",
            "day": "2026-02-01",
            "at": "2026-02-01T10:00:00+01:00",
            "key": "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa",
        },
    ),
    (
        "search",
        {"colours": ["red", "dark blue"], "size": [1, 2.5], "words": ["a,b", "c"]},
        {"colours": ["red", "dark blue"], "sizes": [1.0, 2.5], "words": ["a,b", "c"]},
    ),
    ("filtered", {"order_by": "price"}, {"limit": 10, "order_by": "price", "colours": []}),
    ("create_item", ITEM, ITEM | {"size": {"width": 2.0, "height": None}, "parts": [LEG]}),
    (
        "put_item",
        {"item_id": 3, "item": {"name": "x", "price": 1}, "reason": "why"},
        {"id": 3, "name": "x", "size": None, "reason": "why", "urgent": False},
    ),
    ("patch_item", {"item_id": 3, "note": None}, {"id": 3, "sent": {"note": None}}),
    ("delete_item", {"item_id": 3}, {"text": ""}),
    ("head_item", {"item_id": 3}, {"text": ""}),
    ("item_options", {}, {"result": ["GET", "POST"]}),
    ("add_pet", {"body": {"kind": "cat", "lives": 9}}, {"kind": "cat", "lives": 9}),
    ("add_pet", {"body": {"kind": "dog", "barks": True}}, {"kind": "dog", "barks": True}),
    ("either", {"body": 3}, {"is": "int", "value": 3}),
    ("either", {"body": ["a"]}, {"is": "list", "value": ["a"]}),
    ("either", {"body": {"width": 1}}, {"is": "Size", "value": {"width": 1.0, "height": None}}),
    ("embedded", {"item": {"width": 1}}, {"width": 1.0, "height": None}),
    (
        "login",
        {"user": "a b&c", "remember": True, "scopes": ["x", "y z"]},
        {"user": "a b&c", "remember": True, "scopes": ["x", "y z"]},
    ),
    (
        "upload",
        {"file": "one ü", "more": ["two", "three"], "note": "n", "labels": ["a", "b"]},
        {"file": "one ü", "more": ["two", "three"], "note": "n", "labels": ["a", "b"], "extra": None},
    ),
    ("raw", {"body": "AAEC/w=="}, {"bytes": [0, 1, 2, 255], "type": "application/octet-stream"}),
    ("text", {"body": "straße"}, {"text": "STRASSE"}),
    ("picture", {}, {"content": {"media": "image/png", "bytes": 16, "part": 1}, "media_type": "image/png"}),
    ("moved", {}, {"id": 7, "q": "moved", "short": False, "trace": None, "visit": None}),
    ("moved_post", {}, {"error": "moved_post: HTTP 307 to /items/7, which is not followed for POST"}),
    ("broken", {}, {"error": 'broken: HTTP 503: {"detail":"come back later"}'}),
    ("by_header", {}, IN),
    ("by_query", {"q": "x"}, IN | {"q": "x"}),
    ("by_cookie", {}, IN),
    ("by_basic", {}, IN),
    ("by_bearer", {}, IN),
    ("by_password", {}, IN),
    ("by_code", {}, IN),
    ("by_openid", {}, IN),
    ("by_two", {}, IN),
]


@each("name, args, answer", OPERATIONS)
def test_an_operation_of_the_shop_answers(tools: OpenAPIToolset, name: str, args: dict[str, Any], answer: Any):
    assert ask(tools, name, **args) == answer


def test_no_operation_of_the_shop_is_left_out(tools: OpenAPIToolset):
    found = sync.run(tools.get_tools())

    assert {tool.name for tool in found} == {name for name, _, _ in OPERATIONS} and len(found) == 31


@pytest.mark.parametrize(
    ("name", "args", "wrong"),
    [
        ("create_item", {"name": "", "price": -1}, "name: '' should be non-empty; price: -1 is less than"),
        ("create_item", {"name": "x", "price": 1, "colours": ["green"]}, r"colours[0]: 'green' is not one of"),
        ("filtered", {"limit": 101}, "limit: 101 is greater than the maximum of 100"),
        ("add_pet", {"body": {"kind": "cow"}}, "is not valid under any of the given schemas"),
    ],
)
def test_what_the_shop_would_refuse_is_not_sent(name: str, args: dict[str, Any], wrong: str):
    answer = ask(toolset("http://127.0.0.1:9"), name, **args)

    assert answer["error"].startswith(f"{name}() was not called: wrong arguments: ") and wrong in answer["error"]


def test_one_credential_is_shown_where_it_fits_and_a_person_is_asked_for_others(shop: str):
    tools = toolset(shop, auth_credential=CREDENTIALS["basic"])

    assert ask(tools, "by_basic") == IN
    assert ask(tools, "get_item", item_id=1)["id"] == 1  # needs none
    assert ask(tools, "by_bearer") == credentials.placeholder()


def test_a_token_that_was_got_already_is_shown_where_tokens_are_asked_for(shop: str):
    token = AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=OAuth2Auth(access_token=TOKEN))
    tools = toolset(shop, auth_credential=token)

    assert [ask(tools, name) for name in ("by_bearer", "by_password", "by_code", "by_openid")] == [IN] * 4


def test_what_two_schemes_ask_for_is_asked_of_a_person_one_after_the_other(shop: str):
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(call("by_two"), "done"), tools=[toolset(shop)]))
    bearer = {"authType": "http", "http": {"scheme": "bearer", "credentials": {"token": TOKEN}}}
    events, asked = talk.say(), list[str]()
    for given in ({"apiKey": KEY}, bearer):
        [pending] = open_interrupts(talk.stored().events, interrupts.CREDENTIALS)
        asked.append(pending.auth_config.auth_scheme.type_.value)
        events = talk.say(types.Content(role="user", parts=[interrupts.answer(pending, given)]))

    assert asked == ["apiKey", "http"] and results(events) == [IN]
    assert KEY not in talk.stored().model_dump_json() and TOKEN not in talk.stored().model_dump_json()


def test_headers_of_the_author_let_in_and_nobody_is_asked(shop: str):
    tools = toolset(shop, header_provider=lambda context: {"X-Key": KEY})

    assert ask(tools, "by_header") == IN
    assert ask(tools, "by_bearer")["error"].startswith("by_bearer: HTTP 40")


def test_a_credential_for_a_scheme_that_the_document_does_not_have_is_told_at_once(shop: str):
    with pytest.raises(ConfigurationError, match=r"basic, bearer, code, cookieKey.*write auth_scheme="):
        toolset(shop, auth_credential={"other": API_KEY})
