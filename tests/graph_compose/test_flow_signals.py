"""What a service says beside its words: in each container, nested, and with the tools that it calls."""

from typing import Any

import pytest

from adk_nb import sync
from adk_nb.errors import ConfigurationError
from adk_nb.graph_compose import (
    GraphCompose,
    WorkflowResult,
    create_http_tool,
    create_llm_agent,
    create_loop_agent,
    create_parallel_agent,
    create_sequential_agent,
)
from tests.support.http_service import Answer, Service


def graph_of(service: Service, root: Any, *others: Any, max_cycles: int | None = None, **state: Any) -> GraphCompose:
    """`others`: ids of agents whose service is at `/<id>` and that keep what they say under `<id>`; or configs."""
    graph = GraphCompose()

    def workflow(builder: Any) -> Any:
        builder.root_agent(root.id).agent(root)
        for one in others:
            builder.agent(speaker(service, one) if isinstance(one, str) else one)
        builder.http_tool(create_http_tool(id="look", http_config={"url": f"{service.url}/look"}))
        return builder.with_max_cycles(max_cycles).build() if max_cycles else builder.build()

    graph.adk("flow").with_workflow(workflow).with_state(state).with_initial_prompt("go")
    return graph


def speaker(service: Service, name: str, **more: Any) -> Any:
    retry = {"retryPolicy": {"maximumAttempts": 2, "initialInterval": "1ms"}}
    return create_llm_agent(
        id=name,
        http_config={"url": f"{service.url}/{name}"},
        **{"tools": ["look"], "activity_config": retry, "output_key": name, **more},
    )


def ran(graph: GraphCompose) -> WorkflowResult:
    return sync.run(graph.execute())


def asked(service: Service) -> list[str]:
    return [one.path[1:] for one in service.asked]


def say(service: Service, **answers: Any) -> None:
    for name, answer in answers.items():
        service.say(f"/{name}", *(answer if isinstance(answer, list) else [answer]))


LOOK = {"toolCalls": [{"function_name": "look", "function_args": {}}]}


def test_escalate_stops_a_sequence_and_the_one_around_it(service: Service):
    inner = create_sequential_agent(id="inner", sub_agents=["a", "b"])
    outer = create_sequential_agent(id="outer", sub_agents=["inner", "c"])
    say(service, a={"content": "A", "escalate": True})
    result = ran(graph_of(service, outer, inner, "a", "b", "c"))
    assert (asked(service), result.error_details, result.exit_flow) == (["a"], None, False)
    assert result.session_state["a"] == "A"


def test_exit_flow_stops_a_sequence_and_the_one_around_it_goes_on(service: Service):
    inner = create_sequential_agent(id="inner", sub_agents=["a", "b"], output_key="inner_said")
    outer = create_sequential_agent(id="outer", sub_agents=["inner", "c"], output_key="outer_said")
    say(service, a={"content": "A", "exitFlow": True}, c={"content": "C"})
    result = ran(graph_of(service, outer, inner, "a", "b", "c"))
    assert asked(service) == ["a", "c"]
    assert (result.session_state["inner_said"], result.session_state["outer_said"]) == ("A", "C")
    assert result.exit_flow is False  # the task of the inner one alone is complete


@pytest.mark.parametrize(
    ("field", "reason", "goes_on"),
    [("exitFlow", "exit_condition", ["a", "b", "a", "c"]), ("escalate", "escalate", ["a", "b", "a"])],
)
def test_a_loop_tells_why_it_ended(service: Service, field: str, reason: str, goes_on: list[str]):
    loop = create_loop_agent(id="loop", sub_agents=["a", "b"], max_agent_loop_iterations=5)
    line = create_sequential_agent(id="line", sub_agents=["loop", "c"])
    say(service, a=[{"content": "A1"}, {"content": "A2", field: True}], b={"content": "B"}, c={"content": "C"})
    result = ran(graph_of(service, line, loop, "a", "b", "c"))
    assert asked(service) == goes_on
    assert result.session_state["loop_exit_reason"] == reason
    assert "current_agent_loop_iteration" not in result.session_state


def test_an_agent_of_a_parallel_block_whose_task_is_complete_stops_no_other(service: Service):
    block = create_parallel_agent(id="block", sub_agents=["a", "b"])
    line = create_sequential_agent(id="line", sub_agents=["block", "c"])
    done = {"content": "B", "exitFlow": True}
    say(
        service, a={"content": "A", "exitFlow": True}, b=[LOOK] * 9 + [done], look=[{"seen": 1}] * 9, c={"content": "C"}
    )
    result = ran(graph_of(service, line, block, "a", "b", "c"))
    assert [asked(service).count(name) for name in ("a", "b", "c")] == [1, 10, 1] and asked(service)[-1] == "c"
    assert (result.session_state["a"], result.session_state["b"], result.error_details) == ("A", "B", None)


def test_an_equal_call_of_a_tool_whose_method_was_chosen_is_not_made_again_by_itself(service: Service):
    config = create_http_tool(id="pay", http_config={"url": f"{service.url}/pay", "method": "POST"})
    pay: dict[str, Any] = {"toolCalls": [{"function_name": "pay", "function_args": {}}]}
    say(service, a=[pay, pay, {"content": "A"}], pay=[{"paid": 1}] * 2)
    graph = GraphCompose()

    def workflow(builder: Any) -> Any:
        agent = speaker(service, "a", tools=["pay"])
        return builder.root_agent("a").agent(agent).http_tool(config).build()

    graph.adk("flow").with_workflow(workflow).with_initial_prompt("go")
    result = ran(graph)
    assert asked(service) == ["a", "pay", "a"] and result.is_waiting_for_confirmation


def test_an_escalation_ends_a_parallel_block_early(service: Service):
    block = create_parallel_agent(id="block", sub_agents=["a", "slow"])
    say(service, slow=Answer(silent=True))
    service.make("/a", service.once_asked("/slow", {"content": "A", "escalate": True}))
    result = ran(graph_of(service, block, "a", "slow"))
    assert sorted(asked(service)) == ["a", "slow"]
    assert result.session_state["a"] == "A" and "slow" not in result.session_state
    assert result.error_details is None


def test_an_escalation_out_of_a_parallel_block_stops_the_sequence_around_it(service: Service):
    inner = create_sequential_agent(id="inner", sub_agents=["a"])
    block = create_parallel_agent(id="block", sub_agents=["inner", "slow"])
    line = create_sequential_agent(id="line", sub_agents=["block", "c"])
    say(service, slow=Answer(silent=True))
    service.make("/a", service.once_asked("/slow", {"content": "A", "escalate": True}))
    ran(graph_of(service, line, block, inner, "a", "slow", "c"))
    assert sorted(asked(service)) == ["a", "slow"]


def test_tools_that_are_called_with_a_signal_run_first_and_the_words_beside_them_are_kept(service: Service):
    line = create_sequential_agent(id="line", sub_agents=["a", "b"])
    say(service, a={**LOOK, "content": "A", "exitFlow": True}, look={"seen": 1})
    result = ran(graph_of(service, line, "a", "b"))
    assert asked(service) == ["a", "look"]
    assert (result.session_state["a"], result.exit_flow) == ("A", True)


def test_a_loop_in_a_loop_counts_for_itself(service: Service):
    inner = create_loop_agent(id="inner", sub_agents=["b"], max_agent_loop_iterations=2)
    outer = create_loop_agent(id="outer", sub_agents=["a", "inner", "c"], max_agent_loop_iterations=2)
    for name in ("a", "b", "c"):
        service.make(f"/{name}", lambda asked: {"content": "x"})
    result = ran(graph_of(service, outer, inner, "a", "b", "c"))
    passes = [(one.path[1:], one.body["state"]["current_agent_loop_iteration"]) for one in service.asked]
    once = [("a", 0), ("b", 0), ("b", 1), ("c", 0)]
    assert passes == [*once, ("a", 1), ("b", 0), ("b", 1), ("c", 1)]
    assert result.session_state["loop_exit_reason"] == "max_agent_loop_iterations"


def test_in_a_loop_an_agent_is_sent_what_it_did_in_this_pass_alone(service: Service):
    loop = create_loop_agent(id="loop", sub_agents=["a"], max_agent_loop_iterations=2)
    say(service, a=[LOOK, {"content": "A1"}, LOOK, {"content": "A2"}], look=[{"n": 1}, {"n": 2}])
    ran(graph_of(service, loop, "a"))
    last = service.bodies("/a")[-1]["messages"]
    assert [one["role"] for one in last] == ["user", "assistant", "tool"]
    assert last[2]["content"][0]["function_response"]["response"] == {"n": 2}


def test_of_what_several_wrote_at_once_the_last_of_the_list_counts(service: Service):
    block = create_parallel_agent(id="block", sub_agents=["a", "b"])
    service.make("/a", service.once_asked("/b", {"content": "A"}))
    say(service, b={"content": "B"})
    agents = [speaker(service, name, output_key="same") for name in ("a", "b")]
    assert ran(graph_of(service, block, *agents)).session_state["same"] == "B"


def test_the_condition_of_a_loop_sees_what_a_tool_left(service: Service):
    loop = create_loop_agent(
        id="loop",
        sub_agents=["a"],
        max_agent_loop_iterations=9,
        loop_exit_condition="session_state['found'].get('score', 0) >= 0.8 and len(session_state['a']) > 0",
    )
    tool = create_http_tool(id="look", http_config={"url": f"{service.url}/look"}, output_key="found")
    graph = GraphCompose()
    graph.adk("flow").with_workflow(
        lambda b: b.root_agent("loop").agent(loop).agent(speaker(service, "a")).http_tool(tool).build()
    )
    say(service, a=[LOOK, {"content": "A1"}, LOOK, {"content": "A2"}], look=[{"score": 0.5}, {"score": 0.9}])
    result = sync.run(graph.execute("go"))
    assert result.session_state["loop_exit_reason"] == "exit_condition"
    assert result.session_state["found"] == {"score": 0.9}


@pytest.mark.parametrize(
    ("condition", "passes", "reason"),
    [
        ("session_state['nothing'] > 1", 3, "max_agent_loop_iterations"),
        ("session_state['a'] > 1", 3, "max_agent_loop_iterations"),
        ("session_state.get('a')", 1, "exit_condition"),
        ("session_state.get('nothing')", 3, "max_agent_loop_iterations"),
        ("session_state['current_agent_loop_iteration'] == 1", 2, "exit_condition"),
    ],
)
def test_a_condition_that_has_no_value_is_false_and_any_true_value_ends_the_loop(
    service: Service, condition: str, passes: int, reason: str, caplog: pytest.LogCaptureFixture
):
    loop = create_loop_agent(id="loop", sub_agents=["a"], max_agent_loop_iterations=3, loop_exit_condition=condition)
    service.make("/a", lambda asked: {"content": "some words"})
    result = ran(graph_of(service, loop, "a"))
    assert (len(service.asked), result.session_state["loop_exit_reason"]) == (passes, reason)
    assert len(caplog.records) == (3 if "> 1" in condition else 0)


def test_one_agent_works_wherever_it_is_referenced(service: Service):
    block = create_parallel_agent(id="block", sub_agents=["a", "b"])
    line = create_sequential_agent(id="line", sub_agents=["a", "block", "a"], output_key="said")
    say(
        service, a=[LOOK, {"content": "A1"}, {"content": "A2"}, {"content": "A3"}], look={"seen": 1}, b={"content": "B"}
    )
    graph = graph_of(service, line, block, "a", "b")

    result = ran(graph)

    assert sorted(asked(service)) == ["a", "a", "a", "a", "b", "look"]
    assert (result.session_state["a"], result.session_state["said"], result.error_details) == ("A3", "A3", None)
    last = service.bodies("/a")[-1]
    assert (last["state"]["a"], last["state"]["b"]) == ("A2", "B")
    assert [one["role"] for one in last["messages"]] == ["user"]  # each place has a conversation of its own
    assert GraphCompose.from_dict(graph.to_dict()).to_app().root_agent


def test_references_that_double_at_each_level_are_refused(service: Service):
    levels = [create_sequential_agent(id=f"s{n}", sub_agents=[f"s{n + 1}", f"s{n + 1}"]) for n in range(20)]
    graph = graph_of(service, levels[0], *levels[1:], speaker(service, "s20"))

    with pytest.raises(ConfigurationError, match="more than 1000 agents"):
        graph.to_app()


# ---- handing over, and agents as tools


def test_an_agent_hands_over_to_one_that_is_written_out_in_it(service: Service):
    child = speaker(service, "child", description="Knows prices.")
    root = speaker(service, "root", sub_agents=[child])
    over = {"toolCalls": [{"function_name": "transfer_to_agent", "function_args": {"agent_name": "child"}}]}
    say(service, root=over, child=[{"content": "It costs 5."}, {"content": "Yes."}])
    graph = graph_of(service, root)

    async def talk() -> Any:
        handle = await graph.start()
        await handle.receive_message("Really?")
        return await handle.session()

    session = sync.run(talk())
    assert session.state["child"] == "Yes."
    names = [tool["function"]["name"] for tool in service.bodies("/root")[0]["tools"]]
    assert names == ["look", "transfer_to_agent"]
    first, second = service.bodies("/child")
    assert first["messages"][1] == {"role": "user", "content": "go"}
    assert "transfer_to_agent" in str(first["messages"][2:])
    assert [one["content"] for one in second["messages"][-2:]] == ["It costs 5.", "Really?"]


def test_a_service_hands_over_by_the_id_that_it_knows(service: Service):
    child = speaker(service, "price-desk.1", description="Knows prices.")
    root = speaker(service, "root", sub_agents=[child])

    def over(to: str) -> Any:
        return {"toolCalls": [{"function_name": "transfer_to_agent", "function_args": {"agent_name": to}}]}

    say(service, **{"root": [over("price_desk_1"), over("price-desk.1"), {"content": "Back."}]})
    say(service, **{"price-desk.1": [over("root")]})
    graph = graph_of(service, root)
    result = ran(graph)
    assert (result.error_details, result.final_response_text) == (None, "Back.")
    assert asked(service) == ["root", "root", "price-desk.1", "root"]
    offered = service.bodies("/root")[0]["tools"][1]["function"]["parameters"]["properties"]["agent_name"]
    assert offered["enum"] == ["price-desk.1"]
    assert "- price-desk.1: Knows" in service.bodies("/root")[0]["messages"][0]["content"]
    [refused] = service.bodies("/root")[1]["messages"][-1]["content"]
    assert "mean 'price-desk.1'?" in refused["function_response"]["response"]["error"]
    assert "price-desk.1" in str(service.bodies("/price-desk.1")[0]["messages"][2:])


def test_an_error_names_the_agent_by_its_id(service: Service):
    line = create_sequential_agent(id="the line", sub_agents=["a b"])
    say(service, **{"a%20b": Answer(b"", 404)})
    failed = ran(graph_of(service, line, speaker(service, "a b"))).error_details
    assert failed and (failed["agent"], failed["error_code"]) == ("a b", "HTTP_404")
    assert f"'a b at {service.url}/a b'" in failed["error_message"]


def test_an_agent_as_a_tool_keeps_its_answer_in_the_state(service: Service):
    graph = GraphCompose()
    graph.adk("flow").with_workflow(
        lambda b: (
            b.root_agent("root")
            .agent(speaker(service, "root", tools=["ask-expert"]))
            .agent(create_llm_agent(id="expert", http_config={"url": f"{service.url}/expert"}))
            .agent_tool({"id": "ask-expert", "targetAgentId": "expert", "outputKey": "expertise"})
            .build()
        )
    )
    ask = {"toolCalls": [{"function_name": "ask-expert", "function_args": {"request": "Why?"}}]}
    say(service, root=[ask, {"content": "So.", "exitFlow": True}], expert={"content": "Because."})
    result = sync.run(graph.execute("go"))
    assert service.bodies("/expert")[0]["messages"] == [{"role": "user", "content": "Why?"}]
    assert result.session_state["expertise"] == "Because."
    assert result.session_state["_user_message_count"] == 1


# ---- the engine's limit and keys


def test_the_limit_counts_turns_and_ends_a_workflow_without_an_error(service: Service):
    say(service, a=[{"content": "1"}, {"content": "2"}])
    graph = graph_of(service, speaker(service, "a"), max_cycles=2)

    async def talk() -> list[WorkflowResult]:
        handle = await graph.start()
        first = handle.get_latest_orchestration_result()
        assert first is not None
        second = await handle.receive_message("more")
        assert (await handle.state())["isStopped"] is True
        with pytest.raises(ValueError, match="2 turns"):
            await handle.receive_message("still more")
        return [first, second]

    first, second = sync.run(talk())
    assert (first.wait_for_user_input, first.terminated_by_global_limit) == (True, False)
    assert (second.wait_for_user_input, second.terminated_by_global_limit) == (False, True)
    assert second.error_details is None and second.session_state["_user_message_count"] == 2


def test_a_service_is_told_what_the_engine_counts_if_it_wants_that(service: Service):
    graph = graph_of(service, create_sequential_agent(id="line", sub_agents=["a", "b"]), "a", "b")
    say(service, a={"content": "A"}, b={"content": "B"})
    exposed = GraphCompose.from_dict(graph.to_dict(), expose_system_state=True)
    ran(exposed)
    assert service.bodies("/b")[0]["state"] == {"a": "A", "_user_message_count": 1, "orchestration_cycle_count": 1}
