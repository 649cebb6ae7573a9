"""Every operation of a Petstore, at a server that nobody here wrote.

The document is that of the npm package @readme/oas-examples; Prism answers from it, and refuses what does not fit it.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.agents import LlmAgent
from adk_nb.auth import AuthCredential, AuthCredentialTypes, HttpAuth, HttpCredentials
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools.openapi_tool import OpenAPIToolset
from tests.servers import programs
from tests.support.talk import Talk

pytestmark = pytest.mark.servers

PRISM = str(programs.FOLDER / "@stoplight/prism-cli/dist/index.js")
PETSTORE = programs.FOLDER / "@readme/oas-examples/3.0/json/petstore.json"
KEY = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key="a-long-key")
TOKEN = AuthCredential(
    auth_type=AuthCredentialTypes.HTTP,
    http=HttpAuth(scheme="bearer", credentials=HttpCredentials(token="a-long-token")),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    document = json.loads(PETSTORE.read_text())
    for path in document["paths"].values():
        for operation in path.values():
            if not {"200", "default"} & set(operation["responses"]):  # it tells failures only
                operation["responses"]["200"] = {"description": "Done."}
    served = tmp_path_factory.mktemp("petstore") / "petstore.json"
    served.write_text(json.dumps(document))
    port = programs.free_port()
    command = [programs.node(), PRISM, "mock", "--host", "127.0.0.1", "--port", str(port), "--errors", str(served)]
    with programs.served(command, port):
        yield f"http://127.0.0.1:{port}"


def toolset(server: str, **options: Any) -> OpenAPIToolset:
    document = json.loads(PETSTORE.read_text()) | {"servers": [{"url": server}]}
    return OpenAPIToolset(spec_dict=document, allow_private_network_access=True, **options)


@pytest.fixture(scope="module")
def pets(server: str) -> Iterator[OpenAPIToolset]:
    made = toolset(server, auth_credential={"api_key": KEY, "petstore_auth": TOKEN})
    yield made
    sync.run(made.close())


def ask(tools: OpenAPIToolset, name: str, /, **args: Any) -> Any:
    """What the model gets when it calls a tool."""
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(call(name, **args), "done"), tools=[tools]))
    events = talk.say()
    assert talk.error is None
    return [one.response for event in events for one in event.get_function_responses()][-1]


PET = {"name": "Rex", "photo_urls": ["https://example.com/a b.png"], "tags": [{"id": 1, "name": "good"}]}
USER = {"username": "ann", "email": "a@example.com", "userStatus": 1}
TOLD_PET = {"id", "category", "name", "photoUrls", "tags", "status"}
TOLD_ORDER = {"id", "petId", "quantity", "shipDate", "status", "complete"}
TOLD_USER = {"id", "username", "firstName", "lastName", "email", "password", "phone", "userStatus"}
OPERATIONS: list[tuple[str, dict[str, Any], set[str]]] = [
    ("add_pet", PET | {"category": {"name": "dogs"}, "status": "available"}, {"text"}),
    ("update_pet", PET, {"text"}),
    ("find_pets_by_status", {"status": ["available", "sold"]}, TOLD_PET),
    ("find_pets_by_tags", {"tags": ["a,b", "c d"]}, TOLD_PET),
    ("get_pet_by_id", {"pet_id": 3}, TOLD_PET),
    ("update_pet_with_form", {"pet_id": 3, "name": "Rex & co", "status": "sold"}, {"text"}),
    ("delete_pet", {"pet_id": 3, "api_key": "k"}, {"text"}),
    ("upload_file", {"pet_id": 3, "additional_metadata": "m", "file": "bytes"}, {"code", "type", "message"}),
    ("get_inventory", {}, {"property1", "property2"}),
    ("place_order", {"pet_id": 3, "quantity": 2, "ship_date": "2026-01-31T10:00:00Z"}, TOLD_ORDER),
    ("place_order", {}, TOLD_ORDER),
    ("get_order_by_id", {"order_id": 3}, TOLD_ORDER),
    ("delete_order", {"order_id": 3}, {"text"}),
    ("create_user", {"username": "ann", "email": "a@example.com", "user_status": 1}, {"text"}),
    ("create_users_with_array_input", {"body": [USER, USER]}, {"text"}),
    ("create_users_with_list_input", {"body": [USER]}, {"text"}),
    ("login_user", {"username": "ann", "password": "&=?"}, {"result"}),
    ("logout_user", {}, {"text"}),
    ("get_user_by_name", {"username": "ann b"}, TOLD_USER),
    ("update_user", {"username": "ann", "body_username": "anna", "phone": "1"}, {"text"}),
    ("delete_user", {"username": "ann"}, {"text"}),
]


@pytest.mark.parametrize(("name", "args", "told"), OPERATIONS)
def test_an_operation_of_the_petstore_answers(pets: OpenAPIToolset, name: str, args: dict[str, Any], told: set[str]):
    answer = ask(pets, name, **args)

    found: Any = answer.get("result", answer)
    assert set(found[0] if isinstance(found, list) else answer) == told, answer


def test_no_operation_of_the_petstore_is_left_out(pets: OpenAPIToolset):
    found = sync.run(pets.get_tools())

    assert {tool.name for tool in found} == {name for name, _, _ in OPERATIONS} and len(found) == 20


def test_the_petstore_refuses_who_shows_nothing(server: str):
    tools = toolset(server, header_provider=lambda context: {})

    answers = [ask(tools, name, pet_id=3)["error"] for name in ("get_pet_by_id", "delete_pet")]
    sync.run(tools.close())

    assert [one[: one.index("401") + 3] for one in answers] == ["get_pet_by_id: HTTP 401", "delete_pet: HTTP 401"]
