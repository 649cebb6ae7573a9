"""What may be typed on the line of a magic. Its parser, usage, help and Tab all come from its one `Grammar`."""

import argparse
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from adk_nb.errors import InputError, closest
from adk_nb.notebook.magics.values import either, is_option, join_pairs, next_word, split_words

_CAPTURE = re.compile(r"\s*([^\W\d]\w*)\s*<<(?:\s+|$)")


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
    """Text -> value; raises an ArgumentTypeError that says what is wrong with it."""
    choices: tuple[str, ...] = ()
    """All values that there are."""
    default: str = ""
    """With `choices`: the value that holds without the option; it may be given, too."""
    hints: Mapping[str, str] = field(default_factory=dict[str, str])
    """A value that is none of `choices` -> what to write."""
    proposals: tuple[str, ...] = ()
    """Values that Tab proposes, beside others that there are."""
    names: str = ""
    """The kind of names that completes its value: `agent`, `tool`, `model`, `session`, `state` ..."""

    @property
    def attribute(self) -> str:
        """Its name among what was parsed."""
        return self.name.replace("-", "_")

    @property
    def spelled(self) -> list[str]:
        return ([f"-{self.short}"] if self.short else []) + [f"--{self.name}"]

    @property
    def usage(self) -> str:
        names = ", ".join(self.spelled)
        if not self.value:
            return names
        return f"{names}[={self.value}]" if self.bare is not None else f"{names} {self.value}"

    def parse(self, text: str) -> Any:
        """Its value. Raises an ArgumentTypeError if there is no such value."""
        if self.choices and text not in (*self.choices, self.default):
            hint = self.hints.get(text)
            unknown = unknown_choice(self.value.lower(), text, self.choices)
            raise argparse.ArgumentTypeError(f"{unknown}; {hint}" if hint else unknown)
        return self.convert(text)


@dataclass(frozen=True, kw_only=True)
class Word:
    """What a magic takes beside options."""

    name: str
    help: str
    needed: bool = False
    many: bool = False
    choices: tuple[str, ...] = ()
    """What may stand there; the magic itself checks it."""
    names: str = ""
    """The kind of names that completes it, as in `Option.names`."""
    names_after: tuple[tuple[str, str], ...] = ()
    """The same, by the word before it."""

    @property
    def usage(self) -> str:
        name = f"{self.name}..." if self.many else self.name
        return name if self.needed else f"[{name}]"


def unknown_choice(what: str, text: str, choices: tuple[str, ...]) -> str:
    """The error for a word that is none of `choices`."""
    return f"unknown {what} {text!r}; use {either(choices)}"


class Grammar:
    """What may be typed on the line of one magic.

    Args:
        name: The magic's, without `%`.
        purpose: A sentence or two.
        examples: Cells to copy.
        words: In order; only the last may take many.
        options: In the order help shows them.
        twin: The same in Python.
        takes_text: Its line form ends in free text: quotes and `#` mean nothing there.
        cells: It is mostly used with `%%`.
        pairs: It takes `key=value`; blanks may stand around the `=`, and JSON behind it without quotes around it.
        one_word: Why a word too many does not fit, or where it belongs.
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
        one_word: str = "",
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
        self.one_word = one_word
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
            `--` marked all the rest as text.

        Raises:
            InputError: The line does not fit.
        """
        mark = ("%" if cell is None else "%%") + self.name
        line, silent = without_semicolon(line)
        if self.takes_text and line.startswith("<<"):
            raise InputError(f"{mark}: a variable for the reply stands before <<; write {mark} answer {line}")
        line, capture = self._captured(join_pairs(line, mark) if self.pairs else line)
        free = self.takes_text and cell is None
        if free:
            words, text, plain = self._split_text(line, mark, leads)
        else:
            words, text, plain = [word for word, _, _ in split_words(line, mark)], "", False
        args = self._parser(mark, free).parse_intermixed_args(self._checked(words, mark))
        if cell is not None and cell.strip() and not (self.cells or self.takes_text):
            raise InputError(f"{mark} takes nothing below its line; write %{self.name}")
        args.text = text if cell is None else cell
        args.capture, args.silent, args.mark, args.plain = capture, silent, mark, plain
        return args

    def option(self, word: str) -> Option | None:
        """The option that `word` (`-m`, `--model`, `--model=x`) names."""
        return self._spelled.get(word.partition("=")[0])

    def takes_next(self, word: str) -> bool:
        """Whether the word behind `word` is always its value."""
        option = self.option(word)
        return bool(option and option.value and option.bare is None and "=" not in word)

    @property
    def mark(self) -> str:
        """The magic, as it is mostly typed."""
        return ("%%" if self.cells else "%") + self.name

    @property
    def usage(self) -> str:
        """Its line, in one line."""
        rest = ["[options]"] * bool(self.options) + ["text"] * self.takes_text
        return " ".join([self.mark, *(word.usage for word in self.words), *rest])

    @property
    def help(self) -> str:
        """What `%name?` shows."""
        rows = [(word.name, word.help) for word in self.words]
        rows += [(option.usage, option.help) for option in self.options]
        width = max((len(left) for left, _ in rows), default=0)
        lines = [self.purpose, "", f"    {self.usage}", "", "Examples:", ""]
        for example in self.examples:
            lines += ["    " + line for line in example.splitlines()] + [""]
        if rows:
            lines += ["Words and options:", ""] + [f"    {left:<{width}}  {right}" for left, right in rows] + [""]
        if self.twin:
            lines += [f"In Python: {self.twin}"]
        return "\n".join(lines).rstrip() + "\n"

    def _captured(self, line: str) -> tuple[str, str | None]:
        match = _CAPTURE.match(line) if self.takes_text else None
        return (line[match.end() :], match[1]) if match else (line, None)

    def _split_text(self, line: str, mark: str, leads: Callable[[str], bool] | None) -> tuple[list[str], str, bool]:
        """Options first, then text that is taken as it stands."""
        words: list[str] = []
        has_name = leads is None
        takes_value = False
        start = 0
        pieces = split_words(line, mark, comments=False)
        while (start := next_word(line, start)) < len(line):
            rest = line[start:]
            if not takes_value and not is_option(rest):
                first = rest.split(maxsplit=1)[0]
                if has_name or leads is None or not leads(first):
                    return words, rest, False
                has_name = True
                words.append(first)
                start += len(first)
                pieces = split_words(line, mark, comments=False, start=start)
                continue
            word, _, start = next(pieces)
            if word == "--" and not takes_value:
                return words, line[start:].strip(), True
            words.append(word)
            takes_value = not takes_value and self.takes_next(word)
        return words, "", False

    def _checked(self, words: list[str], mark: str) -> list[str]:
        """`words` for argparse, each option known and, where it may be bare, with its value."""
        checked: list[str] = []
        is_value = False
        for place, word in enumerate(words):
            if is_value or not is_option(word):
                checked.append(word)
                is_value = False
                continue
            if word == "--":
                return checked + words[place:]
            option = self.option(word)
            if option is None:
                raise self._unknown(word, mark)
            if option.bare is not None and "=" not in word and not any(map(option.takes, words[place + 1 :][:1])):
                word = f"--{option.name}={option.bare}"
            checked.append(word)
            is_value = bool(option.value and "=" not in word)
        return checked

    def _unknown(self, word: str, mark: str) -> InputError:
        name = word.partition("=")[0]
        typed, known = name.lstrip("-"), [option.name for option in self.options]
        swapped = next((option for option in known if sorted(option) == sorted(typed)), None)
        near = swapped or (closest(typed, known) if len(name) > 2 else None)
        hint = f"; did you mean --{near}?" if near else ";"
        return InputError(f"{mark} has no option {name}{hint} see {mark}?")

    def _parser(self, mark: str, free: bool) -> "_Parser":
        parser = _Parser(mark, self)
        for word in self.words:
            many = "+" if word.needed else "*"
            single = None if word.needed else "?"
            if not (free and word.many):
                parser.add_argument(word.name.lower(), nargs=many if word.many else single, metavar=word.name)
        for option in self.options:
            how: dict[str, Any] = {"action": "store_true"}
            if option.value:
                how = {"action": "append" if option.many else "store", "metavar": option.value, "type": option.parse}
            parser.add_argument(*option.spelled, **how)
        return parser


class _Parser(argparse.ArgumentParser):
    """argparse that neither prints nor exits."""

    def __init__(self, mark: str, grammar: Grammar) -> None:
        super().__init__(prog=mark, add_help=False, allow_abbrev=False)
        self._grammar = grammar

    def error(self, message: str) -> NoReturn:
        message = re.sub(r"^argument (?:-\w/)?", "", message)
        usage = f"write {self._grammar.usage}, see {self.prog}?"
        option, colon, problem = message.partition(": ")
        if message.startswith("the following arguments are required"):
            raise InputError(f"{self.prog}: {problem} is missing; {usage}")
        if message.startswith("unrecognized arguments"):
            raise InputError(f"{self.prog}: there is no place for {problem}: {self._grammar.one_word or usage}")
        if problem == "expected one argument":
            value = self._option_string_actions[option].metavar
            problem = f"needs a value, as in {option} {value}"
        if problem.startswith("ignored explicit argument"):
            problem = f"takes no value; write {option} alone"
        where = f"{self.prog} {option}: " if colon else f"{self.prog}: {option}"
        raise InputError(f"{where}{problem}; see {self.prog}?")


def without_semicolon(line: str) -> tuple[str, bool]:
    """`line` without the semicolon that silences its cell, and whether there was one."""
    line = line.strip()
    return (line[:-1].rstrip(), True) if line.endswith(";") else (line, False)


SESSION_OPTION = Option(
    name="session", short="s", value="NAME", help="another session than the current one", names="session"
)
