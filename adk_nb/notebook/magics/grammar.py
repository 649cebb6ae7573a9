"""The grammar of a magic's line, from which its parser, usage errors, help and completion are made."""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Literal

from adk_nb.errors import InputError, UserError, closest
from adk_nb.notebook.magics.values import either, is_option, next_token, split_tokens
from adk_nb.notebook.registry import Reference, registry

_CAPTURE = re.compile(r"\s*([^\W\d]\w*)\s*<<(?:\s+|$)")
_LIST = re.compile(r"[^\s,]+(?: ?, ?[^\s,]+)+")
_USAGE = re.compile(r"(?:-(?P<short>\w), )?--(?P<name>[\w-]+)(?:\[=(?P<optional>.+)\]| (?P<value>.+))?")


_FIRST_EXAMPLES = 3
"""Examples at the beginning of the help."""


def _never(token: str) -> bool:
    return False


def _indented(examples: Sequence[str]) -> list[str]:
    return [line for example in examples for line in (*("    " + line for line in example.splitlines()), "")]


@dataclass(frozen=True)
class Option:
    """One option of a magic."""

    usage: str
    """As help shows it: `--yes`, `-m, --model MODEL`, or `--graph[=NAME]` where the value may be left out."""
    help: str
    _: KW_ONLY
    bare: str = ""
    """The value if none is typed."""
    takes: Callable[[str], bool] = _never
    """True if the next word is the optional value; else the value follows `=`."""
    many: bool = False
    """May be repeated."""
    convert: Callable[[str], Any] = str
    """Convert the text; raises an ArgumentTypeError with the problem, or as `int` a ValueError."""
    choices: tuple[str, ...] = ()
    """All valid values."""
    default: str = ""
    """With `choices`: another valid value, the same as leaving out the option."""
    hints: Mapping[str, str] = field(default_factory=dict[str, str])
    """Invalid value -> a hint what to type."""
    proposals: tuple[str, ...] = ()
    """Values to complete, if others are valid too."""
    names: str = ""
    """The kind of names to complete: `agent`, `tool`, `model`, `session`, `state` ..."""

    def __post_init__(self) -> None:
        _ = self._parts

    @cached_property
    def _parts(self) -> re.Match[str]:
        usage: Any = self.usage
        if not (isinstance(usage, str) and (match := _USAGE.fullmatch(usage))):
            word = re.sub(r"^\W+", "", str(usage)) or "name"
            raise InputError(f"{usage!r:.60} cannot be the usage of an option; write '--{word:.40}'")
        return match

    @property
    def name(self) -> str:
        """The long name, without dashes."""
        return self._parts["name"]

    @property
    def attribute(self) -> str:
        """The attribute of the parsed line."""
        return self.name.replace("-", "_")

    @property
    def spellings(self) -> list[str]:
        """The tokens for it: `-m` and `--model`."""
        return [f"-{self._parts['short']}"] * bool(self._parts["short"]) + [f"--{self.name}"]

    @property
    def value(self) -> str:
        """The noun for its value; empty for a flag."""
        return self._parts["value"] or self._parts["optional"] or ""

    @property
    def needs_value(self) -> bool:
        """True if the value is required."""
        return bool(self._parts["value"])

    def parse(self, text: str) -> Any:
        """Check and convert the value. Raises an ArgumentTypeError for an invalid one."""
        if self.choices and text not in (*self.choices, self.default):
            hint = self.hints.get(text)
            unknown = unknown_choice(self.value.lower(), text, self.choices)
            raise argparse.ArgumentTypeError(f"{unknown}; {hint}" if hint else unknown)
        try:
            return self.convert(text)
        except UserError:
            raise
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"{text!r} is no {self.value}: {error}") from error


@dataclass(frozen=True)
class Argument:
    """A positional argument of a magic."""

    name: str
    help: str
    _: KW_ONLY
    needed: bool = False
    many: bool = False
    choices: tuple[str, ...] = ()
    """Valid values, for completion; the magic itself checks them."""
    names: str = ""
    """The kind of names to complete, as in `Option.names`."""
    names_after: Mapping[str, str] = field(default_factory=dict[str, str])
    """The same, by the previous word."""

    @property
    def usage(self) -> str:
        """The argument as help shows it."""
        name = f"{self.name}..." if self.many else self.name
        return name if self.needed else f"[{name}]"


@dataclass(frozen=True, kw_only=True)
class AddedOption:
    """An option that an extension adds to a magic. Its functions may be named, as `package.module:name`."""

    magic: ClassVar[str]
    """The magic that takes options of this kind."""
    option: Option
    after: str = ""
    """The option below which help lists it; empty: the last one."""


@dataclass(frozen=True, kw_only=True)
class AgentOption(AddedOption):
    """An option of `%%agent`."""

    magic = "agent"
    apply: Reference
    """`(agent, value)`: changes an `LlmAgent` when it is built, as `agent.tools.append(...)`."""
    check: Reference = None
    """`(host, mark, value) -> value`: raises a UserError, which begins with the mark, before anything is defined."""
    notes: Reference = None
    """`(value) -> lines` below the cell."""
    listed: Reference = None
    """`(agent -> value) -> rows, lines`: what `%tools` lists of it."""


@dataclass(frozen=True, kw_only=True)
class TurnOption(AddedOption):
    """An option of `%chat`."""

    magic = "chat"
    around: Reference
    """`(host, args)`: the context in which the turn runs; raises a UserError before anything is sent."""


@dataclass(frozen=True, kw_only=True)
class ToolOption(AddedOption):
    """An option of `%tool`."""

    magic = "tool"
    define: Reference
    """`(host, args) -> report`: defines the tools of the line in place of the magic."""


def unknown_choice(noun: str, text: str, choices: tuple[str, ...]) -> str:
    """Return the message for a text that is not one of `choices`."""
    return f"unknown {noun} {text!r}; use {either(choices)}"


@dataclass(frozen=True, eq=False)
class Grammar:
    """Arguments, options and text that the line of a magic may have."""

    name: str
    """The name of the magic, without `%`."""
    purpose: str
    """One or two sentences."""
    _: KW_ONLY
    examples: list[str]
    """Complete cells."""
    arguments: list[Argument] = field(default_factory=list[Argument])
    """In order; only the last may be `many`."""
    options: list[Option] = field(default_factory=list[Option])
    """In the order of the help."""
    twin: str = ""
    """The equivalent Python calls."""
    takes_text: bool = False
    """The line ends in free text, in which quotes and `#` have no meaning."""
    cells: bool = False
    """Help shows it with `%%`."""
    body: Literal["", "prose", "edges", "table", "python"] = ""
    """The kind of text below the line, by which editors highlight it."""
    pairs: bool = False
    """Values of `key=value` may have blanks around `=`, and JSON without quotes around it."""
    surplus_hint: str = ""
    """What to type instead of a surplus word."""

    def parse(self, line: str, cell: str | None = None, *, leads: Callable[[str], bool] = _never) -> argparse.Namespace:
        """Parse a line.

        Args:
            line: The line after the name of the magic.
            cell: The lines below it; None for `%`.
            leads: For free text: True if its first word is a name, after which more options may follow.

        Returns:
            Options and arguments by name (`output_key`); `text`, the cell or the free text; `capture`, the variable
            before `<<`; `silent`, True if the line ended in `;`; `mark`, the magic as typed; `plain`, True if the
            text followed `--`.

        Raises:
            InputError: The line is not of this grammar.
        """
        mark = ("%" if cell is None else "%%") + self.name
        line, silent = without_semicolon(line)
        if self.takes_text and line.startswith("<<"):
            raise InputError(f"{mark}: the variable for the reply is missing; type {mark} answer {line}")
        capture = _CAPTURE.match(line) if self.takes_text else None
        line = line[capture.end() :] if capture else line
        if self.takes_text and cell is None:
            tokens, text, plain = self._split_text(line, mark, leads)
        else:
            tokens, text, plain = [token for token, _ in split_tokens(line, mark, pairs=self.pairs)], cell, False
        args = self._parse_tokens(tokens, mark)
        if cell is not None and cell.strip() and not (self.cells or self.takes_text):
            raise InputError(f"{mark} takes no lines below it; type %{self.name}")
        args.text, args.capture, args.silent, args.mark, args.plain = (
            text or "",
            capture and capture[1],
            silent,
            mark,
            plain,
        )
        return args

    @property
    def all_options(self) -> list[Option]:
        """In the order of the help, with those that extensions add."""
        return _all_options(self, registry.version)

    @property
    def added(self) -> list[AddedOption]:
        """The options that extensions add."""
        return _added(self, registry.version)

    def option(self, token: str) -> Option | None:
        """Return the option for a token (`-m`, `--model`, `--model=x`), or None."""
        name = token.partition("=")[0]
        return next((option for option in self.all_options if name in option.spellings), None)

    def takes_next(self, token: str) -> bool:
        """Return True if the next token is the value of this one."""
        option = self.option(token)
        return bool(option and option.needs_value and "=" not in token)

    @property
    def mark(self) -> str:
        """The magic with `%%` or `%`, as help shows it."""
        return ("%%" if self.cells else "%") + self.name

    @property
    def usage(self) -> str:
        """The form of the line, in one line."""
        rest = ["[options]"] * bool(self.all_options) + ["text"] * self.takes_text
        return " ".join([self.mark, *(argument.usage for argument in self.arguments), *rest])

    @property
    def help(self) -> str:
        """The text of `%name?`."""
        return "\n".join(filter(None, self.help_parts))

    @property
    def help_parts(self) -> tuple[str, str]:
        """What everybody needs: the purpose, the form of the line, and a few examples; and the rest."""
        first, more = self.examples[:_FIRST_EXAMPLES], self.examples[_FIRST_EXAMPLES:]
        rows = [(argument.name, argument.help) for argument in self.arguments]
        rows += [(option.usage, option.help) for option in self.all_options]
        width = max((len(usage) for usage, _ in rows), default=0)
        head = [self.purpose, "", f"    {self.usage}", "", "Examples:", "", *_indented(first)]
        rest = [f"    {usage:<{width}}  {text}" for usage, text in rows]
        rest = ["Arguments and options:", "", *rest, ""] if rows else []
        rest += ["More examples:", "", *_indented(more)] if more else []
        rest += [f"In Python: {self.twin}"] if self.twin else []
        return "\n".join(head).rstrip() + "\n", "\n".join(rest).rstrip() + "\n" if rest else ""

    def _split_text(self, line: str, mark: str, leads: Callable[[str], bool]) -> tuple[list[str], str, bool]:
        """Split options and the name off the text; return them, the text, and True if it followed `--`."""
        tokens: list[str] = []
        has_name = takes_value = False
        start = 0
        while (start := next_token(line, start)) < len(line):
            rest = line[start:]
            if not takes_value and not is_option(rest):
                first = rest.split(maxsplit=1)[0]
                if has_name or not leads(first):
                    return tokens, rest, False
                has_name = True
                tokens.append(first)
                start += len(first)
                continue
            token, start = next(split_tokens(line, mark, comments=False, start=start))
            if token == "--" and not takes_value:
                return tokens, line[start:].strip(), True
            tokens.append(token)
            takes_value = not takes_value and self.takes_next(token)
        return tokens, "", False

    def _parse_tokens(self, tokens: list[str], mark: str) -> argparse.Namespace:
        args = argparse.Namespace()
        for option in self.all_options:
            setattr(args, option.attribute, [] if option.many else None if option.value else False)
        rest, plain = list(reversed(tokens)), list[str]()
        while rest:
            token = rest.pop()
            if token == "--":
                plain += reversed(rest)
                break
            if not is_option(token) or " " in token.partition("=")[0]:
                plain.append(token)
                continue
            option = self.option(token)
            if option is None:
                raise self._unknown_option(token, mark)
            value = _parse_option(option, token, rest, mark)
            setattr(args, option.attribute, [*getattr(args, option.attribute), value] if option.many else value)
        for number, argument in enumerate(self.arguments):
            value = plain[number:] if argument.many else next(iter(plain[number:]), None)
            if value is None and argument.needed:
                raise InputError(f"{mark}: {argument.name} is missing; type {self.usage}, see {mark}?")
            setattr(args, argument.name.lower(), value)
        surplus = plain[len(self.arguments) :]
        if surplus and not (self.arguments and self.arguments[-1].many):
            # A list with a blank beside its comma, as -t a, b, is the likeliest cause.
            words = " ".join(token for token in tokens if " " not in token)
            split = next((match[0] for match in _LIST.finditer(words) if " " in match[0]), "")
            hint = self.surplus_hint or f"type {self.usage}, see {mark}?"
            hint = f"write a list without blanks: {split.replace(' ', '')}" if split else hint
            raise InputError(f"{mark}: unexpected {' '.join(surplus)!r}: {hint}")
        return args

    def _unknown_option(self, token: str, mark: str) -> InputError:
        name = token.partition("=")[0]
        typed, names = name.lstrip("-"), [option.name for option in self.all_options]
        swapped = next((option for option in names if sorted(option) == sorted(typed)), None)
        longer = [option for option in names if typed in option.split("-")]
        near = swapped or " or --".join(longer) or (closest(typed, names) if len(name) > 2 else None)
        hint = f"; did you mean --{near}?" if near else ";"
        return InputError(f"{mark} has no option {name}{hint} see {mark}?")


@lru_cache(maxsize=64)
def _added(grammar: Grammar, version: int) -> list[AddedOption]:
    """The options that extensions add to a magic, as far as they can be used. `version`: of the registry."""
    added: list[AddedOption] = []
    kinds: list[type[AddedOption]] = [kind for kind in AddedOption.__subclasses__() if kind.magic == grammar.name]
    taken = {token for option in grammar.options for token in option.spellings}
    for extension in registry if kinds else ():
        for item in registry.use(extension, extension.options.get(grammar.name, ()), Sequence) or ():
            try:
                if not isinstance(item, kinds[0]):
                    raise InputError(f"{item!r:.60} is not a {kinds[0].__name__}")
                if clash := taken.intersection(item.option.spellings):
                    raise InputError(f"%{grammar.name} has an option {min(clash)} already; choose another name")
                taken |= {*item.option.spellings}
                added.append(item)
            except Exception as error:
                registry.note(extension, error)
    return added


@lru_cache(maxsize=64)
def _all_options(grammar: Grammar, version: int) -> list[Option]:
    options = [*grammar.options]
    for item in grammar.added:
        names = [option.name for option in options]
        options.insert(names.index(item.after) + 1 if item.after in names else len(options), item.option)
    return options


def _parse_option(option: Option, token: str, rest: list[str], mark: str) -> Any:
    """Return the value of an option. `rest`: the tokens after it in reverse; its value is popped."""
    _, has_value, text = token.partition("=")
    following = rest[-1] if rest else None
    problem = ""
    if not option.value:
        problem = f"takes no value; type --{option.name}" if has_value else ""
    elif not has_value and option.needs_value:
        if following is None or (is_option(following) and " " not in following):
            problem = f"needs a value, as in --{option.name} {option.value}"
        else:
            text = rest.pop()
    elif not has_value:
        text = rest.pop() if following is not None and option.takes(following) else option.bare
    if problem:
        raise InputError(f"{mark} --{option.name}: {problem}; see {mark}?")
    try:
        return option.parse(text) if option.value else True
    except argparse.ArgumentTypeError as error:
        raise InputError(f"{mark} --{option.name}: {error}; see {mark}?") from None


def without_semicolon(line: str) -> tuple[str, bool]:
    """Return `line` without the `;` that silences a cell, and True if there was one."""
    line = line.strip()
    return (line[:-1].rstrip(), True) if line.endswith(";") else (line, False)


SESSION_OPTION = Option("-s, --session NAME", "another session than the current one", names="session")
