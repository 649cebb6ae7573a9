"""A workflow is written in either spelling, is the same as JSON, and is refused when it could not be run."""

import json
from typing import Any

import pytest

from adk_nb import sync
from adk_nb.agents import LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.graph_compose import (
    GraphCompose,
    create_agent_tool,
    create_http_tool,
    create_llm_agent,
    create_loop_agent,
    create_parallel_agent,
    create_sequential_agent,
    create_sub_agent_reference,
    createLlmAgent,
)
from adk_nb.models import HttpLlm, ScriptedLlm
from tests.support.each import each
from tests.support.http_service import Service

CHAT = {"url": "https://llm.example.com/chat", "method": "POST"}


def llm(key: str, **more: Any) -> Any:
    return create_llm_agent(id=key, **{"http_config": CHAT, **more})


def built(root: str | None, *configs: Any, tools: tuple[Any, ...] = ()) -> GraphCompose:
    graph = GraphCompose()

    def workflow(builder: Any) -> Any:
        if root:
            builder.root_agent(root)
        for config in configs:
            builder.agent(config)
        for tool in tools:
            builder.agent_tool(tool) if tool.type == "AgentTool" else builder.http_tool(tool)
        return builder.build()

    graph.adk("flow").with_workflow(workflow)
    return graph


def whole() -> GraphCompose:
    graph = built(
        "line",
        create_sequential_agent(id="line", sub_agents=["block", {"agentId": "loop"}], output_key="last"),
        create_parallel_agent(id="block", subAgents=["a", "b"]),
        create_loop_agent(
            id="loop", sub_agents=["c"], max_agent_loop_iterations=3, loop_exit_condition="session_state['c'] == 'ok'"
        ),
        llm("a", tools=["look"], activity_config={"startToCloseTimeout": "5m", "retryPolicy": {"maximumAttempts": 0}}),
        llm("b", sub_agents=[llm("deep", description="Deep.")]),
        llm("c", tools=["ask"], output_key="c"),
        llm("expert"),
        tools=(
            create_http_tool(id="look", http_config={"url": "http://127.0.0.1:1/look", "method": "GET"}),
            create_agent_tool(id="ask", target_agent_id="expert", skip_summarization=True),
        ),
    )
    graph.workflow.state, graph.workflow.initial_user_input = {"k": 1}, "go"
    return graph


def test_an_app_is_made_of_ordinary_agents():
    app = whole().to_app()
    root = app.root_agent
    block, loop = root.sub_agents
    assert app.name == "flow"
    assert (isinstance(root, SequentialAgent), isinstance(block, ParallelAgent), isinstance(loop, LoopAgent)) == (
        True,
        True,
        True,
    )
    a = root.find_agent("a")
    assert isinstance(a, LlmAgent) and isinstance(a.model, HttpLlm)
    assert (a.model.timeout, a.model.total_timeout, a.model.retry_options and a.model.retry_options.attempts) == (
        300.0,
        1200.0,
        3,
    )


def test_a_workflow_is_the_same_as_json():
    graph = whole()
    written = json.loads(json.dumps(graph.to_dict()))
    assert [one["type"] for one in written["agents"]][:3] == ["SequentialAgent", "ParallelAgent", "LoopAgent"]
    assert {key: written[key] for key in ("rootAgentId", "initialUserInput", "state", "name")} == {
        "rootAgentId": "line",
        "initialUserInput": "go",
        "state": {"k": 1},
        "name": "flow",
    }
    assert written["agents"][0]["subAgents"] == [{"agentId": "block"}, {"agentId": "loop"}]
    assert written["globalTools"][0]["httpConfig"]["method"] == "GET"
    again = GraphCompose.from_dict(written)
    assert again.to_dict() == written
    assert again.to_app().root_agent.find_agent("deep")


def test_the_rest_shape_runs(service: Service):
    service.say("/chat", {"content": "Hello", "exitFlow": True})
    graph = GraphCompose.fromDict(
        {
            "agents": [{"type": "LlmAgent", "id": "a", "httpConfig": {"url": f"{service.url}/chat"}}],
            "globalTools": [],
            "rootAgentId": "a",
            "initialUserInput": "hi",
            "maxOrchestrationCycles": 5,
            "state": {"k": 1},
        }
    )
    assert graph.executeSync().final_response_text == "Hello"
    assert service.bodies("/chat")[0]["state"] == {"k": 1}


def test_both_spellings_are_the_same():
    camel = createLlmAgent({"id": "a", "httpConfig": CHAT, "outputKey": "o", "activityConfig": {}})
    assert camel == create_llm_agent(id="a", http_config=CHAT, output_key="o", activity_config={})


def test_a_local_model_speaks_by_the_same_rules():
    graph = built("line", create_sequential_agent(id="line", sub_agents=["a", "b"]), *local("a", "b"))
    graph.workflow.state = {"k": "{not templated}"}
    result = sync.run(graph.execute("go"))
    assert (result.session_state["a"], result.final_response_text) == ("said by a", "said by b")
    with pytest.raises(ConfigurationError, match="local model"):
        graph.to_dict()


def local(*keys: str) -> list[Any]:
    return [
        create_llm_agent(id=key, model=ScriptedLlm(f"said by {key}"), output_key=key, instructions="{braces} stay")
        for key in keys
    ]


def test_ids_that_are_no_identifiers_are_names_of_agents_all_the_same(service: Service):
    service.say("/chat", {"toolCalls": [{"function_name": "look-up", "function_args": {}}]}, {"content": "ok"})
    service.say("/look", {})
    http = {"url": f"{service.url}/chat"}
    graph = built(
        "the line",
        create_sequential_agent(id="the line", sub_agents=["my-agent.1", "my_agent_1", "user", "class", "7 of 9"]),
        llm("my-agent.1", http_config=http, tools=["look-up"]),
        *[create_llm_agent(id=key, model=ScriptedLlm("ok")) for key in ("my_agent_1", "user", "class", "7 of 9")],
        tools=(create_http_tool(id="look-up", http_config={"url": f"{service.url}/look"}),),
    )
    result = sync.run(graph.execute("go"))
    assert result.error_details is None
    assert service.bodies("/look")[0]["context"]["agent_id"] == "my-agent.1"
    names = [agent.name for agent in graph.to_app().root_agent.sub_agents]
    assert len(set(names)) == 5 and all(name.isidentifier() for name in names)


LOOP = {"id": "loop", "sub_agents": ["a"], "max_agent_loop_iterations": 2}


@each(
    "make, told",
    [
        (lambda: built(None, llm("a")), r"no root agent; write \.root_agent"),
        (lambda: built("b", llm("a")), r"root agent .*'b'.*add \.agent\(create_llm_agent\(id='b'"),
        (lambda: built("aa", llm("aaa")), "did you mean 'aaa'"),
        (lambda: built("a", llm("a"), llm("a")), "two agents have the id 'a'"),
        (lambda: built("a", llm("a", sub_agents=[llm("a")])), "two agents have the id 'a'"),
        (lambda: built("a", llm("a", tools=["serch"]), tools=(TOOL,)), "did you mean 'search'"),
        (lambda: built("a", llm("a"), tools=(TOOL, TOOL)), "two tools have the id 'search'"),
        (lambda: built("s", create_sequential_agent(id="s", sub_agents=["x"])), "agent 's' .*'x'.*add"),
        (
            lambda: built(
                "s",
                create_sequential_agent(id="s", sub_agents=["t"]),
                create_sequential_agent(id="t", sub_agents=["s"]),
            ),
            "cycle: s -> t -> s",
        ),
        (
            lambda: built("a", llm("a", tools=["me"]), tools=(create_agent_tool(id="me", target_agent_id="a"),)),
            "cycle: a -> a",
        ),
        (lambda: create_parallel_agent(id="p", sub_agents=["a"], output_key="o"), "a ParallelAgent has no outputKey"),
        (lambda: create_parallel_agent({"id": "p", "subAgents": ["a"], "outputKey": "o"}), "has no outputKey"),
        (lambda: create_loop_agent({**LOOP, "max_agent_loop_iterations": 0}), "greater than or equal to 1"),
        (lambda: create_loop_agent(id="loop", sub_agents=["a"]), "maxAgentLoopIterations"),
        (lambda: llm("a", http_config={"url": "http://x", "method": "FETCH"}), "method"),
        (lambda: llm("a", http_config={"method": "POST"}), "url"),
        (lambda: built("a", llm("a", http_config=None)), "agent 'a' .*write httpConfig=.* or model="),
        (lambda: built("a", llm("a", model="offline")), "agent 'a' .*write httpConfig=.* or model="),
        (lambda: llm("a", instruction="x"), "did you mean 'instructions'"),
        (lambda: llm("a", activity_config={"startToCloseTimeout": "soon"}), "'60s'"),
        (lambda: llm("a", activity_config={"retryPolicy": {"backoffCoefficient": 0.5}}), "backoffCoefficient"),
        (lambda: llm(""), "id"),
        (lambda: GraphCompose().adk("f").with_workflow(lambda b: b.with_max_cycles(0)), "with_max_cycles"),
        (lambda: GraphCompose().adk("f").with_workflow(lambda b: 5), r"builder\.build\(\), got 5"),
        (lambda: GraphCompose().adk("f").with_workflow(lambda b: b.agent(5).build()), "write agent"),
        (
            lambda: GraphCompose.from_dict({"agents": [{"id": "a"}], "rootAgentId": "a"}),
            "'a': 'type' .*LlmAgent.*got None",
        ),
        (lambda: GraphCompose.from_dict({"agents": {}}), "'agents' .*list, got"),
        (lambda: built("a", llm("a")).adk("again"), "write another GraphCompose"),
        (lambda: built("a", llm("a")).execute_sync(), "with_initial_prompt"),
        (lambda: built("a", llm("a", http_config={"url": "nowhere"})), "agent 'a': its url must"),
        (lambda: built("a", llm("a", http_config={"url": "http://h:99999/"})), "agent 'a': its url is invalid"),
        (lambda: built("a", llm("a"), tools=(tool_at("kb/search"),)), "tool 'search': its url must"),
        (
            lambda: built("a", llm("a", http_config={**CHAT, "headers": {"A": "{{$secrets('x')}}"}})),
            r"\{\{\$secrets\('x'\)\}\}\" is not a placeholder; write \{\{\$secret",
        ),
        (lambda: built("a", llm("a"), tools=(tool_at(CHAT["url"], id="transfer_to_agent"),)), "give it another id"),
        (lambda: built("a", llm("a"), tools=(tool_at(CHAT["url"], id="adk_x"),)), "give it another id"),
        (
            lambda: built("a", llm("a"), tools=(tool_at(CHAT["url"], parameters={"type": "x"}),)),
            "tool 'search' .*JSON schema",
        ),
        (lambda: built("aa", llm("agent")), "choose from agent, or add"),
        (
            lambda: built("a", llm("a"), tools=(create_agent_tool(id="t", target_agent_id="nobody"),)),
            "tool 't' .*agent 'nobody'",
        ),
        (lambda: create_llm_agent("a"), "LlmAgent: .*id='a'"),
        (lambda: create_llm_agent(id="a", http_config="http://x/chat"), "dict .*url, method, headers, body"),
        (lambda: create_llm_agent(id="a", url="http://x/chat"), "no field 'url'; .*id, type, httpConfig"),
        (lambda: llm("a", http_config={"uri": "http://x"}), "field 'uri'; .*url, method"),
        (lambda: llm("a", tools=[print]), r"write 'print', .*\.function_tool\(print\)"),
        (lambda: llm("a", tools=[TOOL]), r"write 'search', .*\.http_tool"),
        (lambda: llm("a", sub_agents=["b"]), r"sub_agents\.0.*write create_llm_agent\(id="),
        (lambda: llm("a", sub_agents=[create_sub_agent_reference("b")]), r"write create_llm_agent\(id="),
        (
            lambda: llm("a", sub_agents=[create_sequential_agent(id="s", sub_agents=["b"])]),
            r"write create_llm_agent\(id=",
        ),
        (lambda: create_sequential_agent(id="s", sub_agents=[llm("b")]), r"write 'b', .*\.agent\("),
        (lambda: create_sequential_agent(id="s", sub_agents=[{"agent": "b"}]), "field 'agent'; .*agentId"),
        (lambda: create_sequential_agent(id="s", sub_agents=[]), "at least 1"),
        (lambda: create_loop_agent({**LOOP, "max_iterations": 3}), "did you mean 'maxAgentLoopIterations'"),
        (lambda: GraphCompose().adk("f").with_workflow(lambda b: b.with_max_cycles("3")), "with_max_cycles"),
        (lambda: GraphCompose().adk("f").with_state([1]), r"with_state\(\) takes a dict.*got \[1\]"),
        (lambda: GraphCompose().adk("f").with_state({"a": {1}}), "stored as JSON"),
        (lambda: GraphCompose().execute_sync("go"), "no root agent"),
        (lambda: GraphCompose("token"), "dict such as .*got 'token'"),
        (lambda: GraphCompose.from_dict([1]), r"takes a dict, .*got \[1\]"),
        (lambda: GraphCompose.from_dict({"agents": [], "tools": []}), "did you mean 'globalTools'"),
        (lambda: GraphCompose.from_dict({"agents": [{"id": "a", "type": "llm"}]}), "'type' .*LlmAgent, .*got 'llm'"),
    ],
)
def test_what_could_not_be_run_is_refused_with_what_to_write(make: Any, told: str):
    with pytest.raises((ConfigurationError, InputError), match=told) as refused:
        make()
    assert "\n" not in str(refused.value)


def test_end_may_be_forgotten_and_is_asked_for():
    with pytest.raises(AttributeError, match=r"\.end\(\)\.execute_sync"):
        GraphCompose().adk("flow").execute_sync()


def test_what_a_field_was_given_is_not_repeated_where_it_is_a_secret():
    headers = {"Authorization": "Bearer s3cr3t-0f-mine-77"}
    with pytest.raises(ConfigurationError) as refused:
        llm("a", http_config={**CHAT, "headers": headers, "methods": "GET"})
    assert "s3cr3t-0f-mine-77" not in str(refused.value) and refused.value.__cause__ is None


def tool_at(url: str, **more: Any) -> Any:
    return create_http_tool(**{"id": "search", "http_config": {"url": url}, **more})


TOOL = create_http_tool(id="search", http_config={"url": "http://127.0.0.1:1"})


@each(
    "condition",
    [
        "__import__('os').system('true')",
        "session_state.__class__",
        "session_state.get.__globals__",
        "(lambda: 1)()",
        "[x for x in session_state]",
        "f'{session_state}'",
        "'{0.__class__}'.format(session_state)",
        "(a := 1)",
        "session_state.pop('a')",
        "session_state.update({'a': 1})",
        "9 ** 9 ** 9",
        "'a' * 10 ** 9 + b''",
        "\uff4f\uff50\uff45\uff4e('x')",
        "session_state.\uff3f\uff3fclass\uff3f\uff3f",
        "-" * 20_000 + "1",
        "(" * 500 + "1" + ")" * 500,
        "other_name == 1",
        "await session_state",
        "session_state[0:1]",
        "session_state == 1; 2",
    ],
)
def test_a_condition_that_does_more_than_look_is_refused_when_it_is_built(condition: str):
    with pytest.raises(ConfigurationError, match=r"loopExitCondition .*'loop'"):
        built("loop", create_loop_agent({**LOOP, "loop_exit_condition": condition}), llm("a"))


@each(
    "condition",
    [
        "session_state.get('quality_status') == 'approved'",
        "session_state['score'] >= 0.9 and not session_state.get('open')",
        "'done' in session_state",
        "session_state.get('status', '').strip().lower() in ('ok', 'approved')",
        "len(session_state.get('issues', [])) == 0 or session_state['n'] % 2 == 1",
        "any([session_state.get('a'), session_state.get('b')]) is True",
        "session_state.get('x') is None",
        "session_state['user']['name'].startswith('A') if 'user' in session_state else False",
    ],
)
def test_a_condition_that_looks_is_taken(condition: str):
    built("loop", create_loop_agent({**LOOP, "loop_exit_condition": condition}), llm("a")).to_app()
