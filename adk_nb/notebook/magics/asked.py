"""What all magics do with their lines: help, lines that stand alone, and what is shown at the end."""

from collections.abc import Callable
from typing import Any

from adk_nb.errors import InputError
from adk_nb.notebook.magics.arguments import Grammar
from adk_nb.notebook.magics.shown import Shown, said


def helps(grammar: Grammar) -> Callable[[Any], Any]:
    """Decorates a magic: its help is that of its grammar."""

    def set_help(magic: Any) -> Any:
        magic.__doc__ = grammar.help
        return magic

    return set_help


def alone(grammar: Grammar, line: str, cell: str | None) -> Any:
    """The line of a magic that has nothing to do with what stands below it."""
    asked = grammar.parse(line, cell)
    if cell is not None and cell.strip():
        raise InputError(f"{asked.mark} takes nothing below its line; write %{grammar.name}")
    return asked


def shown(told: list[str], asked: Any) -> Shown | None:
    """Lines as what the cell shows."""
    return None if asked.silent else said(*told)


def unless_silent(told: Any, asked: Any) -> Any:
    """`told`, unless the line ends in a semicolon."""
    return None if asked.silent else told
