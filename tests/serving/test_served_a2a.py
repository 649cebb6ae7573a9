"""A2A beside the other protocols: the card at its path, a remote agent's conversation, and a card in the notebook."""

from collections.abc import Iterator

import httpx2
import pytest

from adk_nb import Chat, tool, types
from adk_nb.a2a import RemoteA2aAgent
from adk_nb.agents import Agent
from adk_nb.agents.run_config import RunConfig, StreamingMode
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.extensions.serving.served_runs import NotebookRunner
from adk_nb.runners import InMemoryRunner
from adk_nb.serving.server import bound_socket
from tests.serving.conftest import TOKEN
from tests.support.late import late
from tests.support.polling import eventually

serving, agent_service, app = late("adk_nb.serving"), late("adk_nb.serving.agent_service"), late("adk_nb.serving.app")


@tool(confirm=True)
def pay(to: str, amount: float) -> str:
    """Pay a person."""
    return f"paid {amount:g} to {to}"


def test_the_card_is_behind_the_token_and_names_its_own_address(serve):
    served = serve(Agent(name="clerk", description="Pays.", model=ScriptedLlm()))
    path = "/a2a/clerk/.well-known/agent-card.json"
    assert httpx2.get(served.url + path).status_code == 401
    card = served.client.get(path).json()
    assert {one["url"] for one in card["supportedInterfaces"]} == {f"{served.url}/a2a/clerk/"}


def test_a_remote_agent_talks_in_one_session(serve):
    served = serve(Agent(name="clerk", model=ScriptedLlm("Good day.", "You are Ada.")))
    chat = Chat(RemoteA2aAgent(name="remote", agent_card=f"{served.url}/a2a/clerk", token=TOKEN))
    assert [chat.ask(text).text for text in ("I am Ada.", "Who am I?")] == ["Good day.", "You are Ada."]
    assert len(served.client.get("/apps/clerk/users/user/sessions").json()) == 1


@pytest.fixture
def paying() -> Iterator[tuple[Notebook, RemoteA2aAgent]]:
    """A notebook whose agent pays and is served, and a remote agent that calls it."""
    model = ScriptedLlm(call("pay", to="Anna", amount=250), "Anna has it.")
    notebook = Notebook({"clerk": Agent(name="clerk", model=model, tools=[pay])})
    runner = NotebookRunner(notebook, "clerk", shows_runs=False)
    service = agent_service.AgentService(runner, "clerk", runner.traces, runner.waiting())
    server = serving.Server(lambda url: app.app_of(service, TOKEN, url), bound_socket(0))
    server.start()
    try:
        yield notebook, RemoteA2aAgent(name="remote", agent_card=f"{server.url}/a2a/clerk", token=TOKEN)
    finally:
        server.stop()


def waiting_chat(notebook: Notebook) -> Chat:
    """The chat whose call waits for approval, as soon as there is one."""

    def find_chat() -> Chat | None:
        chats = [notebook.chat("clerk", name) for name in notebook.sessions.names]
        return next((chat for chat in chats if chat.interrupts), None)

    chat = eventually(find_chat)
    assert chat
    return chat


def test_a_remote_agent_waits_for_the_card_in_the_notebook(paying: tuple[Notebook, RemoteA2aAgent]):
    notebook, remote = paying
    asked = Chat(remote).start("Pay Anna", show=False)
    chat = waiting_chat(notebook)
    assert not asked.done()
    assert chat.approve().text == "Anna has it."
    assert asked.result(60).text == "Anna has it."


def test_who_waits_for_a_card_elsewhere_reads_which_call_it_is(paying: tuple[Notebook, RemoteA2aAgent]):
    notebook, remote = paying
    runner = InMemoryRunner(agent=remote, app_name="caller")
    runner.session_service.create_session(app_name="caller", user_id="ada", session_id="s")
    message = types.Content(role="user", parts=[types.Part(text="Pay Anna")])
    texts: list[str] = []
    streaming = RunConfig(streaming_mode=StreamingMode.SSE)
    for event in runner.run(user_id="ada", session_id="s", new_message=message, run_config=streaming):
        texts += [part.text or "" for part in event.parts]
        if event.partial and "pay(" in texts[-1]:
            waiting_chat(notebook).approve()
    assert "to='Anna'" in texts[0] and "amount=250" in texts[0]
    assert texts[-1] == "Anna has it."
