"""Which approvals can be answered, and how: checked before anything counts as answered, and said so it can be typed."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast, get_args

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError, closest
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.notebook.reply import Reply
from adk_nb.runtime.approvals import expired_words
from adk_nb.runtime.branches import calls_to
from adk_nb.runtime.interrupts import Interrupt, answer
from adk_nb.tools.agent_tool import AgentTool
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.fingerprint import fingerprint
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.wire import copied

Decisions = dict[str, ToolConfirmation]
"""Approval id -> what was decided."""
Confirm = Literal["ask", "yes", "no"]
"""What happens to calls that wait for approval: they are left open, let run, or refused."""
MOST_ROUNDS = 32
"""Of approvals that are answered by themselves in one turn."""


def notice_of(agent: BaseAgent) -> str | None:
    """What every view says of the agent's model, or of one under it, if that is not what it seems."""
    if isinstance(agent, LlmAgent):
        return agent.canonical_model.notice
    return next((said for one in agent.members if (said := notice_of(one))), None)


def answers_to(waiting: Sequence[Interrupt], decisions: Decisions) -> list[types.Part]:
    """The parts of a message that carry `decisions`. A yes without a payload takes the one that was suggested."""
    asked = {interrupt.id: interrupt for interrupt in waiting}
    return [
        answer(asked[key], copied(one, payload=asked[key].payload) if one.confirmed and one.payload is None else one)
        for key, one in decisions.items()
    ]


def tools_of(agent: BaseAgent) -> dict[str, BaseTool]:
    """By name, as they are now; the agents under it that it calls are among them."""
    if not isinstance(agent, LlmAgent):
        return {}
    return {tool.name: tool for tool in [*agent.tools_now(), *agent.sub_agent_tools]}


def schema_of(agent: BaseAgent, asked: Interrupt) -> dict[str, Any] | None:
    """The JSON schema of a call's arguments: of who asks, under `agent` or called from there. None: there is none."""
    asks = agent.find_agent(asked.agent)
    if asks and (found := tools_of(asks).get(asked.call.name or "")):
        return _for_a_form(found)
    leads = agent.find_agent(asked.recipient) or agent
    called = [one.agent for one in tools_of(leads).values() if isinstance(one, AgentTool) and one.takes_up]
    schemas = (schema_of(one, asked) for one in called if isinstance(one, BaseAgent))
    return next(filter(None, schemas), None)


def _for_a_form(tool: BaseTool) -> dict[str, Any] | None:
    """The schema of a tool's parameters, with `x-destructive` where the tool says so of itself: there a no comes first.

    Source: the Model Context Protocol, `ToolAnnotations.destructiveHint`.
    """
    schema = cast(dict[str, Any] | None, tool.declaration and tool.declaration.parameters_json_schema)
    if isinstance(tool, FunctionTool):
        declared = schema or dict[str, Any](properties={})
        schema = {**declared, "additionalProperties": tool.signature.takes_any}
    destructive = (tool.custom_metadata or {}).get("destructiveHint")
    return {**schema, "x-destructive": True} if schema and destructive else schema


def asker(agent: BaseAgent, one: Interrupt, events: Sequence[Event]) -> BaseAgent | None:
    """Who asked, in `agent`'s tree or called from there as a tool, as it is now. None: it is not there any more."""
    here: BaseAgent | None = agent
    if led := calls_to(one.branch):
        made = {call.id: (event.author, call.name or "") for event in events for call in event.get_function_calls()}
        for _, key in led:
            here = _called(here, *made.get(key, ("", "")))
    return here and here.find_agent(one.agent)


def _called(tree: BaseAgent | None, author: str, name: str) -> BaseAgent | None:
    caller = tree and tree.find_agent(author)
    tool = tools_of(caller).get(name) if caller else None
    if isinstance(tool, AgentTool) and tool.takes_up and isinstance(tool.agent, BaseAgent):
        return tool.agent
    return None


def check(
    decisions: Decisions,
    waiting: Sequence[Interrupt],
    agent: BaseAgent,
    magic: str,
    events: Sequence[Event],
    label: Callable[[Interrupt], str],
) -> None:
    """Refuse what cannot be carried out.

    Args:
        decisions: To be carried out together.
        waiting: What is open.
        agent: Who answers in this chat.
        magic: As for `how_to_answer`.
        events: The session's.
        label: As of `redefined_words`.

    Raises:
        InputError: They are no decisions; one is not open or was asked by another agent; a tool was redefined since;
            changed arguments do not fit.
    """
    _check_kind(decisions)
    by_id = {one.id: one for one in waiting}
    for key, decided in decisions.items():
        if not (one := by_id.get(key)):
            raise InputError(f"approval {key!r} is not open; it was answered already, or there never was one")
        if not agent.find_agent(first := one.recipient):
            raise InputError(f"this approval was asked by agent {first!r}; answer it in a chat with it")
        if decided.confirmed:
            which = one.number if len(waiting) > 1 else None
            yes, no = how_to_answer(magic, which)
            if (asked_by := asker(agent, one, events)) is None:
                raise InputError(
                    f"agent {one.agent!r}, which asked this, is not there as it was; refuse the call with {no}, and "
                    "ask again"
                )
            if redefined(one, agent, events) and not one.is_expired:
                raise InputError(redefined_words(one, magic, which, label))
            _check_yes(one, decided, tools_of(asked_by).get(one.call.name or ""), yes, no)


def _check_kind(decisions: Any) -> None:
    if not (
        isinstance(decisions, dict)
        and all(isinstance(one, ToolConfirmation) for one in cast(dict[Any, Any], decisions).values())
    ):
        raise InputError(
            "decisions are a dict of approval ids and what was decided; write "
            "chat.decide({chat.pending[0].id: ToolConfirmation(confirmed=True)}), or chat.approve() for one"
        )


def _check_yes(one: Interrupt, decided: ToolConfirmation, tool: BaseTool | None, yes: str, no: str) -> None:
    name = one.call.name or ""
    if one.is_expired:
        raise InputError(f"{expired_words(one.call.name)}; refuse the call with {no}, and ask again")
    if decided.args is None:
        return
    if tool is None:
        raise InputError(f"the changed arguments do not fit: the agent has no tool {name!r} any more")
    _refuse_unknown(one, decided.args, tool)
    if wrong := tool.check(decided.args):
        raise InputError(_misfit(one, decided.args, wrong, yes))


_TO_A_MODEL = re.compile(r"\w+\(\) was not called: (?:wrong arguments: )?(.*)\. Call it again with .*", re.DOTALL)
"""What a tool says of arguments to the model that sent them."""


def _misfit(one: Interrupt, args: dict[str, object], wrong: str, yes: str) -> str:
    if told := _TO_A_MODEL.fullmatch(wrong):
        wrong = told[1]
    key = next((key for key in args if re.match(rf"{re.escape(key)}[.:]", wrong)), "NAME")
    edited = f"{yes} --edit {key}=..." if yes.endswith("yes") else f"{yes[:-1]}{', ' * (yes[-2] != '(')}{key}=...)"
    return f"{one.call.name}() cannot run with that: {wrong}; type {edited}, or, to let it run as it was asked, {yes}"


def redefined(one: Interrupt, agent: BaseAgent, events: Sequence[Event]) -> bool:
    """Whether the tool of a waiting call was redefined since; `agent` is who answers, `events` are the session's."""
    asked_by = asker(agent, one, events)
    return asked_by is not None and _is_another(one, tools_of(asked_by).get(one.call.name or ""))


def edited_words(agent: str) -> str:
    """That an agent was edited while it waited."""
    return f"{agent} was edited since this was asked; it goes on as it is now"


ASKED_ANEW = "its tool was redefined since; call it again if it is still needed"
"""What the agent is told of a call that is to be asked anew."""


def how_to_reask(magic: str, which: int | None) -> str:
    """What to type so that a call is asked anew; the rest as in `how_to_answer`."""
    yes, no = how_to_answer(magic, which)
    return f"{yes.removesuffix('yes')}reask" if magic else no


def redefined_words(one: Interrupt, magic: str, which: int | None, label: Callable[[Interrupt], str]) -> str:
    """That it was, and what to type.

    Args:
        one: Whose tool it is.
        magic: As for `how_to_answer`.
        which: As for `how_to_answer`.
        label: Which version a call can still be made with; empty: with none but the tool as it is now.
    """
    words = f"{one.call.name} was redefined since this was asked"
    no = how_to_answer(magic, which)[1]
    if not magic:
        return f"{words}; refuse the call with {no}, and ask again"
    again = how_to_reask(magic, which)
    old = f"run it as it was with {again.removesuffix('reask')}old" if label(one) else f"refuse it with {no}"
    return f"{words}; let it be asked anew with {again}, or {old}"


def _is_another(one: Interrupt, tool: BaseTool | None) -> bool:
    return tool is not None and one.tool_fingerprint is not None and fingerprint(tool) != one.tool_fingerprint


def _refuse_unknown(one: Interrupt, args: dict[str, object], tool: BaseTool) -> None:
    schema: dict[str, Any] = (tool.declaration and tool.declaration.parameters_json_schema) or {}
    takes_any = schema.get("additionalProperties", not schema)
    if isinstance(tool, FunctionTool):
        takes_any = tool.signature.takes_any
    known: set[str] = {*(one.call.args or {}), *schema.get("properties", {})}
    for name in args:
        if not takes_any and name not in known:
            near = closest(name, known)
            hint = f"did you mean {near!r}?" if near else f"it has {', '.join(sorted(known)) or 'none'}"
            raise InputError(f"{one.call.name}() has no argument {name!r}; {hint}")


def check_policy(confirm: str) -> None:
    """Refuse what is none.

    Raises:
        InputError: It is none.
    """
    if confirm not in get_args(Confirm):
        raise InputError(f"confirm={confirm!r} says not what happens to approvals; write 'ask', 'yes' or 'no'")


def settled(reply: Reply, decide: Callable[[Decisions], Reply], confirm: Confirm, by: str) -> Reply:
    """The reply that is there once what `reply` waits for is answered as `confirm` says, and what comes up then too.

    Args:
        reply: What a turn came to.
        decide: Of its chat.
        confirm: What is to happen.
        by: Where that is said, for the log.
    """
    for _ in range(MOST_ROUNDS):
        if not (decisions := by_policy(reply, confirm, by)):
            break
        reply = decide(decisions)
    return reply


def by_policy(reply: Reply, confirm: Confirm, by: str) -> Decisions:
    """What `confirm` decides of what `reply` waits for; empty if nothing. `by`: as of `settled`."""
    if confirm == "ask" or reply.status != "pending":
        return {}
    return {one.id: ToolConfirmation(confirmed=confirm == "yes", by=by) for one in reply.pending}


def one_of(waiting: Sequence[Interrupt], which: str | int | None, session: str) -> Interrupt:
    """The approval with that id, of that call, or with that number; None: the only one.

    Raises:
        InputError: There is none, or it is not said which of several.
    """
    if not waiting:
        raise InputError(f"nothing is waiting for approval in session {session!r}")
    if which is None and len(waiting) > 1:
        told = ", ".join(f"{one.number} ({one.call.name})" for one in waiting)
        raise InputError(f"{len(waiting)} approvals are open; say which by its number: {told}")
    for one in waiting:
        if which in (None, one.number, str(one.number), *one.answer_ids):
            return one
    reason = "; a reason is given as reason='...'" if isinstance(which, str) and " " in which.strip() else ""
    raise InputError(f"approval {which!r} is not open; it was answered already, or there never was one{reason}")


def how_to_answer(magic: str, which: int | None = None) -> tuple[str, str]:
    """What to type for a yes, and for a no.

    Args:
        magic: `%confirm`, with what leads it to the session; empty where only Python has the chat.
        which: The number of one among several.
    """
    if not magic:
        said = which or ""
        return f"chat.approve({said})", f"chat.reject({said})"
    line = f"{magic} {which}" if which else magic
    return f"{line} --yes", f"{line} --no"


def waiting_words(waiting: Sequence[Interrupt], magic: str) -> str:
    """That nothing can be asked while approvals are open, and what to type."""
    tools = ", ".join(one.call.name or "" for one in waiting)
    count = "1 approval is" if len(waiting) == 1 else f"{len(waiting)} approvals are"
    yes, no = how_to_answer(magic, waiting[0].number if len(waiting) > 1 else None)
    each = "answer with" if len(waiting) == 1 else "answer each by its number with"
    fresh = ", or start over with %chat --new" if magic else ""
    return f"{count} open ({tools}); {each} {yes} or {no}{fresh}"
