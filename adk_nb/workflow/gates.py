"""The gate of a node: the approval and the credential that it needs before it runs."""

from typing import Any, cast

from adk_nb import types
from adk_nb.errors import CredentialError, InputError
from adk_nb.events.event import Event
from adk_nb.events.request_input import RequestInput
from adk_nb.events.requests import NODE_APPROVAL
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.flow import authentication
from adk_nb.flow.resumption import take_answers
from adk_nb.flow.tool_call import in_doubt_error
from adk_nb.runtime import approvals
from adk_nb.runtime.context import Context
from adk_nb.runtime.history import history_of
from adk_nb.runtime.interrupts import CREDENTIALS, NODE, is_first_use
from adk_nb.runtime.invocation_context import Decision
from adk_nb.workflow.base_node import BaseNode

_ANSWER_SCHEMA: dict[str, Any] = {
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
    """The output of a node that was rejected."""


def approval_id(path: str) -> str:
    """Id of the approval request of the node at `path`."""
    return f"{NODE_APPROVAL}{path}"


def credential_id(path: str) -> str:
    """Id of the credential request of the node at `path`."""
    return f"{NODE}{path}"


def approval_subject(node: BaseNode, context: Context, node_input: Any, attempts_in_doubt: int) -> dict[str, Any]:
    """The arguments and the version of the node that an approval is for, as JSON; it is for nothing else."""
    subject = {"args": node.request_args(context, node_input), "is": node.fingerprint()}
    return subject | {"begun": attempts_in_doubt} if attempts_in_doubt else subject


async def gate_result(
    node: BaseNode,
    context: Context,
    node_input: Any,
    subject: dict[str, Any] | None,
    *,
    is_new: bool,
    attempts_in_doubt: int,
) -> "RequestInput | list[Event] | Refused | None":
    """The result in place of the node's work: of its approval, then of its credential. None: it may run.

    Args:
        node: The node.
        context: Of the attempt; it receives the decision and the credential.
        node_input: The input of the node.
        subject: `approval_subject` of the last request. None: there was none.
        is_new: The answer to it is used for the first time.
        attempts_in_doubt: Interrupted attempts that may have taken effect, for the approver to know.

    Raises:
        CredentialError: There is no credential, and the user could not supply one.
        InputError: Another run has taken the same answer.
    """
    ctx = context.get_invocation_context()
    approval_request, credential_request = approval_id(context.node_path), credential_id(context.node_path)
    answer = context.resume_inputs.get(approval_request)
    # An approval is for its arguments and version only: with others the node asks again.
    if (
        answer is not None
        and subject is not None
        and approvals.is_same_json(subject, approval_subject(node, context, node_input, attempts_in_doubt))
    ):
        fields = cast(dict[str, Any], answer) if isinstance(answer, dict) else {}
        # The schema allows no other field: an answer with one is a no.
        is_yes = fields.get("confirmed") is True and not fields.keys() - _ANSWER_SCHEMA["properties"].keys()
        decided = ToolConfirmation(confirmed=is_yes, payload=fields.get("payload"), reason=fields.get("reason"))
        context.tool_confirmation = decided
        # Consumed only once, here or in the call that it allows: a node that waits again after its approval keeps it.
        if is_new and (asked := history_of(ctx.session).calls.newest(approval_request)):
            # By the event's id: a node that runs again asks under the same request id.
            if not await is_first_use(ctx, asked.event.id, "approval"):
                raise InputError(
                    f"approval {approval_request!r} is not open; it was answered already, and another run continues "
                    "with it"
                )
            ctx.decisions[approval_request] = Decision(
                confirmation=decided, ran=False, tool_fingerprint=None, request_id=asked.event.id
            )
        if not decided.confirmed:
            refusal = approvals.rejection(decided)
            return Refused(in_doubt_error(refusal, decided) if attempts_in_doubt else refusal)
    elif confirmation := await node.confirmation(context, node_input):
        return question(node.name, context.node_path, node.request_args(context, node_input), confirmation)
    if ctx.credential_answers:
        await take_answers(ctx, CREDENTIALS)
    if rejected := ctx.decisions.pop(credential_request, None):
        return Refused(approvals.rejection(rejected.confirmation))
    if (config := node.required_credential) is None:
        return None
    # `authenticate` stores its request under a call id.
    context.function_call_id = credential_request
    if await authentication.authenticate(config, context):
        context.function_call_id = None
        return None
    return await credential_request_events(node.name, context, node.request_args(context, node_input))


def question(name: str, path: str, args: dict[str, Any], confirmation: ToolConfirmation) -> RequestInput:
    """The approval request before a node, or the tool in it, runs."""
    payload: dict[str, Any] = {"tool_name": name, "args": args}
    if confirmation.payload is not None:
        payload["payload"] = confirmation.payload
    if confirmation.in_doubt:
        payload["in_doubt"] = True
    return RequestInput(
        interrupt_id=approval_id(path),
        message=confirmation.hint or f"Please approve or reject the tool call {name}().",
        payload=payload,
        response_schema=_ANSWER_SCHEMA,
    )


async def credential_request_events(name: str, context: Context, args: dict[str, Any]) -> list[Event]:
    """The events that request the credentials which `context` needs.

    Raises:
        CredentialError: No user could answer a request for them.
    """
    ctx = context.get_invocation_context()
    call = types.FunctionCall(id=context.function_call_id, name=name, args=args)
    results = Event(author=ctx.agent.name, actions=context.actions)
    events = await authentication.request_credentials(ctx, ctx.agent.name, [call], {}, results)
    # Only tool calls carry these; a node's request is an event of its own.
    context.actions.requested_auth_configs.clear()
    if not events:
        raise CredentialError(f"node {name!r} cannot authenticate: its auth_config has no form that a user can fill in")
    return events
