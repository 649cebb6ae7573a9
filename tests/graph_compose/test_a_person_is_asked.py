"""A service that asks a person, or gives the user the word: wherever its agent stands, what comes after does run."""

from typing import Any

import pytest

from adk_nb import Chat, sync
from adk_nb.errors import NotFoundError, PendingError
from adk_nb.graph_compose import (
    WorkflowHandle,
    WorkflowResult,
    create_loop_agent,
    create_parallel_agent,
    create_sequential_agent,
)
from adk_nb.graph_compose.agents import EXIT_REASON, ITERATION
from tests.graph_compose.test_flow_signals import LOOK, asked, graph_of, say, speaker
from tests.support.http_service import Service

ASK = {"content": "May I?", "hitlRequest": {"prompt": "Pay 100?", "actionDetails": {"amount": 100}}}
WAIT = {"content": "Which city?", "waitForUserInput": True}


async def paused(graph: Any) -> WorkflowHandle:
    handle = await graph.start()
    result = handle.get_latest_orchestration_result()
    assert result is not None
    assert (result.is_waiting_for_confirmation, result.error_details, result.exit_flow) == (True, None, False)
    return handle


async def decided(handle: WorkflowHandle, *answers: tuple[bool, Any]) -> WorkflowResult:
    result = None
    for confirmed, payload in answers:
        [key] = await handle.get_pending_confirmation_details()
        result = await handle.confirm_action(key, confirmed, payload)
    assert result is not None
    return result


def test_a_request_names_the_action_and_the_answer_goes_back_to_the_service(service: Service):
    say(service, a=[ASK, {"content": "Paid.", "exitFlow": True}])

    async def talk() -> WorkflowResult:
        handle = await paused(graph_of(service, speaker(service, "a")))
        [(key, details)] = (await handle.get_pending_confirmation_details()).items()
        assert details["requested_at"] > 0
        assert {**details, "requested_at": 0} == {
            "request_id": key,
            "action": "Pay 100?",
            "details": {"amount": 100},
            "requested_at": 0,
        }
        state = await handle.state()
        assert (state["isWaitingForConfirmation"], list(state["pendingConfirmations"])) == (True, [key])
        with pytest.raises(PendingError, match="confirm_action"):
            await handle.receive_message("hello?")
        with pytest.raises(NotFoundError):
            await handle.confirm_action("other", True)
        return await handle.confirm_action(key, True, {"limit": 50})

    result = sync.run(talk())
    user, asking, answer = service.bodies("/a")[1]["messages"]
    key = asking["content"][1]["function_call"]["id"]
    assert user == {"role": "user", "content": "go"}
    assert asking["content"][0] == {"text": "May I?"}
    told = {"confirmed": True, "payload": {"limit": 50}}
    assert answer == {
        "role": "tool",
        "content": [{"function_response": {"id": key, "name": "adk_request_input", "response": told}}],
    }
    assert [tool["function"]["name"] for tool in service.bodies("/a")[0]["tools"]] == ["look"]
    assert (result.final_response_text, result.exit_flow, result.is_waiting_for_confirmation) == ("Paid.", True, False)


@pytest.mark.parametrize(("typed", "confirmed"), [("yes", True), ("No", False)])
def test_in_a_chat_a_yes_or_a_no_is_the_answer(service: Service, typed: str, confirmed: bool):
    say(service, a=[ASK, {"content": "Paid."}], b={"content": "B"})
    line = create_sequential_agent(id="line", sub_agents=["a", "b"])
    chat = Chat(graph_of(service, line, "a", "b").to_app().root_agent)
    chat.ask("go")
    assert chat.ask(typed).text == "B"
    _, asking, answer = service.bodies("/a")[1]["messages"]
    assert asking["content"][1]["function_call"]["args"] == {"message": "Pay 100?", "payload": {"amount": 100}}
    told = answer["content"][0]["function_response"]["response"]
    assert told == {"confirmed": confirmed, "payload": None}


def test_a_rejection_is_reported_like_an_approval(service: Service):
    say(service, a=[ASK, {"content": "Then not."}])

    async def talk() -> WorkflowResult:
        return await decided(await paused(graph_of(service, speaker(service, "a"))), (False, None))

    assert sync.run(talk()).final_response_text == "Then not."
    [said] = service.bodies("/a")[1]["messages"][2]["content"]
    assert said["function_response"]["response"] == {"confirmed": False, "payload": None}


def test_tools_run_before_the_person_is_asked(service: Service):
    say(service, a=[{**ASK, **LOOK}, {"content": "Paid."}], look={"seen": 1})

    async def talk() -> WorkflowResult:
        return await decided(await paused(graph_of(service, speaker(service, "a"))), (True, None))

    sync.run(talk())
    assert asked(service) == ["a", "look", "a"]
    results = service.bodies("/a")[1]["messages"][-1]["content"]
    assert [one["function_response"]["name"] for one in results] == ["look", "adk_request_input"]


@pytest.mark.parametrize("confirmed", [True, False])
@pytest.mark.parametrize(
    ("field", "goes_on", "reason"),
    [("exitFlow", ["a", "look", "c"], "exit_condition"), ("escalate", ["a", "look"], "escalate")],
)
def test_a_signal_beside_a_request_holds_once_a_person_has_answered(
    service: Service, field: str, goes_on: list[str], reason: str, confirmed: bool
):
    loop = create_loop_agent(id="loop", sub_agents=["a", "b"], max_agent_loop_iterations=3)
    line = create_sequential_agent(id="line", sub_agents=["loop", "c"])
    say(service, a={**ASK, **LOOK, field: True}, look={}, c={"content": "C"})

    async def talk() -> WorkflowResult:
        handle = await paused(graph_of(service, line, loop, "a", "b", "c"))
        assert asked(service) == ["a", "look"]
        return await decided(handle, (confirmed, None))

    result = sync.run(talk())
    assert asked(service) == goes_on  # the agent itself is not asked again
    assert (result.session_state["loop_exit_reason"], result.session_state["a"]) == (reason, "May I?")
    assert (result.error_details, result.is_waiting_for_confirmation) == (None, False)


def test_in_a_sequence_what_comes_after_the_pause_runs(service: Service):
    line = create_sequential_agent(id="line", sub_agents=["a", "b", "c"], output_key="line")
    say(service, a={"content": "A"}, b=[ASK, {"content": "B"}], c={"content": "C"})

    async def talk() -> WorkflowResult:
        handle = await paused(graph_of(service, line, "a", "b", "c"))
        assert asked(service) == ["a", "b"]
        return await decided(handle, (True, None))

    result = sync.run(talk())
    assert asked(service) == ["a", "b", "b", "c"]
    assert service.bodies("/c")[0] | {"tools": []} == {
        "messages": [{"role": "user", "content": "go"}],
        "tools": [],
        "state": {"a": "A", "b": "B"},
    }
    assert result.session_state["line"] == "C"


def test_in_a_loop_the_pass_goes_on_and_so_does_the_loop(service: Service):
    loop = create_loop_agent(id="loop", sub_agents=["a", "b"], max_agent_loop_iterations=2)
    say(service, a=[{"content": "A1"}, ASK, {"content": "A2"}], b=[{"content": "B1"}, {"content": "B2"}])

    async def talk() -> WorkflowResult:
        return await decided(await paused(graph_of(service, loop, "a", "b")), (True, None))

    result = sync.run(talk())
    assert asked(service) == ["a", "b", "a", "a", "b"]
    assert [one["role"] for one in service.bodies("/a")[-1]["messages"]] == ["user", "assistant", "tool"]
    assert service.bodies("/a")[-1]["state"][ITERATION] == 1
    assert result.session_state[EXIT_REASON].startswith("max_agent_loop")


def test_in_a_parallel_block_the_others_finish_and_each_request_is_answered(service: Service):
    block = create_parallel_agent(id="block", sub_agents=["a", "b", "c"])
    line = create_sequential_agent(id="line", sub_agents=["block", "d"])
    say(service, a=[ASK, {"content": "A"}], b=[ASK, {"content": "B"}], c={"content": "C"}, d={"content": "D"})

    async def talk() -> WorkflowResult:
        handle = await paused(graph_of(service, line, block, "a", "b", "c", "d"))
        first, second = await handle.get_pending_confirmation_details()
        assert sorted(asked(service)) == ["a", "b", "c"]
        waiting = await handle.confirm_action(first, True)
        assert waiting.is_waiting_for_confirmation and asked(service).count("d") == 0
        return await handle.confirm_action(second, False)

    result = sync.run(talk())
    assert sorted(asked(service)) == ["a", "a", "b", "b", "c", "d"]
    assert {key: result.session_state[key] for key in "abcd"} == {"a": "A", "b": "B", "c": "C", "d": "D"}


def test_a_root_that_waits_for_words_is_sent_them_as_a_message(service: Service):
    say(service, a=[WAIT, {"content": "Rain.", "exitFlow": True}])

    async def talk() -> list[WorkflowResult]:
        handle = await graph_of(service, speaker(service, "a")).start()
        first = handle.get_latest_orchestration_result()
        assert first is not None
        return [first, await handle.receive_message("Oslo")]

    first, second = sync.run(talk())
    assert (first.wait_for_user_input, first.final_response_text) == (True, "Which city?")
    assert service.bodies("/a")[1]["messages"][1:] == [
        {"role": "assistant", "content": "Which city?"},
        {"role": "user", "content": "Oslo"},
    ]
    assert (second.wait_for_user_input, second.exit_flow) == (False, True)


def test_an_agent_in_a_sequence_that_waits_for_words_hears_them_and_the_next_one_runs(service: Service):
    line = create_sequential_agent(id="line", sub_agents=["a", "b"])
    say(service, a=[WAIT, {"content": "Oslo it is."}], b={"content": "B"})

    async def talk() -> WorkflowResult:
        handle = await graph_of(service, line, "a", "b").start()
        first = handle.get_latest_orchestration_result()
        assert first is not None and first.wait_for_user_input and asked(service) == ["a"]
        assert await handle.get_pending_confirmation_details() == {}
        return await handle.receive_message("Oslo")

    result = sync.run(talk())
    assert service.bodies("/a")[1]["messages"] == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "Which city?"},
        {"role": "user", "content": "Oslo"},
    ]
    assert asked(service) == ["a", "a", "b"]
    assert (result.wait_for_user_input, result.session_state["a"]) == (False, "Oslo it is.")


def test_in_a_chat_the_next_words_are_what_an_agent_waits_for(service: Service):
    line = create_sequential_agent(id="line", sub_agents=["a", "b"])
    say(service, a=[WAIT, {"content": "Oslo it is."}], b={"content": "B"})
    chat = Chat(graph_of(service, line, "a", "b").to_app().root_agent)
    chat.ask("go")
    assert chat.ask("Oslo").text == "B"
    assert service.bodies("/a")[1]["messages"][1:] == [
        {"role": "assistant", "content": "Which city?"},
        {"role": "user", "content": "Oslo"},
    ]


def test_all_that_can_be_asked_of_a_workflow_that_runs(service: Service):
    say(service, a=[WAIT, ASK, {"content": "Paid.", "exitFlow": True}])

    async def talk() -> list[dict[str, Any]]:
        handle = await graph_of(service, speaker(service, "a")).start()
        states = [await handle.state()]
        await handle.receive_message("Oslo")
        states.append(await handle.state())
        assert await handle.is_waiting_for_confirmation() is True
        [key] = states[1]["pendingConfirmations"]
        result = await handle.confirm_action(key, True)
        assert handle.get_latest_orchestration_result() is result
        states.append(await handle.state())
        assert states[2]["conversationHistory"] == await handle.get_session_events()
        assert states[2]["latestInvocationTrace"] == await handle.get_latest_invocation_trace()
        return states

    states = sync.run(talk())
    assert {frozenset(state) for state in states} == {
        frozenset(
            (
                "latestOrchestrationResult",
                "conversationHistory",
                "pendingConfirmations",
                "isWaitingForConfirmation",
                "latestInvocationTrace",
                "isStopped",
                "conversationEndRequested",
            )
        )
    }
    assert [state["isWaitingForConfirmation"] for state in states] == [False, True, False]
    assert [len(state["conversationHistory"]) for state in states] == [2, 4, 6]
    assert [state["latestOrchestrationResult"].final_response_text for state in states] == [
        "Which city?",
        "May I?",
        "Paid.",
    ]
    told = [[(one.author, one.text) for one in state["latestInvocationTrace"]] for state in states[:2]]
    assert told == [[("user", "go"), ("a", "Which city?")], [("user", "Oslo"), ("a", "May I?")]]
    assert [state["isStopped"] for state in states] == [False] * 3


def test_after_the_end_of_the_conversation_nothing_is_said(service: Service):
    say(service, a={"content": "A"})

    async def talk() -> dict[str, Any]:
        handle = await graph_of(service, speaker(service, "a")).start()
        await handle.end_conversation()
        with pytest.raises(ValueError, match="end_conversation"):
            await handle.receive_message("more")
        trace = await handle.get_latest_invocation_trace()
        assert [event.author for event in trace] == ["user", "a"]
        return await handle.state()

    state = sync.run(talk())
    assert (state["isStopped"], state["conversationEndRequested"]) == (True, True)
    assert len(state["conversationHistory"]) == 2
