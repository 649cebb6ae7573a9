"""One record for everything that a run waits for from outside: approvals, credentials, answers, long-running work.

Source of the shapes on the wire: google-adk 2.13.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from adk_nb import clock, types
from adk_nb.auth.auth_credential import OAuth2Auth
from adk_nb.auth.auth_schemes import APIKey, AuthScheme, HTTPBase
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST, CHOICE, CREDENTIAL_REQUEST, INPUT_REQUEST, NODE_APPROVAL
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime.invocation_context import Decided, InvocationContext

Kind = Literal["approval", "credential", "input", "long_running", "node_approval", "task"]
ALL: tuple[Kind, ...] = get_args(Kind)
APPROVALS: tuple[Kind, ...] = ("approval",)
CREDENTIALS: tuple[Kind, ...] = ("credential",)
INPUTS: tuple[Kind, ...] = ("input", "long_running", "node_approval")
"""Kinds that the response of a long-running call answers."""
VALID_FOR = 7 * 86_400.0
"""Seconds in which a yes counts: long enough for a question that waits over a weekend, too short for one that nobody
remembers. A no always counts."""
TOOLSET = "_adk_toolset_auth_"
"""The id of a waiting call starts so if it stands for a toolset that needs a credential to list its tools. Source:
google-adk 2.13."""
NODE = "wf_auth:"
"""The id of a waiting call starts so if it stands for a node of a graph. Source: google-adk 2.13."""
ASKED_OF = "askedOf"
"""Key of an approval request beside those of ADK: the tool's fingerprint, and whether it ran."""
CALLS = "calls"
"""Key of a credential request beside those of ADK: the waiting calls, and what was approved of them."""
PROBLEM = "problem"
"""Key of a credential request beside those of ADK: why it is asked again."""


@dataclass(frozen=True, kw_only=True)
class WaitingCall:
    """A call that waits for a credential."""

    call: types.FunctionCall
    decided: Decided | None = None
    """What was approved of it before."""


@dataclass(frozen=True, kw_only=True)
class Interrupt:
    """Something a run waits for from outside."""

    id: str
    """What an answer names."""
    kind: Kind
    number: int = 0
    """1, 2, ... since the user's last words, in the order of asking; it stays while others are answered."""
    call: types.FunctionCall
    """The call that waits. Of a credential, the first of those that do; of a task, the call that gave it."""
    agent: str
    """Name of the agent whose call it is."""
    branch: str | None = None
    path: tuple[str, ...] = ()
    """Names of the agents whose calls lead to `agent`, outermost first."""
    invocation_id: str = ""
    """The invocation that asked."""
    at: int = 0
    """Index of the event that asked, among those of the session that count."""
    prompt: str = ""
    """What the user is asked; empty if the author of the tool, or the model, did not say."""
    payload: Any = None
    """JSON shown with the question."""
    asked_at: float = 0.0
    """Seconds since the epoch, UTC."""
    tool_fingerprint: str | None = None
    """What the tool was when it was asked about, see `tools.fingerprint`; None if that is not known."""
    ran: bool = False
    """The tool asked while it ran; False: the call was held back before it ran."""
    answer_ids: tuple[str, ...] = ()
    """Ids under which it can be answered: its own, and its call's where no other call of the session has that."""
    auth_config: AuthConfig | None = None
    """Of a credential: what is asked for, without secrets."""
    calls: Sequence[WaitingCall] = ()
    """Of a credential: all calls that wait for it."""
    problem: str = ""
    """Of a credential: why it is asked again; empty if it is not."""
    has_news: bool = False
    """Of long-running work: a first result is there, with more to come."""

    @property
    def recipient(self) -> str:
        """Name of the agent that receives the answer."""
        return self.path[0] if self.path else self.agent

    @property
    def expires_at(self) -> float | None:
        """Seconds since the epoch after which a yes is refused. None: never."""
        return self.asked_at + VALID_FOR if self.is_approval else None

    @property
    def is_expired(self) -> bool:
        """True: it was asked too long ago for a yes."""
        return self.expires_at is not None and clock.now() > self.expires_at

    @property
    def has_card(self) -> bool:
        """True: a page shows a card for the answer. A program sends outcomes, and words to a task are a message."""
        return self.kind not in ("long_running", "task")

    @property
    def is_question(self) -> bool:
        """True: the user is asked for a value. False: for a yes or a credential, or work is done elsewhere."""
        return self.kind == "input" or (self.kind == "node_approval" and self.call.name == INPUT_REQUEST)

    @property
    def is_text(self) -> bool:
        """True: what is typed is the answer, or is read as the schema says."""
        return self.is_question or self.kind == "task"

    @property
    def is_approval(self) -> bool:
        """True: a yes or a no is asked for, of a call or of a node of a graph."""
        return self.kind in ("approval", "node_approval")

    @property
    def names(self) -> list[str]:
        """What a list of interrupts calls it: the tools that wait; of a question, the agent; of a node, its name."""
        if self.is_question:
            payload: Any = self.payload
            is_node = self.kind == "node_approval" and isinstance(payload, dict)
            return [str((is_node and cast(dict[str, Any], payload).get("tool_name")) or self.agent)]
        return list(dict.fromkeys(call.name or "" for call in self.waiting_calls))

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of a valid answer; empty for anything. A secret in it has the format `password`."""
        if self.is_approval:
            return _DECISION if self.kind == "approval" else _NODE_DECISION
        if self.kind == "credential":
            fields = _credential_fields(self)
            return {"type": "object", "properties": fields, "required": list(fields)}
        if self.kind == "task":
            return {"type": "string"}
        return {"enum": self.options} if self.options else self.response_schema

    @property
    def waiting_calls(self) -> list[types.FunctionCall]:
        """All calls that wait for the answer."""
        return [waiting.call for waiting in self.calls] or [self.call]

    @property
    def is_toolset(self) -> bool:
        """True for a credential that a toolset, or a node, waits for: only the answer closes it."""
        return any(is_toolset(waiting.call) for waiting in self.calls)

    @property
    def options(self) -> list[str]:
        """What the user can choose from; empty for any other answer."""
        options = (self.call.args or {}).get("options") if self.call.name == CHOICE else None
        return [str(option) for option in cast(list[Any], options)] if isinstance(options, list) else []

    @property
    def response_schema(self) -> dict[str, Any]:
        """JSON schema of the value that a question asks for; empty for anything."""
        schema = (self.call.args or {}).get("response_schema") if self.call.name == INPUT_REQUEST else None
        return cast(dict[str, Any], schema) if isinstance(schema, dict) else {}

    @property
    def auth_scheme(self) -> AuthScheme:
        """Of a credential: how the service takes it."""
        assert self.auth_config is not None
        return self.auth_config.auth_scheme

    @property
    def auth_request(self) -> OAuth2Auth:
        """What the user needs in order to give a credential; empty for a key or a password."""
        credential = self.auth_config and self.auth_config.exchanged_auth_credential
        return (credential and credential.oauth2) or OAuth2Auth()

    @property
    def auth_uri(self) -> str | None:
        """The page on which the user consents. None: a key, a token or a password is asked for."""
        return self.auth_request.auth_uri


_DECISION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "confirmed": {"type": "boolean"},
        "args": {"type": "object"},
        "payload": {},
        "reason": {"type": "string"},
    },
    "required": ["confirmed"],
}
"""JSON schema of the answer to an approval. Source of the first and the third field: google-adk's ToolConfirmation."""
_NODE_DECISION: dict[str, Any] = {
    **_DECISION,
    "properties": {name: field for name, field in _DECISION["properties"].items() if name != "args"},
}


def _credential_fields(interrupt: Interrupt) -> dict[str, Any]:
    """The fields in which a user gives a credential, as `runtime.credentials.read_answer` takes them."""
    scheme = interrupt.auth_scheme
    if interrupt.auth_uri:
        hint = "of the page that you are led to, even where it says that it cannot be reached"
        return {"authResponseUri": {"type": "string", "title": "address", "description": hint}}
    if isinstance(scheme, APIKey):
        return {"apiKey": _secret("key")}
    if isinstance(scheme, HTTPBase) and scheme.scheme.lower() == "basic":
        return {"username": {"type": "string", "title": "name"}, "password": _secret("password")}
    return {"token" if isinstance(scheme, HTTPBase) else "authCode": _secret("token")}


def _secret(title: str) -> dict[str, Any]:
    return {"type": "string", "format": "password", "title": title}


def is_toolset(call: types.FunctionCall) -> bool:
    """True if no tool was called: the call stands for a toolset, or for a node of a graph."""
    return (call.id or "").startswith((TOOLSET, NODE))


def opened_by(event: Event) -> Iterator[Interrupt]:
    """The interrupts that an event opens, without number and path."""
    # Only the runtime marks calls as long-running: a request that a model wrote is none.
    later = event.long_running_tool_ids or ()
    for call in event.get_function_calls() if later else ():
        if call.id not in later:
            continue
        if call.name == APPROVAL_REQUEST:
            if approval := approval_of(call, event):
                yield approval
        else:
            yield (credential_of if call.name == CREDENTIAL_REQUEST else input_of)(call, event)


def approval_of(request: types.FunctionCall, event: Event) -> Interrupt | None:
    """Read a request for approval; None if it names no call."""
    args = request.args or {}
    if not isinstance(original := args.get("originalFunctionCall"), dict):
        return None
    call = types.FunctionCall.model_validate(original)
    confirmation: dict[str, Any] = args.get("toolConfirmation", {})
    hint = str(confirmation.get("hint", ""))
    asked_of: dict[str, Any] = args.get(ASKED_OF, {})
    return Interrupt(
        id=request.id or "",
        kind="approval",
        call=call,
        prompt="" if hint == usual_hint(call.name or "") else hint,
        payload=confirmation.get("payload"),
        agent=event.author,
        ran=asked_of.get("ran") is True,
        tool_fingerprint=asked_of.get("tool"),
        branch=event.branch,
        invocation_id=event.invocation_id,
        asked_at=event.timestamp,
    )


def credential_of(request: types.FunctionCall, event: Event) -> Interrupt:
    """Read a request for a credential."""
    args = request.args or {}
    calls = [_waiting_call(stored) for stored in args.get(CALLS, [])]
    return Interrupt(
        id=request.id or "",
        kind="credential",
        call=calls[0].call if calls else request,
        agent=event.author,
        branch=event.branch,
        invocation_id=event.invocation_id,
        asked_at=event.timestamp,
        answer_ids=(request.id or "",),
        auth_config=AuthConfig.model_validate(args.get("authConfig")),
        calls=calls,
        problem=str(args.get(PROBLEM, "")),
    )


def _waiting_call(stored: dict[str, Any]) -> WaitingCall:
    approved = stored.get("approved")
    decided = approved and Decided(
        confirmation=ToolConfirmation.model_validate(approved["confirmation"]),
        ran=approved["ran"] is True,
        tool=approved["tool"],
    )
    return WaitingCall(call=types.FunctionCall.model_validate(stored["call"]), decided=decided or None)


def input_of(call: types.FunctionCall, event: Event) -> Interrupt:
    """Read the call of a long-running tool: a question to the user, or work that is done elsewhere."""
    args = call.args or {}
    return Interrupt(
        id=call.id or "",
        kind=_input_kind(call),
        call=call,
        agent=event.author,
        branch=event.branch,
        invocation_id=event.invocation_id,
        prompt=str(args.get("message") or args.get("prompt") or ""),
        payload=args.get("payload") if call.name == INPUT_REQUEST else None,
        asked_at=event.timestamp,
        answer_ids=(call.id or "",),
    )


def _input_kind(call: types.FunctionCall) -> Kind:
    if (call.id or "").startswith(NODE_APPROVAL):
        return "node_approval"
    return "input" if call.name in (INPUT_REQUEST, CHOICE) else "long_running"


def usual_hint(tool: str) -> str:
    """The hint of an approval whose tool gives none, as clients of ADK know it."""
    return (
        f"Approve or reject the call of {tool}() by answering with a FunctionResponse "
        "whose response is a ToolConfirmation: {'confirmed': true} or {'confirmed': false}."
    )


def answer(interrupt: Interrupt, value: Any) -> types.Part:
    """The part of a user's message that answers `interrupt`.

    Args:
        interrupt: An open one.
        value: A `ToolConfirmation` or a bool for an approval; JSON for the others, of which a dict is the response
            itself, and any other value goes under `result`.
    """
    if interrupt.kind == "task":  # its agent reads it as the user's next message
        return types.Part(text=str(value))
    if isinstance(value, ToolConfirmation):
        more = {"by"} if interrupt.kind == "node_approval" else set[str]()  # a node takes an unknown field as a no
        value = value.model_dump(by_alias=True, exclude_none=True, exclude={"hint", *more})
    elif interrupt.is_approval and isinstance(value, bool):
        value = {"confirmed": value}
    response = cast(dict[str, Any], value) if isinstance(value, dict) else {"result": value}
    name = {"approval": APPROVAL_REQUEST, "credential": CREDENTIAL_REQUEST}.get(interrupt.kind, interrupt.call.name)
    return types.Part(function_response=types.FunctionResponse(id=interrupt.id, name=name, response=response))


def answered_value(response: types.FunctionResponse) -> Any:
    """The value of an answer to a question: that of the key `result` if there is no other."""
    values = response.response or {}
    return values["result"] if values.keys() == {"result"} else values


def use_key(interrupt_id: str, kind: Kind) -> str:
    """What a session service consumes once, when an approval or a credential request is answered."""
    return f"{kind}:{interrupt_id}"


async def is_first_use(ctx: InvocationContext, interrupt_id: str, kind: Kind) -> bool:
    """True once for each approval or credential request, whoever asks at the same time.

    A run that holds its session has no other beside it: there the answer is used up when the call is begun.
    """
    if ctx.session.lease is not None:
        return True
    return await ctx.session_service.consume(ctx.session, use_key(interrupt_id, kind))
