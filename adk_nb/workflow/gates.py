"""What stands before a node: a person's yes, and what it has to be let in with."""

from typing import Any, cast

from adk_nb import types
from adk_nb.errors import CredentialError, InputError
from adk_nb.events.event import Event
from adk_nb.events.request_input import RequestInput
from adk_nb.events.requests import NODE_APPROVAL
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.flow import authentication
from adk_nb.flow.resumption import take
from adk_nb.flow.tool_call import in_doubt
from adk_nb.runtime import approvals
from adk_nb.runtime.context import Context
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import CREDENTIALS, NODE, is_first_use
from adk_nb.runtime.invocation_context import Decision
from adk_nb.workflow.base_node import BaseNode

_ANSWER: dict[str, Any] = {
    "title": "ToolConfirmation",
    "type": "object",
    "properties": {
        "confirmed": {"type": "boolean"},
        "hint": {"type": "string"},
        "payload": {},
        "reason": {"type": ["string", "null"]},
    },
    "required": ["confirmed"],
    "additionalProperties": False,
}


class Refused(dict[str, Any]):
    """The output of a node that a person did not let run."""


def approval_id(path: str) -> str:
    """What an answer names that lets the node of that path run."""
    return f"{NODE_APPROVAL}{path}"


def credential_id(path: str) -> str:
    """What stands for the node of that path in a request for a credential."""
    return f"{NODE}{path}"


def what_is_asked(node: BaseNode, context: Context, node_input: Any, begun: int) -> dict[str, Any]:
    """What a yes is for, as JSON: it is for nothing else. `begun`: `BaseNode.begun`."""
    asked = {"args": node.shown(context, node_input), "is": node.fingerprint()}
    return asked | {"begun": begun} if begun else asked


async def held(
    node: BaseNode, context: Context, node_input: Any, asked: dict[str, Any] | None, *, is_new: bool, begun: int
) -> "RequestInput | list[Event] | Refused | None":
    """What comes in the place of the node's work. None: it may run.

    Args:
        node: The node.
        context: Of the attempt; it gets what was decided, and what the node is let in with.
        node_input: What the node gets.
        asked: `what_is_asked` of the question that was asked last, if one was.
        is_new: The answer to that counts now for the first time.
        begun: How often the work was begun and may have taken effect, which a person is to know.

    Raises:
        CredentialError: It cannot be let in, and no person could change that.
        InputError: Another run has taken the same answer.
    """
    said = context.resume_inputs.get(approval_id(context.node_path))
    now = what_is_asked(node, context, node_input, begun) if said is not None and asked is not None else None
    if now and asked and approvals.is_same_json(asked, now):
        context.tool_confirmation = decided = _read(said)
        if is_new:
            await _take(context, decided)
        if not decided.confirmed:
            refusal = approvals.rejection(decided)
            return Refused(in_doubt(refusal, decided) if begun else refusal)
    elif wanted := await node.confirmation(context, node_input):
        return question(node.name, context.node_path, node.shown(context, node_input), wanted)
    return await _let_in(node, context, node_input)


async def _take(context: Context, decided: ToolConfirmation) -> None:
    """Use the answer up, or leave that to the call which it allows: of two runs that have it at the same time, one goes
    on.
    """
    ctx, key = context.get_invocation_context(), approval_id(context.node_path)
    question = history_of(ctx.session).calls.newest(key)
    if question is None:
        return
    if not await is_first_use(ctx, question.event.id, "approval"):
        raise InputError(f"approval {key!r} is not open; it was answered already, and another run goes on with it")
    ctx.decisions[key] = Decision(confirmation=decided, ran=False, tool_fingerprint=None, request_id=question.event.id)


def question(name: str, path: str, args: dict[str, Any], wanted: ToolConfirmation) -> RequestInput:
    """What a person is asked before a node, or the tool in it, runs."""
    payload: dict[str, Any] = {"tool_name": name, "args": args}
    if wanted.payload is not None:
        payload["payload"] = wanted.payload
    return RequestInput(
        interrupt_id=approval_id(path),
        message=wanted.hint or f"Please approve or reject the tool call {name}().",
        payload=payload,
        response_schema=_ANSWER,
    )


async def asking_for_credentials(name: str, context: Context, args: dict[str, Any]) -> list[Event]:
    """The events that ask for what `context` says is needed.

    Raises:
        CredentialError: That cannot be asked for.
    """
    ctx = context.get_invocation_context()
    call = types.FunctionCall(id=context.function_call_id, name=name, args=args)
    results = Event(author=ctx.agent.name, actions=context.actions)
    events = await authentication.ask(ctx, ctx.agent.name, [call], {}, results)
    context.actions.requested_auth_configs.clear()
    if not events:
        raise CredentialError(
            f"node {name!r} cannot authenticate: its auth_config leads to nothing that a user can answer"
        )
    return events


async def _let_in(node: BaseNode, context: Context, node_input: Any) -> "list[Event] | Refused | None":
    ctx, key = context.get_invocation_context(), credential_id(context.node_path)
    if ctx.credential_answers:
        await take(ctx, CREDENTIALS)
    if decided := ctx.decisions.pop(key, None):
        return Refused(approvals.rejection(decided.confirmation))
    if (config := node.lets_in) is None:
        return None
    context.function_call_id = key
    if await authentication.authenticate(config, context):
        context.function_call_id = None
        return None
    return await asking_for_credentials(node.name, context, node.shown(context, node_input))


def _read(said: Any) -> ToolConfirmation:
    """An answer to the question; what is not plainly a yes is a no."""
    given = cast(dict[str, Any], said) if isinstance(said, dict) else {}
    yes = given.get("confirmed") is True and not given.keys() - _ANSWER["properties"].keys()
    return ToolConfirmation(confirmed=yes, payload=given.get("payload"), reason=given.get("reason"))
