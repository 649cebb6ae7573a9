"""Calls that a model repeats in one turn: those that a person decides on, and those that bring nothing new."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from adk_nb import types
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime import approvals
from adk_nb.runtime.calls import NOT_RUN, TurnCall, TurnCalls
from adk_nb.runtime.durable import has_begun
from adk_nb.runtime.history import history_of
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.runtime.open_calls import NOT_MADE
from adk_nb.sessions.session import Session
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.fingerprint import fingerprint

NOTED_FROM = 3
"""From this equal call with an equal result on, the model is told so."""
REFUSED_FROM = 6
"""From this one on the call is not made."""
_NOTE = "in this turn the same call has now had the same result"
_NOT_AGAIN = "was not called again"
_NOT_ASKED = "the same call was refused earlier in this turn, so nobody was asked again; do not repeat it"
_NOT_RUN = (approvals.REJECTED, approvals.CHANGED, approvals.REDEFINED, approvals.CHANGED_INTO_GATED, NOT_MADE)


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
    calls = history_of(ctx.session).turn_calls
    own = calls.get(call_id)
    if own is None or not (earlier := _equal_calls(ctx, tool, calls, own)):
        return None
    last = next((call for call in reversed(earlier) if call.result), None)
    # A tool or a script that has changed since is another one.
    if last and last.result and _is_refused(last) and last.asked_of in (None, fingerprint(tool, args)):
        reason = str((last.result.response or {}).get("error", ""))
        reason = reason if reason.startswith((approvals.REJECTED, approvals.IN_DOUBT)) else approvals.REJECTED
        reason = reason if _NOT_ASKED in reason else f"{reason}; {_NOT_ASKED}"
        return Repetition(earlier=last, refusal={"error": reason})
    if tool.asks_to_repeat:
        ran = next((call for call in reversed(earlier) if _has_run(ctx, call)), None)
        if ran is None or tool.check(args):  # wrong arguments go back to the model anyway
            return None
        result = _result(ctx, ran)
        return Repetition(earlier=ran, result=result and (result.response or {}))
    if tool.effect == "pure":
        return None
    same = _same_results(ctx, own, earlier)
    if len(same) < REFUSED_FROM - 1:
        return None
    result = json.dumps(_plain(same[0]), ensure_ascii=False, default=str)
    problem = (
        f"{tool.name}() {_NOT_AGAIN}: in this turn the same call had the same result {len(same)} times, and "
        f"another one brings nothing new. The result was {result:.2000}. Answer with it, or call something else"
    )
    return Repetition(earlier=earlier[-1], refusal={"error": problem})


def beside_waiting(
    ctx: InvocationContext, tool: BaseTool, call_id: str | None, requested: ToolConfirmation
) -> ToolConfirmation:
    """`requested`, which names the equal call before it that waits, too: who approves all unseen approves one."""
    calls = history_of(ctx.session).turn_calls
    own = calls.get(call_id)
    if own is None or not tool.asks_to_repeat:
        return requested
    before = {id(call) for call in itertools.takewhile(lambda call: call is not own, calls.of(tool.name))}
    for call in _equal_calls(ctx, tool, calls, own):
        if id(call) in before and call.result is None:
            return requested.model_copy(update={"earlier": {"call": call.key, "waits": True}})
    return requested


def note_same_result(
    ctx: InvocationContext, tool: BaseTool, call_id: str | None, response: types.FunctionResponse
) -> dict[str, Any] | None:
    """Tell the model in `response` that it is the same once more. Returns the record of it; None: it is not."""
    calls = history_of(ctx.session).turn_calls
    own = calls.get(call_id)
    if own is None or tool.effect == "pure" or tool.asks_to_repeat:
        return None
    if not (earlier := _equal_calls(ctx, tool, calls, own)):
        return None
    count = 1
    for result in _same_results(ctx, own, earlier):
        if not _is_same(result, response):
            break
        count += 1
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


def _equal_calls(ctx: InvocationContext, tool: BaseTool, calls: TurnCalls, own: TurnCall) -> list[TurnCall]:
    """The other calls of the turn that are equal to `own`, oldest first. `calls`: of this session."""
    turn, equal = ctx.shared.turn, list[TurnCall]()
    others = [(session, history_of(session).turn_calls) for session in turn.sessions if session is not ctx.session]
    for session, known in (*others, (ctx.session, calls)):
        # A turn may have hundreds: for those that are not equal nothing is called.
        for call in known.of(tool.name):
            if call is own:
                continue
            own.identity = own.identity or _identity(tool, own.call.args or {})
            call.identity = call.identity or _identity(tool, call.call.args or {})
            is_equal = call.identity == own.identity
            if not is_equal and call.decision and isinstance(edited := call.decision.get("args"), dict):
                is_equal = _identity(tool, cast(dict[str, Any], edited)) == own.identity
            if not is_equal:
                continue
            called: BaseTool = turn.begun.get(_key(session, call.key), tool)
            # Agents may have other tools of that name.
            if called is tool or fingerprint(called, own.call.args) == fingerprint(tool, own.call.args):
                equal.append(call)
    return equal


def _identity(tool: BaseTool, args: dict[str, Any]) -> str:
    """Equal for calls with equal arguments, in any order; 1 and 1.0 are equal."""
    return json.dumps(_whole_numbers(tool.comparable_args(args)), sort_keys=True, default=repr)


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in cast(list[Any], value)]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _result(ctx: InvocationContext, call: TurnCall) -> types.FunctionResponse | None:
    """The result of a call; of a call in this session also before its event is stored."""
    if call.result or not _is_own(ctx, call):
        return call.result
    known = ctx.shared.results.get(call.key)
    return known[0].function_response if known else None


def _is_own(ctx: InvocationContext, call: TurnCall) -> bool:
    return history_of(ctx.session).turn_calls.get(call.key) is call


def _is_refused(call: TurnCall) -> bool:
    """True if a person said no to the call, however its tool took it."""
    decided = call.decision is not None and not approvals.read_answer(call.decision).confirmed
    error = str(((call.result and call.result.response) or {}).get("error", ""))
    not_repeated = error.startswith(approvals.IN_DOUBT) and approvals.NOT_AGAIN in error
    return decided or not_repeated or error.startswith(approvals.REJECTED)


def _has_run(ctx: InvocationContext, call: TurnCall) -> bool:
    """True if the call was made, or may have been."""
    result = _result(ctx, call)
    if result is None:
        # Of another session only what is stored is known.
        is_begun = _key(ctx.session, call.key) in ctx.shared.turn.begun
        return not _is_own(ctx, call) or is_begun or has_begun(ctx, call.key, call.event)
    error = str((result.response or {}).get("error", ""))
    is_unmade = error.startswith((*_NOT_RUN, f"{call.call.name}() was not called"))
    return not (is_unmade or call.key in (call.metadata(NOT_RUN) or ()))


def start(ctx: InvocationContext, tool: BaseTool, call_id: str | None) -> None:
    """Note that the call is about to run."""
    ctx.shared.turn.begun[_key(ctx.session, call_id or "")] = tool


def withdraw(ctx: InvocationContext, call_id: str | None) -> None:
    """Note that the call has not run after all."""
    ctx.shared.turn.begun.pop(_key(ctx.session, call_id or ""), None)


def _key(session: Session, call_id: str) -> tuple[int, str]:
    return id(session), call_id


def _same_results(ctx: InvocationContext, own: TurnCall, earlier: list[TurnCall]) -> list[types.FunctionResponse]:
    """The equal results of the agent's last equal calls since its last answer, newest first."""
    results: list[types.FunctionResponse] = []
    origin = own.event.author, own.event.branch, own.answers_before
    for call in reversed(earlier):
        result = _result(ctx, call)
        # None: a call beside this one.
        if result is None or (call.event.author, call.event.branch, call.answers_before) != origin:
            continue
        if str((result.response or {}).get("error", "")).startswith(f"{call.call.name}() {_NOT_AGAIN}"):
            continue
        if results and not _is_same(result, results[0]):
            break
        results.append(result)
    return results


def _is_same(first: types.FunctionResponse, second: types.FunctionResponse) -> bool:
    return _plain(first) == _plain(second) and first.parts == second.parts


def _plain(response: types.FunctionResponse) -> dict[str, Any]:
    """The result without a note of ours."""
    return {
        key: value
        for key, value in (response.response or {}).items()
        if not (isinstance(value, str) and value.startswith(_NOTE))
    }
