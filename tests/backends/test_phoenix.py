"""A run and its evaluation in Phoenix, which reads the conventions; `make backends` installs it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from selenium.webdriver.common.by import By

from adk_nb import evaluation, telemetry, types
from adk_nb.agents import LlmAgent, SequentialAgent
from adk_nb.models import LlmResponse, ScriptedLlm
from adk_nb.models.scripted_llm import call
from adk_nb.runners import InMemoryRunner
from tests.browser.lab_server import chromium
from tests.servers.programs import free_port, served
from tests.support.polling import eventually

pytestmark = pytest.mark.backends

PHOENIX = Path(__file__).parents[2] / ".venv-phoenix" / "bin" / "phoenix"
PICTURES = Path(__file__).parents[2] / "build" / "backends"
STARTING = 600.0
"""Seconds: it imports some 6,700 modules, and makes its database."""
USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=120, candidates_token_count=20, thoughts_token_count=7, total_token_count=147
)


@pytest.fixture(scope="module")
def phoenix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server of its own."""
    folder, port = tmp_path_factory.mktemp("phoenix"), free_port()
    settings = {
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PYTHONPATH": "",
    }
    with served([str(PHOENIX), "serve"], port, settings, seconds=STARTING):
        yield f"http://127.0.0.1:{port}"


def trains(city: str) -> dict[str, list[str]]:
    """Find trains to a city."""
    return {"trains": ["09:04", "11:04"]}


def book(train: str) -> str:
    """Book a train."""
    raise ValueError("sold out")


def reply(text: str) -> LlmResponse:
    content = types.Content(role="model", parts=[types.Part(text=text)])
    return LlmResponse(
        content=content, usage_metadata=USAGE, finish_reason=types.FinishReason.STOP, model_version="scripted-001"
    )


def team() -> SequentialAgent:
    scout = ScriptedLlm(call("trains", city="Bonn"), reply("At 09:04."))
    clerk = ScriptedLlm([call("book", train="09:04"), call("trains", city="Bonn")], reply("It is sold out."))
    return SequentialAgent(
        name="travel",
        sub_agents=[
            LlmAgent(name="scout", model=scout, tools=[trains], instruction="Find trains."),
            LlmAgent(name="clerk", model=clerk, tools=[book, trains], instruction="Book one."),
        ],
    )


async def one_run() -> None:
    runner = InMemoryRunner(agent=team())
    runner.auto_create_session = True
    async for _ in runner.run_async(user_id="ada", session_id="trip", new_message="To Bonn tomorrow"):
        pass


def spans_of(url: str, session: str, count: int) -> list[dict[str, Any]]:
    """The spans of a conversation, in the order in which they began; Phoenix stores what it gets a moment later."""

    def stored() -> list[dict[str, Any]]:
        answer = httpx2.get(f"{url}/v1/projects/default/spans", params={"limit": 100})
        spans = answer.json()["data"] if answer.status_code == 200 else []
        roots = [span for span in spans if span["attributes"].get("adk_nb.session_id") == session]
        traces = {span["context"]["trace_id"] for span in roots}
        return [span for span in spans if span["context"]["trace_id"] in traces]

    eventually(lambda: len(stored()) >= count, seconds=60, pause=0.2)
    return sorted(stored(), key=lambda span: span["start_time"])


def tree(spans: list[dict[str, Any]], parent: str | None = None, depth: int = 0) -> list[str]:
    return [
        line
        for span in spans
        if span["parent_id"] == parent
        for line in [
            f"{'  ' * depth}{span['span_kind']} {span['name']}",
            *tree(spans, span["context"]["span_id"], depth + 1),
        ]
    ]


def test_phoenix_shows_a_run_as_it_was(phoenix: str, tmp_path: Path) -> None:
    telemetry.instrument(phoenix, content=True)
    asyncio.run(one_run())
    telemetry.uninstrument()

    spans = spans_of(phoenix, "trip", 10)

    assert tree(spans) == [
        "AGENT invoke_agent travel",
        "  AGENT invoke_agent scout",
        "    LLM chat scripted",
        "    TOOL execute_tool trains",
        "    LLM chat scripted",
        "  AGENT invoke_agent clerk",
        "    LLM chat scripted",
        "    TOOL execute_tool book",
        "    TOOL execute_tool trains",
        "    LLM chat scripted",
    ]
    # Phoenix lists sessions by this.
    assert all(span["attributes"]["session.id"].startswith("trip-") for span in spans)
    attributes = spans[4]["attributes"]
    assert (attributes["llm.token_count.prompt"], attributes["llm.token_count.completion"]) == (120, 27)
    assert (attributes["llm.model_name"], attributes["llm.finish_reason"]) == ("scripted", "stop")
    assert attributes["llm.output_messages.0.message.content"] == "At 09:04."
    assert attributes["llm.input_messages.0.message.role"] == "system"
    [failed] = [span for span in spans if span["status_code"] == "ERROR"]
    assert (failed["name"], failed["status_message"]) == ("execute_tool book", "sold out")

    root = spans[0]["context"]["trace_id"]
    view = page(phoenix, root, tmp_path, ["invoke_agent travel", "execute_tool book", "It is sold out."])
    assert "To Bonn tomorrow" in view


def test_phoenix_has_the_scores_of_an_evaluation_in_the_trace_of_its_run(phoenix: str) -> None:
    telemetry.instrument(phoenix)
    evaluated = evaluation.evaluate(team(), [{"id": "bonn", "message": "To Bonn", "answer": "It is sold out."}])
    telemetry.uninstrument()

    spans = spans_of(phoenix, evaluated.rows[0].session_id, 11)

    [scored] = [span for span in spans if span["name"] == "evaluate bonn"]
    assert scored["parent_id"] == spans[0]["context"]["span_id"]
    [event] = scored["events"]
    assert event["name"] == "gen_ai.evaluation.result"
    assert event["attributes"]["gen_ai.evaluation.score.value"] == 1.0


def page(url: str, trace_id: str, profile: Path, texts: list[str]) -> str:
    """The text of a trace's page, once it has all of `texts`; its picture is left in build/backends."""
    projects = httpx2.get(f"{url}/v1/projects").json()["data"]
    address = f"{url}/projects/{projects[0]['id']}/traces/{trace_id}"
    PICTURES.mkdir(parents=True, exist_ok=True)
    with chromium(profile) as browser:
        browser.get(address)

        def rendered() -> str:
            return browser.find_element(By.TAG_NAME, "body").text

        eventually(lambda: all(text in rendered() for text in texts), seconds=60, pause=0.2)
        text = rendered()
        browser.save_screenshot(str(PICTURES / "phoenix.png"))
    return text
