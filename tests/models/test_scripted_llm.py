"""A script says at once what it cannot say later."""

from typing import Any

import pytest

from adk_nb import sync
from adk_nb.errors import ConfigurationError, UnexpectedModelAnswer
from adk_nb.models import ScriptedLlm, call
from adk_nb.models.llm_request import LlmRequest


@pytest.mark.parametrize("answer", [5, None, lambda request: "x", ["Hello", 5], {"text": "Hello"}])
def test_what_no_model_answers_is_refused_when_the_script_is_written(answer: Any):
    with pytest.raises(ConfigurationError, match=r"got .*; write ScriptedLlm"):
        ScriptedLlm("Hello", answer)


def test_what_a_script_may_have():
    assert ScriptedLlm("Hello", call("look"), ["I look", call("look")], (LookupError("no"),)).requests == []


def test_a_script_that_has_ended_counts_in_words():
    script = ScriptedLlm("Hello")
    sync.run(drained(script))

    with pytest.raises(UnexpectedModelAnswer, match=r"1 answer .* twice"):
        sync.run(drained(script))


async def drained(script: ScriptedLlm) -> None:
    async for _ in script.generate_content_async(LlmRequest()):
        pass
