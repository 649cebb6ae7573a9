"""The one-use record of an approval: which call waits, what was asked, what was answered, and that it counts once.

Source of the shapes: google-adk's tool confirmation, https://google.github.io/adk-docs/tools/confirmation/.
"""

import json
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic import ValidationError

from adk_nb import clock, types
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.events.requests import APPROVAL_REQUEST as REQUEST
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime.branches import calls_to, is_within
from adk_nb.runtime.invocation_context import Decided, InvocationContext
from adk_nb.runtime.rewind import surviving

logger = logging.getLogger(__name__)

RESERVED = "adk_"
"""Function names that start so are the runtime's own; a model may not use them."""
WAITING = "this call needs a person's approval and has not run yet; it runs once it is approved"
IN_DOUBT = "the run was cut while this call was made; it may or may not have taken effect"
_WAITING_IN_DOUBT = f"{IN_DOUBT}; a person is asked"
REJECTED = "this call was rejected; it did not run"
CHANGED = "this call did not run: a callback changed its arguments after a person had approved others"
CHANGED_INTO_GATED = "this call did not run: a callback changed its arguments into ones that need a person's approval"
REDEFINED = "this call did not run: its tool was redefined after a person was asked; call it again if need be"
VALID_FOR = 7 * 86_400.0
"""Seconds in which a yes counts: long enough for a question that waits over a weekend, too short for one that nobody
remembers. A no always counts."""
_ASKED_OF = "askedOf"
"""Key of a request beside those of ADK: what the tool was, and whether it ran."""


@dataclass(frozen=True, kw_only=True)
class Pending:
    """A call that waits for a person."""

    id: str
    """Of the request; what an answer names."""
    call: types.FunctionCall
    """The call that waits."""
    hint: str
    """What the tool's author wants the person to be asked; empty if only whether it may run."""
    payload: Any
    author: str
    """The agent whose call it is."""
    ran: bool = False
    """The tool asked while it ran; False: the call was held back before it ran."""
    tool: str | None = None
    """What the tool was when this was asked, as `tools.fingerprint` tells it; None if that is not known."""
    branch: str | None = None
    """Where its agent works."""
    led_by: str = ""
    """The agent that is to hear of the answer first: it called `author`, or who did, as a tool. Empty: `author` is."""
    asked_at: float
    """Seconds since the epoch, UTC."""
    number: int = 1
    """Counted from the first that was asked since the user's last words; it keeps it while others are answered."""
    shares_call_id: bool = False
    """Other calls of the session have the id of this one."""

    @property
    def answer_ids(self) -> Sequence[str]:
        """The ids under which it can be answered: its own and, where that is of no other call, its call's."""
        return (self.id,) if self.shares_call_id else (self.id, self.call.id or "")

    @property
    def is_expired(self) -> bool:
        """True: it was asked too long ago for a yes."""
        return too_old(self.asked_at)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What is to be asked of a call."""

    confirmation: ToolConfirmation
    ran: bool
    tool: str | None


def placeholder(*, in_doubt: bool = False) -> dict[str, Any]:
    """What stands as a call's result while it waits. `in_doubt`: it was begun before, and may have been made."""
    return {"error": _WAITING_IN_DOUBT if in_doubt else WAITING}


PLACEHOLDERS = (placeholder(), placeholder(in_doubt=True))


def rejection(decided: ToolConfirmation) -> dict[str, Any]:
    """What the model is told of a call that a person rejected."""
    return {"error": f"{REJECTED}; the reason given: {decided.reason}" if decided.reason else REJECTED}


def ask(author: str, branch: str | None, calls: Iterable[types.FunctionCall], wanted: dict[str, Wanted]) -> Event:
    """The event in which `author` asks for approval of those of its calls that are in `wanted`, by call id."""
    parts = [types.Part(function_call=_request(call, wanted[call.id or ""])) for call in calls if call.id in wanted]
    return Event(
        author=author,
        branch=branch,
        content=types.Content(role="model", parts=parts),
        long_running_tool_ids={part.function_call.id or "" for part in parts if part.function_call},
    )


def _request(call: types.FunctionCall, wanted: Wanted) -> types.FunctionCall:
    asked = wanted.confirmation
    if asked.args is not None:  # a callback changed them: what will run is what is asked
        call = call.model_copy(update={"args": asked.args})
    confirmation = {"hint": asked.hint or _usual_hint(call.name or ""), "confirmed": False}
    if asked.payload is not None:
        confirmation["payload"] = asked.payload
    args = {
        "originalFunctionCall": call.model_dump(exclude_none=True),
        "toolConfirmation": confirmation,
        _ASKED_OF: {"tool": wanted.tool, "ran": wanted.ran},
    }
    return types.FunctionCall(id=f"adk-{clock.new_id()}", name=REQUEST, args=args)


def _usual_hint(tool: str) -> str:
    return (
        f"Approve or reject the call of {tool}() by answering with a FunctionResponse "
        "whose response is a ToolConfirmation: {'confirmed': true} or {'confirmed': false}."
    )


def pending(events: Iterable[Event]) -> list[Pending]:
    """The approvals that are open, oldest first."""
    log = _Log()
    for event in surviving(events):
        log.read(event)
    return log.open()


@dataclass(frozen=True, kw_only=True)
class _Call:
    name: str | None
    author: str
    invocation_id: str


_ELSEWHERE = -1
"""In the place of a call's number: the events that are read begin after it."""


class _Log:
    """Requests and results, as events are read one after the other.

    Sessions that were stored by 0.1.0 may have several calls under one id, so a call is known by its id and its number
    among those.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, int], Pending] = {}
        self._calls: dict[str, list[_Call]] = {}
        self._answers: set[tuple[str, str | None]] = set()
        """Invocation and id of what the user's messages answered."""
        self._asks = 0

    def open(self) -> list[Pending]:
        """What is open, oldest first."""
        return [replace(one, shares_call_id=len(self._calls.get(key, ())) > 1) for (key, _), one in self._open.items()]

    def read(self, event: Event) -> None:
        """Take in the next event."""
        if self._asks and not self._open and _are_words(event):
            self._asks = 0
        for call in event.get_function_calls():
            # Only the runtime marks a request as long-running: one that a model wrote is not a request.
            if call.name == REQUEST and call.id in (event.long_running_tool_ids or ()):
                self._ask(call, event)
            else:
                made = _Call(name=call.name, author=event.author, invocation_id=event.invocation_id)
                self._calls.setdefault(call.id or "", []).append(made)
        for response in event.get_function_responses() if self._open else ():
            if response.name == REQUEST and event.author == "user":
                self._answers.add((event.invocation_id, response.id))
            elif (key := self._answered_call(event, response)) and _settles(event, response, self._open[key].author):
                del self._open[key]

    def _ask(self, request: types.FunctionCall, event: Event) -> None:
        asked = _pending(request, event)
        call_id = (asked and asked.call.id) or ""
        calls = self._calls.get(call_id, [])
        found = [
            at for at, one in enumerate(calls) if asked and (one.name, one.author) == (asked.call.name, event.author)
        ]
        if not asked or (calls and not found):
            return
        own = [at for at in found if calls[at].invocation_id == event.invocation_id]
        key = (call_id, (own or found or [_ELSEWHERE])[-1])
        self._asks += key not in self._open
        number = self._open[key].number if key in self._open else self._asks
        self._open[key] = replace(asked, number=number, led_by=self._leader(asked))  # asked again, the newest stands

    def _leader(self, asked: Pending) -> str:
        """The agent whose call led to what is asked; empty if none did."""
        first = next((key for _, key in calls_to(asked.branch)), "")
        return self._calls[first][-1].author if first in self._calls else ""

    def _answered_call(self, event: Event, response: types.FunctionResponse) -> tuple[str, int] | None:
        """Which open call `response` is the result of. None: of none."""
        call_id, run = response.id or "", event.invocation_id
        calls = self._calls.get(call_id, [])
        named = [at for at, one in enumerate(calls) if response.name in (None, one.name)]
        own = [at for at in named if calls[at].invocation_id == run]
        answered = [
            at for at in named if (call_id, at) in self._open and self._is_answered(self._open[call_id, at], run)
        ]
        key = (call_id, (own or answered or named or [_ELSEWHERE])[-1])
        return key if key in self._open else None

    def _is_answered(self, asked: Pending, invocation_id: str) -> bool:
        return any((invocation_id, key) in self._answers for key in (asked.id, asked.call.id))


def _are_words(event: Event) -> bool:
    """True for what a user says, and false for an answer to what waits."""
    return event.author == "user" and event.content is not None and not event.get_function_responses()


def _pending(request: types.FunctionCall, event: Event) -> Pending | None:
    args = request.args or {}
    if not isinstance(original := args.get("originalFunctionCall"), dict):
        return None
    call = types.FunctionCall.model_validate(original)
    told = args.get("toolConfirmation", {})
    hint = "" if told.get("hint") == _usual_hint(call.name or "") else str(told.get("hint", ""))
    of: dict[str, Any] = args.get(_ASKED_OF, {})
    return Pending(
        id=request.id or "",
        call=call,
        hint=hint,
        payload=told.get("payload"),
        author=event.author,
        ran=of.get("ran") is True,
        tool=of.get("tool"),
        branch=event.branch,
        asked_at=event.timestamp,
    )


def _settles(event: Event, response: types.FunctionResponse, author: str) -> bool:
    """True for the result of a call that `author` made. An answer is none yet, nor is what a model wrote into its own
    words, or another agent said.
    """
    if event.author not in ("user", author):
        return False
    by_a_model = event.content is not None and event.content.role == "model"
    return not (by_a_model or response.name == REQUEST or is_placeholder(event, response))


def is_placeholder(event: Event, response: types.FunctionResponse) -> bool:
    """True if `response` only says that its call waits for an answer."""
    return response.id in event.actions.requested_tool_confirmations


def unanswered_calls(events: Iterable[Event]) -> list[types.FunctionCall]:
    """The calls in `events` that have no result yet, oldest first, without those whose result comes from outside."""
    calls: dict[str, types.FunctionCall] = {}
    for event in events:
        for call in event.get_function_calls():
            if call.id and call.name != REQUEST and call.id not in (event.long_running_tool_ids or ()):
                calls[call.id] = call
        for response in event.get_function_responses():
            calls.pop(response.id or "", None)
    return list(calls.values())


async def take_answers(ctx: InvocationContext) -> list[types.FunctionCall]:
    """Take the answers in the user's message, each only once, and return the calls that they decide.

    What was decided is put into `ctx.answered`. An answer to what is not open, or was answered before, is left out
    with a warning: nothing runs for it.
    """
    waiting = pending(ctx.session.events)
    open_now = {key: one for one in waiting for key in one.answer_ids}
    taken: dict[str, types.FunctionCall] = {}
    for part in (ctx.user_content and ctx.user_content.parts) or ():
        response = part.function_response
        if response is None or response.name != REQUEST:
            continue
        asked = open_now.get(response.id or "")
        if asked and not is_within(asked.branch, ctx.branch):
            continue  # it was asked inside one of the agent's own calls
        decided = read_answer(response.response or {})
        if asked is None or asked.author != ctx.agent.name or (asked.is_expired and decided.confirmed):
            asked = None
        if asked is None or asked.call.id in taken or not await is_first_use(ctx, asked.id):
            logger.warning("the answer to approval %r was ignored: agent %r has none open", response.id, ctx.agent.name)
            continue
        key = asked.call.id or ""
        ctx.answered[key] = Decided(confirmation=decided, ran=asked.ran, tool=asked.tool, request=asked.id)
        taken[key] = asked.call if decided.args is None else asked.call.model_copy(update={"args": decided.args})
    return list(taken.values())


def refuse_expired(asked: Pending, said: dict[str, Any]) -> None:
    """Refuse a yes that comes too late.

    Raises:
        InputError: It does; the call waits on, for a no.
    """
    if asked.is_expired and read_answer(said).confirmed:
        raise InputError(f"{expired_words(asked.call.name)}; answer it with {{'confirmed': false}}, and ask again")


def too_old(asked_at: float) -> bool:
    """True: what was asked then, in seconds since the epoch, can have no yes any more."""
    return clock.now() - asked_at > VALID_FOR


def expired_words(name: str | None) -> str:
    """That it is too late for a yes."""
    return f"{name} was asked for more than {VALID_FOR / 86_400:g} days ago, and cannot be approved any more"


async def is_first_use(ctx: InvocationContext, request_id: str) -> bool:
    """True once for each request, whoever asks at the same time.

    A run that holds its session has no other beside it: there the answer is used up when the call is begun.
    """
    return ctx.session.lease is not None or await ctx.session_service.consume(ctx.session, use_of(request_id))


def use_of(request_id: str) -> str:
    """What a session service consumes when a request is answered."""
    return f"approval:{request_id}"


def refused(one: Pending, decided: ToolConfirmation) -> Event:
    """The result of a call that was refused, to be stored where no run of its agent can tell of it."""
    response = types.FunctionResponse(id=one.call.id, name=one.call.name, response=rejection(decided))
    content = types.Content(role="user", parts=[types.Part(function_response=response)])
    return Event(author=one.author, branch=one.branch, content=content)


def answer(request_id: str, confirmation: ToolConfirmation) -> types.Part:
    """The part of a user's message that answers a request."""
    said = confirmation.model_dump(by_alias=True, exclude_none=True, exclude={"hint"})
    return types.Part(function_response=types.FunctionResponse(id=request_id, name=REQUEST, response=said))


def read_answer(said: dict[str, Any]) -> ToolConfirmation:
    """An answer in any of the shapes that ADK's and adk-rs's clients send; anything else is a no."""
    inner: Any = said
    for key in ("response", "result", "toolConfirmation", "tool_confirmation"):
        if isinstance(inner, dict) and "confirmed" not in inner and key in inner:
            inner = cast(dict[str, Any], inner)[key]
            inner = _from_json(inner) if isinstance(inner, str) else inner
    if isinstance(inner, bool):
        return ToolConfirmation(confirmed=inner)
    if isinstance(inner, dict) and isinstance(cast(dict[str, Any], inner).get("confirmed"), bool):
        try:
            return ToolConfirmation.model_validate(inner)
        except ValidationError as error:
            logger.warning("an approval was answered with what cannot be read, and taken as no: %s", error)
            return ToolConfirmation(confirmed=False)
    logger.warning("an approval was answered with %.200r, which is neither yes nor no; taken as no", said)
    return ToolConfirmation(confirmed=False)


def same(args: dict[str, Any], others: dict[str, Any]) -> bool:
    """True if both are the same JSON, whatever the order of keys. 1, 1.0, "1" and true are four values."""
    return _canonical(args) == _canonical(others)


def _canonical(args: dict[str, Any]) -> str:
    return json.dumps(args, sort_keys=True, default=repr)


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
