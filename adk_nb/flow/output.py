"""What a final answer comes to: a text or a JSON value, where it is kept, and what happens if it does not fit."""

import json
import logging
from collections.abc import Generator, Sequence

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.flow.spec import LlmSpec
from adk_nb.flow.tool_calls import Answers
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.shape import error_text

logger = logging.getLogger(__name__)

OUTPUT_SCHEMA_MISMATCH = "OUTPUT_SCHEMA_MISMATCH"
"""Error code of the event that follows an answer which does not fit the agent's output schema."""


def settle(spec: LlmSpec, event: Event) -> Exception | None:
    """Put on `event`, if it is the final answer of `spec`, what it comes to: the state's value, and the JSON value.

    Returns:
        What is wrong with the answer; then nothing was put on it.
    """
    text = _final_words(event)
    if not text or spec.mode == "task":  # what comes of a task is handed back by a tool
        return None
    value = text
    if spec.output_shape:
        try:
            value = event.output = spec.output_shape.read(text)
        except Exception as error:  # a schema's own code may raise anything, and the answer is not to be lost by it
            if spec.on_output_error != "raw":
                return error
            logger.warning("agent %r: kept as text what does not fit output_schema: %s", spec.name, error_text(error))
    if spec.output_key:
        event.actions.state_delta[spec.output_key] = value
    return None


def settled(ctx: InvocationContext, spec: LlmSpec, event: Event) -> Generator[Event, None, None]:
    """`event`, settled, and what tells that it does not fit: where it was no model that answered.

    Raises:
        Exception: What is wrong with it, if the agent is to raise then.
    """
    wrong = settle(spec, event)
    yield event
    if wrong:
        follows = after(ctx, spec, wrong, event)
        yield from follows.events
        follows.end_the_turn()


def after(ctx: InvocationContext, spec: LlmSpec, wrong: Exception, answer: Event | None) -> Answers:
    """What follows an `answer` that does not fit: an event that says so, or `wrong` itself."""
    if spec.on_output_error == "raise":
        return Answers([], wrong)
    told = Event(
        author=spec.name,
        invocation_id=ctx.invocation_id,
        branch=ctx.branch,
        error_code=OUTPUT_SCHEMA_MISMATCH,
        error_message=(
            f"the answer of agent {spec.name!r} does not fit its output_schema: {error_text(wrong)}; "
            + _remedy(spec, answer)
        ),
    )
    return Answers([told])


def _remedy(spec: LlmSpec, answer: Event | None) -> str:
    """What to do about an answer that does not fit."""
    if answer and answer.model_version == "offline":
        return "the stand-in 'offline' fills in no schema: name a model, or set a key"
    again = ", or let it answer a second time: on_output_error='retry', in a cell --set on_output_error=retry"
    return f"say in the instruction what is wanted{'' if spec.on_output_error == 'retry' else again}"


def asked_again(wrong: Exception) -> types.Content:
    """What the model is told of an answer that does not fit, where it may answer again; no session keeps it."""
    text = f"That answer does not fit: {error_text(wrong)}. Answer again, in the form that was asked for."
    return types.Content(role="user", parts=[types.Part(text=text)])


def given_by_tool(ctx: InvocationContext, spec: LlmSpec, events: Sequence[Event]) -> Event | None:
    """The final answer that a tool took in the step of `events`, as the model's own words. None: it took none."""
    given = [event.actions for event in events if "set_model_response" in event.actions.model_fields_set]
    if not given:
        return None
    value = given[-1].set_model_response
    kept = {spec.output_key: value} if spec.output_key else {}
    return Event(
        author=spec.name,
        invocation_id=ctx.invocation_id,
        branch=ctx.branch,
        content=types.Content(role="model", parts=[types.Part(text=json.dumps(value, ensure_ascii=False))]),
        output=value,
        actions=EventActions(state_delta=kept),
    )


def _final_words(event: Event) -> str:
    """The words of a final answer; none of an answer that ends in code, since what that gives comes after it."""
    parts = event.parts
    if event.error_code or not event.is_final_response() or event.get_function_calls():
        return ""
    return (
        ""
        if parts and parts[-1].executable_code
        else "".join(one.text for one in parts if one.text and not one.thought)
    )
