"""Calls that a model repeats in one turn, with equal arguments.

- What a person refused is refused again, and nobody is asked twice.
- A tool that asks before it repeats (`asks_to_repeat`): a person decides once an equal call has run.
- Any other tool that is not pure: an equal result is noted the third time, and the sixth call is not made.
"""

import hashlib
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from adk_nb import types
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime import approvals
from adk_nb.runtime.calls import NOT_RUN, RAN_WITH, TurnCall
from adk_nb.runtime.durable import has_begun
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.sessions.session import Session
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.fingerprint import fingerprint

NOTED_FROM = 3
"""From this equal call with an equal result on, the model is told so."""
REFUSED_FROM = 6
"""From this one on the call is not made."""
_NOTE = "in this turn the same call has now had the same result"
_NOT_ASKED = "the same call was refused earlier in this turn, so nobody was asked again; do not repeat it"


@dataclass(frozen=True, kw_only=True)
class Repetition:
    """What stands against a call that is equal to an earlier one of its turn."""

    earlier: TurnCall
    refusal: dict[str, Any] | None = None
    """Its result. None: a person decides."""
    result: dict[str, Any] | None = None
    """The result of the earlier call; None if it has none yet."""

    @property
    def record(self) -> dict[str, Any]:
        """For the metadata of the event with the result."""
        return {"call": self.earlier.key, "refused": True} if self.refusal else {"call": self.earlier.key}

    def confirmation(self, name: str, requested: ToolConfirmation | None) -> ToolConfirmation:
        """The approval to ask for. `requested`: the one that the tool needs anyway."""
        if self.result is None:
            happened = f"{name}() was called in this turn with the same arguments, and its result is not known yet"
        else:
            result = json.dumps(self.result, ensure_ascii=False, default=str)
            result = result if len(result) <= 500 else f"{result[:500]}..."
            happened = f"{name}() already ran in this turn with the same arguments; its result: {result}"
        hint = f"{happened}. {requested.hint if requested and requested.hint else 'Call it again?'}"
        fields: dict[str, Any] = {"hint": hint, "earlier": {"call": self.earlier.key, "result": self.result}}
        return requested.model_copy(update=fields) if requested else ToolConfirmation(**fields)


def find(ctx: InvocationContext, tool: BaseTool, call_id: str | None, args: dict[str, Any]) -> Repetition | None:
    """What stands against a call that nobody has decided on. None: nothing."""
    own, earlier = _equal_calls(ctx, tool, call_id, args)
    if own is None or not earlier:
        return None
    last = next((call for call in reversed(earlier) if call.result), None)
    # A tool or a script that has changed since is another one.
    if last and last.result and last.asked_of in (None, fingerprint(tool, args)):
        fate = approvals.fate_of(last.result)
        # A person said no, however the tool took it.
        is_denied = last.decision is not None and not approvals.read_answer(last.decision).confirmed
        if is_denied or fate in ("rejected", "not repeated"):
            is_told = fate in ("rejected", "not repeated", "in doubt")
            reason = str((last.result.response or {})["error"]) if is_told else approvals.REJECTED
            reason = reason if _NOT_ASKED in reason else f"{reason}; {_NOT_ASKED}"
            return Repetition(earlier=last, refusal={"error": reason})
    if tool.asks_to_repeat:
        ran = next((call for call in reversed(earlier) if _may_have_run(ctx, call)), None)
        if ran is None or tool.check(args):  # wrong arguments go back to the model anyway
            return None
        result = _result(ctx, ran)
        return Repetition(earlier=ran, result=result and (result.response or {}))
    if tool.effect == "pure":
        return None
    same = _same_results(ctx, own, earlier)
    if len(same) < REFUSED_FROM - 1:
        return None
    shown = json.dumps(_without_note(same[0]), ensure_ascii=False, default=str)
    problem = (
        f"{tool.name}() {approvals.NOT_CALLED_AGAIN}: in this turn the same call had the same result {len(same)} "
        f"times, and another one brings nothing new. The result was {shown:.2000}. Answer with it, or call something "
        "else"
    )
    return Repetition(earlier=earlier[-1], refusal={"error": problem})


def beside_waiting(
    ctx: InvocationContext, tool: BaseTool, call_id: str | None, requested: ToolConfirmation
) -> ToolConfirmation:
    """`requested`, which names the equal call before it that waits, too: who approves all unseen approves one."""
    if not tool.asks_to_repeat:
        return requested
    own, equal = _equal_calls(ctx, tool, call_id)
    calls = history_of(ctx.session).turn_calls.of(tool.name)
    before = {id(call) for call in itertools.takewhile(lambda call: call is not own, calls)}
    for call in equal:
        if id(call) in before and call.result is None:
            return requested.model_copy(update={"earlier": {"call": call.key, "waits": True}})
    return requested


def note_same_result(
    ctx: InvocationContext, tool: BaseTool, call_id: str | None, response: types.FunctionResponse
) -> dict[str, Any] | None:
    """Tell the model in `response` that it is the same once more. Returns the record of it; None: it is not."""
    if tool.effect == "pure" or tool.asks_to_repeat:
        return None
    own, earlier = _equal_calls(ctx, tool, call_id)
    if own is None or not earlier:
        return None
    same = _same_results(ctx, own, earlier)
    count = 1 + len(same) if same and _is_same(same[0], response) else 1
    if count < NOTED_FROM:
        return None
    note = f"{_NOTE} {count} times; from the {REFUSED_FROM}th call on it is refused"
    values = response.response or {}
    response.response = {**values, "repetition_note" if "note" in values else "note": note}
    return {"call": earlier[-1].key, "count": count}


def equal_siblings(calls: Sequence[types.FunctionCall], index: int, tool: BaseTool | None) -> list[int]:
    """Indices of the calls of the same step before `index` whose results decide whether that call is made."""
    name = calls[index].name
    if tool is None or tool.effect == "pure" or not any(call.name == name for call in calls[:index]):
        return []
    identity = _identity(tool, calls[index].args or {})
    equal = [
        number
        for number, call in enumerate(calls[:index])
        if call.name == name and _identity(tool, call.args or {}) == identity
    ]
    return equal if tool.asks_to_repeat or len(equal) >= NOTED_FROM - 1 else []


def start(ctx: InvocationContext, tool: BaseTool, call_id: str | None, args: dict[str, Any]) -> str | None:
    """Note that the call is about to run. Returns a digest of its arguments if callbacks changed them, to be stored."""
    ctx.shared.turn.begun[_key(ctx.session, call_id or "")] = tool
    own = history_of(ctx.session).turn_calls.get(call_id)
    return _add_identity(tool, own, args) if own and args != (own.call.args or {}) else None


def _add_identity(tool: BaseTool, own: TurnCall, args: dict[str, Any]) -> str | None:
    """Note the changed arguments with which a call runs. Returns their digest; None: a person gave them."""
    if tool.effect == "pure":
        return None
    identity = _identity(tool, args)
    own.identities = (own.identities or _identities(tool, own)) | {identity}
    edited = own.decision.get("args") if own.decision else None
    given = [own.call.args or {}, *([cast(dict[str, Any], edited)] if isinstance(edited, dict) else [])]
    return None if any(identity == _identity(tool, version) for version in given) else identity


def withdraw(ctx: InvocationContext, call_id: str | None) -> None:
    """Note that the call has not run after all."""
    ctx.shared.turn.begun.pop(_key(ctx.session, call_id or ""), None)


def _equal_calls(
    ctx: InvocationContext, tool: BaseTool, call_id: str | None, args: dict[str, Any] | None = None
) -> tuple[TurnCall | None, list[TurnCall]]:
    """A call of this session, None if it is not of this turn; and the calls that are equal to it, oldest first."""
    turn, equal = ctx.shared.turn, list[TurnCall]()
    calls = history_of(ctx.session).turn_calls
    if (own := calls.get(call_id)) is None:
        return None, []
    if args is not None and args != (own.call.args or {}):  # callbacks changed them
        _add_identity(tool, own, args)
    others = [(session, history_of(session).turn_calls) for session in turn.sessions if session is not ctx.session]
    for session, known in (*others, (ctx.session, calls)):
        # A turn may have hundreds: for those that are not equal nothing is called.
        for call in known.of(tool.name):
            if call is own:
                continue
            own.identities = own.identities or frozenset([_identity(tool, own.call.args or {})])
            call.identities = call.identities or _identities(tool, call)
            is_equal = own.identities & call.identities
            if not is_equal and call.decision and isinstance(edited := call.decision.get("args"), dict):
                is_equal = _identity(tool, cast(dict[str, Any], edited)) in own.identities
            if not is_equal:
                continue
            called: BaseTool = turn.begun.get(_key(session, call.key), tool)
            # Agents may have other tools of that name.
            if called is tool or fingerprint(called, own.call.args) == fingerprint(tool, own.call.args):
                equal.append(call)
    return own, equal


def _identities(tool: BaseTool, call: TurnCall) -> frozenset[str]:
    """Digests of the arguments of a call: the model's, and those with which it ran if a callback had changed them."""
    ran_with = call.metadata(RAN_WITH) if call.result_event else None
    changed = ran_with.get(call.key) if ran_with else None
    return frozenset([_identity(tool, call.call.args or {}), *([changed] if changed else [])])


def _identity(tool: BaseTool, args: dict[str, Any]) -> str:
    """A digest that is equal for calls with equal arguments, in any order; 1 and 1.0 are equal."""
    text = json.dumps(_whole_numbers(tool.comparable_args(args)), sort_keys=True, default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in cast(list[Any], value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _key(session: Session, call_id: str) -> tuple[int, str]:
    return id(session), call_id


def _is_own(ctx: InvocationContext, call: TurnCall) -> bool:
    """True if the call is of this session: of another one only what is stored is known."""
    return history_of(ctx.session).turn_calls.get(call.key) is call


def _result(ctx: InvocationContext, call: TurnCall) -> types.FunctionResponse | None:
    """The result of a call; of a call in this session also before its event is stored."""
    if call.result or not _is_own(ctx, call):
        return call.result
    known = ctx.shared.results.get(call.key)
    return known[0].function_response if known else None


def _may_have_run(ctx: InvocationContext, call: TurnCall) -> bool:
    result = _result(ctx, call)
    if result is None:
        is_begun = _key(ctx.session, call.key) in ctx.shared.turn.begun
        return not _is_own(ctx, call) or is_begun or has_begun(ctx, call.key, call.event)
    may_have = approvals.fate_of(result) in ("ran", "in doubt", "not repeated")
    return may_have and call.key not in (call.metadata(NOT_RUN) or ())


def _same_results(ctx: InvocationContext, own: TurnCall, earlier: list[TurnCall]) -> list[types.FunctionResponse]:
    """The equal results of the agent's last equal calls since its last answer, newest first."""
    results: list[types.FunctionResponse] = []
    origin = own.event.author, own.event.branch, own.final_texts_before
    for call in reversed(earlier):
        result = _result(ctx, call)
        # None: a call beside this one.
        if result is None or (call.event.author, call.event.branch, call.final_texts_before) != origin:
            continue
        if approvals.fate_of(result) == "not made again":
            continue
        if results and not _is_same(result, results[0]):
            break
        results.append(result)
    return results


def _is_same(first: types.FunctionResponse, second: types.FunctionResponse) -> bool:
    return _without_note(first) == _without_note(second) and first.parts == second.parts


def _without_note(response: types.FunctionResponse) -> dict[str, Any]:
    """The result without a note of ours."""
    return {
        key: value
        for key, value in (response.response or {}).items()
        if not (isinstance(value, str) and value.startswith(_NOTE))
    }
