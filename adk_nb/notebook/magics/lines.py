"""Lines that IPython would read in its own way before a magic sees them.

`%chat guide How is Oslo?` ends in what IPython takes for a request for help on `Oslo`, and a `%%agent` cell without
a body ends in a UsageError, which nbval and other runners do not notice.
"""

import re
import tokenize
from typing import Any

from IPython.core.inputtransformer2 import EscapedCommand, MagicAssign

from adk_nb.notebook.magics.catalog import MODULES

_WITH_TEXT = ("chat", "confirm", "state")
_SEMICOLON = re.compile(r";\s*(['\"]\)\s*)$")
_BEFORE_ALL = -1
"""IPython takes what starts first in a line; its HelpEnd starts with the line."""
_ONLY_LINE = re.compile(rf"%%({'|'.join(MODULES)})\b[^?]*$")


class _TextLine(EscapedCommand):
    """`%chat words?` is a line of words, before anyone looks for help in it."""

    start_col: int

    def __init__(self, start: tuple[int, int]) -> None:
        super().__init__(start)
        self._column: int = self.start_col
        self.start_col = _BEFORE_ALL

    def transform(self, lines: list[str]) -> list[str]:
        self.start_col = self._column
        return super().transform(lines)

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> "_TextLine | None":
        for line in tokens_by_line:
            start = next((one for one in range(len(line)) if line[one].type not in _INDENTS), None)
            if start is not None and _says(line, start):
                return cls(line[start].start)
        return None


class _TextAssign(MagicAssign):
    """`ans = %chat words?` likewise."""

    start_line: int
    start_col: int

    def __init__(self, start: tuple[int, int]) -> None:
        super().__init__(start)
        self._column: int = self.start_col
        self.start_col = _BEFORE_ALL

    def transform(self, lines: list[str]) -> list[str]:
        self.start_col = self._column
        made = super().transform(lines)
        at = self.start_line
        # What is assigned is shown nowhere: a semicolon stands there out of habit, and is to cost no reply.
        made[at] = _SEMICOLON.sub(r"\1", made[at])
        return made

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> "_TextAssign | None":
        for line in tokens_by_line:
            sign = next((at for at, one in enumerate(line) if one.string == "="), None)
            if sign is not None and line[0].type in (tokenize.NAME, *_INDENTS) and _says(line, sign + 1):
                return cls(line[sign + 1].start)
        return None


_INDENTS = (tokenize.INDENT, tokenize.DEDENT)


def _says(line: list[Any], at: int) -> bool:
    """Whether `%chat`, `%state` or `%confirm` stands at `at` with something after a blank."""
    if len(line) < at + 3:
        return False
    sign, name, after = line[at : at + 3]
    return (
        sign.string == "%"
        and name.string in _WITH_TEXT
        and sign.end == name.start
        and after.start > name.end
        and after.type not in (tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER)
    )


def _give_empty_cells_a_body(lines: list[str]) -> list[str]:
    if lines and _ONLY_LINE.match(lines[0].rstrip()) and not "".join(lines[1:]):
        return [lines[0].rstrip() + "\n", "\n"]
    return lines


def install(shell: Any) -> None:
    """Let `shell` read such lines as they are meant."""
    manager = shell.input_transformer_manager
    manager.token_transformers[:0] = [_TextLine, _TextAssign]
    manager.cleanup_transforms.append(_give_empty_cells_a_body)


def remove(shell: Any) -> None:
    """Undo `install`."""
    manager = shell.input_transformer_manager
    for one in (_TextLine, _TextAssign):
        if one in manager.token_transformers:
            manager.token_transformers.remove(one)
    if _give_empty_cells_a_body in manager.cleanup_transforms:
        manager.cleanup_transforms.remove(_give_empty_cells_a_body)
