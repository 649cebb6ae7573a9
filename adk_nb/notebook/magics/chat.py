"""`%chat`: ask an agent, or open a chat box."""

import keyword
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb import types
from adk_nb.errors import AgentNotFoundError, InputError, SessionNotFoundError, StateKeyError, closest
from adk_nb.notebook.cells.names import Names
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.cells.session_store import MAIN
from adk_nb.notebook.cells.templates import Location, parse
from adk_nb.notebook.chat.attachments import SentFile, parts_of_name, text_part
from adk_nb.notebook.chat.chat import Chat, turn_runner
from adk_nb.notebook.chat.chat_box import HEIGHT, ChatBox, Reach, ask_for_approvals, chat_in_terminal, check_place
from adk_nb.notebook.chat.reply import Reply
from adk_nb.notebook.chat.turn import TurnRunner
from adk_nb.notebook.chat.turn_options import TurnOptions, turn_options
from adk_nb.notebook.last_error import last_error, not_recorded
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.grammar import SESSION_OPTION, Argument, Grammar, Option, TurnOption
from adk_nb.notebook.magics.output import Host, result_of
from adk_nb.notebook.magics.output import text as text_output
from adk_nb.notebook.place import Mode, display_mode
from adk_nb.notebook.registry import resolve
from adk_nb.notebook.settings import Confirm
from adk_nb.notebook.view.display import in_a_kernel
from adk_nb.notebook.view.document import Note
from adk_nb.notebook.view.plain_text import quoted

CHAT = Grammar(
    "chat",
    "Send a message to an agent and watch its run. Without a text: open a chat box.",
    takes_text=True,
    body="prose",
    examples=[
        "%chat weather Is it warmer in Paris or in Oslo?",
        "%%chat ans << weather\nPlan a weekend for these places:\n{{places}}",
        "ans = %chat -s second --new weather Hello",
        "%chat weather --attach map.png --attach sales_table What do you see?",
        "%chat weather --error What does this mean?",
        "%chat weather --height 600",
    ],
    arguments=[Argument("AGENT", "its name; left out: the only agent, or the root agent", names="agent")],
    options=[
        SESSION_OPTION,
        Option("--new", "start a new session, which becomes the current one"),
        Option(
            "--attach FILE|VAR",
            "attach a file or the value of a variable: an image, a PDF, text, a table, a figure, an error",
            many=True,
            names="attachment",
        ),
        Option("--error", "attach the last error of the notebook, with its cell"),
        Option("-t, --tools a,b", "more tools for this turn", names="tool", convert=values.names),
        Option("-m, --model MODEL", "another model, for this turn", names="model"),
        Option("--max-cost USD", "no further model call in this turn after this cost", convert=values.dollars),
        Option("-q, --quiet", "do not show the run, only the reply at the end of a cell"),
        Option("--height PIXELS", "height of the chat box (420)", convert=values.positive_integer),
        Option("--static", "show the run in its saved form, not live"),
        Option("--yes", "approve all calls of this turn"),
        Option("--no", "reject all calls of this turn that need approval"),
        Option("--ask", "ask for each approval in an input line; left open where input is not possible"),
        Option("--raw", "leave {{braces}} as they are"),
    ],
    twin='Chat(weather).ask("Is it warmer?", attach=["map.png", sales_table], tools=[wind], model="offline", '
    "max_cost=0.1, "
    'confirm="ask", show="static"), Chat(weather).box(height=600)',
)

_OF_ONE_TURN = ("quiet", "static", "attach", "error", "tools", "model", "max_cost")
"""Options of a single turn, which a chat box does not take."""


def chat(host: Host, line: str, cell: str | None) -> Any:
    """Send a message to an agent, or open a chat box. The reply is also stored in `_run`.

    Raises:
        UserError: The line, the agent or an attachment is wrong; nothing was sent.
    """
    with not_recorded() if "--error" in line else nullcontext():
        notebook = host.notebook
        names = notebook.agent_words
        args = CHAT.parse(line, cell, leads=lambda first: first_word_names(first, notebook))
        opens_box = cell is None and not args.text.strip()
        if args.height and not opens_box:
            raise InputError(
                "%chat --height: only a chat box has a height, and %chat with a text opens none; leave out one of them"
            )
        if not opens_box and not args.text.strip():
            name = next(iter(names), "NAME")
            raise InputError(f"{args.mark}: no text; write it below the line, or type %chat {name} for a chat box")
        for first, second in (("yes", "no"), ("quiet", "static")):
            if getattr(args, first) and getattr(args, second):
                raise InputError(f"{args.mark}: --{first} and --{second} exclude each other; choose one")
        message = _Line(
            notebook=notebook,
            args=args,
            session=args.session,
            fresh=args.new,
            confirm=host.settings.confirm,
            show="off" if args.quiet or args.silent else "static" if args.static else host.settings.display,
            location=Location(host.cell_number, 0 if cell is None else 2),
            plain=cell is not None or args.plain,
        )
        if opens_box:
            return _open_box(message)
        with ExitStack() as options:
            for item in _added(args):
                options.enter_context(resolve(item.around)(host, args))
            reply = _send(message, args.text)
        return result_of(reply, silent=True, raises=host.settings.on_error == "raise") if args.capture else reply


@dataclass(frozen=True, kw_only=True)
class _Line:
    """A line of `%chat`, for its text, or for each text that is typed into the box that it opens."""

    notebook: Notebook
    args: Any
    """As it is parsed."""
    session: str | None
    fresh: bool
    confirm: Confirm
    """The setting, for a line that does not say."""
    show: Mode
    location: Location
    """Of the text, in the notebook."""
    plain: bool
    """The first word of the text is no name."""
    in_box: bool = False

    def recipient(self) -> tuple[str | None, str | None]:
        """The agent whose question a line without a name answers, and its session; None: there is none.

        A question in the session of the line, else the only one of the notebook, if there is no root to ask.
        """
        notebook = self.notebook
        own = self.session or notebook.sessions.current
        if self.fresh:
            return None, None
        if agent := self._asking(own):
            return agent, own
        if self.session is None and notebook.root is None and len(notebook.root_names) > 1:
            asking = [(agent, name) for name in notebook.waiting_sessions if (agent := self._asking(name))]
            if len(asking) == 1:
                return asking[0]
        return None, None

    def _asking(self, session: str) -> str | None:
        """The agent with the oldest open question of a session."""
        with suppress(SessionNotFoundError):  # this message creates it
            history = self.notebook.sessions.history(session)
            questions = (interrupt for interrupt in history.interrupts() if interrupt.is_question)
            if oldest := next(questions, None):
                return self.notebook.recipient_of(oldest.id, oldest.recipient, history)
        return None

    def message(self, text: str, attached: Sequence[str | SentFile] = ()) -> tuple[Chat, str, TurnOptions]:
        """The chat that gets a text, the text with the values of its variables, and its options.

        `attached`: what goes with this text alone, by name or as a file of a page.

        Raises:
            UserError: The line, the agent or an attachment is wrong; nothing was sent.
        """
        args, notebook = self.args, self.notebook
        name = args.agent
        if name and name not in notebook.addressees:  # an agent's own name; it is in a variable of another name
            name = notebook.name_of(name) or name
        addressed, session = "", self.session
        if name is None:
            name, asking = self.recipient()
            session = asking if name else session
        if name is None:  # an answer begins with any word
            supposed = "" if self.plain else supposed_name(text, notebook.agent_words)
            name, reason = notebook.agent_for_text(supposed)
            if supposed:
                addressed = f"to {name}, {reason}: no agent is named {supposed!r}; %agents lists them"
            elif len(notebook.addressees) > 1 and not self.in_box:
                addressed = f"to {name}, {reason}: the line names none"
        parts = list[types.Part]()
        if not args.raw:
            template = parse(text, notebook.variables, keys=False, location=self.location)
            for note in template.notes:
                display(text_output(Note(f"note: {note}")))
            text, parts = template.text, list(template.attachments)
        for item in (*(args.attach or ()), *attached):
            try:
                parts += parts_of_name(item, notebook.variables)
            except InputError as error:
                raise InputError(f"{args.mark} --attach: {error}") from error
        if args.error:
            parts += text_part("the last error", last_error())
        choices: tuple[Confirm, ...] = ("yes", "no", "ask")
        chosen: Confirm | None = next((choice for choice in choices if getattr(args, choice)), None)
        options = turn_options(
            attach=parts or None,
            tools=notebook.tools_named(args.tools or ()),
            model=args.model and notebook.model_named(args.model),
            max_cost=args.max_cost,
            confirm=chosen or self.confirm,
            confirm_by=f"{args.mark} --{chosen}" if chosen else "%config AdkNb.confirm",
            addressed=addressed,
        )
        if self.fresh and notebook.has_own_sessions(name):
            raise InputError(f"%chat --new: {name} stores its own sessions; use -s and a new name instead")
        chat = self._chat(name, session)
        if name in notebook.agent_names:
            turn_runner(chat).conversation.sticky = args.agent is None
        return chat, text.strip(), options

    def _chat(self, name: str, session: str | None) -> Chat:
        """The chat with an agent; a line that names no session makes the agent go on in its one."""
        notebook = self.notebook
        notebook.agent_now(name)  # raises if it cannot be asked, before a session is read
        has_own_sessions = notebook.has_own_sessions(name)
        # Asked once, as it reads sessions for a member of a team.
        speaker = "" if has_own_sessions else notebook.speaker_of(name)
        if speaker and session is None and not self.fresh:
            session = notebook.sessions.of_agent(speaker)
        chat = notebook.chat(name, session, show=self.show, fresh=self.fresh)
        notebook.last_asked = name
        if self.session is None and not has_own_sessions:
            notebook.sessions.spoken(speaker, session or notebook.session_of(name))
        return chat

    def announce_session(self) -> None:
        """Print that a session is new, as its name may be misspelt."""
        session, sessions = self.session, self.notebook.sessions
        names = [MAIN, *sessions.names, sessions.current]
        has_own_sessions = self.notebook.has_own_sessions(self.args.agent or "")
        if session is None or self.fresh or session in names or has_own_sessions:
            return
        near, line = closest(session, names), f"a new session {session!r}"
        display(text_output(Note(f"note: {line}; did you mean {near!r}?") if near else line))


def _added(args: Any) -> list[TurnOption]:
    """The options of extensions that the line has."""
    added = [item for item in CHAT.added if isinstance(item, TurnOption)]
    return [item for item in added if getattr(args, item.option.attribute) not in (None, False, [])]


def _send(line: _Line, text: str) -> Reply:
    """Send a text."""
    args, notebook = line.args, line.notebook
    if (name := args.capture) and (keyword.iskeyword(name) or name in (*notebook.addressees, *notebook.tool_names)):
        raise InputError(
            f"%chat: cannot store the reply in {name!r}: a keyword, an agent or a tool; use another variable"
        )
    chat, text, options = line.message(text)
    line.announce_session()
    try:
        reply = turn_runner(chat).ask(text, options)
    except StateKeyError as error:
        for session in dict.fromkeys(map(notebook.session_of, notebook.root_names)):
            if error.key in notebook.sessions.state_if_any(session):
                way = f"%chat -s {quoted(session)} {notebook.last_asked} ..., or %config AdkNb.sessions_shared = True"
                error.add_note(f"session {session!r} of another agent has {error.key}: type {way}")
        raise
    if args.ask and display_mode() != "static":
        reply = ask_for_approvals(reply)
    if args.capture:
        notebook.variables[args.capture] = reply
    return reply


def _open_box(line: _Line) -> None:
    """Open a chat box for the current session; line by line in a terminal.

    Raises:
        UserError: The line is wrong, an agent is not defined, or the display cannot show a box.
    """
    args = line.args
    for name in (*_OF_ONE_TURN, *(item.option.attribute for item in _added(args))):
        if getattr(args, name):
            option = name.replace("_", "-")
            raise InputError(f"{args.mark} --{option} needs a text; without one %chat opens a chat box")
    if args.capture:
        raise InputError(
            f"{args.mark}: a chat box has many replies; leave out {args.capture} <<, and use `_run`, the last one"
        )
    height = args.height or HEIGHT
    check_place(line.show, height)
    chat, _, _ = line.message("")
    next_line = replace(line, session=chat.session_id, fresh=False, in_box=True)
    if not in_a_kernel():
        return chat_in_terminal(lambda text: _send(next_line, text))

    notebook, sessions = line.notebook, line.notebook.sessions
    agent = notebook.last_asked
    # `-s` is for this box, as it is for one line: cells stay where they are.
    goes_along = line.session is None and not notebook.has_own_sessions(agent or "")
    speaker = notebook.speaker_of(agent) if agent and goes_along else ""

    def opened(session: str) -> None:
        sessions.opened.add(session)
        if speaker:
            sessions.spoken(speaker, session)

    def message(session: str, text: str, attached: Sequence[str | SentFile]) -> tuple[TurnRunner, str, TurnOptions]:
        chat, text, options = replace(next_line, session=session).message(text, attached)
        return turn_runner(chat), text, options

    reach = Reach(
        sessions=lambda: [*sessions.names[::-1], *sessions.opened],
        turns=lambda session: message(session, "", ())[0],
        message=message,
        variables=notebook.variables,
        opened=opened,
    )
    line.announce_session()
    sessions.opened.add(chat.session_id)
    ChatBox(turn_runner(chat), chat.session_id, height=height, reach=reach).open()
    return None


# ---- the first word of a line: a name, a misspelt name, or text

_COMMON_WORDS = (
    "a about after again all also am an and any are as ask at be been before but by can could did do does each for from"
    " get give had has have he hello help her here hey hi him his how i if in into is it its just let like list make"
    " may me might more most my no not now of on one or other our out over please say see shall she should show so some"
    " such tell than thank that the their them then there these they this those to too two up us use very was we well"
    " were what when where which while who whom whose why will with would write yes yet you your"
)
_FUNCTION_WORDS = frozenset(_COMMON_WORDS.split())


def first_word_names(first: str, names: Names) -> bool:
    """Return True if the first word of a line is an agent's name.

    Raises:
        InputError: It names an agent that was removed or whose cell failed, or a conversation.
        AgentNotFoundError: It looks like a misspelt name.
    """
    agents, conversations = names.agent_words, names.conversations
    as_text = f"for text, type: %chat -- {first} ..."
    if first in agents:
        return True
    if first in names.failed:
        raise InputError(f"there is no agent {first!r}, as {names.failed[first]}; or {as_text}")
    if first in names.removed:
        raise InputError(f"agent {first!r} was removed; define it again, or {as_text}")
    if first in conversations:
        raise InputError(f"{first!r} is not an agent; type {conversations[first]}, or {as_text}")
    if any(_is_slip(first, name) for name in agents):
        raise AgentNotFoundError("agent", first, agents, hint=as_text)
    return False


def supposed_name(text: str, agents: Sequence[str]) -> str:
    """Return the first word of a text if it looks like the name of an undefined agent; else "".

    With a single agent, texts often begin with a verb: only `my_agent`, `agent2` and `agent What ...` look like names.
    """
    first, _, rest = text.partition(" ")
    rest = rest.lstrip()
    if not (rest and first.isidentifier()) or first.lower() in _FUNCTION_WORDS:
        return ""
    if all(first[:1].isupper() != name[:1].isupper() for name in agents):
        return ""
    is_likely = "_" in first or not first.isalpha() or rest[:1].isupper()
    return first if is_likely or len(agents) > 1 else ""


def _is_slip(first: str, name: str) -> bool:
    """True if a few letters differ, by the length of the name; not for common words, nor another case of the first."""
    if first.lower() in _FUNCTION_WORDS or first[:1].isupper() != name[:1].isupper():
        return False
    # Letters to insert, delete, replace or transpose (optimal string alignment distance).
    rows = [list(range(len(name) + 1))]
    for i, a in enumerate(first, 1):
        rows.append([i])
        for j, b in enumerate(name, 1):
            cost = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (a != b))
            if i > 1 < j and a == name[j - 2] and first[i - 2] == b:
                cost = min(cost, rows[i - 2][j - 2] + 1)
            rows[i].append(cost)
    return rows[-1][-1] <= min(2, (len(name) - 1) // 2)
