"""Interrupts: one record for everything that a run waits for from outside.

Source of the shapes on the wire: google-adk 2.13.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast, get_args

from pydantic import StrictBool, TypeAdapter, ValidationError, field_validator
from pydantic_core import from_json

from adk_nb import clock, types
from adk_nb.auth.auth_credential import OAuth2Auth
from adk_nb.auth.auth_schemes import APIKey, AuthScheme, HTTPBase
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST, CHOICE, CREDENTIAL_REQUEST, INPUT_REQUEST, NODE_APPROVAL
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime.invocation_context import Decision, InvocationContext
from adk_nb.wire import WireModel

Kind = Literal["approval", "credential", "input", "long_running", "node_approval", "task"]
ALL: tuple[Kind, ...] = get_args(Kind)
APPROVALS: tuple[Kind, ...] = ("approval",)
CREDENTIALS: tuple[Kind, ...] = ("credential",)
INPUTS: tuple[Kind, ...] = ("input", "long_running", "node_approval")
"""Kinds that the response of a long-running call answers."""
VALID_FOR = 7 * 86_400.0
"""Seconds during which an approval can be given. A rejection never expires."""
TOOLSET = "_adk_toolset_auth_"
"""Id prefix of a waiting call that stands for a toolset, which needs a credential to list its tools. Source:
google-adk 2.13."""
NODE = "wf_auth:"
"""Id prefix of a waiting call that stands for a node of a graph. Source: google-adk 2.13."""
REMOTE_CALLS = "a2a:calls"
"""Key in the custom metadata of an event in which a remote agent asks: the calls made there."""
TOOL_INFO = "askedOf"
"""Key that we add to ADK's approval request: the tool's fingerprint, `ran`, `documents`, `action`, `for_turn`,
`in_doubt` and `earlier`."""
CALLS = "calls"
"""Key that we add to ADK's credential request: the waiting calls with their approvals."""
PROBLEM = "problem"
"""Key that we add to ADK's credential request: the reason for asking again."""


@dataclass(frozen=True, kw_only=True)
class WaitingCall:
    """A call that waits for a credential."""

    call: types.FunctionCall
    decided: Decision | None = None
    """The approval it already has."""


@dataclass(frozen=True, kw_only=True)
class Interrupt:
    """Something a run waits for from outside."""

    id: str
    """Id that an answer refers to."""
    kind: Kind
    number: int = 0
    """1, 2, ... since the user's last text, in the order of opening; it stays while others are answered."""
    call: types.FunctionCall
    """The waiting call. Credential: the first waiting call; task: the call that gave the task."""
    agent: str
    """Name of the agent that made the call."""
    is_remote: bool = False
    """True: `agent` runs in another process, which makes the call."""
    branch: str | None = None
    path: tuple[str, ...] = ()
    """Names of the agents whose calls lead to `agent`, outermost first."""
    invocation_id: str = ""
    """The invocation that opened it."""
    event_index: int = 0
    """Index in `History.events` of the event that opened it."""
    prompt: str = ""
    """The question to the user; empty if neither the tool nor the model gave one."""
    payload: Any = None
    """JSON shown with the question."""
    documents: Mapping[str, str] = field(default_factory=dict[str, str])
    """Approval only: texts that the approver must see whole, by title."""
    action: str = ""
    """Approval only: the word on the button that approves; empty: the usual one."""
    for_turn: bool = False
    """Approval only: a yes may hold for all calls of the tool in the rest of the turn."""
    earlier: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Approval only: `call` and `result` of an equal call that has run in this turn, or `call` and `waits`, true, of
    one that waits for its own approval; empty if there is none."""
    asked_at: float = 0.0
    """Seconds since the epoch, UTC."""
    tool_fingerprint: str | None = None
    """Fingerprint of the tool at that time, see `tools.fingerprint`; None if unknown."""
    ran: bool = False
    """True: the tool asked while it ran. False: the call waits before it runs."""
    in_doubt: bool = False
    """Approval only: an earlier attempt of the call may have taken effect. Such a request is answered alone."""
    answer_ids: tuple[str, ...] = ()
    """Ids that an answer may use: its own, and its call's if that is unique in the session."""
    auth_config: AuthConfig | None = None
    """Credential only: the requested auth config, without secrets."""
    calls: Sequence[WaitingCall] = ()
    """Credential only: all calls that wait for it."""
    problem: str = ""
    """Credential only: the reason for asking again; empty the first time."""
    has_progress: bool = False
    """Long-running work only: it has a first result, and more follow."""

    @property
    def recipient(self) -> str:
        """Name of the agent that receives the answer."""
        return self.path[0] if self.path else self.agent

    @property
    def expires_at(self) -> float | None:
        """Seconds since the epoch after which an approval is refused. None: never."""
        return self.asked_at + VALID_FOR if self.is_approval else None

    @property
    def is_expired(self) -> bool:
        """True: it can only be rejected."""
        return self.expires_at is not None and clock.now() > self.expires_at

    @property
    def told(self) -> list[str]:
        """Names of the arguments that the approver reads beside the call: as a document, or as the question."""
        texts = {self.prompt, *self.documents.values()} - {""}
        return [name for name, value in (self.call.args or {}).items() if isinstance(value, str) and value in texts]

    @property
    def has_card(self) -> bool:
        """True: the notebook shows a card; programs send long-running results, and text to a task is a message."""
        return self.kind not in ("long_running", "task")

    @property
    def is_question(self) -> bool:
        """True: it asks the user for a value."""
        return self.kind == "input" or (self.kind == "node_approval" and self.call.name == INPUT_REQUEST)

    @property
    def is_text(self) -> bool:
        """True: typed text is the answer, parsed by the schema."""
        return self.is_question or self.kind == "task"

    @property
    def is_approval(self) -> bool:
        """True: it asks to approve or reject a call or a node of a graph."""
        return self.kind in ("approval", "node_approval")

    @property
    def names(self) -> list[str]:
        """Display names: the waiting tools; for a question the agent, for a node its name."""
        if self.is_question:
            payload: Any = self.payload
            is_node = self.kind == "node_approval" and isinstance(payload, dict)
            return [str((is_node and cast(dict[str, Any], payload).get("tool_name")) or self.agent)]
        return list(dict.fromkeys(call.name or "" for call in self.waiting_calls))

    @property
    def asked_args(self) -> dict[str, Any]:
        """Approval only: the arguments of the call or node that is to run."""
        payload: Any = self.payload if self.kind == "node_approval" else None
        args = cast(dict[str, Any], payload).get("args") if isinstance(payload, dict) else None
        return cast(dict[str, Any], args) if isinstance(args, dict) else self.call.args or {}

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of a valid answer; empty: any JSON. A secret field has the format `password`."""
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
        return [waiting_call.call for waiting_call in self.calls] or [self.call]

    @property
    def is_toolset(self) -> bool:
        """True for a credential of a toolset or node: only the answer closes it, as no call gets a result."""
        return any(is_toolset(waiting_call.call) for waiting_call in self.calls)

    @property
    def options(self) -> list[str]:
        """Options to choose from; empty for a free answer."""
        options = (self.call.args or {}).get("options") if self.call.name == CHOICE else None
        return [str(option) for option in cast(list[Any], options)] if isinstance(options, list) else []

    @property
    def response_schema(self) -> dict[str, Any]:
        """JSON schema of the requested value; empty: any JSON."""
        schema = (self.call.args or {}).get("response_schema") if self.call.name == INPUT_REQUEST else None
        return cast(dict[str, Any], schema) if isinstance(schema, dict) else {}

    @property
    def auth_scheme(self) -> AuthScheme:
        """Credential only: the auth scheme of the service."""
        assert self.auth_config is not None
        return self.auth_config.auth_scheme

    @property
    def auth_request(self) -> OAuth2Auth:
        """Credential only: the OAuth2 request; empty for a key or a password."""
        credential = self.auth_config and self.auth_config.exchanged_auth_credential
        return (credential and credential.oauth2) or OAuth2Auth()

    @property
    def auth_uri(self) -> str | None:
        """URL of the consent page. None: a key, a token or a password is requested."""
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
"""JSON schema of the answer to an approval. Source of `confirmed` and `payload`: google-adk's ToolConfirmation."""
_NODE_DECISION: dict[str, Any] = {
    **_DECISION,
    "properties": {name: field for name, field in _DECISION["properties"].items() if name != "args"},
}


def _credential_fields(interrupt: Interrupt) -> dict[str, Any]:
    """JSON schema properties of a credential answer, as `runtime.credentials.read_answer` parses it."""
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
    """True if the call stands for a toolset or a graph node, not for a tool call."""
    return (call.id or "").startswith((TOOLSET, NODE))


class _ToolInfo(WireModel):
    """The value of `TOOL_INFO`."""

    tool: str | None = None
    ran: StrictBool = False
    documents: dict[str, str] | None = None
    action: str | None = None
    for_turn: StrictBool = False
    in_doubt: StrictBool = False
    earlier: dict[str, Any] | None = None


class _ApprovalRequest(WireModel):
    """The arguments of an approval request."""

    original_function_call: types.FunctionCall
    tool_confirmation: ToolConfirmation = ToolConfirmation()
    asked_of: _ToolInfo = _ToolInfo()

    @field_validator("original_function_call")
    @classmethod
    def _has_a_name(cls, call: types.FunctionCall) -> types.FunctionCall:
        if not call.name:
            raise ValueError("it names no function")
        return call


class _Approved(WireModel):
    """The approval of a call that waits for a credential."""

    confirmation: ToolConfirmation
    ran: StrictBool
    tool: str | None


class _StoredCall(WireModel):
    """A call that waits for a credential."""

    call: types.FunctionCall
    approved: _Approved | None = None


class _CredentialRequest(WireModel):
    """The arguments of a credential request."""

    auth_config: AuthConfig
    calls: Sequence[_StoredCall] = ()
    problem: str = ""


def opened_by(event: Event) -> Iterator[Interrupt]:
    """The interrupts that an event opens, without number and path."""
    for call in _requests_in(event):
        try:
            yield _read_request(call, event)
        except ValidationError:
            continue  # see `unreadable_requests`: it opens nothing


def unreadable_requests(event: Event) -> Iterator[tuple[types.FunctionCall, str]]:
    """The requests in an event that open no interrupt, because they cannot be read; each with the reason."""
    for call in _requests_in(event):
        try:
            _read_request(call, event)
        except ValidationError as error:
            # Without the value: it may be a secret.
            details = error.errors(include_url=False, include_context=False, include_input=False)[0]
            yield call, f"{'.'.join(map(str, details['loc']))}: {details['msg']}"


def _requests_in(event: Event) -> Iterator[types.FunctionCall]:
    # Only the runtime sets long_running_tool_ids: a model cannot forge a request by writing its function name.
    long_running = event.long_running_tool_ids or ()
    for call in event.get_function_calls() if long_running else ():
        if call.id in long_running:
            yield call


def _read_request(call: types.FunctionCall, event: Event) -> Interrupt:
    """The interrupt of a long-running call.

    Raises:
        ValidationError: It is not a request that this package or google-adk writes.
    """
    readers = {APPROVAL_REQUEST: approval_of, CREDENTIAL_REQUEST: credential_of}
    return readers.get(call.name or "", input_of)(call, event)


def approval_of(request: types.FunctionCall, event: Event) -> Interrupt:
    """Parse an approval request.

    Raises:
        ValidationError: It is malformed.
    """
    args = _ApprovalRequest.model_validate(request.args or {})
    call, confirmation, tool_info = args.original_function_call, args.tool_confirmation, args.asked_of
    return Interrupt(
        id=request.id or "",
        kind="approval",
        call=call,
        # The default hint is for API clients; a card has its own text.
        prompt="" if confirmation.hint == default_hint(call.name or "") else confirmation.hint,
        payload=confirmation.payload,
        agent=event.author,
        ran=tool_info.ran,
        tool_fingerprint=tool_info.tool,
        documents=tool_info.documents or {},
        action=tool_info.action or "",
        for_turn=tool_info.for_turn,
        in_doubt=tool_info.in_doubt,
        earlier=tool_info.earlier or {},
        is_remote=REMOTE_CALLS in (event.custom_metadata or {}),
        branch=event.branch,
        invocation_id=event.invocation_id,
        asked_at=event.timestamp,
    )


def credential_of(request: types.FunctionCall, event: Event) -> Interrupt:
    """Parse a credential request.

    Raises:
        ValidationError: It is malformed.
    """
    args = _CredentialRequest.model_validate(request.args or {})
    calls = [
        WaitingCall(
            call=stored.call,
            decided=stored.approved
            and Decision(
                confirmation=stored.approved.confirmation,
                ran=stored.approved.ran,
                tool_fingerprint=stored.approved.tool,
            ),
        )
        for stored in args.calls
    ]
    return Interrupt(
        id=request.id or "",
        kind="credential",
        call=calls[0].call if calls else request,
        agent=event.author,
        branch=event.branch,
        invocation_id=event.invocation_id,
        asked_at=event.timestamp,
        answer_ids=(request.id or "",),
        auth_config=args.auth_config,
        calls=calls,  # replaced by `OpenInterrupts` as the calls get results
        problem=args.problem,
    )


def input_of(call: types.FunctionCall, event: Event) -> Interrupt:
    """The interrupt of a long-running call: a question to the user, or work done elsewhere."""
    args = call.args or {}
    payload: Any = args.get("payload") if call.name == INPUT_REQUEST else None
    kind: Kind = "input" if call.name in (INPUT_REQUEST, CHOICE) else "long_running"
    return Interrupt(
        id=call.id or "",
        kind="node_approval" if (call.id or "").startswith(NODE_APPROVAL) else kind,
        call=call,
        agent=event.author,
        is_remote=REMOTE_CALLS in (event.custom_metadata or {}),
        branch=event.branch,
        invocation_id=event.invocation_id,
        prompt=str(args.get("message") or args.get("prompt") or ""),
        payload=payload,
        in_doubt=isinstance(payload, dict) and cast(dict[str, Any], payload).get("in_doubt") is True,
        asked_at=event.timestamp,
        answer_ids=(call.id or "",),
    )


def default_hint(tool: str) -> str:
    """The default hint of an approval, for API clients; google-adk 2.13 has one with the same advice."""
    return (
        f"Approve or reject the call of {tool}() by answering with a FunctionResponse "
        "whose response is a ToolConfirmation: {'confirmed': true} or {'confirmed': false}."
    )


def answer(interrupt: Interrupt, value: Any) -> types.Part:
    """The message part that answers an open interrupt.

    Args:
        interrupt: An open interrupt.
        value: A `ToolConfirmation` or bool for an approval, else JSON: a dict is the response itself, any other value
            is wrapped as `{"result": value}`.
    """
    if interrupt.kind == "task":  # its agent reads it as the user's next message
        return types.Part(text=str(value))
    if isinstance(value, ToolConfirmation):
        # google-adk's nodes take an answer with a field that they do not know as a no.
        excluded = {"hint", "by"} if interrupt.kind == "node_approval" else {"hint"}
        value = value.model_dump(by_alias=True, exclude_none=True, exclude=excluded)
    elif interrupt.is_approval and isinstance(value, bool):
        value = {"confirmed": value}
    response = cast(dict[str, Any], value) if isinstance(value, dict) else {"result": value}
    name = {"approval": APPROVAL_REQUEST, "credential": CREDENTIAL_REQUEST}.get(interrupt.kind, interrupt.call.name)
    return types.Part(function_response=types.FunctionResponse(id=interrupt.id, name=name, response=response))


def decisions_for_all(
    interrupts: Iterable[Interrupt], *, confirmed: bool, by: str | None = None
) -> dict[str, ToolConfirmation]:
    """The decisions, by id, of a turn in which every approval is given, or every one refused, unseen.

    A call that has run in its turn, or is approved here already, is not repeated unseen.
    """
    decisions: dict[str, ToolConfirmation] = {}
    approved: list[types.FunctionCall] = []
    for interrupt in interrupts:
        call, reason = interrupt.call, None
        if confirmed and interrupt.earlier and not interrupt.earlier.get("waits"):
            result = json.dumps(interrupt.earlier.get("result"), ensure_ascii=False, default=str)
            reason = f"the same call has already run in this turn, and its result was {result:.2000}; use that result"
        elif confirmed and (
            interrupt.earlier or any((call.name, call.args) == (other.name, other.args) for other in approved)
        ):
            reason = "the same call is made once in this turn already; use the result of that one"
        decisions[interrupt.id] = ToolConfirmation(confirmed=confirmed and not reason, reason=reason, by=by)
        approved += [call] if interrupt.kind == "approval" else []
    return decisions


def answered_value(response: types.FunctionResponse) -> Any:
    """The value of an answer: of the key `result` if it is the only key, else the whole response."""
    values = response.response or {}
    return values["result"] if values.keys() == {"result"} else values


_PLAIN_TYPES: dict[str, TypeAdapter[Any]] = {
    "integer": TypeAdapter(int),
    "number": TypeAdapter(float),
    "boolean": TypeAdapter(bool),
}


def read_as(value: Any, schema: Any) -> Any:
    """An answer as its schema asks for it: text that forms send for a number is the number, also inside an object.

    What cannot be read so is returned as it is.
    """
    if not isinstance(schema, dict):
        return value
    rules = cast(dict[str, Any], schema)
    kind, options = rules.get("type"), rules.get("anyOf") or rules.get("oneOf")
    if isinstance(kind, list):  # JSON Schema: one of several types
        options = [{**rules, "type": one} for one in cast(list[Any], kind)]
    kind = kind if isinstance(kind, str) else None
    if isinstance(value, str) and isinstance(options, list):
        choices = [cast(dict[str, Any], option) for option in cast(list[Any], options) if isinstance(option, dict)]
        if any(choice.get("type") in ("string", None) for choice in choices):
            return value
        read = (read_as(value, choice) for choice in choices)
        return next((item for item in read if not isinstance(item, str)), value)
    if isinstance(value, str) and kind in _PLAIN_TYPES:
        try:
            return _PLAIN_TYPES[kind].validate_python(value.strip())
        except ValidationError:
            return value
    if isinstance(value, str) and kind in ("array", "object", "null"):
        try:
            parsed: Any = from_json(value)
        except ValueError:
            return value
        if not isinstance(parsed, {"array": list, "object": dict}.get(kind, type(None))):
            return value
        value = cast(Any, parsed)
    if isinstance(value, dict) and isinstance(rules.get("properties"), dict):
        fields: dict[str, Any] = rules["properties"]
        items = cast(dict[str, Any], value).items()
        return {name: read_as(item, fields[name]) if name in fields else item for name, item in items}
    if isinstance(value, list) and isinstance(rules.get("items"), dict):
        return [read_as(item, rules["items"]) for item in cast(list[Any], value)]
    return cast(Any, value)


def use_key(interrupt_id: str, kind: Kind) -> str:
    """The once-key that a session service consumes when an approval or a credential request is answered."""
    return f"{kind}:{interrupt_id}"


async def is_first_use(ctx: InvocationContext, interrupt_id: str, kind: Kind) -> bool:
    """True once for each approval or credential request, also with concurrent callers.

    With a lease there are no concurrent runs, and the journal consumes the answer when the call starts.
    """
    if ctx.session.lease is not None:
        return True
    return await ctx.session_service.consume(ctx.session, use_key(interrupt_id, kind))
