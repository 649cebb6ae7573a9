"""The examples of Graph Compose's page on agent types: what services are sent, and what the state comes to, field by
field as the page prints it. The addresses are those of a service on this machine.
"""

from typing import Any

from adk_nb import sync
from adk_nb.graph_compose import (
    GraphCompose,
    WorkflowResult,
    createHttpTool,
    createLlmAgent,
    createLoopAgent,
    createParallelAgent,
    createSequentialAgent,
    createSubAgentReference,
)
from tests.http_service import Asked, Service


def by_instructions(service: Service, answers: dict[str, list[Any]]) -> None:
    """Let the chat service answer by whom it speaks for."""
    service.make("/chat", lambda asked: answers[asked.body["messages"][0]["content"]].pop(0))


def asked_as(service: Service, instructions: str) -> list[Any]:
    return [body for body in service.bodies("/chat") if body["messages"][0]["content"] == instructions]


def declared(name: str) -> dict[str, Any]:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": name,
            "parameters": {"type": "object", "properties": {}, "required": []},
        },
    }


def calls(name: str, **args: Any) -> dict[str, Any]:
    return {"toolCalls": [{"function_name": name, "function_args": args}]}


def executed(graph: GraphCompose) -> WorkflowResult:
    result = sync.run(graph.execute())
    assert result.error_details is None
    return result


def test_an_agent_with_tools(service: Service):
    graph = GraphCompose({"token": "your-token"})
    (
        graph.adk("support_workflow")
        .withWorkflow(
            lambda builder: (
                builder.rootAgent("support_agent")
                .agent(
                    createLlmAgent(
                        {
                            "id": "support_agent",
                            "httpConfig": {"url": f"{service.url}/chat", "method": "POST"},
                            "instructions": (
                                "You are a customer support agent. Use tools to look up account information."
                            ),
                            "tools": ["search_kb", "lookup_account"],
                            "outputKey": "support_response",
                            "activityConfig": {"startToCloseTimeout": "60s", "retryPolicy": {"maximumAttempts": 3}},
                        }
                    )
                )
                .httpTool(
                    createHttpTool(
                        {"id": "search_kb", "httpConfig": {"url": f"{service.url}/kb/search", "method": "POST"}}
                    )
                )
                .httpTool(
                    createHttpTool(
                        {"id": "lookup_account", "httpConfig": {"url": f"{service.url}/accounts", "method": "GET"}}
                    )
                )
                .build()
            )
        )
        .withInitialPrompt("I need help with my recent order.")
        .end()
    )
    service.say("/chat", calls("search_kb", q="order"), calls("lookup_account", id=7, all=True))
    service.say("/chat", {"content": "It is on its way.", "exitFlow": True})
    service.say("/kb/search", {"output": "Orders take 3 days.", "status": "ok"})
    service.say("/accounts", ["one", "two"])

    result = executed(graph)

    assert service.bodies("/chat")[0] == {
        "messages": [
            {
                "role": "system",
                "content": "You are a customer support agent. Use tools to look up account information.",
            },
            {"role": "user", "content": "I need help with my recent order."},
        ],
        "tools": [declared("search_kb"), declared("lookup_account")],
        "state": {},
    }
    second, third = service.bodies("/chat")[1:]
    [call] = second["messages"][2]["content"]
    key = call["function_call"]["id"]
    assert second["messages"][2:] == [
        {
            "role": "assistant",
            "content": [{"function_call": {"id": key, "name": "search_kb", "args": {"q": "order"}}}],
        },
        {
            "role": "tool",
            "content": [
                {
                    "function_response": {
                        "id": key,
                        "name": "search_kb",
                        "response": {"output": "Orders take 3 days.", "status": "ok"},
                    }
                }
            ],
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


ANALYSIS = "Claim CLM-2024-001: Water damage to kitchen ceiling. Submitted photos show..."
FRAUD = "No fraud indicators detected. Claim details are consistent with..."
ANALYST = "Analyze the submitted claim documents and extract key details."
DETECTOR = "Review the document analysis in session state for fraud indicators."
DECIDER = "Make a claim decision based on the document and fraud analysis."


def claims(service: Service) -> GraphCompose:
    chat = {"url": f"{service.url}/chat", "method": "POST"}
    return (
        GraphCompose({"token": "your-token"})
        .adk("claims_processor")
        .withWorkflow(
            lambda builder: (
                builder.rootAgent("claims_pipeline")
                .agent(
                    createSequentialAgent(
                        {
                            "id": "claims_pipeline",
                            "subAgents": [
                                createSubAgentReference("document_analyzer"),
                                createSubAgentReference("fraud_detector"),
                                createSubAgentReference("decision_agent"),
                            ],
                            "outputKey": "pipeline_result",
                        }
                    )
                )
                .agent(
                    createLlmAgent(
                        {
                            "id": "document_analyzer",
                            "httpConfig": chat,
                            "instructions": ANALYST,
                            "tools": ["read_document"],
                            "outputKey": "document_analysis",
                        }
                    )
                )
                .agent(
                    createLlmAgent(
                        {
                            "id": "fraud_detector",
                            "httpConfig": chat,
                            "instructions": DETECTOR,
                            "outputKey": "fraud_analysis",
                        }
                    )
                )
                .agent(
                    createLlmAgent(
                        {
                            "id": "decision_agent",
                            "httpConfig": chat,
                            "instructions": DECIDER,
                            "outputKey": "claim_decision",
                        }
                    )
                )
                .httpTool(
                    createHttpTool(
                        {"id": "read_document", "httpConfig": {"url": f"{service.url}/documents", "method": "GET"}}
                    )
                )
                .build()
            )
        )
        .withInitialPrompt("Process insurance claim CLM-2024-001.")
        .end()
    )


def test_agents_one_after_the_other(service: Service):
    by_instructions(
        service,
        {
            ANALYST: [calls("read_document"), {"content": ANALYSIS}],
            DETECTOR: [{"content": FRAUD}],
            DECIDER: [{"content": "Approved.", "exitFlow": True}],
        },
    )
    service.say("/documents", {"photos": 4})

    result = executed(claims(service))

    assert asked_as(service, DECIDER) == [
        {
            "messages": [
                {"role": "system", "content": "Make a claim decision based on the document and fraud analysis."},
                {"role": "user", "content": "Process insurance claim CLM-2024-001."},
            ],
            "tools": [],
            "state": {
                "document_analysis": ANALYSIS,
                "fraud_analysis": FRAUD,
            },
        }
    ]
    assert asked_as(service, DETECTOR)[0]["state"] == {"document_analysis": ANALYSIS}
    assert result.session_state["claim_decision"] == result.session_state["pipeline_result"] == "Approved."


def test_the_state_after_two_agents_with_what_the_engine_counts(service: Service):
    by_instructions(
        service,
        {
            ANALYST: [calls("read_document"), {"content": ANALYSIS}],
            DETECTOR: [{"content": FRAUD, "exitFlow": True}],
            DECIDER: [],
        },
    )
    service.say("/documents", {"photos": 4})

    result = executed(claims(service))

    assert result.session_state == {
        "document_analysis": ANALYSIS,
        "fraud_analysis": FRAUD,
        "_user_message_count": 1,
        "orchestration_cycle_count": 3,
        "pipeline_result": FRAUD,
    }
    assert asked_as(service, DECIDER) == []  # exitFlow skips what comes after
    assert (result.internal_exit_flow, result.orchestration_cycle_count) == (True, 3)


FLIGHTS = "Search for flights matching the travel request."
HOTELS = "Search for hotels at the destination."
ACTIVITIES = "Find activities and attractions at the destination."


def test_agents_at_the_same_time(service: Service):
    graph = GraphCompose({"token": "your-token"})
    chat = {"url": f"{service.url}/chat", "method": "POST"}
    researchers = [
        ("flight_agent", FLIGHTS, "search_flights", "flight_data", "flights"),
        ("hotel_agent", HOTELS, "search_hotels", "hotel_data", "hotels"),
        ("activity_agent", ACTIVITIES, "search_activities", "activity_data", "activities"),
    ]

    def workflow(builder: Any) -> Any:
        builder.rootAgent("parallel_research").agent(
            createParallelAgent(
                {"id": "parallel_research", "subAgents": [createSubAgentReference(one[0]) for one in researchers]}
            )
        )
        for name, instructions, tool, key, path in researchers:
            builder.agent(
                createLlmAgent(
                    {
                        "id": name,
                        "httpConfig": chat,
                        "instructions": instructions,
                        "tools": [tool],
                        "outputKey": key,
                    }
                )
            ).httpTool(createHttpTool({"id": tool, "httpConfig": {"url": f"{service.url}/{path}", "method": "GET"}}))
        return builder.build()

    graph.adk("travel_planner").withWorkflow(workflow).withInitialPrompt("Plan a trip to Tokyo for next week.").end()
    found = {
        FLIGHTS: "Found 3 direct flights to Tokyo NRT...",
        HOTELS: "Top-rated hotels in Shinjuku district...",
        ACTIVITIES: "Recommended: teamLab Borderless, Tsukiji Market tour...",
    }
    by_instructions(service, {one[1]: [calls(one[2]), {"content": found[one[1]]}] for one in researchers})
    for path in ("flights", "hotels", "activities"):
        service.say(f"/{path}", {"found": path})

    result = executed(graph)

    for _, instructions, tool, _, path in researchers:
        first, second = asked_as(service, instructions)
        assert first == {
            "messages": [
                {"role": "system", "content": instructions},
                {"role": "user", "content": "Plan a trip to Tokyo for next week."},
            ],
            "tools": [declared(tool)],
            "state": {},
        }
        assert [one["role"] for one in second["messages"]] == ["system", "user", "assistant", "tool"]
        assert second["messages"][3]["content"][0]["function_response"]["response"] == {"found": path}
        assert second["state"] == {}
    counters = ("_user_message_count", "orchestration_cycle_count")
    assert {key: value for key, value in result.session_state.items() if key not in counters} == {
        "flight_data": "Found 3 direct flights to Tokyo NRT...",
        "hotel_data": "Top-rated hotels in Shinjuku district...",
        "activity_data": "Recommended: teamLab Borderless, Tsukiji Market tour...",
    }
    assert [result.session_state[key] for key in counters] == [1, 6]


WRITER = "Write or revise content based on reviewer feedback in session state."
REVIEWER = (
    "Review the draft in session state. Set quality_status to approved if it meets standards, or provide feedback for "
    "revision."
)
DRAFT = "AI orchestration platforms coordinate multiple..."
FEEDBACK = "Needs revision: the section on error handling lacks detail."


def content_pipeline(service: Service) -> GraphCompose:
    chat = {"url": f"{service.url}/chat", "method": "POST"}
    return (
        GraphCompose({"token": "your-token"})
        .adk("content_pipeline")
        .withWorkflow(
            lambda builder: (
                builder.rootAgent("quality_loop")
                .agent(
                    createLoopAgent(
                        {
                            "id": "quality_loop",
                            "subAgents": [
                                createSubAgentReference("writer_agent"),
                                createSubAgentReference("reviewer_agent"),
                            ],
                            "maxAgentLoopIterations": 5,
                            "loopExitCondition": "session_state.get('quality_status') == 'approved'",
                            "outputKey": "final_content",
                        }
                    )
                )
                .agent(
                    createLlmAgent(
                        {"id": "writer_agent", "httpConfig": chat, "instructions": WRITER, "outputKey": "draft_content"}
                    )
                )
                .agent(
                    createLlmAgent(
                        {
                            "id": "reviewer_agent",
                            "httpConfig": chat,
                            "instructions": REVIEWER,
                            "outputKey": "quality_status",
                        }
                    )
                )
                .build()
            )
        )
        .withInitialPrompt("Write a blog post about AI orchestration.")
        .end()
    )


def test_agents_again_and_again(service: Service):
    by_instructions(
        service,
        {
            WRITER: [{"content": "First."}, {"content": DRAFT}, {"content": "Third."}],
            REVIEWER: [{"content": "Too short."}, {"content": FEEDBACK}, {"content": "approved"}],
        },
    )

    result = executed(content_pipeline(service))

    assert asked_as(service, WRITER)[2] == {
        "messages": [
            {"role": "system", "content": "Write or revise content based on reviewer feedback in session state."},
            {"role": "user", "content": "Write a blog post about AI orchestration."},
        ],
        "tools": [],
        "state": {
            "draft_content": "AI orchestration platforms coordinate multiple...",
            "quality_status": "Needs revision: the section on error handling lacks detail.",
            "current_agent_loop_iteration": 2,
        },
    }
    assert asked_as(service, WRITER)[0]["state"] == {"current_agent_loop_iteration": 0}
    assert len(service.asked) == 6
    assert result.session_state == {
        "draft_content": "Third.",
        "quality_status": "approved",
        "final_content": "approved",
        "loop_exit_reason": "exit_condition",
        "_user_message_count": 1,
        "orchestration_cycle_count": 6,
    }


def test_a_loop_ends_at_its_most_passes(service: Service):
    service.make("/chat", lambda asked: {"content": "again"})
    result = executed(content_pipeline(service))
    assert len(service.asked) == 10
    assert result.session_state["loop_exit_reason"] == "max_agent_loop_iterations"


def test_a_state_to_begin_with_and_a_limit(service: Service):
    graph = (
        GraphCompose()
        .adk("claims_processor")
        .withWorkflow(
            lambda builder: (
                builder.rootAgent("orchestrator")
                .agent(
                    createLlmAgent(id="orchestrator", httpConfig={"url": f"{service.url}/chat"}, instructions="Do it.")
                )
                .withMaxCycles(30)
                .build()
            )
        )
        .withState({"policy_id": "POL-123456", "customer_id": "CUST-789"})
        .withInitialPrompt("Process insurance claim for policy POL-123456")
        .end()
    )
    service.say("/chat", {"content": "Done.", "exitFlow": True})

    result = executed(graph)

    assert service.bodies("/chat") == [
        {
            "messages": [
                {"role": "system", "content": "Do it."},
                {"role": "user", "content": "Process insurance claim for policy POL-123456"},
            ],
            "tools": [],
            "state": {
                "policy_id": "POL-123456",
                "customer_id": "CUST-789",
            },
        }
    ]
    assert not result.terminated_by_global_limit


def test_a_tool_call_answer_may_omit_content_and_signals_may_stand_alone(service: Service):
    seen: list[Asked] = []

    def answer(asked: Asked) -> Any:
        seen.append(asked)
        if len(seen) == 1:
            return {"content": None, "toolCalls": [{"function_name": "tool_id", "function_args": {}}]}
        return {"content": "Text response to the user", "exitFlow": True}

    service.make("/chat", answer)
    service.say("/tool", "plain")
    graph = (
        GraphCompose()
        .adk("contract")
        .with_workflow(
            lambda b: (
                b.root_agent("a")
                .agent(
                    createLlmAgent(
                        id="a", http_config={"url": f"{service.url}/chat"}, tools=["tool_id"], instructions="I"
                    )
                )
                .http_tool(createHttpTool(id="tool_id", http_config={"url": f"{service.url}/tool"}))
                .build()
            )
        )
        .with_initial_prompt("The user's message or initial prompt")
        .end()
    )
    result = executed(graph)
    assert seen[0].body["tools"] == [declared("tool_id")]
    assert seen[1].body["messages"][3]["content"][0]["function_response"]["response"] == {"result": "plain"}
    assert result.final_response_text == "Text response to the user"
