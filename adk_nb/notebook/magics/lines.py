"""Lines that IPython would read in its own way before a magic sees them.

`%chat guide How is Oslo?` ends in what IPython takes for a request for help on `Oslo`, and a `%%agent` cell without
a body ends in a UsageError, which nbval and other runners do not notice.
"""

import re
import tokenize
from typing import Any, cast

from IPython.core.inputtransformer2 import EscapedCommand, MagicAssign, TokenTransformBase

from adk_nb.notebook.magics.catalog import MAGICS

_TEXT_MAGICS = ("chat", "confirm", "state")
_SEMICOLON = re.compile(r";\s*(['\"]\)\s*)$")
_ONLY_LINE = re.compile(rf"%%({'|'.join(MAGICS)})\b[^?]*$")
_INDENTS = (tokenize.INDENT, tokenize.DEDENT)


class _FirstInLine(TokenTransformBase):
    """A transformer that IPython takes before its own: it chooses what starts first, and its HelpEnd starts at 0."""

    start_line: int
    start_col: int

    def __init__(self, start: tuple[int, int]) -> None:
        super().__init__(start)
        self._column = self.start_col
        self.start_col = -1

    def transform(self, lines: list[str]) -> list[str]:
        self.start_col = self._column
        return cast(Any, super()).transform(lines)


class _TextLine(_FirstInLine, EscapedCommand):
    """`%chat text?`, of which IPython would look up the last word."""

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> "_TextLine | None":
        for line in tokens_by_line:
            start = next((number for number, token in enumerate(line) if token.type not in _INDENTS), None)
            if start is not None and _is_text_magic(line[start:]):
                return cls(line[start].start)
        return None


class _TextAssign(_FirstInLine, MagicAssign):
    """`ans = %chat text?` likewise."""

    def transform(self, lines: list[str]) -> list[str]:
        lines = super().transform(lines)
        # An assigned reply is shown nowhere: a semicolon stands there out of habit, and must not silence the turn.
        lines[self.start_line] = _SEMICOLON.sub(r"\1", lines[self.start_line])
        return lines

    @classmethod
    def find(cls, tokens_by_line: list[list[Any]]) -> "_TextAssign | None":
        for line in tokens_by_line:
            sign = next((number for number, token in enumerate(line) if token.string == "="), None)
            if sign is not None and line[0].type in (tokenize.NAME, *_INDENTS) and _is_text_magic(line[sign + 1 :]):
                return cls(line[sign + 1].start)
        return None


def _is_text_magic(tokens: list[Any]) -> bool:
    """True for `%chat`, `%state` or `%confirm` with something behind a blank."""
    if len(tokens) < 3:
        return False
    sign, name, text = tokens[:3]
    return (
        sign.string == "%"
        and name.string in _TEXT_MAGICS
        and sign.end == name.start
        and text.start > name.end
        and text.type not in (tokenize.NEWLINE, tokenize.NL, tokenize.ENDMARKER)
    )


def _give_empty_cells_a_body(lines: list[str]) -> list[str]:
    if lines and _ONLY_LINE.match(lines[0].rstrip()) and not "".join(lines[1:]):
        return [lines[0].rstrip() + "\n", "\n"]
    return lines


def install(shell: Any) -> None:
    """Let `shell` pass such lines to their magics."""
    manager = shell.input_transformer_manager
    manager.token_transformers[:0] = [_TextLine, _TextAssign]
    manager.cleanup_transforms.append(_give_empty_cells_a_body)


def remove(shell: Any) -> None:
    """Undo `install`."""
    manager = shell.input_transformer_manager
    for transformers in (manager.token_transformers, manager.cleanup_transforms):
        transformers[:] = [one for one in transformers if one not in (_TextLine, _TextAssign, _give_empty_cells_a_body)]
