"""The one parser of all magic lines, and the help that is written from it."""

import argparse
import io
import json
import math
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from adk_nb.errors import InputError, closest

_CAPTURE = re.compile(r"\s*([^\W\d]\w*)\s*<<(?:\s+|$)")
_KEY = re.compile(r"((?:[^\W\d]\w*:)?[^\W\d]\w*)\s*=")
_BEFORE_VALUE = re.compile(r"\s+(?=\S)(?!#|--?[^\W\d]|[\w:]+\s*=)")
_JSON = json.JSONDecoder()


@dataclass(frozen=True, kw_only=True)
class Option:
    """One option of a magic."""

    name: str
    """The long name, without dashes."""
    help: str
    short: str = ""
    """One letter."""
    value: str = ""
    """What help calls its value; empty: it takes none."""
    bare: str | None = None
    """Its value when it is given without one; then a value is taken after `=`, or where `takes` says so."""
    takes: Callable[[str], bool] = lambda word: False
    """Whether the next word is the value, though there may be none."""
    many: bool = False
    """It may be given several times."""
    convert: Callable[[str], Any] = str
    """Text -> value; raises InputError with what is wrong with it."""
    names: str = ""
    """What completes its value: `agent`, `tool`, `model`, `session`, `state`, or the values themselves with `|`."""

    @property
    def spelled(self) -> list[str]:
        return ([f"-{self.short}"] if self.short else []) + [f"--{self.name}"]

    @property
    def usage(self) -> str:
        said = ", ".join(self.spelled)
        if not self.value:
            return said
        return f"{said}[={self.value}]" if self.bare is not None else f"{said} {self.value}"


@dataclass(frozen=True, kw_only=True)
class Word:
    """What a magic takes beside options."""

    name: str
    help: str
    needed: bool = False
    many: bool = False
    names: str = ""
    """What completes it, as in `Option.names`; `use=session|load=file`: by the word before it."""


class Grammar:
    """What may stand on the line of one magic.

    Args:
        name: The magic's, without `%`.
        purpose: One line.
        examples: Cells to copy.
        words: In order; only the last may take many.
        options: In the order help shows them.
        twin: The same in Python.
        takes_text: Its line form ends in free text: quotes and `#` mean nothing there.
        cells: It is mostly used with `%%`.
        pairs: It takes `key=value`; blanks may stand around the `=`, and JSON behind it without quotes around it.
    """

    def __init__(
        self,
        name: str,
        purpose: str,
        *,
        examples: list[str],
        words: list[Word] | None = None,
        options: list[Option] | None = None,
        twin: str = "",
        takes_text: bool = False,
        cells: bool = False,
        pairs: bool = False,
    ) -> None:
        self.name = name
        self.purpose = purpose
        self.examples = examples
        self.words = words or []
        self.options = options or []
        self.twin = twin
        self.takes_text = takes_text
        self.cells = cells
        self.pairs = pairs
        self._spelled = {word: option for option in self.options for word in option.spelled}

    def parse(
        self, line: str, cell: str | None = None, *, leads: Callable[[str], bool] | None = None
    ) -> argparse.Namespace:
        """What was typed.

        Args:
            line: The rest of the magic's line.
            cell: The lines below it; None for `%`.
            leads: For free text: whether its first word is a name, after which options may follow too.

        Returns:
            Each option and word by its name (`output_key`); `text`, the cell or the free text; `capture`, the name
            before `<<`; `silent`, whether the line ended in `;`; `mark`, how the magic was written; `plain`, whether
            `--` said that all the rest is text.

        Raises:
            InputError: The line does not fit.
        """
        mark = ("%" if cell is None else "%%") + self.name
        line, silent = _without_semicolon(line.strip())
        if self.takes_text and line.startswith("<<"):
            raise InputError(f"{mark}: a variable for the reply stands before <<; write {mark} answer {line}")
        line, capture = self._captured(_with_pairs_joined(line, mark) if self.pairs else line)
        free = self.takes_text and cell is None
        words, text, plain = self._free(line, mark, leads) if free else ([*self._words(line, mark)], "", False)
        asked = self._parser(mark, free).parse_intermixed_args(self._checked(words, mark))
        asked.text = text if cell is None else cell
        asked.capture, asked.silent, asked.mark, asked.plain = capture, silent, mark, plain
        return asked

    def option(self, word: str) -> Option | None:
        """The option that `word` (`-m`, `--model`, `--model=x`) names."""
        return self._spelled.get(word.partition("=")[0])

    @property
    def help(self) -> str:
        """What `%name?` shows."""
        mark = ("%%" if self.cells else "%") + self.name
        usage = " ".join([mark, *(_in_usage(word) for word in self.words)])
        if self.options:
            usage += " [options]"
        if self.takes_text:
            usage += " text"
        rows = [(word.name, word.help) for word in self.words] + [(one.usage, one.help) for one in self.options]
        width = max((len(row[0]) for row in rows), default=0)
        told = [self.purpose, "", f"    {usage}", "", "Examples:", ""]
        for example in self.examples:
            told += ["    " + one for one in example.splitlines()] + [""]
        if rows:
            told += ["Words and options:", ""] + [f"    {left:<{width}}  {right}" for left, right in rows] + [""]
        if self.twin:
            told += [f"In Python: {self.twin}"]
        return "\n".join(told).rstrip() + "\n"

    def _captured(self, line: str) -> tuple[str, str | None]:
        found = _CAPTURE.match(line) if self.takes_text else None
        return (line[found.end() :], found[1]) if found else (line, None)

    def _words(self, line: str, mark: str) -> Iterator[str]:
        for word, _, _ in _split(line, mark):
            if word is None:
                return
            yield word

    def _free(self, line: str, mark: str, leads: Callable[[str], bool] | None) -> tuple[list[str], str, bool]:
        """Options first, then text that is taken as it stands."""
        words: list[str] = []
        led = leads is None
        takes_value = False
        start = 0
        pieces = _split(line, mark, comments=False)
        while (start := _next_word(line, start)) < len(line):
            rest = line[start:]
            if not takes_value and not _is_option(rest):
                first = rest.split(maxsplit=1)[0]
                if led or leads is None or not leads(first):
                    return words, rest, False
                led = True
                words.append(first)
                start += len(first)
                pieces = _split(line, mark, comments=False, start=start)
                continue
            word, _, start = next(pieces)
            if word == "--" and not takes_value:
                return words, line[start:].strip(), True
            words.append(word or "")
            option = None if takes_value else self.option(word or "")
            takes_value = bool(option and option.value and option.bare is None and "=" not in (word or ""))
        return words, "", False

    def _checked(self, words: list[str], mark: str) -> list[str]:
        """`words` for argparse, each option known and, where it may be bare, with its value."""
        made: list[str] = []
        is_value = False
        for place, word in enumerate(words):
            if is_value or not _is_option(word):
                made.append(word)
                is_value = False
                continue
            if word == "--":
                return made + words[place:]
            option = self.option(word)
            if option is None:
                raise self._unknown(word, mark)
            if option.bare is not None and "=" not in word and not any(map(option.takes, words[place + 1 :][:1])):
                word = f"--{option.name}={option.bare}"
            made.append(word)
            is_value = bool(option.value and "=" not in word)
        return made

    def _unknown(self, word: str, mark: str) -> InputError:
        name = word.partition("=")[0]
        typed, known = name.lstrip("-"), [one.name for one in self.options]
        swapped = next((one for one in known if sorted(one) == sorted(typed)), None)
        near = swapped or (closest(typed, known) if len(name) > 2 else None)
        told = f"; did you mean --{near}?" if near else ";"
        return InputError(f"{mark} has no option {name}{told} see {mark}?")

    def _parser(self, mark: str, free: bool) -> "_Parser":
        parser = _Parser(mark)
        for word in self.words:
            many = "+" if word.needed else "*"
            one = None if word.needed else "?"
            if not (free and word.many):
                parser.add_argument(word.name.lower(), nargs=many if word.many else one, metavar=word.name)
        for option in self.options:
            said: dict[str, Any] = {"action": "store_true"}
            if option.value:
                said = {"action": "append" if option.many else "store", "metavar": option.value}
                said["type"] = option.convert
            parser.add_argument(*option.spelled, **said)
        return parser


_WHY_NO_PLACE = {
    "%%agent": ": a name is one word, and the instruction stands below the line",
    "%confirm": ": one approval at a time, or --all; a reason of several words stands in quotes",
}


class _Parser(argparse.ArgumentParser):
    """argparse that neither prints nor exits."""

    def __init__(self, mark: str) -> None:
        super().__init__(prog=mark, add_help=False, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        message = re.sub(r"^the following arguments are required: (.*)", r"\1 is missing", message)
        message = re.sub(r"^argument (-\w/)?", "", message)
        why = _WHY_NO_PLACE.get(self.prog, "")
        message = re.sub(r"^unrecognized arguments: (.*)", rf"there is no place for \1{why}", message)
        if (option := message.removesuffix(": expected one argument")) != message:
            message = f"{option} needs a value, as in {option} {self._option_string_actions[option].metavar}"
        raise InputError(f"{self.prog}: {message}; see {self.prog}?")


def whole_number(text: str) -> int:
    """A number above zero, as an option's value."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number above zero")
    return int(text)


def seconds(text: str) -> float:
    """A time above zero, as an option's value."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above zero")
    return value


def dollars(text: str) -> float:
    """US dollars above zero, as an option's value; the sign may stand before them."""
    try:
        value = float(text.removeprefix("$"))
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of US dollars above zero; write 0.10")
    return value


def kind(text: str) -> str:
    """A kind of agent, as an option's value."""
    kinds = ("llm", "sequential", "parallel", "loop")
    if text not in kinds:
        near = closest(text, kinds)
        hint = f"write --kind {near}" if near else f"there is {', '.join(kinds)}"
        hint = "a graph is a cell that begins %%workflow" if text in ("workflow", "graph") else hint
        raise argparse.ArgumentTypeError(f"{text!r} is no kind; {hint}")
    return text


def mode(text: str) -> str:
    """How an agent works under another, as an option's value."""
    modes = ("chat", "single_turn", "task")
    if text not in modes:
        near = closest(text.replace("-", "_"), modes)
        hint = f"write --mode {near}" if near else f"there is {', '.join(modes)}"
        raise argparse.ArgumentTypeError(f"{text!r} is no mode; {hint}")
    return text


def effect(text: str) -> str:
    """What it means to call a tool again, as an option's value."""
    effects = ("pure", "idempotent", "once")
    if text not in effects:
        near = closest(text, effects)
        hint = f"write --effect {near}" if near else f"there is {', '.join(effects)}"
        raise argparse.ArgumentTypeError(f"{text!r} is no effect; {hint}")
    return text


def is_condition(word: str) -> bool:
    """Whether the word behind `--confirm` is its value, and not the name of a tool."""
    return word in ("always", "never") or not (word.isidentifier() or _is_option(word))


def no_json(mark: str, key: str, value: str) -> InputError:
    """The error for a value that begins like JSON and is none."""
    return InputError(
        f"{mark}: {key}={value:.80} begins like JSON and is none; write names and text in double quotes, as "
        f'{key}={{"x": ["y"]}}, or the whole value in double quotes if it is text'
    )


def names_in(text: str) -> list[str]:
    """`a,b` as a list of names."""
    return [one.strip() for one in text.split(",") if one.strip()]


def _split(line: str, mark: str, *, comments: bool = True, start: int = 0) -> Iterator[tuple[str | None, int, int]]:
    """The words of `line` by the shell's rules, each with where it starts and ends. `#` before a word ends the line."""
    stream = io.StringIO(line)
    stream.seek(start)
    lexer = shlex.shlex(stream, posix=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    while (at := _next_word(line, stream.tell())) < len(line):
        if comments and line[at] == "#":
            return
        try:
            word = lexer.get_token()
        except ValueError as error:
            raise InputError(f"{mark}: a quote is opened and not closed in: {line}") from error
        yield word, at, stream.tell()


def _with_pairs_joined(line: str, mark: str) -> str:
    """`line` without blanks around each `=`, and JSON behind it quoted, so that the shell's rules leave it whole."""
    made = ""
    start = 0
    while (start := _next_word(line, start)) < len(line) and line[start] != "#":
        if key := _KEY.match(line, start):
            made += f" {key[1]}="
            blanks = _BEFORE_VALUE.match(line, key.end())
            start = blanks.end() if blanks else key.end()
            end = _end_of_json(line, start)
            if end is None and line[start : start + 1] in ("{", "["):
                raise no_json(mark, key[1], line[start:])
            if end is not None:
                made += shlex.quote(line[start:end])
                start = end
            if end is not None or not line[start : start + 1].strip():
                continue
        else:
            made += " "
        _, at, end = next(_split(line, mark, comments=False, start=start))
        made += line[at:end].rstrip()
        start = end
    return made + " " + line[start:]


def _end_of_json(line: str, start: int) -> int | None:
    """Where the object, list or text in double quotes that begins at `start` ends; None if none does."""
    if line[start : start + 1] not in ("{", "[", '"'):
        return None
    try:
        _, end = _JSON.raw_decode(line, start)
    except ValueError:
        return None
    return None if line[end : end + 1].strip() else end


def _next_word(line: str, start: int) -> int:
    return len(line) - len(line[start:].lstrip())


def _is_option(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and not (word[1].isspace() or word[1].isdigit())


def _without_semicolon(line: str) -> tuple[str, bool]:
    return (line[:-1].rstrip(), True) if line.endswith(";") else (line, False)


def _in_usage(word: Word) -> str:
    name = f"{word.name}..." if word.many else word.name
    return name if word.needed else f"[{name}]"
