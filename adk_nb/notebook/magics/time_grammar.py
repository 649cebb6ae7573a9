"""What may stand on the lines of `%trace` and `%rewind`."""

from adk_nb.notebook.magics.arguments import Grammar, Option, Word, whole_number

_SESSION = Option(name="session", short="s", value="NAME", help="another session than the current one", names="session")

TRACE = Grammar(
    "trace",
    "Show what happened in the session, or in one turn of it; undone turns too.",
    examples=[
        "%trace",
        "%trace -1",
        "%trace --waterfall",
        "%trace -2 --why",
        "%trace --diff -1 -2",
        "%trace --raw 3",
        "%trace --export trace.jsonl",
    ],
    words=[Word(name="RUN", help="a turn: -1 the last, -2 the one before, 1 the first; or an id", names="turn")],
    options=[
        _SESSION,
        Option(name="last", help="the last reply, also of a Chat() of your own"),
        Option(name="waterfall", help="when each agent, model and tool was at work"),
        Option(name="why", help="exactly what the models were sent, with what was put into it, and what came back"),
        Option(name="raw", value="N", help="event N as JSON", convert=whole_number),
        Option(name="diff", value="RUN2", help="beside RUN: instructions, calls, answers, tokens", names="turn"),
        Option(name="export", value="FILE", help="all of it as JSON lines; a file that is no such export is kept"),
    ],
    twin="chat.events, chat.turns[-1].events; reply.trace has what models and tools were asked",
)

REWIND = Grammar(
    "rewind",
    "Undo the last turns of the conversation: agents no longer see them, state and files are as before.",
    examples=["%rewind", "%rewind 2 --dry-run", "%rewind 1 --rerun", "%rewind --at 7"],
    words=[Word(name="N", help="how many turns of yours (1); or the id of an event or a run, as RUN of %trace")],
    options=[
        Option(name="at", value="EVENT", help="to before the turn of this event: its number in %trace, or its id"),
        Option(name="dry-run", help="only say what would be undone"),
        Option(name="rerun", help="and say again what you said there; %session fork first keeps what is there now"),
        _SESSION,
    ],
    twin="chat.rewind(1), chat.rewind(event), chat.rerun(event), chat.fork()",
)
