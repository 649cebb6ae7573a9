"""What may stand on the line of each magic: names, options, examples. Help and completion are made from it."""

from adk_nb.notebook.magics.arguments import (
    Grammar,
    Option,
    Word,
    dollars,
    names_in,
    whole_number,
)
from adk_nb.notebook.magics.definition_grammar import AGENT, AGENTS, TOOL, TOOLS, WORKFLOW
from adk_nb.notebook.magics.time_grammar import REWIND, TRACE

_SESSION = Option(name="session", short="s", value="NAME", help="another session than the current one", names="session")
_ANSWERS = [
    Option(name="yes", help="approve"),
    Option(name="no", help="reject; the agent is told"),
]

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
    words=[Word(name="AGENT", help="who is asked; left out: the root agent, the only one, or the last", names="agent")],
    options=[
        _SESSION,
        Option(name="new", help="start a fresh session; it becomes the current one"),
        Option(
            name="attach",
            value="FILE|VAR",
            help="send a file, or what a variable holds: an image, a PDF, text, a table, a figure, an error",
            many=True,
            names="attachment",
        ),
        Option(name="error", help="send the last error of the notebook, with its cell"),
        Option(
            name="tools",
            short="t",
            value="a,b",
            help="tools that it may call in this turn beside its own",
            names="tool",
            convert=names_in,
        ),
        Option(
            name="model", short="m", value="MODEL", help="what answers in this turn; the agent stays", names="model"
        ),
        Option(
            name="max-cost",
            value="USD",
            help="no model is asked again once this turn has cost so many US dollars",
            convert=dollars,
        ),
        Option(name="quiet", short="q", help="the turn shows nothing; at the end of a cell its reply does"),
        Option(name="height", value="PIXELS", help="of the chat box (420)", convert=whole_number),
        Option(name="static", help="no live view, but what a saved notebook keeps of one"),
        Option(name="yes", help="approve what comes up in this turn"),
        Option(name="no", help="reject what comes up in this turn"),
        Option(
            name="ask",
            help="ask for each approval in a line to type, whatever %config AdkNb.confirm says; left open under tests",
        ),
        Option(name="raw", help="take {{braces}} as they are"),
        Option(name="record", help="add this turn to the notebook's cassette, see %record?"),
        Option(name="replay", help="answer this turn from the notebook's cassette, see %replay?"),
    ],
    twin='Chat(weather).ask("Is it warmer?", attach=["map.png", sales_table], tools=[wind], model="offline", '
    "max_cost=0.1, "
    'confirm="ask", show="static"), Chat(weather).box(height=600)',
)

STATE = Grammar(
    "state",
    "Show or change the state of the session.",
    examples=["%state", '%state budget=400 user:name="Ada" places=["Oslo", "Rome"]', "%state --del budget"],
    words=[
        Word(name="KEY", help="key=value sets it (JSON, else text); a key alone shows it", many=True, names="state")
    ],
    options=[
        _SESSION,
        Option(name="del", value="KEY", help="delete it", many=True, names="state"),
        Option(name="json", help="all of it as JSON"),
        Option(name="diff", help="what each event changed"),
    ],
    twin='chat.state["budget"] = 400',
    pairs=True,
)

SESSION = Grammar(
    "session",
    "List the sessions, take another, begin or copy one, save one to a file, or load one. All agents share the "
    "current one.",
    examples=[
        "%session",
        "%session use second",
        "%session new second",
        "%session fork",
        "%session fork by_train --at 7",
        "%session save trip.json",
        "%session load trip.json --as trip",
        "%session resume",
        '%config AdkNb.sessions = "sqlite:///nb.db"',
    ],
    words=[
        Word(
            name="DO",
            help="list (as without a word), use, new, fork, save, load; resume or drop a run that was cut",
            names="list|use|new|fork|save|load|resume|drop",
        ),
        Word(
            name="NAME",
            help="use, new: of the session; fork: of the copy; save, load: of the file, JSON that people can read",
            names="use=session|save=file|load=file",
        ),
    ],
    options=[
        Option(name="as", value="NAME", help="load: what the session is called here; else as in the file"),
        Option(
            name="session",
            short="s",
            value="NAME",
            help="fork, save, resume, drop: another than the current one",
            names="session",
        ),
        Option(name="at", value="EVENT", help="fork: the last event that is copied: its number in %trace, or its id"),
        Option(name="replace", help="save: the file may be written over, whatever is in it"),
        Option(name="edited", help="resume: also if the agent or its tools were edited since the run was cut"),
    ],
    twin='chat = Chat(planner, session="second", session_service=SqliteSessionService("nb.db")), '
    'chat.fork("third"), chat.save("trip.json"), chat.load("trip.json"), chat.resume(edited=False), chat.drop()',
)

CONFIRM = Grammar(
    "confirm",
    "Show the cards of what waits for you, or a list where no page can show a card, or answer it: approvals, "
    "questions, credentials, the outcome of long-running tools.",
    examples=[
        "%confirm",
        "%confirm --yes",
        '%confirm --edit amount=100 --yes --reason "half, as agreed"',
        "%confirm 2 Oslo",
        "%confirm 3  # a credential: a field that does not show it asks for it",
    ],
    words=[
        Word(name="ID", help="which one: its number in the list, its id, or its tool", names="interrupt"),
        Word(name="VALUE", help="the answer to a question, or an outcome: text, or JSON"),
    ],
    options=[
        _SESSION,
        *_ANSWERS,
        Option(name="reask", help="its tool was redefined since: the agent is told, and may call it again"),
        Option(name="old", help="approve, and run it as its tool was when this was asked"),
        Option(name="all", help="answer all that are open"),
        Option(name="edit", value="k=v", help="change an argument first (JSON, else text)", many=True),
        Option(name="payload", value="k=v", help="what the tool asks for beside a yes (JSON, else text)", many=True),
        Option(name="reason", value="TEXT", help="why; the agent is told"),
    ],
    twin="chat.interrupts, chat.ask_again(), chat.answer(value, which), chat.approve(id, amount=100), "
    "chat.reject(id, reason=...), chat.submit_credential(), "
    "chat.decide({id: ToolConfirmation(confirmed=True)}, as_asked=True)",
    pairs=True,
)

_FILE = Option(
    name="file",
    value="PATH",
    help="the cassette; else one in cassettes/, named as the notebook where the page tells its name",
)

RECORD = Grammar(
    "record",
    "From here on keep what models answer in a file, the cassette of this notebook, so that it can be replayed.",
    examples=["%record", "%record --file cassettes/demo.jsonl", "%record off"],
    words=[Word(name="MODE", help="off: models are asked, and nothing is kept", names="off")],
    options=[_FILE],
    twin='RecordedLlm("cassettes/demo.jsonl", record=Gemini(model="gemini-3.5-flash-lite"))',
)

REPLAY = Grammar(
    "replay",
    "From here on answer from the cassette of this notebook: no key, no network, the same words each time.",
    examples=["%replay", "%replay auto", "%replay off"],
    words=[
        Word(
            name="MODE",
            help="replay, as without a word: what is not in the cassette is an error that says what has changed; auto: "
            "what is not in it is asked and recorded; record; off",
            names="auto|record|replay|off",
        )
    ],
    options=[_FILE],
    twin='RecordedLlm("cassettes/demo.jsonl"), RecordedLlm("cassettes/demo.jsonl", record=model, replay=True)',
)

KEY = Grammar(
    "key",
    "Get a key into this kernel without showing it: from the environment, the secrets of Colab or Kaggle, .env, the "
    "keyring, or a field that you paste it into. It is never shown, and not in the notebook.",
    examples=["%key gemini", "%key openai --from keyring", "%key TAVILY_API_KEY", "%key gemini --forget"],
    words=[
        Word(
            name="PROVIDER",
            help="gemini, openai, anthropic, or the variable that is to hold it; without one: which are set",
            many=True,
            names="gemini|openai|anthropic",
        )
    ],
    options=[
        Option(
            name="from",
            value="PLACE",
            help="look there alone: env, colab, kaggle, dotenv, keyring; ask: type it anew",
            names="env|colab|kaggle|dotenv|keyring|ask",
        ),
        Option(name="forget", help="take it out of this kernel"),
    ],
    twin='os.environ["GOOGLE_API_KEY"] = getpass.getpass()',
)

DOCTOR = Grammar(
    "doctor",
    "Look at what is installed, which keys are set (by name), how runs are shown and whether they can run, and say "
    "what to type next.",
    examples=["%doctor", "%doctor  # before you ask for help: it shows no key", "report = %doctor"],
)

EXPORT = Grammar(
    "export",
    "Write the agents and tools of this notebook as Python: a package that google-adk runs, or a script.",
    examples=["%export my_agents/", "%export agent.py", "%export ~/agents/weather_desk"],
    words=[
        Word(
            name="PATH",
            help="a folder: google-adk's (adk run, adk web); a file that ends in .py: a script with adk_nb",
            needed=True,
        )
    ],
)

GRAMMARS = {
    one.name: one
    for one in (
        AGENT,
        WORKFLOW,
        TOOL,
        CHAT,
        AGENTS,
        TOOLS,
        STATE,
        SESSION,
        TRACE,
        REWIND,
        CONFIRM,
        RECORD,
        REPLAY,
        KEY,
        DOCTOR,
        EXPORT,
    )
}
