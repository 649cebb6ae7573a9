"""Graph Compose's page on agent types: each request, answer and state that it prints, field by field, from its own
builder chains in both spellings; and what its sentences say of the four types.
"""

from types import ModuleType
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.graph_compose import (
    GraphCompose,
    WorkflowResult,
    create_http_tool,
    create_llm_agent,
    create_loop_agent,
    create_parallel_agent,
    create_sequential_agent,
)
from adk_nb.graph_compose.agents import ITERATION
from tests.graph_compose import documented_camel, documented_snake
from tests.graph_compose.test_flow_signals import asked, graph_of, ran, say
from tests.support.http_service import Service

SUPPORT = "You are a customer support agent. Use tools to look up account information."
ORDER = "I need help with my recent order."
CLAIM = "Process insurance claim CLM-2024-001."
TRIP = "Plan a trip to Tokyo for next week."
POST = "Write a blog post about AI orchestration."
"""Texts of the documentation."""

SPELLINGS = [pytest.param(documented_camel, id="camelCase"), pytest.param(documented_snake, id="snake_case")]
both_spellings = pytest.mark.parametrize("page", SPELLINGS)


def by_instructions(service: Service, answers: dict[str, list[Any]]) -> None:
    """Let the chat service answer by whom it speaks for."""
    service.make("/chat", lambda asked: answers[asked.body["messages"][0]["content"]].pop(0))


def asked_as(service: Service, instructions: str) -> list[Any]:
    return [body for body in service.bodies("/chat") if body["messages"][0]["content"] == instructions]


def calls(name: str, **args: Any) -> dict[str, Any]:
    return {"toolCalls": [{"function_name": name, "function_args": args}]}


def executed(graph: GraphCompose) -> WorkflowResult:
    result = sync.run(graph.execute())
    assert result.error_details is None
    return result


# ---- how agent execution works


@pytest.fixture
def contract(service: Service) -> GraphCompose:
    """The agent of the page's first request."""
    agent = create_llm_agent(
        id="agent",
        http_config={"url": f"{service.url}/chat"},
        instructions="Your agent instructions...",
        tools=["tool_id"],
        output_key="said",
    )
    tool = create_http_tool(id="tool_id", http_config={"url": f"{service.url}/tool"})
    graph = GraphCompose()
    graph.adk("contract").with_workflow(lambda b: b.root_agent("agent").agent(agent).http_tool(tool).build())
    return graph


def test_what_a_service_receives(service: Service, contract: GraphCompose):
    service.say("/chat", {"content": "Hello", "exitFlow": True})
    sync.run(contract.execute("The user's message or initial prompt"))
    assert service.bodies("/chat") == [
        {
            "messages": [
                {"role": "system", "content": "Your agent instructions..."},
                {"role": "user", "content": "The user's message or initial prompt"},
            ],
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "tool_id",
                        "description": "tool_id",
                        "parameters": {"type": "object", "properties": {}, "required": []},
                    },
                }
            ],
            "state": {},
        }
    ]


def test_what_a_service_returns(service: Service, contract: GraphCompose):
    service.say(
        "/chat",
        {
            "content": "Text response to the user (or null for silent tool-only turns)",
            "toolCalls": [{"function_name": "tool_id", "function_args": {}}],
            "exitFlow": True,
        },
    )
    service.say("/tool", {"done": True})
    result = sync.run(contract.execute("go"))
    assert asked(service) == ["chat", "tool"]
    assert result.exit_flow is True
    assert result.session_state["said"] == "Text response to the user (or null for silent tool-only turns)"


def test_a_tool_call_may_omit_content_and_a_completion_the_tool_calls(service: Service, contract: GraphCompose):
    service.say("/chat", calls("tool_id"), {"content": "Done.", "exitFlow": True})
    service.say("/tool", "plain")
    result = sync.run(contract.execute("go"))
    [answer] = service.bodies("/chat")[1]["messages"][3]["content"]
    assert answer["function_response"]["response"] == {"result": "plain"}
    assert (result.final_response_text, result.exit_flow) == ("Done.", True)


def test_null_and_false_are_the_same_as_left_out(service: Service, contract: GraphCompose):
    nothing = {"exitFlow": False, "escalate": False, "hitlRequest": None}
    service.say("/chat", {"content": None, **calls("tool_id"), **nothing}, {"content": "B", "toolCalls": None})
    service.say("/tool", {})
    result = sync.run(contract.execute("go"))
    assert (asked(service), result.final_response_text) == (["chat", "tool", "chat"], "B")
    [only] = service.bodies("/chat")[1]["messages"][2]["content"]
    assert only.keys() == {"function_call"}  # content null: the turn is silent


# ---- LlmAgent


@both_spellings
def test_an_agent_with_tools(service: Service, page: ModuleType):
    service.say("/chat", calls("search_kb", q="order"), calls("lookup_account", id=7, all=True))
    service.say("/chat", {"content": "It is on its way.", "exitFlow": True})
    service.say("/kb/search", {"output": "Orders take 3 days.", "status": "ok"})
    service.say("/accounts", ["one", "two"])

    result = executed(page.support_workflow(service.url, service.url))

    assert service.bodies("/chat")[0] == {
        "messages": [
            {
                "role": "system",
                "content": SUPPORT,
            },
            {"role": "user", "content": ORDER},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "search_kb",
                    "description": "search_kb",
                    "parameters": {"type": "object", "properties": {}, "required": []},
                },
            },
            {
                "type": "function",
                "function": {
                    "name": "lookup_account",
                    "description": "lookup_account",
                    "parameters": {"type": "object", "properties": {}, "required": []},
                },
            },
        ],
        "state": {},
    }
    second, third = service.bodies("/chat")[1:]
    key = second["messages"][2]["content"][0]["function_call"]["id"]
    found = {"output": "Orders take 3 days.", "status": "ok"}
    assert second["messages"][:2] == service.bodies("/chat")[0]["messages"]
    assert second["messages"][2:] == [
        {
            "role": "assistant",
            "content": [{"function_call": {"id": key, "name": "search_kb", "args": {"q": "order"}}}],
        },
        {
            "role": "tool",
            "content": [{"function_response": {"id": key, "name": "search_kb", "response": found}}],
        },
    ]
    assert third["messages"][5]["content"][0]["function_response"]["response"] == {"result": ["one", "two"]}
    assert service.bodies("/kb/search") == [
        {
            "tool_name": "search_kb",
            "arguments": {"q": "order"},
            "session_state": {},
            "context": {"workflow_id": "support_workflow", "agent_id": "support_agent", "call_id": key},
        }
    ]
    [lookup] = [one for one in service.asked if one.path == "/accounts"]
    assert (lookup.method, lookup.query, lookup.body) == ("GET", {"id": "7", "all": "true"}, None)
    assert result.final_response_text == "It is on its way."
    assert result.session_state["support_response"] == "It is on its way."
    assert (result.exit_flow, result.wait_for_user_input) == (True, False)


# ---- SequentialAgent

ANALYSIS = "Claim CLM-2024-001: Water damage to kitchen ceiling. Submitted photos show..."
FRAUD = "No fraud indicators detected. Claim details are consistent with..."
ANALYST = "Analyze the submitted claim documents and extract key details."
DETECTOR = "Review the document analysis in session state for fraud indicators."
DECIDER = "Make a claim decision based on the document and fraud analysis."


@both_spellings
def test_agents_one_after_the_other(service: Service, page: ModuleType):
    by_instructions(
        service,
        {
            ANALYST: [calls("read_document"), {"content": ANALYSIS}],
            DETECTOR: [{"content": FRAUD}],
            DECIDER: [{"content": "Approved.", "exitFlow": True}],
        },
    )
    service.say("/documents", {"photos": 4})

    result = executed(page.claims_processor(service.url, service.url))

    assert asked_as(service, DECIDER) == [
        {
            "messages": [
                {"role": "system", "content": "Make a claim decision based on the document and fraud analysis."},
                {"role": "user", "content": CLAIM},
            ],
            "tools": [],
            "state": {
                "document_analysis": "Claim CLM-2024-001: Water damage to kitchen ceiling. Submitted photos show...",
                "fraud_analysis": "No fraud indicators detected. Claim details are consistent with...",
            },
        }
    ]
    assert asked_as(service, ANALYST)[0]["state"] == {}
    assert asked_as(service, DETECTOR)[0]["state"] == {"document_analysis": ANALYSIS}
    assert result.session_state["claim_decision"] == result.session_state["pipeline_result"] == "Approved."


def test_exit_flow_of_a_sub_agent_skips_the_remaining_agents(service: Service):
    by_instructions(service, {ANALYST: [{"content": ANALYSIS}], DETECTOR: [{"content": FRAUD, "exitFlow": True}]})
    result = executed(documented_camel.claims_processor(service.url, service.url))
    assert asked_as(service, DECIDER) == []
    assert (result.exit_flow, result.session_state["pipeline_result"]) == (True, FRAUD)
    assert "claim_decision" not in result.session_state


# ---- ParallelAgent

FLIGHTS = "Search for flights matching the travel request."
HOTELS = "Search for hotels at the destination."
ACTIVITIES = "Find activities and attractions at the destination."
FOUND = {
    FLIGHTS: ("search_flights", "Found 3 direct flights to Tokyo NRT..."),
    HOTELS: ("search_hotels", "Top-rated hotels in Shinjuku district..."),
    ACTIVITIES: ("search_activities", "Recommended: teamLab Borderless, Tsukiji Market tour..."),
}


@both_spellings
def test_agents_at_the_same_time(service: Service, page: ModuleType):
    by_instructions(service, {who: [calls(tool), {"content": said}] for who, (tool, said) in FOUND.items()})
    for path in ("flights", "hotels", "activities"):
        service.say(f"/{path}", {"found": path})

    result = executed(page.travel_planner(service.url, service.url))

    first, second = asked_as(service, FLIGHTS)
    assert first == {
        "messages": [
            {"role": "system", "content": "Search for flights matching the travel request."},
            {"role": "user", "content": TRIP},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "search_flights",
                    "description": "search_flights",
                    "parameters": {"type": "object", "properties": {}, "required": []},
                },
            }
        ],
        "state": {},
    }
    assert [one["role"] for one in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert second["messages"][3]["content"][0]["function_response"]["response"] == {"found": "flights"}
    for who, (tool, _) in FOUND.items():
        begin, end = asked_as(service, who)
        assert begin["messages"] == [
            {"role": "system", "content": who},
            {"role": "user", "content": TRIP},
        ]
        assert [one["function"]["name"] for one in begin["tools"]] == [tool]
        assert begin["state"] == end["state"] == {}
    counters = ("_user_message_count", "orchestration_cycle_count")
    assert {key: value for key, value in result.session_state.items() if key not in counters} == {
        "flight_data": "Found 3 direct flights to Tokyo NRT...",
        "hotel_data": "Top-rated hotels in Shinjuku district...",
        "activity_data": "Recommended: teamLab Borderless, Tsukiji Market tour...",
    }
    assert [result.session_state[key] for key in counters] == [1, 6]


def test_parallel_agents_run_at_the_same_time(service: Service):
    block = create_parallel_agent(id="block", sub_agents=["a", "b"])
    service.make("/a", service.once_asked("/b", {"content": "A"}))
    service.make("/b", service.once_asked("/a", {"content": "B"}))
    assert ran(graph_of(service, block, "a", "b")).error_details is None


def test_a_synthesizer_after_a_parallel_block_reads_all_its_outputs(service: Service):
    block = create_parallel_agent(id="block", sub_agents=["a", "b"])
    line = create_sequential_agent(id="line", sub_agents=["block", "synthesizer"])
    say(service, a={"content": "A"}, b={"content": "B"}, synthesizer={"content": "Both."})
    result = ran(graph_of(service, line, block, "a", "b", "synthesizer"))
    [sent] = service.bodies("/synthesizer")
    assert (sent["state"], sent["messages"]) == ({"a": "A", "b": "B"}, [{"role": "user", "content": "go"}])
    assert result.final_response_text == "Both."


# ---- LoopAgent

WRITER = "Write or revise content based on reviewer feedback in session state."
REVIEWER = (
    "Review the draft in session state. Set quality_status to approved if it meets standards, or provide feedback for "
    "revision."
)
DRAFT = "AI orchestration platforms coordinate multiple..."
FEEDBACK = "Needs revision: the section on error handling lacks detail."


@both_spellings
def test_agents_again_and_again(service: Service, page: ModuleType):
    by_instructions(
        service,
        {
            WRITER: [{"content": "First."}, {"content": DRAFT}, {"content": "Third."}],
            REVIEWER: [{"content": "Too short."}, {"content": FEEDBACK}, {"content": "approved"}],
        },
    )

    result = executed(page.content_pipeline(service.url, service.url))

    assert asked_as(service, WRITER)[2] == {
        "messages": [
            {"role": "system", "content": "Write or revise content based on reviewer feedback in session state."},
            {"role": "user", "content": POST},
        ],
        "tools": [],
        "state": {
            "draft_content": "AI orchestration platforms coordinate multiple...",
            "quality_status": "Needs revision: the section on error handling lacks detail.",
            ITERATION: 2,
        },
    }
    assert asked_as(service, WRITER)[0]["state"] == {ITERATION: 0}
    assert len(service.asked) == 6
    assert result.session_state == {
        "draft_content": "Third.",
        "quality_status": "approved",
        "final_content": "approved",
        "loop_exit_reason": "exit_condition",
        "_user_message_count": 1,
        "orchestration_cycle_count": 6,
    }


@pytest.mark.parametrize(
    ("answers", "reason", "after_it"),
    [
        ([{"content": "no"}, {"content": "approved"}], "exit_condition", True),
        ([{"content": "no"}] * 3, "max_agent_loop_iterations", True),
        ([{"content": "no"}, {"content": "stop", "escalate": True}], "escalate", False),
    ],
)
def test_how_a_loop_ends_and_whether_its_parent_goes_on(
    service: Service, answers: list[Any], reason: str, after_it: bool
):
    loop = create_loop_agent(
        id="loop",
        sub_agents=["a"],
        max_agent_loop_iterations=3,
        loop_exit_condition="session_state.get('a') == 'approved'",
    )
    line = create_sequential_agent(id="line", sub_agents=["loop", "after"])
    say(service, a=answers, after={"content": "After."})
    result = ran(graph_of(service, line, loop, "a", "after"))
    assert [one["state"][ITERATION] for one in service.bodies("/a")] == [*range(len(answers))]
    assert result.session_state["loop_exit_reason"] == reason
    assert ITERATION not in result.session_state
    assert [one["state"].get("loop_exit_reason") for one in service.bodies("/after")] == [reason] * after_it
