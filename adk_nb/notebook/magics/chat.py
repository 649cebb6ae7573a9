"""`%chat`: one turn with an agent, or a chat box."""

import asyncio
import keyword
import os
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb import types
from adk_nb.errors import InputError, SessionNotFoundError, closest
from adk_nb.notebook import attachments
from adk_nb.notebook.chat import Chat, turn_runner
from adk_nb.notebook.chat_box import HEIGHT, ChatBox, check_place, decided_in_lines, talk_in_lines
from adk_nb.notebook.last_error import asking_about_it, last_error
from adk_nb.notebook.magics import record, values
from adk_nb.notebook.magics.addressee import first_word_names, supposed_name
from adk_nb.notebook.magics.grammar import SESSION_OPTION, Argument, Grammar, Option
from adk_nb.notebook.magics.host import Host
from adk_nb.notebook.magics.output import result_of
from adk_nb.notebook.magics.output import text as text_output
from adk_nb.notebook.place import Mode, display_mode
from adk_nb.notebook.registry.notebook import Notebook
from adk_nb.notebook.registry.templates import Location, parse
from adk_nb.notebook.reply import Reply
from adk_nb.notebook.settings import Confirm
from adk_nb.notebook.turn_options import turn_options
from adk_nb.notebook.variables import user_variables
from adk_nb.notebook.view.chat_box_view import ChatBoxView
from adk_nb.notebook.view.display import in_a_kernel
from adk_nb.notebook.view.document import Note

CHAT = Grammar(
    "chat",
    "Say something to an agent and watch what it does. Without a text: open a chat box to talk in.",
    takes_text=True,
    examples=[
        "%chat weather Is it warmer in Paris or in Oslo?",
        "%%chat ans << weather\nPlan a weekend for these places:\n{{places}}",
        "ans = %chat -s second --new weather Hello",
        "%chat weather --attach map.png --attach sales_table What do you see?",
        "%chat weather --error What does this mean?",
        "%chat weather --height 600",
    ],
    arguments=[Argument("AGENT", "who is asked; left out: the root agent, the only one, or the last", names="agent")],
    options=[
        SESSION_OPTION,
        Option("--new", "start a fresh session; it becomes the current one"),
        Option(
            "--attach FILE|VAR",
            "send a file, or what a variable holds: an image, a PDF, text, a table, a figure, an error",
            many=True,
            names="attachment",
        ),
        Option("--error", "send the last error of the notebook, with its cell"),
        Option(
            "-t, --tools a,b", "tools that it may call in this turn beside its own", names="tool", convert=values.names
        ),
        Option("-m, --model MODEL", "another model, for this turn", names="model"),
        Option(
            "--max-cost USD", "ask no model again once this turn has cost so many US dollars", convert=values.dollars
        ),
        Option("-q, --quiet", "show nothing of the turn; its reply shows at the end of a cell"),
        Option("--height PIXELS", "height of the chat box (420)", convert=values.positive_integer),
        Option("--static", "no live view, but what a saved notebook keeps of one"),
        Option("--yes", "approve what comes up in this turn"),
        Option("--no", "reject what comes up in this turn"),
        Option("--ask", "ask for each approval in a line to type; left open where nobody can be asked"),
        Option("--raw", "take {{braces}} as they are"),
        Option("--record", "add this turn to the notebook's cassette, see %record?"),
        Option("--replay", "answer this turn from the notebook's cassette, see %replay?"),
    ],
    twin='Chat(weather).ask("Is it warmer?", attach=["map.png", sales_table], tools=[wind], model="offline", '
    "max_cost=0.1, "
    'confirm="ask", show="static"), Chat(weather).box(height=600)',
)

_OF_ONE_TURN = ("quiet", "static", "attach", "error", "tools", "model", "max_cost", "record", "replay")
"""Options that a chat box does not take."""


@dataclass(frozen=True, kw_only=True)
class _Message:
    """A line or cell of `%chat`, or a text typed into its box."""

    args: Any
    """The line's words and options."""
    text: str
    session: str | None
    fresh: bool
    confirm: Confirm
    policy: str
    """Where `confirm` was set, for the log."""
    show: Mode
    cell: int
    """n of `In[n]`."""
    first_line: int
    """The line of the cell on which the text begins; 0: unknown."""
    supposed_name: str = ""
    """The first word of the text, if it looks like the name of an agent that is not there."""


def chat(host: Host, line: str, cell: str | None) -> Any:
    """Say something to an agent, or open a chat box. The reply is in `_run`, too.

    Raises:
        UserError: What the author has to mend. Nothing was sent if the line itself does not fit.
    """
    with asking_about_it() if "--error" in line else nullcontext():
        return _chat(host, line, cell)


def _chat(host: Host, line: str, cell: str | None) -> Any:
    notebook = host.notebook
    names, conversations = notebook.agent_words, notebook.conversations
    args = CHAT.parse(line, cell, leads=lambda first: first_word_names(first, names, notebook.removed, conversations))
    opens_box = cell is None and not args.text.strip()
    _check(args, opens_box, next(iter(names), "NAME"))
    confirm, policy = _policy(host, args)
    is_plain = cell is not None or args.agent or args.plain
    message = _Message(
        args=args,
        text=args.text,
        session=args.session,
        fresh=args.new,
        confirm=confirm,
        policy=policy,
        show="off" if args.quiet or args.silent else "static" if args.static else host.settings.display,
        cell=host.cell_number,
        first_line=0 if cell is None else 2,
        supposed_name="" if is_plain else supposed_name(args.text, names),
    )
    if opens_box:
        return _open_box(notebook, message)
    with _cassette(host, args):
        reply = _say(notebook, message)
    return result_of(reply, silent=True, raises=host.settings.on_error == "raise") if args.capture else reply


def _check(args: Any, opens_box: bool, name: str) -> None:
    if args.height and not opens_box:
        raise InputError(
            "--height is of the chat box, which %chat opens without a text; leave it out, or leave out the text"
        )
    if not opens_box and not args.text.strip():
        raise InputError(f"{args.mark} needs a text; write it below the line, or %chat {name} alone for a chat box")
    for first, second in (("yes", "no"), ("quiet", "static"), ("record", "replay")):
        if getattr(args, first) and getattr(args, second):
            raise InputError(f"{args.mark}: --{first} and --{second} cannot both be; choose one")


def _policy(host: Host, args: Any) -> tuple[Confirm, str]:
    """What happens to approvals in a turn, and where that was set."""
    choices: tuple[Confirm, ...] = ("yes", "no", "ask")
    for choice in choices:
        if getattr(args, choice):
            return choice, f"{args.mark} --{choice}"
    return host.settings.confirm, "%config AdkNb.confirm"


def _cassette(host: Host, args: Any) -> AbstractContextManager[None]:
    return record.for_turn(host, args) if args.record or args.replay else nullcontext()


def _say(notebook: Notebook, message: _Message) -> Reply:
    args = message.args
    if args.capture:
        _check_capture(notebook, args.capture)
    _announce_agent(notebook, message)
    chat, options = _resolve(notebook, message)
    _announce_session(notebook, message)
    text = options.pop("text")
    reply = turn_runner(chat).ask(text, turn_options(**options))
    if args.ask and display_mode() != "static":
        reply = decided_in_lines(reply)
    if args.capture:
        notebook.variables[args.capture] = reply
    return reply


def _check_capture(notebook: Notebook, name: str) -> None:
    if keyword.iskeyword(name) or name in notebook.addressees or name in notebook.tool_names:
        raise InputError(f"the reply cannot be kept as {name!r}: the name is taken; write another one before <<")


# ---- a chat box


def _open_box(notebook: Notebook, message: _Message) -> None:
    """Open a box for the session that is the current one now; line by line in a terminal.

    Raises:
        UserError: The line does not fit, an agent is not there, or nobody could see the box.
    """
    args = message.args
    for name in _OF_ONE_TURN:
        if getattr(args, name):
            option = name.replace("_", "-")
            raise InputError(f"{args.mark} --{option} goes with a text; without one a chat box is opened")
    if args.capture:
        raise InputError(f"{args.mark}: a chat box has no one reply to keep as {args.capture!r}; `_run` is its last")
    height = args.height or HEIGHT
    check_place(message.show, height)
    chat, _ = _resolve(notebook, message)
    first, message = message, replace(message, session=chat.session_id, fresh=False)
    if not in_a_kernel():
        return talk_in_lines(lambda text: _say(notebook, replace(message, text=text)))

    async def say_in_box(text: str, box: ChatBoxView) -> Reply:
        chat, options = await asyncio.to_thread(_resolve, notebook, replace(message, text=text))
        return await turn_runner(chat).send_in_box(options.pop("text"), box, turn_options(**options))

    _announce_session(notebook, first)
    notebook.sessions.opened.add(chat.session_id)
    runner = turn_runner(chat)
    runner.open_box(ChatBox(chat.agent, chat.session_id, runner.magic(), say_in_box, height))
    return None


# ---- who gets a message, and in which session


def _resolve(notebook: Notebook, message: _Message) -> tuple[Chat, dict[str, Any]]:
    """The chat that a message is for, and its text and options for `Chat.ask`. Raises as `chat`."""
    args, session = message.args, message.session
    name = _variable_of(notebook, args.agent) or _recipient(notebook, message) or notebook.agent_for_text()
    text, parts = _read(notebook, message)
    options = {
        "text": text,
        "attach": parts or None,
        "tools": notebook.tools_named(args.tools or ()),
        "model": args.model and (notebook.model_named(args.model) or args.model),
        "max_cost": args.max_cost,
        "confirm": message.confirm,
        "confirm_by": message.policy,
    }
    notebook.chat(name, session)
    if message.fresh:
        if notebook.has_own_sessions(name):
            raise InputError(f"--new begins a session of the notebook, and {name} has its own; write -s and a new name")
        notebook.sessions.start_fresh(session)
    chat = notebook.chat(name, session, show=message.show)
    notebook.last_asked = name
    if name in notebook.agent_names:
        turn_runner(chat).conversation.sticky = args.agent is None
    return chat, options


def _variable_of(notebook: Notebook, name: str | None) -> str | None:
    """The name by which an agent can be addressed: its own, or the variable of an agent that calls itself so."""
    return notebook.name_of(name) or name if name and name not in notebook.addressees else name


def _recipient(notebook: Notebook, message: _Message) -> str | None:
    """The agent that a line without a name answers, if one has asked something."""
    if message.fresh:
        return None
    with suppress(SessionNotFoundError):  # it begins with this line
        history = notebook.sessions.history(message.session)
        questions = (interrupt for interrupt in history.interrupts() if interrupt.is_question)
        if oldest := next(questions, None):
            return notebook.recipient_of(oldest.id, oldest.recipient, history)
    return None


def _announce_agent(notebook: Notebook, message: _Message) -> None:
    """Say who gets a line, and why, if its first word looks like the name of somebody else."""
    if not message.supposed_name or _recipient(notebook, message):  # an answer begins with any word
        return
    name = notebook.agent_for_text()
    why = "the only agent" if len(notebook.agent_names) == 1 else "the agent that was asked last"
    why = "the root agent" if notebook.root == name else why
    unknown = f"no agent is named {message.supposed_name!r}; %agents lists them"
    display(text_output(f"{name} is asked, {why}: {unknown}"))


def _announce_session(notebook: Notebook, message: _Message) -> None:
    """Say that the session which a line names begins with it: the name may be mistyped."""
    session = message.session
    known = ["main", *notebook.sessions.names, notebook.sessions.current]
    if session is None or message.fresh or session in known or notebook.has_own_sessions(message.args.agent or ""):
        return
    near, line = closest(session, known), f"a new session {session!r}"
    display(text_output(Note(f"note: {line}; did you mean {near!r}?") if near else line))


# ---- what is sent


def _read(notebook: Notebook, message: _Message) -> tuple[str, list[types.Part]]:
    """The text with variables put in, and what goes with it."""
    args, text, parts = message.args, message.text, list[types.Part]()
    if not args.raw:
        location = Location(message.cell, message.first_line)
        template = parse(text, notebook.variables, keys=False, location=location)
        for note in template.notes:
            display(text_output(Note(f"note: {note}")))
        text, parts = template.text, list(template.attachments)
    for word in args.attach or ():
        parts += _attachment(notebook, word)
    if args.error:
        parts += attachments.text_part("the last error", last_error())
    return text.strip(), parts


def _attachment(notebook: Notebook, word: str) -> list[types.Part]:
    """What a variable holds, or a file; a variable of that name counts first."""
    value = notebook.variables.get(word)
    if value is None and word not in notebook.variables:
        if not os.path.exists(os.path.expanduser(word)):
            raise _no_attachment(notebook, word)
        return attachments.parts_of(word)
    if isinstance(value, str) and not (len(value) < 1_000 and Path(value).is_file()):
        return attachments.text_part(word, value)
    return attachments.parts_of(value, name=word)


def _no_attachment(notebook: Notebook, word: str) -> InputError:
    path = Path(os.path.expanduser(word))
    files = [str(path.with_name(file.name)) for file in path.parent.glob("*")] if os.path.isdir(path.parent) else []
    near = closest(word, [*user_variables(notebook.variables), *files])
    hint = f"did you mean {near!r}?" if near else f"files are looked for in {Path.cwd()}"
    return InputError(f"%chat --attach: there is no variable and no file {word!r}; {hint}")
