"""The builder chains of Graph Compose's page on agent types, in the page's own spelling. `llm` and `api` stand for the
page's `https://llm.example.com` and `https://api.example.com`.
"""

from adk_nb.graph_compose import (
    GraphCompose,
    createHttpTool,
    createLlmAgent,
    createLoopAgent,
    createParallelAgent,
    createSequentialAgent,
    createSubAgentReference,
)


def support_workflow(llm: str, api: str) -> GraphCompose:
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
                            "httpConfig": {"url": f"{llm}/chat", "method": "POST"},
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
                    createHttpTool({"id": "search_kb", "httpConfig": {"url": f"{api}/kb/search", "method": "POST"}})
                )
                .httpTool(
                    createHttpTool({"id": "lookup_account", "httpConfig": {"url": f"{api}/accounts", "method": "GET"}})
                )
                .build()
            )
        )
        .withInitialPrompt("I need help with my recent order.")
        .end()
    )
    return graph


def claims_processor(llm: str, api: str) -> GraphCompose:
    graph = GraphCompose({"token": "your-token"})
    (
        graph.adk("claims_processor")
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
                            "httpConfig": {"url": f"{llm}/chat", "method": "POST"},
                            "instructions": "Analyze the submitted claim documents and extract key details.",
                            "tools": ["read_document"],
                            "outputKey": "document_analysis",
                        }
                    )
                )
                .agent(
                    createLlmAgent(
                        {
                            "id": "fraud_detector",
                            "httpConfig": {"url": f"{llm}/chat", "method": "POST"},
                            "instructions": "Review the document analysis in session state for fraud indicators.",
                            "outputKey": "fraud_analysis",
                        }
                    )
                )
                .agent(
                    createLlmAgent(
                        {
                            "id": "decision_agent",
                            "httpConfig": {"url": f"{llm}/chat", "method": "POST"},
                            "instructions": "Make a claim decision based on the document and fraud analysis.",
                            "outputKey": "claim_decision",
                        }
                    )
                )
                .httpTool(
                    createHttpTool({"id": "read_document", "httpConfig": {"url": f"{api}/documents", "method": "GET"}})
                )
                .build()
            )
        )
        .withInitialPrompt("Process insurance claim CLM-2024-001.")
        .end()
    )
    return graph


def travel_planner(llm: str, api: str) -> GraphCompose:
    graph = GraphCompose({"token": "your-token"})
    (
        graph.adk("travel_planner")
        .withWorkflow(
            lambda builder: (
                builder.rootAgent("parallel_research")
                .agent(
                    createParallelAgent(
                        {
                            "id": "parallel_research",
                            "subAgents": [
                                createSubAgentReference("flight_agent"),
                                createSubAgentReference("hotel_agent"),
                                createSubAgentReference("activity_agent"),
                            ],
                        }
                    )
                )
                .agent(
                    createLlmAgent(
                        {
                            "id": "flight_agent",
                            "httpConfig": {"url": f"{llm}/chat", "method": "POST"},
                            "instructions": "Search for flights matching the travel request.",
                            "tools": ["search_flights"],
                            "outputKey": "flight_data",
                        }
                    )
                )
                .agent(
                    createLlmAgent(
                        {
                            "id": "hotel_agent",
                            "httpConfig": {"url": f"{llm}/chat", "method": "POST"},
                            "instructions": "Search for hotels at the destination.",
                            "tools": ["search_hotels"],
                            "outputKey": "hotel_data",
                        }
                    )
                )
                .agent(
                    createLlmAgent(
                        {
                            "id": "activity_agent",
                            "httpConfig": {"url": f"{llm}/chat", "method": "POST"},
                            "instructions": "Find activities and attractions at the destination.",
                            "tools": ["search_activities"],
                            "outputKey": "activity_data",
                        }
                    )
                )
                .httpTool(
                    createHttpTool({"id": "search_flights", "httpConfig": {"url": f"{api}/flights", "method": "GET"}})
                )
                .httpTool(
                    createHttpTool({"id": "search_hotels", "httpConfig": {"url": f"{api}/hotels", "method": "GET"}})
                )
                .httpTool(
                    createHttpTool(
                        {"id": "search_activities", "httpConfig": {"url": f"{api}/activities", "method": "GET"}}
                    )
                )
                .build()
            )
        )
        .withInitialPrompt("Plan a trip to Tokyo for next week.")
        .end()
    )
    return graph


def content_pipeline(llm: str, api: str) -> GraphCompose:
    graph = GraphCompose({"token": "your-token"})
    (
        graph.adk("content_pipeline")
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
                        {
                            "id": "writer_agent",
                            "httpConfig": {"url": f"{llm}/chat", "method": "POST"},
                            "instructions": "Write or revise content based on reviewer feedback in session state.",
                            "outputKey": "draft_content",
                        }
                    )
                )
                .agent(
                    createLlmAgent(
                        {
                            "id": "reviewer_agent",
                            "httpConfig": {"url": f"{llm}/chat", "method": "POST"},
                            "instructions": (
                                "Review the draft in session state. Set quality_status to approved if it meets "
                                "standards, or provide feedback for revision."
                            ),
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
    return graph


def claims_with_settings(llm: str, api: str) -> GraphCompose:
    """The page leaves its agents and tools out here; one agent stands for them."""
    graph = GraphCompose({"token": "your-token"})
    (
        graph.adk("claims_processor")
        .withWorkflow(
            lambda builder: (
                builder.rootAgent("orchestrator")
                .agent(
                    createLlmAgent({"id": "orchestrator", "httpConfig": {"url": f"{llm}/chat"}, "instructions": "Do."})
                )
                .httpTool(createHttpTool({"id": "read", "httpConfig": {"url": f"{api}/read"}}))
                .withMaxCycles(30)
                .build()
            )
        )
        .withState({"policy_id": "POL-123456", "customer_id": "CUST-789"})
        .withInitialPrompt("Process insurance claim for policy POL-123456")
        .end()
    )
    return graph
