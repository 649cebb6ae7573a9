"""Agents as nodes of a graph: the fields that the node takes over, and what the node waits for."""

import pytest

from adk_nb.agents import LlmAgent, SequentialAgent
from adk_nb.errors import ConfigurationError
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools import FunctionTool
from adk_nb.workflow import START, RetryConfig, Workflow, node
from tests.support.talk import Talk
from tests.workflow.steps import APPROVES, answer, asked, step

FAST = RetryConfig(max_attempts=3, initial_delay=0, jitter=0)


def test_an_agent_is_run_again_as_its_retry_config_says():
    model = ScriptedLlm(ConnectionError("no line"), ConnectionError("no line"), "here")
    talk = Talk(Workflow(name="wf", edges=[(START, LlmAgent(name="guide", model=model, retry_config=FAST))]))

    events = talk.say()

    assert (talk.error, [event.text for event in events if event.text]) == (None, ["here"])


def test_agents_that_run_others_have_the_fields_too():
    model = ScriptedLlm(ConnectionError("no line"), "here")
    inner = LlmAgent(name="guide", model=model)
    series = SequentialAgent(name="series", sub_agents=[inner], retry_config=FAST)
    talk = Talk(Workflow(name="wf", edges=[(START, series)]))

    events = talk.say()

    assert (talk.error, [event.text for event in events if event.text]) == (None, ["here"])


def test_settings_of_the_node_come_before_those_of_the_agent():
    agent = LlmAgent(name="guide", model="m", timeout=60, rerun_on_resume=True, wait_for_output=True)

    plain, own = node(agent), node(agent, timeout=5, wait_for_output=False)

    assert (plain.timeout, plain.rerun_on_resume, plain.wait_for_output) == (60, True, True)
    assert (own.timeout, own.rerun_on_resume, own.wait_for_output) == (5, True, False)
    assert node(LlmAgent(name="guide", model="m", mode="chat")).wait_for_output


def test_a_time_that_is_none_is_refused():
    with pytest.raises(ConfigurationError, match="timeout"):
        LlmAgent(name="guide", model="m", timeout=0)


@pytest.mark.parametrize("is_within", [False, True])
@pytest.mark.parametrize("asks_again", [False, True])
def test_an_agent_whose_approvals_are_answered_one_by_one_is_followed_once_all_are(is_within: bool, asks_again: bool):
    paid: list[int] = []

    def pay(n: int) -> str:
        """Pays."""
        paid.append(n)
        return "paid"

    after_the_first = call("pay", n=3) if asks_again else "Paid 1."
    guide = step(
        "guide",
        [call("pay", n=1), call("pay", n=2)],
        after_the_first,
        "Paid 2.",
        "Paid 3.",
        tools=[FunctionTool(pay, require_confirmation=True)],
    )
    team = SequentialAgent(name="team", sub_agents=[guide]) if is_within else guide
    talk = Talk(Workflow(name="wf", edges=[(START, team), (team, step("end", "The end.", "Again."))]))
    open_ids = asked(talk.say())

    ends: list[str] = []
    while open_ids:
        assert ends == []
        events = talk.say(answer(open_ids.pop(0), {"confirmed": True}, APPROVES))
        open_ids += asked(events)
        ends += [event.text for event in events if event.author == "end"]

    assert paid == ([1, 2, 3] if asks_again else [1, 2])
    assert ends == ["The end."]
