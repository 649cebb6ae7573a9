"""The open interrupts of a session, as a notebook answers them: find one, read its answer, and check that it fits."""

import getpass
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, cast

from pydantic import ValidationError

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.errors import InputError, PendingError, did_you_mean
from adk_nb.events.requests import REQUESTS
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.json_schemas import flat_schema
from adk_nb.notebook.chat.paused_agents import Versions, asking_agent, is_redefined, lacks_tool, tools_of
from adk_nb.notebook.view.interrupt_text import Verdict, approval_commands, commands, label, request_line, verdict_of
from adk_nb.runtime import interrupts
from adk_nb.runtime.approvals import expired_message
from adk_nb.runtime.credentials import check_answer
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import ALL, APPROVALS, Interrupt
from adk_nb.tools import input_answer
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.wire import copy_model

Answers = Mapping[str, Any]
"""Id of an interrupt -> its answer, as `runtime.interrupts.answer` takes it."""
HIDDEN_FIELD = "\0hidden field"
"""The answer of a credential request whose value the user types into a field that does not show it."""
_DECISIONS = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}


# ---- find


def find(open_: Sequence[Interrupt], which: Any, session: str, noun: str = "interrupt", hint: str = "") -> Interrupt:
    """Find an open interrupt. A call that may have taken effect already is found by its number or an id alone.

    Args:
        open_: The interrupts to choose from.
        which: Number, id, id of the call, or name of the tool. None: the only one.
        session: Name of the session, for errors.
        noun: What errors call the interrupts.
        hint: The end of the error if no interrupt matches.

    Raises:
        InputError: None is open, none matches, several do, or `which` does not single out a call in doubt.
    """
    if not open_:
        raise InputError(f"no {noun} is open in session {session!r}; it was answered already, or never existed")
    matches = open_ if which is None else _named(open_, which)
    if not matches:
        raise InputError(f"no {noun} {which!r} is open; it was answered already, or never existed{hint}")
    if len(matches) == 1 and not (matches[0].in_doubt and (which is None or which in matches[0].names)):
        return matches[0]
    if len(matches) == 1:
        raise InputError(in_doubt_message(matches[0]))
    raise InputError(several_message(matches, noun, which))


def in_doubt_message(interrupt: Interrupt) -> str:
    """The message that an interrupt is answered by no name that others can have, and in no group."""
    number = interrupt.number
    return f"{label(interrupt)} may have taken effect already; answer it alone, and by its number: {number}"


def several_message(found: Sequence[Interrupt], noun: str, which: Any = None) -> str:
    """The message that several interrupts are open, with the number of each. `which`: the name that they share."""
    of = f" of {which}" if which is not None else ""
    return f"{len(found)} {noun}s{of} are open; say which by its number: {', '.join(map(label, found))}"


def _named(open_: Sequence[Interrupt], which: Any) -> list[Interrupt]:
    if isinstance(which, bool):  # True == 1, but a yes is not a number
        return []
    matches = [interrupt for interrupt in open_ if which in (interrupt.number, str(interrupt.number), interrupt.id)]
    matches = matches or [interrupt for interrupt in open_ if which in interrupt.answer_ids]
    return matches or [interrupt for interrupt in open_ if which in interrupt.names]


# ---- read


def read_answer(interrupt: Interrupt, value: Any, by: str = "") -> Any:
    """Convert `value` to an answer, as `runtime.interrupts.answer` takes it.

    Args:
        interrupt: The open interrupt.
        value: For an approval True or False, "yes" or "no", a ToolConfirmation or its JSON; for a credential text,
            JSON, an AuthCredential, or None to refuse; for a question text as it is typed, or JSON; else any JSON.
        by: How it was given, for the log of an approval.

    Raises:
        InputError: It does not answer the interrupt.
    """
    if value is HIDDEN_FIELD and interrupt.kind != "credential":
        raise InputError(f"the answer to {', '.join(interrupt.names)} is missing; write chat.answer(...) with it")
    if interrupt.is_approval:
        return _read_decision(interrupt, value, by)
    if interrupt.kind == "credential":
        response = _read_credential(interrupt, type_credential(interrupt) if value is HIDDEN_FIELD else value)
        check_answer(interrupt, response)
        return response
    if interrupt.kind == "task" and not (isinstance(value, str) and value.strip()):
        raise InputError(f"a task takes non-empty text, got {value!r:.60}; write chat.answer('...')")
    return input_answer.parse(interrupt, value) if interrupt.is_question and isinstance(value, str) else value


def _read_decision(interrupt: Interrupt, value: Any, by: str) -> ToolConfirmation:
    decided = _DECISIONS.get(value.strip().lower()) if isinstance(value, str) else value
    if isinstance(decided, bool):
        decided = ToolConfirmation(confirmed=decided)
    elif isinstance(decided, dict) and isinstance(cast(dict[str, Any], decided).get("confirmed"), bool):
        try:
            decided = ToolConfirmation.model_validate(decided)
        except ValidationError as error:
            raise InputError(_no_decision(interrupt, value)) from error
    if not isinstance(decided, ToolConfirmation):
        raise InputError(_no_decision(interrupt, value))
    if interrupt.kind == "node_approval" and decided.args is not None:
        raise InputError(f"the arguments of node {interrupt.names[0]!r} cannot be changed; answer yes or no alone")
    if decided.confirmed and decided.payload is None and interrupt.kind == "approval":
        decided = copy_model(decided, payload=interrupt.payload)
    return copy_model(decided, by=decided.by or by or None)


def _no_decision(interrupt: Interrupt, value: Any) -> str:
    return (
        f"{value!r:.60} does not approve or reject {', '.join(interrupt.names)}; write True or False, "
        "{'confirmed': True}, or ToolConfirmation(confirmed=True)"
    )


def _read_credential(interrupt: Interrupt, value: Any) -> dict[str, Any]:
    if value is None:
        return {"error": "access_denied"}
    if isinstance(value, AuthCredential):
        return {"exchangedAuthCredential": value.model_dump(mode="json", by_alias=True, exclude_none=True)}
    if isinstance(value, dict):
        return cast(dict[str, Any], value)
    if isinstance(value, str):
        return _read_typed(interrupt, value)
    raise InputError(f"{request_line(interrupt)}; give it as text, a dict or an AuthCredential, or None to refuse")


def _read_typed(interrupt: Interrupt, text: str) -> dict[str, Any]:
    name, *more = interrupt.schema["properties"]
    if more:
        username, colon, password = text.partition(":")
        if not colon:  # the text is not repeated: it may be the password
            raise InputError(
                f"{request_line(interrupt)}, and there is no colon in what was given; write it as name:password"
            )
        return {name: username, more[0]: password}
    if name in ("authResponseUri", "authCode"):
        name = "authResponseUri" if "://" in text else "authCode"
    return {name: text}


def type_credential(interrupt: Interrupt) -> str:
    """Ask for a credential in a field that does not show what is typed.

    Raises:
        InputError: There is no such field here, or nothing was typed.
    """
    prompt = "the address that the page led to: " if interrupt.auth_uri else f"{request_line(interrupt)}: "
    try:
        typed = getpass.getpass(prompt).strip()
    except (EOFError, OSError, NotImplementedError) as error:
        raise InputError("there is no input field here; write chat.answer('...')") from error
    if not typed:
        raise InputError("nothing was typed; to refuse, write chat.answer(None)")
    return typed


# ---- check


@dataclass(frozen=True, kw_only=True)
class AnswerCheck:
    """Checks that answers can be carried out by the agents and tools as they are now."""

    history: History
    """Of the session."""
    agent_of: Callable[[str], BaseAgent]
    """The agent that gets the answer to an interrupt, by the interrupt's id."""
    magic: str
    """As for `interrupt_text.commands`."""
    versions: Versions | None
    """The store of earlier versions of tools."""
    newest: BaseAgent
    """The agent as it is defined now; what waits resumes in the version that asked."""
    lent_for: Callable[[str], Collection[str]]
    """The names of the tools lent for the turn that an interrupt paused, by the interrupt's id."""
    as_asked: bool = False
    """The answers say that the tools are to run as they were asked for."""

    def check(self, answers: Answers) -> None:
        """Refuse answers, as `read_answer` returns them, that cannot be carried out together.

        Raises:
            InputError: An interrupt is not open, is another agent's or expired; its tool was redefined; changed
                arguments do not fit; an answer does not fit its question.
        """
        by_id = {interrupt.id: interrupt for interrupt in self.history.interrupts(kinds=ALL)}
        for key, answer in answers.items():
            interrupt = by_id.get(key)
            if interrupt is None:
                raise InputError(f"no interrupt {key!r} is open; it was answered already, or never existed")
            if interrupt.in_doubt and len(answers) > 1:
                yes, no = self._ways(interrupt)
                raise InputError(f"{in_doubt_message(interrupt)}; {yes} makes it again, {no} does not")
            if interrupt.kind == "approval":
                self._check_decision(interrupt, answer)
            elif interrupt.kind == "task" and len(answers) > 1:
                raise InputError("a message to a task is sent alone; answer the others first")
            elif interrupt.kind not in ("credential", "task"):
                message = types.Content(role="user", parts=[interrupts.answer(interrupt, answer)])
                input_answer.check(message, self.history)

    def tools_as_asked(self, answers: Answers) -> AbstractContextManager[None]:
        """Within this, the tools of approvals are the versions that the approvals were requested for.

        Raises:
            InputError: An earlier version is not known.
        """
        approvals = [approval for approval in self.history.interrupts(kinds=APPROVALS) if approval.id in answers]
        if not approvals:
            return nullcontext()
        if self.versions is None:
            raise InputError(
                "earlier definitions of tools are kept only in cells; reject the call with chat.reject(), and ask again"
            )
        redefined = [approval for approval in approvals if not self.runs_without_its_tool(approval)]
        for interrupt in redefined:
            if not self.versions.label(interrupt):
                raise InputError(self._unknown_version_message(interrupt))
        return self.versions.as_asked(redefined)

    def redefined_note(self, interrupt: Interrupt) -> str:
        """The note that the tool of an approval is gone or was redefined, and what to type; empty if it was not."""
        if self.lacks_tool(interrupt):
            return self._gone_message(interrupt)
        return self._redefined_message(interrupt) if self._is_redefined(interrupt) else ""

    def lacks_tool(self, interrupt: Interrupt) -> bool:
        """True: the agent as it is defined now has no such tool any more; a tool lent for the turn it never had."""
        is_lent = interrupt.call.name in self.lent_for(interrupt.id)
        return not is_lent and lacks_tool(interrupt, self.newest, self.history)

    def runs_without_its_tool(self, interrupt: Interrupt) -> bool:
        """True: the agent as it is defined now has no such tool, and the version that asked still has it unchanged."""
        agent = self.agent_of(interrupt.id)
        had_it = not lacks_tool(interrupt, agent, self.history)
        return self.lacks_tool(interrupt) and had_it and not self._is_redefined(interrupt)

    def _gone_message(self, interrupt: Interrupt) -> str:
        yes, no = self._ways(interrupt)
        old = yes.removesuffix("yes") + "old"
        run = f", or run it as it was asked with {old}" if self.magic and self.runs_without_its_tool(interrupt) else ""
        gone = f"{interrupt.agent} has no tool {interrupt.call.name} any more"
        return f"{gone}; give it back, or refuse the call with {no}{run}"

    def _ways(self, interrupt: Interrupt, *, redefined: bool = False) -> tuple[str, ...]:
        return commands(interrupt, self.magic, self.history.interrupts(), redefined=redefined)

    def _check_decision(self, interrupt: Interrupt, decided: ToolConfirmation) -> None:
        agent, (yes, no) = self.agent_of(interrupt.id), self._ways(interrupt)
        if not agent.find_agent(interrupt.recipient):
            raise InputError(
                f"this approval was requested by agent {interrupt.recipient!r}; answer it in a chat with that agent"
            )
        if not decided.confirmed:
            return
        caller = asking_agent(agent, interrupt, self.history)
        if caller is None:
            raise InputError(
                f"agent {interrupt.agent!r}, which requested this, was changed or removed; refuse it with {no}, and "
                "ask again"
            )
        if interrupt.is_expired:
            raise InputError(f"{expired_message(interrupt.call.name)}; refuse the call with {no}, and ask again")
        if self.lacks_tool(interrupt) and not (self.as_asked and self.runs_without_its_tool(interrupt)):
            raise InputError(self._gone_message(interrupt))
        if self._is_redefined(interrupt):
            raise InputError(self._redefined_message(interrupt))
        if decided.args is not None:
            _check_edits(interrupt, decided.args, tools_of(caller).get(interrupt.call.name or ""), yes)

    def _is_redefined(self, interrupt: Interrupt) -> bool:
        return is_redefined(interrupt, self.agent_of(interrupt.id), self.history)

    def _redefined_message(self, interrupt: Interrupt) -> str:
        subject = "a file of the skill was changed" if interrupt.documents else f"{interrupt.call.name} was redefined"
        message = f"{subject} since this was requested"
        again, no = self._ways(interrupt, redefined=True)
        if not again.endswith("reask"):
            return f"{message}; refuse the call with {no}, and ask again"
        old = f"run it as it was with {again.removesuffix('reask')}old"
        is_kept = self.versions is not None and self.versions.label(interrupt)
        return f"{message}; ask again with {again}, or {old if is_kept else f'refuse it with {no}'}"

    def _unknown_version_message(self, interrupt: Interrupt) -> str:
        if self.lacks_tool(interrupt):
            return self._gone_message(interrupt)
        name, redefined = interrupt.call.name, self._is_redefined(interrupt)
        again, no = self._ways(interrupt, redefined=redefined)
        if not redefined:
            return f"{name} is the same as when this was requested; approve it with {again}"
        gone = f"the earlier {name} is no longer in this kernel"
        return f"{gone}; ask again with {again}, or refuse it with {no}"


def _check_edits(interrupt: Interrupt, args: dict[str, Any], tool: BaseTool | None, yes: str) -> None:
    name = interrupt.call.name or ""
    if tool is None:
        raise InputError(f"the changed arguments do not fit: the agent has no tool {name!r} any more")
    _refuse_unknown(interrupt, args, tool)
    if error := tool.check(args):
        raise InputError(_misfit_message(name, args, error, yes))


_MODEL_ERROR = re.compile(r"\w+\(\) was not called: (?:wrong arguments: )?(.*)\. Call it again with .*", re.DOTALL)
"""The error that a model gets for wrong arguments; the group is the reason."""


def _misfit_message(name: str, args: dict[str, Any], error: str, yes: str) -> str:
    """`error`: as `BaseTool.check` returns it. `yes`: `%confirm 2 --yes`, or `chat.approve(2)`."""
    match = _MODEL_ERROR.fullmatch(error)
    reason = match[1] if match else error
    key = next((key for key in args if re.match(rf"{re.escape(key)}[.:]", reason)), "NAME")
    edited = f"{yes} --edit {key}=..." if yes.endswith("yes") else f"{yes[:-1]}{', ' * (yes[-2] != '(')}{key}=...)"
    return (
        f"{name}() cannot run with these arguments: {reason}; type {edited}, or, to let it run as it was asked, {yes}"
    )


def _refuse_unknown(interrupt: Interrupt, args: dict[str, Any], tool: BaseTool) -> None:
    schema = flat_schema((tool.function_declaration and tool.function_declaration.parameters_json_schema) or {})
    takes_any = schema.get("additionalProperties", not schema) or schema.get("patternProperties")
    if isinstance(tool, FunctionTool):
        takes_any = tool.signature.takes_any
    known: set[str] = {*(interrupt.call.args or {}), *schema.get("properties", {})}
    for name in args:
        if not takes_any and name not in known:
            hint = did_you_mean(name, known, f"it has {', '.join(sorted(known)) or 'none'}")
            raise InputError(f"{interrupt.call.name}() has no argument {name!r}; {hint}")


# ---- messages


def message_of(answers: Answers, history: History) -> types.Content:
    """The user's message that carries `answers`, each to an open interrupt."""
    by_id = {interrupt.id: interrupt for interrupt in history.interrupts(kinds=ALL)}
    parts = [interrupts.answer(by_id[key], answer) for key, answer in answers.items()]
    return types.Content(role="user", parts=parts)


def text_message(
    text: Any, history: History, agent: BaseAgent, magic: str, attached: Sequence[types.Part] = ()
) -> types.Content:
    """`text` as a message to `agent`, or as the answer to the oldest open question of `agent` or an agent it called.

    Raises:
        InputError: It is not text, or no answer to that question; or something is attached to an answer.
        PendingError: An approval or a credential request is open.
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"a message must be non-empty text, got {text!r:.60}; write chat.ask('...')")
    open_ = history.interrupts()
    if blocking := [interrupt for interrupt in open_ if interrupt.kind in ("approval", "credential")]:
        raise PendingError(open_message(blocking, magic))
    for interrupt in open_:
        if interrupt.is_question and agent.find_agent(interrupt.recipient):
            if attached:
                raise InputError(
                    "this message answers an open interrupt, and an answer has no attachments; answer it first"
                )
            return message_of({interrupt.id: input_answer.parse(interrupt, text)}, history)
    return types.Content(role="user", parts=[types.Part(text=text), *attached])


def relayed_message(
    message: types.Content | None, history: History, agent: BaseAgent, magic: str
) -> types.Content | None:
    """A message from outside of the notebook, checked; text answers a question as in `text_message`.

    Raises:
        InputError: It is empty, or is no answer to the question.
        PendingError: It answers an approval or a credential request, or one is open.
    """
    parts = (message and message.parts) or []
    responses = [part.function_response for part in parts if part.function_response]
    decided_here = [open_ for open_ in history.interrupts() if open_.is_approval or open_.kind == "credential"]
    if message is None:
        if decided_here:
            raise PendingError(open_message(decided_here, magic))
        return None
    if responses:
        ids = {key for interrupt in decided_here for key in (interrupt.id, *interrupt.answer_ids)}
        if any(response.id in ids for response in responses):
            raise PendingError(f"this is answered in the notebook: on its card, or with {magic}")
        if closed := [response.id for response in responses if response.name in REQUESTS]:
            raise InputError(f"no request {closed[0]!r} is open; it was answered already, or there never was one")
        return message
    text = "".join(part.text for part in parts if part.text)
    others = [part for part in parts if not part.text]
    if text.strip() or not others:
        return text_message(text, history, agent, magic, others)
    text_message("-", history, agent, magic, others)  # attachments alone: the same checks with any text
    return message


def open_message(open_: Sequence[Interrupt], magic: str) -> str:
    """The message that approvals, or else credential requests, are open, and what to type."""
    approvals = [interrupt for interrupt in open_ if interrupt.kind == "approval"]
    if not approvals:
        typed = " and ".join(dict.fromkeys(way for interrupt in open_ for way in commands(interrupt, magic, open_)))
        refuse = f"{typed.split(' and ')[0]} --no" if magic else "chat.answer(None)"
        return f"{'; '.join(map(request_line, open_))}; answer with {typed}, or refuse with {refuse}"
    tools = ", ".join(interrupt.call.name or "" for interrupt in approvals)
    count = "1 approval is" if len(approvals) == 1 else f"{len(approvals)} approvals are"
    yes, no = approval_commands(approvals, magic)
    by = "answer with" if len(approvals) == 1 else "answer each by its number with"
    return f"{count} open ({tools}); {by} {yes} or {no}{', or start over with %chat --new' if magic else ''}"


def verdicts(
    message: types.Content | None, history: History, where: str, *, is_click: bool = False
) -> dict[str, Verdict]:
    """The verdicts of the open interrupts that `message` answers, by id. `where`, `is_click`: as of `Verdict`."""
    responses = [part.function_response for part in (message and message.parts) or () if part.function_response]
    by_id = {key: open_ for open_ in history.interrupts() for key in open_.answer_ids} if responses else {}
    return {
        interrupt.id: verdict_of(interrupt, response.response or {}, where, is_click=is_click)
        for response in responses
        if (interrupt := by_id.get(response.id or ""))
    }


def with_edits(interrupt: Interrupt, edits: Mapping[str, Any]) -> dict[str, Any] | None:
    """All arguments of a call after `edits`. None: there are no edits."""
    return {**(interrupt.call.args or {}), **edits} if edits else None
