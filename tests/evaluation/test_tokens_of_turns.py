"""The tokens of a turn, as metrics get them: each model answer counts once, wherever its agent ran."""

import pytest

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.evaluation.case_run import invocations_of
from adk_nb.evaluation.eval_case import InvocationEvents
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.view.spending import usage_of
from adk_nb.tools.agent_tool import AgentTool
from tests.support.talk import Talk
from tests.support.token_counts import counted


@pytest.mark.parametrize("stream_events", [False, True])
def test_the_tokens_behind_an_agent_tool_count_once(stream_events: bool):
    innermost = LlmAgent(name="innermost", model=ScriptedLlm(counted("deep", input=990, output=10)))
    inner = LlmAgent(
        name="inner",
        model=ScriptedLlm(
            counted(call("innermost", request="x"), input=90, output=10), counted("known", input=90, output=10)
        ),
        tools=[AgentTool(innermost, stream_events=stream_events)],
    )
    model = ScriptedLlm(
        counted(call("inner", request="say it"), input=15, output=5), counted("done", input=15, output=5)
    )
    agent = LlmAgent(name="guide", model=model, tools=[AgentTool(inner, stream_events=stream_events)])
    events = Talk(agent).say()

    [turn] = invocations_of(events)
    steps = turn.intermediate_data
    assert isinstance(steps, InvocationEvents)
    usages = [step.usage_metadata or types.GenerateContentResponseUsageMetadata() for step in steps.invocation_events]

    # Without the final answer, which is no step.
    assert sum(usage.total_token_count or 0 for usage in usages) == 20 + 1000 + 200
    assert sum(usage.prompt_token_count or 0 for usage in usages) == 15 + 990 + 180
    assert usage_of(events).total_tokens == 20 + 1000 + 200 + 20
