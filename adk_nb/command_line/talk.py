"""`adk-nb run` and `adk-nb chat`: ask an agent once, or line after line."""

import json
import sys
from argparse import Namespace
from typing import Any

from adk_nb.command_line.exits import DONE, FAILED, WAITING
from adk_nb.command_line.loading import Loaded
from adk_nb.errors import InputError
from adk_nb.events.requests import APPROVAL_REQUEST, CREDENTIAL_REQUEST
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.chat_box import ask_for_approvals, chat_in_terminal
from adk_nb.notebook.chat.reply import Reply, view_of_reply
from adk_nb.notebook.view.interrupt_text import call_of
from adk_nb.redaction import without_known


def run(args: Namespace, loaded: Loaded) -> int:
    """Send one message, and print the answer."""
    name, text = _addressed(args, loaded)
    is_watched = sys.stdout.isatty() and not (args.json or args.quiet)
    chat = _chat(args, loaded, name)
    confirm: Any = "yes" if args.yes else "no" if args.no else None
    reply = chat.ask(text, show="auto" if is_watched else "off", confirm=confirm, model=args.model)
    if sys.stdin.isatty() and not args.json:
        reply = ask_for_approvals(reply)
    if args.json:
        sys.stdout.write(json.dumps(as_json(reply, chat), ensure_ascii=False, default=str) + "\n")
    elif not view_of_reply(reply).is_displayed() or not is_watched:
        _print(reply)
    return {"done": DONE, "pending": WAITING}.get(reply.status, FAILED)


def chat(args: Namespace, loaded: Loaded) -> int:
    """Talk line by line, until an empty line."""
    name = loaded.addressee(args.agent)
    chat = _chat(args, loaded, name)
    sys.stdout.write(f"{name} of {loaded.path.name}, session {chat.session_id!r}; ")
    for approval in [one for one in chat.interrupts if one.is_approval]:  # of an earlier run
        sys.stdout.write(f"\n{call_of(approval)} waits since an earlier turn; approve? [y/N] ")
        sys.stdout.flush()
        if typed := sys.stdin.readline().strip().lower():
            reply = chat.answer(typed in ("y", "yes"), approval)
            if not view_of_reply(reply).is_displayed():
                sys.stdout.write(f"{reply}\n")
    chat_in_terminal(lambda text: chat.ask(text, show="auto", model=args.model))
    return DONE


def _addressed(args: Namespace, loaded: Loaded) -> tuple[str, str]:
    """The agent and the text of `AGENT TEXT`, of `TEXT`, or of `AGENT` with the text piped in."""
    words: list[str] = args.words
    if len(words) > 2:
        raise InputError(f"put the text in quotes: adk-nb run {args.source} {words[0]} {' '.join(words[1:])!r}")
    is_name = len(words) == 2 or (words[:1] and words[0] in loaded.notebook.agent_words)
    name = loaded.addressee(words.pop(0) if is_name else None)
    text = words[0] if words else "-"
    if text == "-":
        if sys.stdin.isatty():
            raise InputError(f'there is no text; type: adk-nb run {args.source} {name} "your text"')
        try:
            text = sys.stdin.read()
        except UnicodeDecodeError as error:
            raise InputError(f"what is piped in is no text in {error.encoding}: {error.reason}") from error
    if not text.strip():
        raise InputError("the text is empty")
    return name, text.strip()


def _chat(args: Namespace, loaded: Loaded, name: str) -> Chat:
    """The chat in the session that is named, else in a new one."""
    notebook = loaded.notebook
    has_stored = bool(notebook.sessions.address) and not notebook.has_own_sessions(name)
    return notebook.chat(name, args.session, fresh=args.session is None and has_stored)


def _print(reply: Reply) -> None:
    """Print the answer alone to the standard output; all about it goes to the error output."""
    if reply.text:
        sys.stdout.write(f"{reply.text}\n")
    view = view_of_reply(reply)
    for interrupt in reply.interrupts:
        asked = call_of(interrupt, view.schemas.get(interrupt.id)) if interrupt.is_approval else interrupt.kind
        sys.stderr.write(f"waits for {'approval' if interrupt.is_approval else 'an answer'}: {asked}\n")
    if reply.status == "error":
        sys.stderr.write(f"adk-nb: the turn failed: {reply.error}\n")


def as_json(reply: Reply, chat: Chat) -> dict[str, Any]:
    """A reply for programs, without known secrets."""
    asked = {APPROVAL_REQUEST, CREDENTIAL_REQUEST}
    made = [call for event in reply.events for call in event.get_function_calls() or () if call.name not in asked]
    calls = [{"name": call.name, "args": call.args} for call in made]
    open_ = [
        {"id": one.id, "kind": one.kind, "calls": [*one.names], "is_approval": one.is_approval}
        for one in reply.interrupts
    ]
    usage = reply.usage
    return without_known(
        {
            "status": reply.status,
            "agent": reply.agent,
            "answered_by": reply.answered_by,
            "text": reply.text,
            "output": _plain(reply.output),
            "error": reply.error,
            "calls": calls,
            "waits_for": open_,
            "state": reply.state_delta,
            "tokens": {"input": usage.input_tokens, "output": usage.output_tokens},
            "session": chat.session_id,
        }
    )


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else value
