"""The line of a magic: words, options, free text, and one line for what does not fit."""

import pytest
from support.messages import mentions

from adk_nb.errors import InputError
from adk_nb.notebook.extensions.evaluation.map import MAP
from adk_nb.notebook.magics.agent import AGENT, AGENTS
from adk_nb.notebook.magics.catalog import grammars
from adk_nb.notebook.magics.chat import CHAT
from adk_nb.notebook.magics.confirm import CONFIRM
from adk_nb.notebook.magics.grammar import Grammar, Option
from adk_nb.notebook.magics.tool import TOOL
from tests.support.each import each


def leads(word: str) -> bool:
    return word in ("weather", "wetter_ö")


def test_quotes_are_the_shells() -> None:
    asked = AGENT.parse('weather --description \'is it "fine"?\' -m "x y"', "Be brief.")

    assert (asked.name, asked.description, asked.model, asked.text) == (
        "weather",
        'is it "fine"?',
        "x y",
        "Be brief.",
    )


def test_options_may_stand_before_between_and_after_words() -> None:
    before = TOOL.parse("--thread f --rename f=g", None)
    after = TOOL.parse("f g --thread", None)
    between = TOOL.parse("f --thread g", None)

    assert (before.name, before.thread, before.rename) == (["f"], True, ["f=g"])
    assert (after.name, between.name, between.thread) == (["f", "g"], ["f", "g"], True)


def test_a_hash_before_a_word_starts_a_comment_and_one_inside_a_word_does_not() -> None:
    asked = AGENT.parse("weather --description C# # what it knows --nonsense", "x")

    assert asked.description == "C#"


@each(
    "line, confirm, name",
    [
        ("--confirm f", "always", ["f"]),
        ("--confirm", "always", []),
        ("f --confirm", "always", ["f"]),
        ("--confirm=never f", "never", ["f"]),
        ("--confirm never f", "never", ["f"]),
        ("--confirm always", "always", []),
        ("f", None, ["f"]),
        ('--confirm "amount > 100" f', "amount > 100", ["f"]),
        ("--confirm amount>100 f", "amount>100", ["f"]),
        ("--confirm 'to == \"Ada\"' --thread", 'to == "Ada"', []),
        ('--confirm="amount > 100"', "amount > 100", []),
        ("--confirm=is_large f", "is_large", ["f"]),
        ("--confirm --thread f", "always", ["f"]),
    ],
)
def test_a_bare_option_takes_the_word_behind_it_only_if_that_is_no_name(
    line: str, confirm: str | None, name: list[str]
) -> None:
    asked = TOOL.parse(line, "x = 1")

    assert (asked.confirm, asked.name) == (confirm, name)


@each(
    "line, agent, text",
    [
        ("weather How is it?", "weather", "How is it?"),
        ("How is it?", None, "How is it?"),
        ("weather it's \"fine # here", "weather", "it's \"fine # here"),
        ("weather  two  blanks", "weather", "two  blanks"),
        ("wetter_ö Schön? 天気", "wetter_ö", "Schön? 天気"),
        ("-- weather is a word", None, "weather is a word"),
        ("weather -- -5 degrees", "weather", "-5 degrees"),
        ("weather - a list", "weather", "- a list"),
        ("weather", "weather", ""),
        ("", None, ""),
        ("-s 'my session' weather -q What now?", "weather", "What now?"),
        ("weather a --new b", "weather", "a --new b"),
    ],
)
def test_free_text_is_taken_as_it_stands(line: str, agent: str | None, text: str) -> None:
    asked = CHAT.parse(line, None, leads=leads)

    assert (asked.agent, asked.text) == (agent, text)


def test_options_of_a_line_of_text_stand_before_it_or_behind_the_agent() -> None:
    asked = CHAT.parse("-s 'my session' weather -q What now?", None, leads=leads)

    assert (asked.session, asked.quiet, asked.new) == ("my session", True, False)


def test_a_reply_can_be_captured_from_a_line_and_from_a_cell() -> None:
    line, cell = CHAT.parse("ans << weather Hi", None, leads=leads), CHAT.parse("ans << weather", "Hi")

    assert (line.capture, line.agent, line.text) == ("ans", "weather", "Hi")
    assert (cell.capture, cell.agent, cell.text) == ("ans", "weather", "Hi")


def test_a_semicolon_at_the_end_of_the_line_silences_and_is_no_part_of_the_text() -> None:
    asked = CHAT.parse("weather a; b;", None, leads=leads)

    assert (asked.silent, asked.text) == (True, "a; b")


@each(
    "grammar, line, cell, said",
    [
        (AGENT, "weather --modle x", "x", "%%agent has no option --modle; did you mean --model? see %%agent?"),
        (AGENT, "weather --modle=x", "x", "%%agent has no option --modle; did you mean --model? see %%agent?"),
        (
            AGENT,
            "a --schema X",
            "x",
            "no option --schema; did you mean --output-schema or --input-schema? see %%agent?",
        ),
        (MAP, "--concurrency 2", None, "%map has no option --concurrency; did you mean --max-concurrency? see %map?"),
        (AGENT, "weather -x", "x", "%%agent has no option -x; see %%agent?"),
        (AGENT, "weather --help", "x", "%%agent has no option --help; see %%agent?"),
        (AGENT, "", "x", "%%agent: NAME is missing; type %%agent NAME [options]"),
        (AGENT, "a b", "x", "%%agent: unexpected 'b': "),
        (AGENT, "a --model", "x", "%%agent --model: needs a value, … --model MODEL; see %%agent?"),
        (AGENT, "a --max-iterations no", "x", "--max-iterations: … positive integer, got 'no'"),
        (AGENT, "a --max-iterations 0", "x", "--max-iterations: … positive integer, got '0'"),
        (AGENT, "a --raw=1", "x", "%%agent --raw: takes no value; type --raw; see %%agent?"),
        (AGENT, "a -t 'b", "x", "%%agent: … not closed: a -t 'b"),
        (TOOL, "--confirms=amount>3", "x", "%%tool has no option --confirms; did you mean --confirm? see %%tool?"),
        (AGENTS, "clerk", None, "%agents: unexpected 'clerk': … %agents --show NAME"),
        (CHAT, "--sesion x hi", None, "%chat has no option --sesion; did you mean --session? see %chat?"),
        (CONFIRM, "--yess", None, "%confirm has no option --yess; did you mean --yes? see %confirm?"),
    ],
)
def test_a_mismatch_is_reported_in_one_line(grammar: Grammar, line: str, cell: str | None, said: str) -> None:
    with pytest.raises(InputError) as raised:
        grammar.parse(line, cell, leads=leads)

    assert mentions(raised.value, said)
    assert "\n" not in str(raised.value)


def test_nothing_is_printed_whatever_is_typed(capsys: pytest.CaptureFixture[str]) -> None:
    for grammar in grammars().values():
        for line in ("--nonsense", "--help", "-h", "'", "a b c d --", "--=", "-", "=x"):
            try:
                grammar.parse(line, "x")
            except InputError as error:
                assert "\n" not in str(error)

    assert capsys.readouterr() == ("", "")


@each("grammar", grammars().values())
def test_help_names_every_option_and_its_examples_can_be_copied(grammar: Grammar) -> None:
    told = grammar.help

    assert told.startswith(grammar.purpose + "\n")
    assert len(grammar.examples) >= 3
    for option in grammar.all_options:
        assert all(word in told for word in option.spellings)
    for example in grammar.examples:
        first, _, body = example.partition("\n")
        mark = first.find(f"%{grammar.name}")
        if mark < 0:
            continue  # Python
        rest = first[mark + len(grammar.name) + 1 :].strip()
        grammar.parse(rest, body if first.startswith("%%") else None, leads=leads)


def test_a_value_that_python_cannot_convert_is_refused_in_a_line() -> None:
    brief = Grammar("brief", "Be brief.", examples=["%brief"], options=[Option("--at-most N", "words", convert=int)])

    assert brief.parse("--at-most 5", None).at_most == 5
    with pytest.raises(InputError, match=r"^%brief --at-most: 'five' is no N: .*; see %brief\?$"):
        brief.parse("--at-most five", None)


def test_a_number_below_zero_is_no_option() -> None:
    assert CHAT.parse("-5 degrees").text == "-5 degrees"
