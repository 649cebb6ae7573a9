"""The open interrupts of a session, as a notebook answers them: find one, read its answer, and check that it fits."""

import getpass
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from pydantic import ValidationError

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.errors import InputError, PendingError, did_you_mean
from adk_nb.events.requests import REQUESTS
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.json_schemas import flat_schema
from adk_nb.notebook.view.interrupt_text import Verdict, approval_commands, commands, label, request_line, verdict_of
from adk_nb.runtime import interrupts
from adk_nb.runtime.credentials import check_answer
from adk_nb.runtime.history import History
from adk_nb.runtime.interrupts import ALL, Interrupt, Kind
from adk_nb.tools import input_answer
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.wire import copy_model

Answers = Mapping[str, Any]
"""Id of an interrupt -> its answer, as `runtime.interrupts.answer` takes it."""
HIDDEN_FIELD = "\0hidden field"
"""The answer of a credential request whose value the user types into a field that does not show it."""
BLOCKING: tuple[Kind, ...] = ("approval", "credential")
"""Kinds of interrupts that a message cannot pass."""
DECIDED_HERE: tuple[Kind, ...] = ("approval", "node_approval", "credential")
"""Kinds of interrupts that are answered in the notebook alone, and by nobody outside."""
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
    matches = list(open_)
    if isinstance(which, bool):  # True == 1, but a yes is not a number
        matches = []
    elif which is not None:
        matches = [item for item in open_ if which in (item.number, str(item.number), item.id)]
        matches = matches or [item for item in open_ if which in item.answer_ids]
        matches = matches or [item for item in open_ if which in item.names]
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
    if not isinstance(value, str):
        raise InputError(f"{request_line(interrupt)}; give it as text, a dict or an AuthCredential, or None to refuse")
    name, *more = interrupt.schema["properties"]
    if more:
        username, colon, password = value.partition(":")
        if not colon:  # the text is not repeated: it may be the password
            raise InputError(
                f"{request_line(interrupt)}, and there is no colon in what was given; write it as name:password"
            )
        return {name: username, more[0]: password}
    if name in ("authResponseUri", "authCode"):
        name = "authResponseUri" if "://" in value else "authCode"
    return {name: value}


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

_MODEL_ERROR = re.compile(r"\w+\(\) was not called: (?:wrong arguments: )?(.*)\. Call it again with .*", re.DOTALL)
"""The error that a model gets for wrong arguments; the group is the reason."""


def check_edits(interrupt: Interrupt, args: dict[str, Any], tool: BaseTool | None, yes: str) -> None:
    """Refuse changed arguments of a call that do not fit its tool.

    Args:
        interrupt: The approval of the call.
        args: All arguments.
        tool: As it is now. None: it is gone.
        yes: The line that approves the call, `%confirm 2 --yes` or `chat.approve(2)`.

    Raises:
        InputError: An argument is unknown, or a value does not fit.
    """
    name = interrupt.call.name or ""
    if tool is None:
        raise InputError(f"the changed arguments do not fit: the agent has no tool {name!r} any more")
    schema = flat_schema((tool.function_declaration and tool.function_declaration.parameters_json_schema) or {})
    takes_any = schema.get("additionalProperties", not schema) or schema.get("patternProperties")
    if isinstance(tool, FunctionTool):
        takes_any = tool.signature.takes_any
    allowed: set[str] = {*(interrupt.call.args or {}), *schema.get("properties", {})}
    for key in args:
        if not takes_any and key not in allowed:
            hint = did_you_mean(key, allowed, f"it has {', '.join(sorted(allowed)) or 'none'}")
            raise InputError(f"{name}() has no argument {key!r}; {hint}")
    if error := tool.check(args):
        match = _MODEL_ERROR.fullmatch(error)
        reason = match[1] if match else error
        key = next((key for key in args if re.match(rf"{re.escape(key)}[.:]", reason)), "NAME")
        edited = f"{yes} --edit {key}=..." if yes.endswith("yes") else f"{yes[:-1]}{', ' * (yes[-2] != '(')}{key}=...)"
        raise InputError(
            f"{name}() cannot run with these arguments: {reason}; type {edited}, or, to let it run as it was asked, "
            f"{yes}"
        )


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
    if blocking := [interrupt for interrupt in open_ if interrupt.kind in BLOCKING]:
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
    if message is None:
        if decided_here := history.interrupts(kinds=DECIDED_HERE):
            raise PendingError(open_message(decided_here, magic))
        return None
    if responses:
        refuse_decisions(responses, history, magic)
        return message
    text = "".join(part.text for part in parts if part.text)
    others = [part for part in parts if not part.text]
    if text.strip() or not others:
        return text_message(text, history, agent, magic, others)
    text_message("-", history, agent, magic, others)  # attachments alone: the same checks with any text
    return message


def refuse_decisions(responses: Iterable[types.FunctionResponse], history: History, magic: str) -> None:
    """Refuse answers from outside of the notebook to what is decided in it.

    Raises:
        InputError: The request is not open.
        PendingError: An answer is for an approval or a credential request.
    """
    decided_here = history.interrupts(kinds=DECIDED_HERE)
    ids = {key for interrupt in decided_here for key in (interrupt.id, *interrupt.answer_ids)}
    for response in responses:
        if response.id in ids:
            raise PendingError(f"this is answered in the notebook: on its card, or with {magic}")
        if response.name in REQUESTS:
            raise InputError(f"no request {response.id!r} is open; it was answered already, or there never was one")


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
