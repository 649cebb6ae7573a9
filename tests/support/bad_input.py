"""What people, models, tools and disks hand in that is not nice: one table, put through every door."""

import decimal
import fractions
import json
import math
from functools import cache
from typing import Any

from tests.support.late import late

np, pd = late("numpy"), late("pandas")


TEXTS: dict[str, str] = {
    "empty": "",
    "blank": " ",
    "NUL": "a\x00b",
    "BOM": "\ufeffx",
    "right to left": "\u202eabc",
    "isolate": "\u2066abc\u2069",
    "family": "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "NFC": "\u00e9",
    "NFD": "e\u0301",
    "fullwidth": "\uff47",
    "Turkish": "\u0130",
    "last of the plane": "\uffff\U0010ffff\ud7ff\ue000",
    "ANSI": "\x1b[2J\x1b[31mred",
    "OSC 8": "\x1b]8;;http://evil.example\x07link\x1b]8;;\x07",
    "overwriting": "good\rbad",
    "line ends": "a\u2028b\u2029c\x85d\r\n",
    "script": "</script>",
    "CDATA": "]]>",
    "braces": "{{x}}",
    "a key": "{state_key}",
    "format": "%s %(x)s {0.__class__}",
    "SQL": "'; DROP TABLE events; --",
    "wildcards": "%_*?[a-z]\\",
    "up": "../",
    "device": "CON",
    "colon": "a:b",
    "long name": "n" * 300,
    "an escape": "\\u0000 \\ud800 \\x00",
    "JSON": '{"a": [NaN, "\\ud83d"]}',
    "controls": "".join(map(chr, range(32))) + "\x7f\x9b",
}
LONG: dict[str, str] = {
    "one line": "x" * 1_000_000,
    "newlines": "\n" * 1_000_000,
    "10 MB": "\u00e9" * 5_000_000,
}
HALVES = {"high": "\ud800", "low": "\udfff", "half": "half \ud83d of it", "swapped": "\udc00\ud800"}
"""Halves of characters: Python has them, UTF-8 and so every store has not."""

NUMBERS: dict[str, Any] = {
    "-0.0": -0.0,
    "2^53 + 1": 2**53 + 1,
    "2^64": 2**64,
    "-2^64": -(2**64),
    "10^400": 10**400,
    "1e-400": 1e-400,
    "smallest": 5e-324,
    "largest": 1.7976931348623157e308,
    "1e16": 1e16,
    "1e23": 1e23,
    "0.1 + 0.2": 0.1 + 0.2,
    "True": True,
}
NESTED: dict[str, Any] = {
    "none": None,
    "empty list": [],
    "empty dict": {},
    "order of keys": {"z": 1, "a": 2, "aa": 3, "Z": 4, "\u00e9": 5, "": 6},
    "deep": json.loads("[" * 90 + "]" * 90),
    "many": list(range(10_000)),
    "a class": {
        "__class__": "os.system",
        "py/object": "os.system",
        "!!python/object": 1,
        "lc": 1,
        "type": "constructor",
    },
    "a pickle": "gASVHQAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAJpZJSFlFKULg==",
    "a mark": {"__adk_deleted__": False},
    "texts": TEXTS,
    "texts as keys": {text: name for name, text in TEXTS.items()},
    "numbers": NUMBERS,
}
JSON: dict[str, Any] = TEXTS | NUMBERS | NESTED
"""What JSON gives back equal."""

_ROUND: list[Any] = []
_ROUND.append(_ROUND)


@cache
def not_json() -> dict[str, tuple[Any, str]]:
    """What JSON does not give back equal, and the reason for which it is refused."""
    return {
        "NaN": (math.nan, "the number nan"),
        "infinity": (math.inf, "the number inf"),
        "-infinity": ([-math.inf], "the number -inf"),
        "5,000 digits": (10**5_000, "a number of thousands of digits"),
        "Decimal": (decimal.Decimal("1.1"), "a Decimal"),
        "Fraction": (fractions.Fraction(1, 3), "a Fraction"),
        "numpy int": (np.int64(3), "an int64"),
        "numpy float": (np.float32(1.5), "a float32"),
        "array": (np.zeros(2), "a ndarray"),
        "NA": (pd.NA, "a NAType"),
        "NaT": (pd.NaT, "a NaTType"),
        "frame": (pd.DataFrame(), "a DataFrame"),
        "key of a number": ({1: 2}, "a dict with the key 1, which is not a string"),
        "keys alike": ({1: "a", "1": "b"}, "a dict with the key 1, which is not a string"),
        "key of half a character": ({"\ud800": 1}, "half a character"),
        "tuple": ((1, 2), "a tuple"),
        "set": ({1}, "a set"),
        "bytes": (b"x", "a bytes"),
        "bytearray": ([bytearray(b"x")], "a bytearray"),
        "keys": ({}.keys(), "a dict_keys"),
        "object": ({"a": [object()]}, "an object"),
        "class": (dict, "a type"),
        "exception": (ValueError("x"), "a ValueError"),
        "nested in itself": (_ROUND, "nested more than 100 deep"),
        "depth 300": (json.loads("[" * 300 + "]" * 300), "nested more than 100 deep"),
        **{name: (text, "half a character") for name, text in HALVES.items()},
    }


def no_state() -> dict[str, tuple[Any, str]]:
    """Of these, what a state cannot hold: it holds the others in their JSON form."""
    held = ("Decimal", "Fraction", "tuple", "set", "bytes", "bytearray")
    return {name: item for name, item in not_json().items() if name not in held}


IDS = [
    *(text for text in TEXTS.values() if text.strip() == text),
    "s",
    "S",
    "user:s",
    "s.",
    "-1",
    "0",
    "null",
    "k" * 128,
    "k" * 1_000,
    *(ids for one in ("\u00df", "SS", "\u212a", "K", "k") for ids in (one, f"{one}/", f"{one}\u200b")),
]
"""Ids that some store may take for one another, or not hold."""
