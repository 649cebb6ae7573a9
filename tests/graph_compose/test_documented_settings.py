"""Graph Compose's page on agent types, its second half: session state, the settings of a workflow, and all of it as
JSON, with what the tables require.
"""

from types import ModuleType
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.errors import ConfigurationError
from adk_nb.graph_compose import GraphCompose, create_sequential_agent
from tests.graph_compose import documented_camel, documented_snake
from tests.graph_compose.test_documented_examples import (
    ANALYST,
    DETECTOR,
    both_spellings,
    by_instructions,
    calls,
    executed,
)
from tests.graph_compose.test_flow_signals import graph_of, ran, say, speaker
from tests.support.each import each
from tests.support.http_service import Answer, Service

SUPPORT = "You are a customer support agent. Use tools to look up account information."
ORDER = "I need help with my recent order."
POLICY = "Process insurance claim for policy POL-123456"
"""Texts of the documentation."""

CHAINS = ["support_workflow", "claims_processor", "travel_planner", "content_pipeline", "claims_with_settings"]

# ---- session state and outputKey


@both_spellings
def test_the_state_after_two_agents_with_what_the_engine_counts(service: Service, page: ModuleType):
    by_instructions(
        service,
        {
            ANALYST: [calls("read_document"), {"content": "Claim CLM-2024-001: Water damage to kitchen..."}],
            DETECTOR: [{"content": "No fraud indicators detected.", "exitFlow": True}],
        },
    )
    service.say("/documents", {"photos": 4})
    graph = page.claims_processor(service.url, service.url)
    graph.workflow.agents[0].output_key = None  # the page's snapshot is of two agents, and not of the pipeline

    result = executed(graph)

    assert result.session_state == {
        "document_analysis": "Claim CLM-2024-001: Water damage to kitchen...",
        "fraud_analysis": "No fraud indicators detected.",
        "_user_message_count": 1,
        "orchestration_cycle_count": 3,
    }
    assert result.orchestration_cycle_count == 3


def test_only_the_final_text_is_stored_and_only_after_the_agent_has_completed(service: Service):
    looking = {"content": "Let me look.", "toolCalls": [{"function_name": "look", "function_args": {}}]}
    say(service, a=[looking, {"content": "Found."}], look={"seen": 1})
    result = ran(graph_of(service, speaker(service, "a")))
    assert service.bodies("/look")[0]["session_state"] == service.bodies("/a")[1]["state"] == {}
    assert result.session_state["a"] == "Found."


def test_without_an_output_key_an_answer_is_part_of_its_agents_own_conversation_alone(service: Service):
    line = create_sequential_agent(id="line", sub_agents=["a", "b"])
    say(service, a=[{"content": "A1"}, {"content": "A2"}], b=[{"content": "B1"}, {"content": "B2"}])
    graph = graph_of(service, line, speaker(service, "a", output_key=None), "b")

    async def talk() -> None:
        handle = await graph.start()
        await handle.receive_message("more")

    sync.run(talk())
    user, more = {"role": "user", "content": "go"}, {"role": "user", "content": "more"}
    assert service.bodies("/a")[1]["messages"] == [user, {"role": "assistant", "content": "A1"}, more]
    assert service.bodies("/b")[0] | {"tools": []} == {"messages": [user], "tools": [], "state": {}}
    assert service.bodies("/b")[1]["messages"] == [user, {"role": "assistant", "content": "B1"}, more]


def test_the_engine_keeps_its_own_keys_whoever_writes_to_them(service: Service):
    graph = graph_of(
        service,
        speaker(service, "a", output_key="orchestration_cycle_count"),
        _user_message_count=99,
        orchestration_cycle_count=99,
    )
    say(service, a=[{"toolCalls": [{"function_name": "look", "function_args": {}}]}, {"content": "A"}], look={})
    result = ran(graph)
    assert result.error_details is None
    assert (result.session_state["_user_message_count"], result.orchestration_cycle_count) == (1, 2)


# ---- workflow-level settings


@both_spellings
def test_a_state_to_begin_with_and_a_limit(service: Service, page: ModuleType):
    graph = page.claims_with_settings(service.url, service.url)
    service.say("/chat", {"content": "Done.", "exitFlow": True})

    result = executed(graph)

    [sent] = service.bodies("/chat")
    assert sent["state"] == {
        "policy_id": "POL-123456",
        "customer_id": "CUST-789",
    }
    assert sent["messages"][1] == {"role": "user", "content": POLICY}
    assert not result.terminated_by_global_limit
    written = graph.to_dict()
    assert {key: written[key] for key in ("rootAgentId", "maxOrchestrationCycles", "state", "initialUserInput")} == {
        "rootAgentId": "orchestrator",
        "maxOrchestrationCycles": 30,
        "state": {"policy_id": "POL-123456", "customer_id": "CUST-789"},
        "initialUserInput": POLICY,
    }


# ---- the chains as JSON

LLM, API = "https://llm.example.com", "https://api.example.com"


@both_spellings
def test_a_chain_as_json(page: ModuleType):
    assert page.support_workflow(LLM, API).to_dict() == {
        "name": "support_workflow",
        "agents": [
            {
                "type": "LlmAgent",
                "id": "support_agent",
                "httpConfig": {"url": f"{LLM}/chat", "method": "POST"},
                "instructions": SUPPORT,
                "tools": ["search_kb", "lookup_account"],
                "outputKey": "support_response",
                "activityConfig": {"startToCloseTimeout": "60s", "retryPolicy": {"maximumAttempts": 3}},
            }
        ],
        "globalTools": [
            {
                "type": "HttpTool",
                "id": "search_kb",
                "httpConfig": {"url": f"{API}/kb/search", "method": "POST"},
            },
            {
                "type": "HttpTool",
                "id": "lookup_account",
                "httpConfig": {"url": f"{API}/accounts", "method": "GET"},
            },
        ],
        "rootAgentId": "support_agent",
        "initialUserInput": ORDER,
        "state": {},
    }


@pytest.mark.parametrize("chain", CHAINS)
def test_both_spellings_are_the_same_workflow_and_json_gives_it_back(chain: str):
    camel, snake = (getattr(page, chain)(LLM, API).to_dict() for page in (documented_camel, documented_snake))
    assert camel == snake
    again = GraphCompose.from_dict(camel)
    assert again.to_dict() == camel
    assert again.to_app().root_agent.name == camel["rootAgentId"]


@each(
    "record, missing",
    [
        ({"type": "LlmAgent", "httpConfig": {"url": LLM}}, "id"),
        ({"type": "LlmAgent", "id": "a"}, "httpConfig"),
        ({"type": "LlmAgent", "id": "a", "httpConfig": {"method": "POST"}}, "url"),
        ({"type": "SequentialAgent", "id": "a"}, "subAgents"),
        ({"type": "SequentialAgent", "subAgents": [{"agentId": "b"}]}, "id"),
        ({"type": "ParallelAgent", "id": "a"}, "subAgents"),
        ({"type": "ParallelAgent", "id": "a", "subAgents": [{"agentId": "b"}], "outputKey": "o"}, "outputKey"),
        ({"type": "LoopAgent", "id": "a", "subAgents": [{"agentId": "b"}]}, "maxAgentLoopIterations"),
        (
            {"type": "LoopAgent", "id": "a", "subAgents": [{"agentId": "b"}], "maxAgentLoopIterations": 0},
            "maxAgentLoopIterations",
        ),
        ({"type": "LoopAgent", "id": "a", "maxAgentLoopIterations": 1}, "subAgents"),
    ],
)
def test_what_the_tables_require_is_required(record: dict[str, Any], missing: str):
    with pytest.raises(ConfigurationError, match=missing):
        GraphCompose.from_dict({"agents": [record], "rootAgentId": "a"})


def test_the_root_agent_is_required():
    agent = {"type": "LlmAgent", "id": "a", "httpConfig": {"url": LLM}}
    with pytest.raises(ConfigurationError, match="rootAgentId"):
        GraphCompose.from_dict({"agents": [agent]})


def test_a_token_is_not_sent_anywhere(service: Service):
    service.say("/chat", Answer({"content": "Done.", "exitFlow": True}))
    executed(documented_camel.claims_with_settings(service.url, service.url))
    assert "your-token" not in str(service.asked)
