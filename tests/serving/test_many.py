"""Several agents behind one address, without a server."""

import asyncio

import httpx2
import pytest

from adk_nb.agents import Agent
from tests.serving.conftest import TOKEN
from tests.support.late import late

serving = late("adk_nb.serving")
many = late("adk_nb.serving.many")


def answered(method: str, path: str, content: bytes | None = None) -> httpx2.Response:
    agents = [Agent(name=name, model="offline", instruction=f"You are {name}.") for name in ("first", "second")]
    app = many.app_of_many({agent.name: serving.create_app(agent, token=TOKEN) for agent in agents}, TOKEN)

    async def ask() -> httpx2.Response:
        transport, headers = httpx2.ASGITransport(app=app), {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
            return await client.request(method, path, content=content)

    return asyncio.run(ask())


@pytest.mark.parametrize("name", ["first", "second"])
def test_the_page_gets_what_it_asks_about_each_agent(name: str):
    assert answered("GET", f"/dev/apps/{name}/build_graph").json()["root_agent"]["instruction"] == f"You are {name}."


def test_the_page_itself_is_for_all_agents():
    assert answered("GET", "/dev-ui/assets/config/runtime-config.json").json()["backendUrl"] == ""
    assert answered("GET", "/config/telemetry").json() == {"telemetry": False}
    assert "no agent" not in answered("GET", "/").text


@pytest.mark.parametrize("body", [b"no json", b"[" * 200_000, b"[]", b"\xff"])
def test_a_body_that_names_no_agent_is_refused_in_a_line(body: bytes):
    answer = answered("POST", "/run", body)
    assert answer.status_code == 422 and answer.json() == {"detail": "the body is not a JSON object"}


def test_an_agent_that_is_not_there_is_not_found():
    for path in ("/apps/third/users/u/sessions", "/dev/apps/third/build_graph", "/nowhere"):
        assert answered("GET", path).status_code == 404
