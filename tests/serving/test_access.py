"""Who may call a served agent."""

import asyncio

import httpx2
import pytest
from starlette.applications import Starlette

from adk_nb import redaction
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm
from adk_nb.models.http_address import names_this_machine
from adk_nb.serving.access import MAX_BODY
from tests.serving.conftest import TOKEN, Served, body
from tests.support.each import each
from tests.support.late import late

serving = late("adk_nb.serving")


@pytest.fixture
def served(serve) -> Served:
    return serve(Agent(name="clerk", model=ScriptedLlm("Hello.")))


@pytest.mark.slow
def test_a_request_without_the_token_gets_one_line_and_nothing_else(served: Served):
    for headers in (
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
    ):
        answer = httpx2.get(f"{served.url}/list-apps", headers=headers)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
        assert "Authorization: Bearer" in answer.json()["detail"] and "\n" not in answer.text
        assert "clerk" not in answer.text and TOKEN not in answer.text
    for path in (
        "/run",
        "/run_sse",
        "/ag-ui",
        "/mcp",
        "/a2a/clerk",
        "/nowhere",
        "/dev-ui/",
        "/apps/clerk/users/u/sessions",
    ):
        assert httpx2.post(served.url + path, json={}).status_code == 401, path


def test_text_that_no_header_should_have_is_refused_too(served: Served):
    for value in (b"Bearer \xff\xfe", b"Bearer", b"Bearer " + TOKEN.encode() + b"\xc3"):
        assert httpx2.get(f"{served.url}/list-apps", headers={"Authorization": value}).status_code == 401
    assert httpx2.get(f"{served.url}/list-apps", headers={"Cookie": 'adk_nb_1=(); ;;=; "x'}).status_code == 401


def test_a_name_that_another_machine_could_have_is_refused(served: Served):
    port = served.server.port
    for host in (
        "evil.example",
        f"evil.example:{port}",
        f"127.0.0.1.evil.example:{port}",
        f"127.0.0.1:{port}.evil.example",
        "",
    ):
        answer = served.client.get("/list-apps", headers={"Host": host})
        assert answer.status_code in (400, 403), (host, answer.text)  # uvicorn itself refuses an empty one
    for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"[::1]:{port}"):
        assert served.client.get("/list-apps", headers={"Host": host}).status_code == 200, host


def test_a_page_of_another_origin_is_refused_though_it_has_the_cookie(served: Served):
    with httpx2.Client(base_url=served.url, follow_redirects=True) as page:
        assert page.get(f"/list-apps?token={TOKEN}").json() == ["clerk"]
        assert page.get("/list-apps", headers={"Origin": served.url}).status_code == 200
        for origin in ("http://127.0.0.1:1", "https://evil.example", "null"):
            answer = page.post("/run", json=body("Hi"), headers={"Origin": origin})
            assert answer.status_code == 403 and repr(origin) in answer.json()["detail"]


def test_the_token_in_an_address_becomes_a_cookie_that_scripts_cannot_read(served: Served):
    answer = httpx2.get(f"{served.url}/list-apps?detailed=true&token={TOKEN}")
    assert answer.status_code == 303 and answer.headers["location"] == "/list-apps?detailed=true"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and f"adk_nb_{served.server.port}=" in cookie
    with httpx2.Client(base_url=served.url) as page:
        for _ in range(2):
            assert page.get(f"/list-apps?token={TOKEN}").headers["location"] == "/list-apps"
        assert page.get("/list-apps").json() == ["clerk"]
    other = httpx2.get(f"{served.url}//evil.example/?token={TOKEN}")
    assert other.headers["location"] == "/evil.example/", "it leads to this server"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_cookie_that_came_over_tls_goes_nowhere_else(scheme: str):
    app = serving.create_app(Agent(name="clerk"), token=TOKEN)

    async def ask() -> str:
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url=f"{scheme}://127.0.0.1") as page:
            return (await page.get(f"/list-apps?token={TOKEN}")).headers["set-cookie"]

    assert ("; secure" in asyncio.run(ask()).lower()) == (scheme == "https")


def test_an_address_with_the_token_is_for_pages_alone(served: Served):
    assert httpx2.post(f"{served.url}/run?token={TOKEN}", json=body("Hi")).status_code == 401
    assert httpx2.get(f"{served.url}/list-apps?token=wrong").status_code == 401
    assert httpx2.get(f"{served.url}/list-apps?token={TOKEN}&token=x").status_code == 401


def test_a_huge_body_is_refused_whether_its_length_is_told_or_not(served: Served):
    served.session()
    answer = served.client.post("/run", content=b" " * (MAX_BODY + 1))
    assert answer.status_code == 413 and f"{MAX_BODY:,} bytes" in answer.json()["detail"]

    def pieces():
        for _ in range(MAX_BODY // 2**20 + 1):
            yield b" " * 2**20

    answer = served.client.post("/run", content=pieces())
    assert answer.status_code == 413 and f"{MAX_BODY:,} bytes" in answer.json()["detail"]
    assert served.events() == []


def test_the_token_is_a_secret_of_this_process(served: Served):
    assert redaction.hidden(f"it was {TOKEN}!") == "it was [secret]!"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"agent": "clerk", "token": TOKEN}, "'clerk'"),
        ({"agent": Agent(name="clerk"), "token": "short"}, "secrets.token_urlsafe()"),
    ],
)
def test_an_app_that_cannot_be_is_refused_at_once(arguments: dict, problem: str):
    with pytest.raises(ValueError, match=problem.replace("(", r"\(").replace(")", r"\)")):
        serving.create_app(**arguments)


def test_an_app_is_an_asgi_app_for_any_server():
    assert isinstance(serving.create_app(Agent(name="clerk"), token=TOKEN), Starlette)


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST:80", "127.0.0.1", "127.8.9.10:1", "[::1]", "[::1]:8000"])
def test_names_of_this_machine(name: str):
    assert names_this_machine(name)


@each(
    "name",
    ["", "example.org", "localhost.example.org", "127.0.0.1.nip.io", "127.0.0.1@evil", "[::1", "0.0.0.0", "10.0.0.1",
     "127.0.0.1:80:90", "127.0.0.1/x", "2130706433", "localhost:http"],
)  # fmt: skip
def test_names_that_are_not_of_this_machine(name: str):
    assert not names_this_machine(name)
