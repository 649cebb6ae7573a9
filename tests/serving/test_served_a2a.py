"""A2A beside the other protocols: the card at its path, a remote agent's conversation, and a card in the notebook."""

import threading

import httpx2

from adk_nb import Chat, tool
from adk_nb.a2a import RemoteA2aAgent
from adk_nb.agents import Agent
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.served_runs import NotebookRunner
from adk_nb.serving import Server
from adk_nb.serving.agent_service import AgentService
from adk_nb.serving.app import app_of
from adk_nb.serving.server import bound_socket
from tests.serving.conftest import TOKEN


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


def test_a_remote_agent_waits_for_the_card_in_the_notebook():
    model = ScriptedLlm(call("pay", to="Anna", amount=250), "Anna has it.")
    notebook = Notebook({"clerk": Agent(name="clerk", model=model, tools=[pay])})
    runner = NotebookRunner(notebook, "clerk", shows_runs=False)
    service = AgentService(runner, "clerk", notebook.traces, runner.waiting())
    server = Server(lambda url: app_of(service, TOKEN, url), bound_socket(0))
    server.start()
    try:
        chat = Chat(RemoteA2aAgent(name="remote", agent_card=f"{server.url}/a2a/clerk", token=TOKEN))
        asked = chat.start("Pay Anna", show=False)
        pause, waiting = threading.Event(), []
        while not waiting:
            waiting = [name for name in notebook.sessions.names if notebook.chat("clerk", name).interrupts]
            assert not asked.done() and not pause.wait(0.05)
        assert notebook.chat("clerk", waiting[0]).approve().text == "Anna has it."
        assert asked.result(60).text == "Anna has it."
    finally:
        server.stop()
