"""The same chains as `documented_camel`, in Python's spelling."""

from adk_nb.graph_compose import (
    GraphCompose,
    create_http_tool,
    create_llm_agent,
    create_loop_agent,
    create_parallel_agent,
    create_sequential_agent,
    create_sub_agent_reference,
)


def support_workflow(llm: str, api: str) -> GraphCompose:
    graph = GraphCompose(token="your-token")
    graph.adk("support_workflow").with_workflow(
        lambda builder: (
            builder.root_agent("support_agent")
            .agent(
                create_llm_agent(
                    id="support_agent",
                    http_config={"url": f"{llm}/chat", "method": "POST"},
                    instructions="You are a customer support agent. Use tools to look up account information.",
                    tools=["search_kb", "lookup_account"],
                    output_key="support_response",
                    activity_config={"start_to_close_timeout": "60s", "retry_policy": {"maximum_attempts": 3}},
                )
            )
            .http_tool(create_http_tool(id="search_kb", http_config={"url": f"{api}/kb/search", "method": "POST"}))
            .http_tool(create_http_tool(id="lookup_account", http_config={"url": f"{api}/accounts", "method": "GET"}))
            .build()
        )
    ).with_initial_prompt("I need help with my recent order.").end()
    return graph


def claims_processor(llm: str, api: str) -> GraphCompose:
    graph = GraphCompose(token="your-token")
    graph.adk("claims_processor").with_workflow(
        lambda builder: (
            builder.root_agent("claims_pipeline")
            .agent(
                create_sequential_agent(
                    id="claims_pipeline",
                    sub_agents=[
                        create_sub_agent_reference("document_analyzer"),
                        create_sub_agent_reference("fraud_detector"),
                        create_sub_agent_reference("decision_agent"),
                    ],
                    output_key="pipeline_result",
                )
            )
            .agent(
                create_llm_agent(
                    id="document_analyzer",
                    http_config={"url": f"{llm}/chat", "method": "POST"},
                    instructions="Analyze the submitted claim documents and extract key details.",
                    tools=["read_document"],
                    output_key="document_analysis",
                )
            )
            .agent(
                create_llm_agent(
                    id="fraud_detector",
                    http_config={"url": f"{llm}/chat", "method": "POST"},
                    instructions="Review the document analysis in session state for fraud indicators.",
                    output_key="fraud_analysis",
                )
            )
            .agent(
                create_llm_agent(
                    id="decision_agent",
                    http_config={"url": f"{llm}/chat", "method": "POST"},
                    instructions="Make a claim decision based on the document and fraud analysis.",
                    output_key="claim_decision",
                )
            )
            .http_tool(create_http_tool(id="read_document", http_config={"url": f"{api}/documents", "method": "GET"}))
            .build()
        )
    ).with_initial_prompt("Process insurance claim CLM-2024-001.").end()
    return graph


def travel_planner(llm: str, api: str) -> GraphCompose:
    graph = GraphCompose(token="your-token")
    graph.adk("travel_planner").with_workflow(
        lambda builder: (
            builder.root_agent("parallel_research")
            .agent(
                create_parallel_agent(
                    id="parallel_research",
                    sub_agents=[
                        create_sub_agent_reference("flight_agent"),
                        create_sub_agent_reference("hotel_agent"),
                        create_sub_agent_reference("activity_agent"),
                    ],
                )
            )
            .agent(
                create_llm_agent(
                    id="flight_agent",
                    http_config={"url": f"{llm}/chat", "method": "POST"},
                    instructions="Search for flights matching the travel request.",
                    tools=["search_flights"],
                    output_key="flight_data",
                )
            )
            .agent(
                create_llm_agent(
                    id="hotel_agent",
                    http_config={"url": f"{llm}/chat", "method": "POST"},
                    instructions="Search for hotels at the destination.",
                    tools=["search_hotels"],
                    output_key="hotel_data",
                )
            )
            .agent(
                create_llm_agent(
                    id="activity_agent",
                    http_config={"url": f"{llm}/chat", "method": "POST"},
                    instructions="Find activities and attractions at the destination.",
                    tools=["search_activities"],
                    output_key="activity_data",
                )
            )
            .http_tool(create_http_tool(id="search_flights", http_config={"url": f"{api}/flights", "method": "GET"}))
            .http_tool(create_http_tool(id="search_hotels", http_config={"url": f"{api}/hotels", "method": "GET"}))
            .http_tool(
                create_http_tool(id="search_activities", http_config={"url": f"{api}/activities", "method": "GET"})
            )
            .build()
        )
    ).with_initial_prompt("Plan a trip to Tokyo for next week.").end()
    return graph


def content_pipeline(llm: str, api: str) -> GraphCompose:
    graph = GraphCompose(token="your-token")
    graph.adk("content_pipeline").with_workflow(
        lambda builder: (
            builder.root_agent("quality_loop")
            .agent(
                create_loop_agent(
                    id="quality_loop",
                    sub_agents=[
                        create_sub_agent_reference("writer_agent"),
                        create_sub_agent_reference("reviewer_agent"),
                    ],
                    max_agent_loop_iterations=5,
                    loop_exit_condition="session_state.get('quality_status') == 'approved'",
                    output_key="final_content",
                )
            )
            .agent(
                create_llm_agent(
                    id="writer_agent",
                    http_config={"url": f"{llm}/chat", "method": "POST"},
                    instructions="Write or revise content based on reviewer feedback in session state.",
                    output_key="draft_content",
                )
            )
            .agent(
                create_llm_agent(
                    id="reviewer_agent",
                    http_config={"url": f"{llm}/chat", "method": "POST"},
                    instructions=(
                        "Review the draft in session state. Set quality_status to approved if it meets standards, or "
                        "provide feedback for revision."
                    ),
                    output_key="quality_status",
                )
            )
            .build()
        )
    ).with_initial_prompt("Write a blog post about AI orchestration.").end()
    return graph


def claims_with_settings(llm: str, api: str) -> GraphCompose:
    """The page leaves its agents and tools out here; one agent stands for them."""
    graph = GraphCompose(token="your-token")
    graph.adk("claims_processor").with_workflow(
        lambda builder: (
            builder.root_agent("orchestrator")
            .agent(create_llm_agent(id="orchestrator", http_config={"url": f"{llm}/chat"}, instructions="Do."))
            .http_tool(create_http_tool(id="read", http_config={"url": f"{api}/read"}))
            .with_max_cycles(30)
            .build()
        )
    ).with_state({"policy_id": "POL-123456", "customer_id": "CUST-789"}).with_initial_prompt(
        "Process insurance claim for policy POL-123456"
    ).end()
    return graph
