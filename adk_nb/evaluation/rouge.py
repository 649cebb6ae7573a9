"""ROUGE-1: the overlap of words between two texts.

Source of the tokens: google-adk 2.13, `final_response_match_v1`, which scores with the package rouge-score: lower case,
NFKC, ASCII words longer than three characters stemmed, CJK characters and Southeast Asian clusters as tokens.
"""

import re
import unicodedata
from collections import Counter
from functools import cache
from typing import Any

from adk_nb.lazy import require

_CJK = ((0x4E00, 0x9FFF), (0x3040, 0x309F), (0x30A0, 0x30FF), (0xAC00, 0xD7AF))
_UNSPACED = ((0x0E00, 0x0E7F), (0x0E80, 0x0EFF), (0x1780, 0x17FF), (0x1000, 0x109F))
"""Thai, Lao, Khmer, Myanmar: written without spaces."""
_STEMMED_FROM = 4
"""Shorter words are left as they are. Source: rouge-score 0.1.2."""


def rouge_1(candidate: str, reference: str) -> float:
    """The F-measure of the words of `candidate` against those of `reference`, from 0 to 1.

    Raises:
        MissingExtraError: nltk, whose Porter stemmer is used, is not installed.
    """
    candidate_counts, reference_counts = Counter(tokens(candidate)), Counter(tokens(reference))
    common = (candidate_counts & reference_counts).total()
    if not common:
        return 0.0
    precision, recall = common / candidate_counts.total(), common / reference_counts.total()
    return 2 * precision * recall / (precision + recall)


def tokens(text: str) -> list[str]:
    """The words of a text, stemmed."""
    spaced = "".join(_spaced(char) for char in unicodedata.normalize("NFKC", text).lower())
    tokens: list[str] = []
    for word in spaced.split():
        if not word.isascii():
            tokens.append(word)
            continue
        parts = re.findall("[a-z0-9]+", word)
        tokens += [_stemmer().stem(part) if len(part) >= _STEMMED_FROM else part for part in parts]
    return tokens


def _spaced(char: str) -> str:
    """A character with spaces where a token begins or ends."""
    code, is_mark = ord(char), unicodedata.category(char).startswith("M")
    if any(first <= code <= last for first, last in _CJK):
        return f" {char} "
    if any(first <= code <= last for first, last in _UNSPACED):
        return char if is_mark else f" {char}"
    return char if is_mark or char.isalnum() else " "


@cache
def _stemmer() -> Any:
    return require("nltk.stem.porter", package="nltk").PorterStemmer()
