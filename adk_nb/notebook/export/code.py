"""How values and calls look in the Python that is written."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

WIDTH = 100
_DEFINES = re.compile(r"(#.*\n)*(@|def |async def |class )")
_PLAIN = re.compile(r"[^\\\x00-\x09\x0b-\x1f\x7f]*")


def text_code(text: str) -> str:
    """A text as Python has it: over several lines if it has several."""
    is_plain = _PLAIN.fullmatch(text) and '"""' not in text and not text.endswith('"')
    if "\n" in text and is_plain:
        return f'"""\\\n{text}"""'
    if is_plain and '"' not in text:
        return f'"{text}"'
    return repr(text)


def list_code(items: Iterable[str]) -> str:
    """Expressions in brackets."""
    return f"[{', '.join(items)}]"


def call_code(function: str, given: Mapping[str, str | None], *first: str) -> str:
    """A call: on one line if there is room, else an argument a line.

    Args:
        function: What is called.
        given: Names -> expressions; those that are None are left out.
        first: Expressions without a name.
    """
    said = [*first, *(f"{name}={value}" for name, value in given.items() if value is not None)]
    line = f"{function}({', '.join(said)})"
    if "\n" not in line and len(line) <= WIDTH:
        return line
    return "\n".join([f"{function}(", *(f"    {one}," for one in said), ")"])


def joined(pieces: Iterable[str]) -> str:
    """Pieces of a file under each other: lines close together, what has several apart, functions far apart."""
    made = ""
    last = ""
    for one in filter(None, pieces):
        far = _DEFINES.match(one) or _DEFINES.match(last) or last.startswith(("import ", "from "))
        near = "\n" if "\n" not in one + last else "\n\n"
        made += one if not last else ("\n\n\n" if far else near) + one
        last = one
    return made


def is_data(value: Any, depth: int = 0) -> bool:
    """Whether `repr` of it is Python that makes it again."""
    if type(value) in (str, int, bool, bytes, type(None)):
        return True
    if type(value) is float:
        return value == value and abs(value) != float("inf")
    if depth > 20 or type(value) not in (list, tuple, dict, set):
        return False
    inner = [*cast(Iterable[Any], value), *(cast(Mapping[Any, Any], value).values() if type(value) is dict else ())]
    return all(is_data(one, depth + 1) for one in inner)
