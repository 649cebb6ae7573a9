"""The options of `%chat` that record or replay a turn."""

from adk_nb.notebook.magics.grammar import Option, TurnOption

_FOR_TURN = "adk_nb.notebook.extensions.recording.record:for_turn"

OPTIONS = [
    TurnOption(option=Option("--record", "add this turn to the notebook's cassette, see %record?"), around=_FOR_TURN),
    TurnOption(
        option=Option("--replay", "answer this turn from the notebook's cassette, see %replay?"), around=_FOR_TURN
    ),
]
