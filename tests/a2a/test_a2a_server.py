"""A served agent is what other clients of A2A expect: a2a-sdk's client, in both versions, and plain HTTP."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import (
    AgentCard,
    APIKeySecurityScheme,
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SecurityScheme,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from adk_nb import clock, sync, types
from adk_nb.a2a import A2aServer, to_a2a
from adk_nb.a2a import server as server_module
from adk_nb.a2a.message_parts import to_a2a_part
from adk_nb.agents import BaseAgent, LlmAgent
from adk_nb.errors import ConfigurationError
from adk_nb.events import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.redaction import remember
from adk_nb.runners import InMemoryRunner, Runner
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import answer
from adk_nb.sessions import SqliteSessionService
from adk_nb.tools import FunctionTool, request_input
from tests.a2a.loopback import LoopbackServer, served
from tests.support.late import late
from tests.support.polling import SECONDS
from tests.support.talk import requests

execution, tasks = late("a2a.server.agent_execution"), late("a2a.server.tasks")

DONE, WAITS = TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_INPUT_REQUIRED
FAILED, STOPPED = TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED


def planner(*answers: Any, **fields: Any) -> LlmAgent:
    return LlmAgent(name="planner", description="Plans trips.", model=ScriptedLlm(*answers), **fields)


class Talker:
    """a2a-sdk's client, at one agent."""

    def __init__(self, client: Client, card: AgentCard) -> None:
        self.client = client
        self.card = card

    def request(self, text: str | Sequence[Part], task: Task | None = None, **configuration: Any) -> SendMessageRequest:
        parts = [Part(text=text)] if isinstance(text, str) else list(text)
        message = Message(message_id=clock.new_id(), role=Role.ROLE_USER, parts=parts)
        if task:
            message.context_id, message.task_id = task.context_id, task.id
        return SendMessageRequest(message=message, configuration=SendMessageConfiguration(**configuration))

    async def updates(self, text: str | Sequence[Part], task: Task | None = None) -> list[StreamResponse]:
        return [update async for update in self.client.send_message(self.request(text, task))]

    async def task(self, text: str | Sequence[Part], task: Task | None = None) -> Task:
        """The task after the message."""
        first, *_ = await self.updates(text, task)
        task_id = first.task.id or first.status_update.task_id
        return await self.client.get_task(GetTaskRequest(id=task_id))


@asynccontextmanager
async def talking(url: str, *, streaming: bool = True, old: bool = False) -> AsyncGenerator[Talker, None]:
    """`old`: by protocol 0.3."""
    async with httpx.AsyncClient(trust_env=False) as http:
        card = await A2ACardResolver(http, url).get_agent_card()
        if old:
            interfaces = [
                supported_interface
                for supported_interface in card.supported_interfaces
                if supported_interface.protocol_version == "0.3"
            ]
            del card.supported_interfaces[:]
            card.supported_interfaces.extend(interfaces)
        yield Talker(ClientFactory(ClientConfig(httpx_client=http, streaming=streaming)).create(card), card)


def with_client(
    agent: BaseAgent, work: Callable[[Talker], Awaitable[None]], app_of: Any = None, **options: Any
) -> None:
    async def run(url: str) -> None:
        async with talking(url, **options) as talker:
            await work(talker)

    with served(app_of or (lambda port: to_a2a(agent, port=port))) as server:
        sync.run(run(server.url))


def texts(task: Task) -> list[str]:
    return ["".join(part.text for part in artifact.parts) for artifact in task.artifacts]


def said(task: Task) -> str:
    return "".join(part.text for part in task.status.message.parts)


def look(city: str) -> str:
    """Look a city up."""
    return "sunny"


def test_the_card_has_the_agent_its_tools_and_its_sub_agents_and_not_its_instruction():
    guide = LlmAgent(name="guide", description="Shows cities.", model=ScriptedLlm())
    agent = planner(tools=[look], sub_agents=[guide], instruction="a secret of the house")

    async def work(talker: Talker) -> None:
        card = talker.card
        assert (card.name, card.description, card.capabilities.streaming) == ("planner", "Plans trips.", True)
        assert [(skill.id, skill.description) for skill in card.skills] == [
            ("planner", "Plans trips."),
            ("planner.look", "Look a city up."),
            ("planner.guide", "Shows cities."),
        ]
        assert "secret" not in str(card)

    with_client(agent, work)


@pytest.mark.parametrize("options", [{}, {"streaming": False}, {"old": True}, {"old": True, "streaming": False}])
def test_a_message_is_a_task_and_a_context_is_a_session(options: dict[str, bool]):
    agent = planner("Rome, then.", "Two days.", "Who are you?")

    async def work(talker: Talker) -> None:
        first = await talker.task("Where to?")
        request = talker.request("For how long?")
        request.message.context_id = first.context_id
        async for _ in talker.client.send_message(request):
            pass
        await talker.task("Hello")
        assert (first.status.state, texts(first)) == (DONE, ["Rome, then."])

    with_client(agent, work, **options)

    assert [len(contents) for contents in requests(agent)] == [1, 3, 1]


def test_an_answer_streams_and_ends_whole():
    async def work(talker: Talker) -> None:
        updates = await talker.updates("Where?")
        kinds = [update.WhichOneof("payload") for update in updates]
        artifacts = [update.artifact_update for update in updates if update.HasField("artifact_update")]
        assert kinds[0] == "task" and kinds[-1] == "status_update"
        assert updates[-1].status_update.status.state == DONE
        pieces = [
            ("".join(part.text for part in artifact.artifact.parts), artifact.append, artifact.last_chunk)
            for artifact in artifacts
        ]
        assert pieces == [("Two ", False, False), ("days", True, False), ("Two days", False, True)]
        assert len({artifact.artifact.artifact_id for artifact in artifacts}) == 1

    with_client(planner(["Two ", "days"]), work)


def test_calls_and_thoughts_stay_inside():
    thought = types.Part(text="Hm, Rome is hot.", thought=True)

    async def work(talker: Talker) -> None:
        task = await talker.task("Where?")
        assert texts(task) == ["Rome."]
        assert "look" not in str(task) and "Hm" not in str(task)

    with_client(planner([thought, call("look", city="Rome")], "Rome.", tools=[look]), work)


def test_data_and_files_reach_the_model():
    agent = planner("Thanks.")

    async def work(talker: Talker) -> None:
        data = Part(media_type="application/json")
        data.data.struct_value.update({"days": 2})
        picture = Part(raw=b"\x89PNG", media_type="image/png", filename="map.png")
        link = Part(url="https://example.org/a.pdf", media_type="application/pdf")
        await talker.task([Part(text="Look:"), data, picture, link])

    with_client(agent, work)

    assert isinstance(agent.model, ScriptedLlm)
    parts = agent.model.requests[0].contents[0].parts or []
    assert [part.text for part in parts[:2]] == ["Look:", '{"days":2}']
    assert parts[2].inline_data and parts[2].inline_data.data == b"\x89PNG"
    assert parts[3].file_data and parts[3].file_data.file_uri == "https://example.org/a.pdf"


@pytest.mark.parametrize(("data", "kind"), [(b'{"days": 2}', "data"), (b"null", "raw")])
def test_a_json_file_keeps_its_name(data: bytes, kind: str):
    blob = types.Blob(data=data, mime_type="application/json", display_name="plan.json")

    part = to_a2a_part(types.Part(inline_data=blob))

    assert part is not None and (part.WhichOneof("content"), part.filename) == (kind, "plan.json")


def asking(*answers: Any, **args: Any) -> LlmAgent:
    return planner(call("adk_request_input", **args), *answers, tools=[request_input])


@pytest.mark.parametrize("options", [{}, {"streaming": False}, {"old": True}])
def test_a_question_is_answered_by_the_next_message_in_the_task(options: dict[str, bool]):
    agent = asking("Rome it is.", message="Which city?")

    async def work(talker: Talker) -> None:
        first = await talker.task("Plan")
        second = await talker.task("Rome", first)
        assert (first.status.state, said(first)) == (WAITS, "Which city?")
        assert (second.id, second.status.state, texts(second)) == (first.id, DONE, ["Rome it is."])

    with_client(agent, work, **options)

    assert requests(agent)[1][-1] == ("user", "answers {'result': 'Rome'}")


def test_an_answer_that_does_not_fit_leaves_the_task_waiting():
    agent = asking("Two.", message="How many days?", response_schema={"type": "integer"})

    async def work(talker: Talker) -> None:
        first = await talker.task("Plan")
        second = await talker.task("many", first)
        third = await talker.task("2", second)
        assert second.status.state == WAITS and "integer" in said(second) and "How many days?" in said(second)
        assert (third.status.state, texts(third)) == (DONE, ["Two."])

    with_client(agent, work)


def paying(paid: list[float], *answers: Any) -> LlmAgent:
    def pay(amount: float) -> str:
        """Pay an amount."""
        paid.append(amount)
        return "paid"

    return planner(call("pay", amount=250), *answers, tools=[FunctionTool(pay, require_confirmation=True)])


def test_words_approve_nothing_and_a_function_response_does():
    paid: list[float] = []

    async def work(talker: Talker) -> None:
        first = await talker.task("Pay")
        second = await talker.task("yes", first)
        refused = list(paid)
        request = next(part for part in second.status.message.parts if part.HasField("data"))
        question = MessageToDict(request.data)
        approval = Part(metadata={"adk_type": "function_response"})
        values = {"id": question["id"], "name": question["name"], "response": {"confirmed": True}}
        approval.data.struct_value.update(values)
        third = await talker.task([approval], second)
        assert (first.status.state, second.status.state, refused) == (WAITS, WAITS, [])
        assert "pay(amount=250)" in said(first)
        assert (third.status.state, paid) == (DONE, [250.0])

    with_client(paying(paid, "Done."), work)


class CardRunner(InMemoryRunner):
    """Waits for a click within the run, as the runner of a notebook does."""

    def __init__(self, agent: BaseAgent) -> None:
        super().__init__(agent)
        self.clicked = threading.Event()

    async def run_async(self, *, new_message: Any = None, **options: Any) -> AsyncGenerator[Event, None]:
        events: list[Event] = []
        async for event in super().run_async(new_message=new_message, **options):
            events.append(event)
            yield event
        for interrupt in open_interrupts(events):
            await asyncio.to_thread(self.clicked.wait, 60)
            yes = types.Content(role="user", parts=[answer(interrupt, True)])
            async for event in super().run_async(new_message=yes, **options):
                yield event


def test_a_task_that_waits_for_a_card_where_its_agent_runs_says_so_and_goes_on():
    paid: list[float] = []
    runner = CardRunner(paying(paid, "Done."))

    async def work(talker: Talker) -> None:
        states: list[int] = []
        async for update in talker.client.send_message(talker.request("Pay")):
            if update.HasField("status_update"):
                states.append(update.status_update.status.state)
                if states[-1] == WAITS:
                    assert not paid
                    runner.clicked.set()
        assert states == [TaskState.TASK_STATE_WORKING, WAITS, TaskState.TASK_STATE_WORKING, DONE]
        assert paid == [250.0]

    with_client(runner.agent, work, lambda port: _app(runner, port))  # pyright: ignore[reportArgumentType]


def _app(runner: Any, port: int, **options: Any) -> Any:
    from starlette.applications import Starlette  # noqa: PLC0415

    return Starlette(routes=A2aServer(runner, f"http://127.0.0.1:{port}/", **options).routes)


def test_a_failure_is_a_failed_task_of_one_line_without_secrets():
    async def work(talker: Talker) -> None:
        task = await talker.task("Plan")
        assert task.status.state == FAILED
        assert "the model is ill" in said(task) and "\n" not in said(task) and "sk-" not in said(task)

    with_client(planner(ValueError("the model\nis ill: sk-abcdefgh12345678901234")), work)


def test_a_message_without_content_is_refused_and_the_next_one_is_answered():
    async def work(talker: Talker) -> None:
        with pytest.raises(Exception, match="Validation"):
            await talker.updates([])
        assert texts(await talker.task("Plan")) == ["Rome."]

    with_client(planner("Rome."), work)


def waiting(stopped: threading.Event) -> LlmAgent:
    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    return planner(["I wait.", call("wait")], "Rome.", tools=[wait])


async def until_it_waits(talker: Talker) -> Task:
    """The task once its first text has come; nobody reads on."""
    request, task = talker.request("Plan"), Task()
    async for update in talker.client.send_message(request):
        if update.HasField("task"):
            task.CopyFrom(update.task)
        if update.HasField("artifact_update") and update.artifact_update.last_chunk:
            break
    return task


def test_cancelling_a_task_stops_its_run():
    stopped = threading.Event()

    async def work(talker: Talker) -> None:
        task = await until_it_waits(talker)
        cancelled = await talker.client.cancel_task(CancelTaskRequest(id=task.id))
        assert cancelled.status.state == STOPPED
        assert (await talker.client.get_task(GetTaskRequest(id=task.id))).status.state == STOPPED
        assert stopped.is_set()

    with_client(waiting(stopped), work)


def test_a_task_that_waits_is_cancelled_too():
    async def work(talker: Talker) -> None:
        task = await talker.task("Plan")
        cancelled = await talker.client.cancel_task(CancelTaskRequest(id=task.id))
        assert (task.status.state, cancelled.status.state) == (WAITS, STOPPED)

    with_client(asking("Rome it is.", message="Which city?"), work)


def test_a_client_that_goes_away_loses_nothing():
    release = threading.Event()

    async def wait() -> str:
        await asyncio.to_thread(release.wait, 60)
        return "enough"

    async def work(talker: Talker) -> None:
        task = await until_it_waits(talker)
        updates = talker.client.subscribe(SubscribeToTaskRequest(id=task.id))
        states = list[int]()
        async for update in updates:
            release.set()
            states += [update.status_update.status.state] if update.HasField("status_update") else []
        run_task = await talker.client.get_task(GetTaskRequest(id=task.id))
        assert states[-1:] == [DONE]
        assert (run_task.status.state, texts(run_task)) == (DONE, ["I wait.", "Rome."])

    with_client(planner(["I wait.", call("wait")], "Rome.", tools=[wait]), work)


def test_two_clients_at_once_in_one_context_are_answered_one_after_the_other():
    agent = planner("Hello.", "Rome.", "Oslo.")

    async def work(talker: Talker) -> None:
        first = await talker.task("Hi")
        requests = [talker.request(text) for text in ("Where to?", "And then?")]
        for request in requests:
            request.message.context_id = first.context_id

        async def replies(request: SendMessageRequest) -> list[StreamResponse]:
            return [update async for update in talker.client.send_message(request)]

        ends = await asyncio.gather(*map(replies, requests))
        assert [updates[-1].status_update.status.state for updates in ends] == [DONE, DONE]

    with_client(agent, work)

    assert [len(contents) for contents in requests(agent)] == [1, 3, 5]


def test_a_context_goes_on_after_the_server_has_started_again(tmp_path: Path):
    agent = planner("Rome, then.", "Two days.")

    def app(port: int) -> Any:
        service = SqliteSessionService(str(tmp_path / "nb.db"))
        return to_a2a(agent, port=port, runner=Runner(app_name="trips", agent=agent, session_service=service))

    contexts: list[str] = []

    async def work(talker: Talker) -> None:
        request = talker.request("Where to?" if not contexts else "For how long?")
        request.message.context_id = contexts[0] if contexts else ""
        async for update in talker.client.send_message(request):
            contexts.extend([update.task.context_id] if update.HasField("task") else [])

    with_client(agent, work, app)
    with_client(agent, work, app)

    assert [len(contents) for contents in requests(agent)] == [1, 3]


@pytest.mark.parametrize("context", ["a\nb", "a\x1b[2Jb", "a\u202eb"])
def test_a_context_with_a_control_character_is_refused_and_nothing_is_stored(context: str):
    agent = planner("Rome.")
    runner = InMemoryRunner(agent)
    plan = {**PLAN, "params": {"message": {**PLAN["params"]["message"], "contextId": context}}}
    with served(lambda port: to_a2a(agent, port=port, runner=runner)) as server:
        answer = post(server, json=plan).json()

    assert "control character" in json.dumps(answer)
    assert not requests(agent)
    assert not runner.session_service.list_sessions_sync(app_name=runner.app_name).sessions


def test_an_agent_that_was_redefined_answers_from_the_next_message_on():
    runners = [InMemoryRunner(planner("Rome.")), InMemoryRunner(LlmAgent(name="walker", model=ScriptedLlm("On foot.")))]

    async def work(talker: Talker) -> None:
        assert texts(await talker.task("Where?")) == ["Rome."]
        del runners[0]
        assert texts(await talker.task("Where?")) == ["On foot."]
        async with httpx.AsyncClient(trust_env=False) as http:
            card = await A2ACardResolver(http, talker.card.supported_interfaces[0].url).get_agent_card()
        assert card.name == "walker"

    with_client(runners[0].agent, work, lambda port: _app(lambda: runners[0], port))  # pyright: ignore[reportArgumentType]


# ---- who may call


PLAN = {
    "jsonrpc": "2.0",
    "id": "1",
    "method": "SendMessage",
    "params": {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "Plan"}]}},
}
VERSION = {"A2A-Version": "1.0"}


def post(server: LoopbackServer, **options: Any) -> httpx.Response:
    headers = {**VERSION, **options.pop("headers", {})}
    return httpx.post(f"{server.url}/", headers=headers, trust_env=False, **({"json": PLAN} | options))


@pytest.mark.parametrize("payload", [None, "Bearer wrong", "Basic the-right-token-1", "Bearer", "Bearer \u00e4"])
def test_a_wrong_token_calls_nothing(payload: str | None):
    agent = planner("Rome.")
    with served(lambda port: to_a2a(agent, port=port, token="the-right-token-1")) as server:
        refused = post(server, headers={"Authorization": payload.encode("latin-1")} if payload else {})
        let_in = post(server, headers={"Authorization": "bearer the-right-token-1"})
        card = httpx.get(f"{server.url}/.well-known/agent-card.json", trust_env=False).json()

    assert (refused.status_code, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert let_in.json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert card["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"] == "bearer"


def test_a_page_in_a_browser_calls_nothing():
    with served(lambda port: to_a2a(planner(), port=port)) as server:
        body = '{"jsonrpc": "2.0"}'
        simple = post(server, json=None, content=body, headers={"Content-Type": "text/plain"})
        rebound = post(server, headers={"Host": f"evil.example:{server.port}"})

    assert (simple.status_code, rebound.status_code) == (415, 403)


@pytest.mark.slow
@pytest.mark.parametrize("token", [None, "the-right-token-1"])
def test_a_server_of_this_machine_answers_its_own_name_and_its_own_page_alone(token: str | None):
    known = {"Authorization": f"Bearer {token}"} if token else {}
    with served(lambda port: to_a2a(planner("Rome.", "Oslo."), port=port, token=token)) as server:
        strange = [
            {"Host": f"evil.example:{server.port}"},
            {"Host": "evil.example"},
            {"Host": "localhost.evil.example"},
            {"Host": "[::1"},
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Origin": f"http://127.0.0.1:{server.port + 1}"},
        ]
        own = [{"Host": f"localhost:{server.port}"}, {"Origin": server.url}]
        for headers in strange:
            assert post(server, headers=known | headers).status_code == 403, headers
            assert get_card(server, headers).status_code == 403, headers
        for headers in own:
            assert "result" in post(server, headers=known | headers).json(), headers
            assert get_card(server, headers).json()["name"] == "planner"


def test_a_card_shows_no_known_secret():
    remember("q7Zx-5bR1-mm2")

    def find() -> str:
        """Find with q7Zx-5bR1-mm2."""
        return ""

    agent = LlmAgent(name="planner", description="Uses q7Zx-5bR1-mm2.", model=ScriptedLlm(), tools=[find])
    with served(lambda port: to_a2a(agent, port=port)) as server:
        card = get_card(server, {})

    assert card.json()["description"] == "Uses [secret]." and "q7Zx" not in card.text


def get_card(server: LoopbackServer, headers: dict[str, str]) -> httpx.Response:
    return httpx.get(f"{server.url}/.well-known/agent-card.json", headers=headers, trust_env=False)


def test_a_message_that_is_too_long_is_refused_whether_its_length_is_told_or_not(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(server_module, "MAX_BYTES", 10_000)
    agent = planner("Rome.")
    json_type = {"Content-Type": "application/json"}
    with served(lambda port: to_a2a(agent, port=port)) as server:
        told = post(server, json=None, content=b" " * 10_001, headers=json_type)
        untold = post(server, json=None, content=iter([b" " * 4_000] * 3), headers=json_type)
        endless = post(server, json=None, content=iter([b"{"] + [b" " * 1_000] * 100), headers=json_type)
        short = post(server, json=None, content=iter([json.dumps(PLAN).encode()]), headers=json_type)

    assert [answer.status_code for answer in (told, untold, endless)] == [413, 413, 413]
    assert "result" in short.json() and len(requests(agent)) == 1


def test_what_is_no_request_is_an_error_of_the_protocol():
    with served(lambda port: to_a2a(planner(), port=port)) as server:
        codes = [
            post(server, json=body).json()["error"]["code"]
            for body in ([], {}, PLAN | {"method": "Dance"}, PLAN | {"params": {"message": 3}})
        ]
        broken = post(server, json=None, content="{", headers={"Content-Type": "application/json"})

    assert codes == [-32600, -32600, -32601, -32602]
    assert broken.json()["error"]["code"] == -32700


def test_a_client_of_another_version_gets_an_error():
    with served(lambda port: to_a2a(planner(), port=port)) as server:
        error = post(server, headers={"A2A-Version": "7.0"}).json()["error"]

    assert "7.0" in error["message"]


def test_a_card_of_the_author_is_served(tmp_path: Path):
    (tmp_path / "card.json").write_text(
        '{"name": "mine", "supportedInterfaces": [{"url": "http://x/", "protocolBinding": "JSONRPC"}]}'
    )
    with served(lambda port: to_a2a(planner(), port=port, agent_card=str(tmp_path / "card.json"))) as server:
        card = httpx.get(f"{server.url}/.well-known/agent-card.json", trust_env=False).json()

    assert card["name"] == "mine"


def test_an_agent_stands_below_a_path_with_its_card():
    async def ask(url: str) -> None:
        async with talking(url) as talker:
            assert texts(await talker.task("Hi")) == ["Hello."]

    with served(lambda port: to_a2a(planner("Hello."), port=port, rpc_path="/agents/planner/")) as server:
        sync.run(ask(f"{server.url}/agents/planner"))
        assert httpx.get(f"{server.url}/.well-known/agent-card.json", trust_env=False).status_code == 404


def test_what_the_author_opens_lives_as_long_as_the_application():
    seen: list[str] = []

    @asynccontextmanager
    async def database(app: Any) -> AsyncGenerator[dict[str, str], None]:
        seen.append(f"opened for {type(app).__name__}")
        yield {"database": "db"}
        seen.append("closed")

    async def live() -> None:
        app = to_a2a(planner(), lifespan=database)
        async with app.router.lifespan_context(app) as state:
            assert state == {"database": "db"}
            assert seen == ["opened for Starlette"]

    sync.run(live())
    assert seen == ["opened for Starlette", "closed"]


def test_an_executor_of_the_author_answers_in_place_of_the_runner():
    class Echo(execution.AgentExecutor):
        def __init__(self, runner: Runner) -> None:
            self.name = runner.agent.name

        async def execute(self, context: Any, event_queue: Any) -> None:
            text = f"{self.name} heard {context.get_user_input()}"
            await event_queue.enqueue_event(
                Message(message_id=clock.new_id(), role=Role.ROLE_AGENT, parts=[Part(text=text)])
            )

        async def cancel(self, context: Any, event_queue: Any) -> None:
            raise NotImplementedError

    async def ask(talker: Talker) -> None:
        [answer] = await talker.updates("Hi")
        assert [part.text for part in answer.message.parts] == ["planner heard Hi"]

    with_client(planner(), ask, lambda port: to_a2a(planner(), port=port, agent_executor_factory=Echo))


def test_what_is_no_agent_is_not_served():
    with pytest.raises(ConfigurationError, match="3"):
        to_a2a(3)


def test_a_card_has_the_security_schemes_of_the_author():
    key = SecurityScheme(api_key_security_scheme=APIKeySecurityScheme(name="X-Key", location="header"))
    with served(lambda port: to_a2a(planner(), port=port, token="t", security_schemes={"key": key})) as server:
        card = httpx.get(f"{server.url}/.well-known/agent-card.json", trust_env=False).json()

    assert set(card["securitySchemes"]) == {"bearer", "key"}
    assert card["securitySchemes"]["key"]["apiKeySecurityScheme"]["name"] == "X-Key"


@pytest.mark.parametrize("options", [{"agent_card": AgentCard(name="mine")}, {}], ids=["card", "type"])
def test_security_schemes_that_would_not_be_in_the_card_are_refused(options: dict[str, Any]):
    with pytest.raises(ConfigurationError, match="security_schemes"):
        to_a2a(planner(), security_schemes={"key": "X-Key"}, **options)


def test_each_skill_in_a_card_says_what_it_needs_and_a_tool_says_so_for_itself(caplog: pytest.LogCaptureFixture):
    free, paid, wrong = FunctionTool(look), FunctionTool(Path.exists), FunctionTool(clock.now)
    wrong.custom_metadata = {"security": "high"}
    free.custom_metadata, paid.custom_metadata = {"security": []}, {"security": [{"oauth2": ["pay"]}, {"key": []}]}
    agent = planner(tools=[free, paid, wrong, clock.new_id], sub_agents=[LlmAgent(name="guide", model=ScriptedLlm())])
    schemes = {"key": SecurityScheme(), "oauth2": SecurityScheme()}
    server = A2aServer(
        InMemoryRunner(agent=agent),
        "http://127.0.0.1:9/",
        security_schemes=schemes,
        default_skill_security=[{"oauth2": ["agent.read"]}],
    )

    needs = {
        skill.id: [
            {name: list(scopes.list) for name, scopes in need.schemes.items()} for need in skill.security_requirements
        ]
        for skill in server.card().skills
    }

    read = [{"oauth2": ["agent.read"]}]
    assert needs == {
        "planner": read,
        "planner.look": [],
        "planner.exists": [{"oauth2": ["pay"]}, {"key": []}],
        "planner.now": read,
        "planner.new_id": read,
        "planner.guide": read,
    }
    assert "of the tool 'now' is 'high'" in caplog.text


@pytest.mark.parametrize(
    ("security", "options", "said"),
    [
        ([{"oauth2": ["agent.read"]}], {}, "names 'oauth2'.*security_schemes="),
        ({"oauth2": ["agent.read"]}, {}, "default_skill_security is"),
        ([{"oauth2": []}], {"agent_card": AgentCard(name="mine")}, "into agent_card"),
    ],
    ids=["no such scheme", "shape", "card"],
)
def test_what_a_skill_needs_has_to_be_in_the_card(security: Any, options: dict[str, Any], said: str):
    with pytest.raises(ConfigurationError, match=said):
        to_a2a(planner(), default_skill_security=security, **options)


def test_news_of_a_task_is_sent_to_the_address_that_the_client_names():
    news: list[Any] = []
    arrived = threading.Event()

    async def hear(request: Any) -> Any:
        news.append((request.headers.get("x-a2a-notification-token"), await request.json()))
        if "completed" in json.dumps(news[-1]).lower():
            arrived.set()
        return JSONResponse({})

    async def work(url: str, heard_at: str) -> None:
        async with talking(url) as talker:
            assert talker.card.capabilities.push_notifications
            config = TaskPushNotificationConfig(url=heard_at, token="mine")
            request = talker.request("Hi", task_push_notification_config=config)
            async for _ in talker.client.send_message(request):
                pass

    listener = Starlette(routes=[Route("/", hear, methods=["POST"])])
    store = tasks.InMemoryPushNotificationConfigStore()
    with (
        served(lambda _: listener) as ear,
        served(lambda port: to_a2a(planner("Hello."), port=port, push_config_store=store)) as server,
    ):
        sync.run(work(server.url, f"{ear.url}/"))
        assert arrived.wait(SECONDS)

    assert {token for token, _ in news} == {"mine"}


def test_a_server_for_others_sends_no_news_to_this_machine():
    server = A2aServer(
        InMemoryRunner(agent=planner("Hello.")),
        "https://agents.example/",
        push_config_store=tasks.InMemoryPushNotificationConfigStore(),
    )
    request = {"id": "1", "url": "http://127.0.0.1:9/", "taskId": "t"}

    async def refused() -> Any:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(Starlette(routes=server.routes))) as http:
            body = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "SendMessage",
                "params": {
                    "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]},
                    "configuration": {"taskPushNotificationConfig": request},
                },
            }
            answer = await http.post("https://agents.example/", json=body, headers={"A2A-Version": "1.0"})
            await server.aclose()
            return answer.json()

    assert "push notification URL" in sync.run(refused())["error"]["message"]
