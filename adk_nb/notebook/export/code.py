"""Write Python: values, calls, and the pieces of a file."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

WIDTH = 100
_DEFINES = re.compile(r"(#.*\n)*(@|def |async def |class )")
_PLAIN = re.compile(r"[^\\\x00-\x09\x0b-\x1f\x7f]*")


@dataclass(frozen=True, eq=False)
class Piece:
    """Lines that belong together."""

    text: str
    early: Sequence[str] = ()
    """Names that have to be bound when it runs."""
    late: Sequence[str] = ()
    """Names that have to be bound when what it defines is called."""


def text_code(text: str) -> str:
    """A string literal, over several lines if the text has several."""
    is_plain = _PLAIN.fullmatch(text) and '"""' not in text and not text.endswith('"')
    if "\n" in text and is_plain:
        return f'"""\\\n{text}"""'
    if is_plain and '"' not in text:
        return f'"{text}"'
    return repr(text)


def text_or_none(text: str | None) -> str | None:
    """A string literal; None for an empty text."""
    return text_code(text) if text else None


def list_code(items: Iterable[str]) -> str:
    """A list of expressions."""
    return f"[{', '.join(items)}]"


def call_code(function: str, keywords: Mapping[str, str | None], *first: str) -> str:
    """A call, on one line or with an argument a line. Keywords that are None are left out."""
    arguments = [*first, *(f"{name}={value}" for name, value in keywords.items() if value is not None)]
    line = f"{function}({', '.join(arguments)})"
    if "\n" not in line and len(line) <= WIDTH:
        return line
    return "\n".join([f"{function}(", *(f"    {argument}," for argument in arguments), ")"])


def joined(texts: Iterable[str]) -> str:
    """Pieces of a file below each other: single lines close together, definitions two lines apart."""
    code = last = ""
    for text in filter(None, texts):
        far = _DEFINES.match(text) or _DEFINES.match(last) or last.startswith(("import ", "from "))
        near = "\n" if "\n" not in text + last else "\n\n"
        code += text if not last else ("\n\n\n" if far else near) + text
        last = text
    return code


def is_data(value: Any, depth: int = 0) -> bool:
    """Whether `repr` of it is Python that makes it again."""
    if type(value) in (str, int, bool, bytes, type(None)):
        return True
    if type(value) is float:
        return value == value and abs(value) != float("inf")
    if depth > 20 or type(value) not in (list, tuple, dict, set):
        return False
    inner = [*cast(Iterable[Any], value), *(cast(Mapping[Any, Any], value).values() if type(value) is dict else ())]
    return all(is_data(item, depth + 1) for item in inner)
