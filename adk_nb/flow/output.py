"""The output of a final answer: validate it, store it, and report a mismatch with `output_schema`."""

import json
import logging
from collections.abc import Generator, Sequence

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import EventActions
from adk_nb.flow.spec import LlmSpec, agent_event
from adk_nb.flow.tool_calls import StepResult
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.tools.shape import error_text

logger = logging.getLogger(__name__)

OUTPUT_SCHEMA_MISMATCH = "OUTPUT_SCHEMA_MISMATCH"
"""Error code of the event after an answer that does not fit the agent's output schema."""


def apply_output(spec: LlmSpec, event: Event) -> Exception | None:
    """If `event` is a final answer, set its `output` and the state delta of `output_key`.

    Returns:
        The validation error; the event is unchanged then.
    """
    if spec.mode == "task":  # its output comes from the tool that completes it
        return None
    if event.error_code or not event.is_final_response() or event.get_function_calls():
        return None
    # After an answer that ends in code the result is still to come.
    if not event.parts or event.parts[-1].executable_code or not (text := event.text):
        return None
    value = text
    if spec.output_shape:
        try:
            value = event.output = spec.output_shape.read(text)
        except Exception as error:  # validators may raise anything
            if spec.on_output_error != "raw":
                return error
            logger.warning(
                "agent %r: the answer is stored as text, as it does not fit output_schema: %s",
                spec.name,
                error_text(error),
            )
    if spec.output_key:
        event.actions.state_delta[spec.output_key] = value
    return None


def apply_and_report(ctx: InvocationContext, spec: LlmSpec, event: Event) -> Generator[Event, None, None]:
    """Apply the output of an answer that a callback gave; yield it, and the mismatch event if it does not fit.

    Raises:
        Exception: The validation error, with `on_output_error='raise'`.
    """
    error = apply_output(spec, event)
    yield event
    if error:
        step = mismatch_result(ctx, spec, error, event)
        yield from step.events
        step.ends_turn()


def mismatch_result(ctx: InvocationContext, spec: LlmSpec, error: Exception, event: Event | None) -> StepResult:
    """The step after an answer that does not fit: a mismatch event, or with `on_output_error='raise'` the error."""
    if spec.on_output_error == "raise":
        return StepResult([], error)
    remedy = "describe the expected fields in the instruction"
    if event and event.model_version == "offline":
        remedy = "the built-in model 'offline' cannot fill a schema: name a model, or set a key"
    elif spec.on_output_error != "retry":
        remedy += ", or let the model retry: on_output_error='retry' (in a cell: --set on_output_error=retry)"
    message = f"the answer of agent {spec.name!r} does not fit its output_schema: {error_text(error)}; {remedy}"
    return StepResult([agent_event(ctx, spec, error_code=OUTPUT_SCHEMA_MISMATCH, error_message=message)])


def correction_request(error: Exception) -> types.Content:
    """The message that asks the model for a second answer; it is not stored in the session."""
    text = f"That answer does not fit the schema: {error_text(error)}. Answer again in the requested format."
    return types.Content(role="user", parts=[types.Part(text=text)])


def output_from_tool(ctx: InvocationContext, spec: LlmSpec, events: Sequence[Event]) -> Event | None:
    """The answer given through `set_model_response`, as an event of the model. None: the tool was not called."""
    actions = [event.actions for event in events if "set_model_response" in event.actions.model_fields_set]
    if not actions:
        return None
    value = actions[-1].set_model_response
    state_delta = {spec.output_key: value} if spec.output_key else {}
    return agent_event(
        ctx,
        spec,
        content=types.Content(role="model", parts=[types.Part(text=json.dumps(value, ensure_ascii=False))]),
        output=value,
        actions=EventActions(state_delta=state_delta),
    )
