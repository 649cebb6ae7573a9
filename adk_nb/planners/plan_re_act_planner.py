"""Planning by instruction, for any model: plan, action, reasoning and answer in tagged sections."""

import re
from collections.abc import Iterator, Sequence

from adk_nb import types
from adk_nb.models.llm_request import LlmRequest
from adk_nb.planners.base_planner import BasePlanner
from adk_nb.runtime.context import CallbackContext, ReadonlyContext

PLANNING_TAG = "/*PLANNING*/"
REPLANNING_TAG = "/*REPLANNING*/"
REASONING_TAG = "/*REASONING*/"
ACTION_TAG = "/*ACTION*/"
FINAL_ANSWER_TAG = "/*FINAL_ANSWER*/"

_THINKING = (PLANNING_TAG, REPLANNING_TAG, REASONING_TAG, ACTION_TAG)
_THINKING_TAG = re.compile("|".join(re.escape(tag) for tag in _THINKING))
_INSTRUCTION = f"""\
Work in sections, each of which begins with its tag on a line of its own:

{PLANNING_TAG}
First of all, a numbered list of steps that leads to the answer. Each step uses one or more of your tools; use no tool \
that you were not given. Cover everything that was asked.

{ACTION_TAG}
What you do next: the call of a tool, or code if you can run code. Use the tools rather than what you remember.

{REASONING_TAG}
After each result: what it says about the question, and what follows for the next step.

{REPLANNING_TAG}
Only if the plan does not work out: a new plan, made from what the results have shown. Then go on with it.

{FINAL_ANSWER_TAG}
Last, and once: the answer itself, exact, and in the form that was asked for. It has to be clear without the other \
sections, which the reader does not see. If your tools and what you were told cannot answer the question, say why, \
and ask for what is missing.

What is in the conversation already need not be looked up again. If the question is not clear, ask instead of guessing.\
"""


class PlanReActPlanner(BasePlanner):
    """Plan, act, reason, answer. Everything before the answer is stored as thoughts; any model can use it."""

    def build_planning_instruction(self, readonly_context: ReadonlyContext, llm_request: LlmRequest) -> str | None:
        """The instruction with the sections and their tags."""
        return _INSTRUCTION

    def process_llm_request(self, llm_request: LlmRequest) -> None:
        """Send this turn's thoughts as text, so that the model can follow its plan; drop those of earlier turns."""
        contents = llm_request.contents
        turn_start = 0
        for index, content in enumerate(contents):
            if content.role == "user" and not any(part.function_response for part in content.parts or ()):
                turn_start = index
        processed: list[types.Content] = []
        for index, content in enumerate(contents):
            parts = content.parts or []
            if any(part.thought for part in parts):
                if index < turn_start:
                    parts = [part for part in parts if not part.thought]
                else:
                    parts = [part.model_copy(update={"thought": None}) if part.thought else part for part in parts]
                content = content.model_copy(update={"parts": parts})
            if parts:
                processed.append(content)
        llm_request.contents = processed

    def process_planning_response(
        self, callback_context: CallbackContext, response_parts: Sequence[types.Part]
    ) -> list[types.Part] | None:
        """Split thoughts and answer, and strip the tags; parts after the first group of calls are dropped.

        Text that a model adds after its calls is a guess at their results.
        """
        processed: list[types.Part] = []
        has_calls = False
        for part in response_parts:
            if part.function_call:
                # A call without a name is dropped: nothing could answer it.
                has_calls = has_calls or bool(part.function_call.name)
                processed += [part] if part.function_call.name else []
            elif has_calls:
                break
            else:
                processed += _split(part)
        return processed


def _split(part: types.Part) -> Iterator[types.Part]:
    """Split a part into thoughts and answer."""
    if part.text is None or part.thought:
        yield part
        return
    thoughts_text, tag, answer = part.text.rpartition(FINAL_ANSWER_TAG)  # the last tag: a plan may mention it
    # A model that ignores the sections just answers.
    if not tag and not part.text.lstrip().startswith(_THINKING):
        yield part
        return
    thoughts, answer_text = (thoughts_text, answer) if tag else (part.text, "")
    if thoughts := _THINKING_TAG.sub("", thoughts).replace(FINAL_ANSWER_TAG, "").strip():
        yield part.model_copy(update={"text": thoughts, "thought": True})
    if answer_text := answer_text.strip():
        yield types.Part(text=answer_text)
