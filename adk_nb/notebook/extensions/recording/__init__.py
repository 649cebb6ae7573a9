"""`%record` and `%replay`: record the answers of models, and replay them."""

from traitlets import List, Unicode

from adk_nb.notebook.magics.grammar import Option, TurnOption
from adk_nb.notebook.registry import Extension, Magic, Setting

_FOR_TURN = f"{__name__}.record:for_turn"

extension = Extension(
    name="recording",
    magics=[
        Magic("record", f"{__name__}.record:record", f"{__name__}.record:RECORD"),
        Magic("replay", f"{__name__}.record:replay", f"{__name__}.record:REPLAY"),
    ],
    settings=[
        Setting(
            "cassette_dir",
            Unicode("cassettes", help="Folder for the cassettes of %record and %replay, relative to the notebook."),
            check=f"{__name__}.record:check_folder",
        ),
        Setting(
            "redact",
            List(
                Unicode(),
                help="Regular expressions for text to mask in cassettes, in addition to keys, tokens and e-mail "
                "addresses.",
            ),
            check=f"{__name__}.record:check_patterns",
        ),
    ],
    options={
        "chat": [
            TurnOption(
                option=Option("--record", "add this turn to the notebook's cassette, see %record?"), around=_FOR_TURN
            ),
            TurnOption(
                option=Option("--replay", "answer this turn from the notebook's cassette, see %replay?"),
                around=_FOR_TURN,
            ),
        ]
    },
    checks=[f"{__name__}.record:findings"],
    switches={"ADK_NB_REPLAY": f"{__name__}.record:begin_from_environment"},
    unload=f"{__name__}.record:stop",
)
