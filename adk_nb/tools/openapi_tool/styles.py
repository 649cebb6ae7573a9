"""A value as the text of a path, a query, a header or a cookie, in the style that an OpenAPI document asks for.

Source: OpenAPI 3.1.1, Parameter Object and appendix C; RFC 6570.
"""

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, cast
from urllib.parse import quote

Style = Literal["simple", "label", "matrix", "form", "spaceDelimited", "pipeDelimited", "deepObject"]
STYLES: dict[str, tuple[Style, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""Place -> the styles it can have; the first is the one it has if none is said."""
_BETWEEN = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}
_UNSEEN = re.compile(r"[\x00-\x1f\x7f]")
_RESERVED = "/:?@!$'()*,;[]"
"""What `allowReserved` leaves as it is; `&`, `=`, `+` and `#` would be read as something else."""


def text(value: Any) -> str:
    """A value without a style: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def in_path(name: str, style: str, explode: bool, value: Any) -> str:
    """The step of a path.

    Raises:
        ValueError: It would be another path, or no step at all.
    """
    made = _PATH.get(style, _simple)(name, explode, value, _quoted)
    steps = re.split(r"[/\\]", ",".join(_texts(value)))
    if made in ("", ".", "..") or {".", ".."} & set(steps) or _UNSEEN.search(text(value)):
        raise ValueError(f"{name}={value!r:.200} cannot stand in a path")
    return made


def in_query(name: str, style: str, explode: bool, value: Any, *, reserved: bool = False) -> str:
    """One or several pairs, as `a=1&a=2`; empty if there are none."""

    def said(one: Any) -> str:
        return quote(text(one), safe=_RESERVED if reserved else "")

    if not isinstance(value, dict | list):
        return f"{_quoted(name)}={said(value)}"
    given = cast(dict[str, Any] | list[Any], value)
    if isinstance(given, list):
        pairs = [(name, one) for one in given]
    elif style == "deepObject":
        return "&".join(_deep(name, given, said))
    else:
        pairs = list(given.items())
    if explode:
        return "&".join(f"{_quoted(key)}={said(one)}" for key, one in pairs)
    flat = given if isinstance(given, list) else _flat(given)
    return f"{_quoted(name)}=" + _BETWEEN.get(style, ",").join(said(one) for one in flat) if flat else ""


def in_header(name: str, explode: bool, value: Any) -> str:
    """A header's value, which is not encoded."""
    return _simple(name, explode, value, text)


def in_cookie(value: Any) -> str:
    """A cookie's value."""
    return quote(_simple("", False, value, text), safe="")


def _quoted(value: Any) -> str:
    return quote(text(value), safe="")


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, list):
        return [text(one) for one in cast(list[Any], value)]
    return [text(one) for one in _flat(cast(dict[str, Any], value))] if isinstance(value, dict) else [text(value)]


def _flat(value: dict[str, Any]) -> list[Any]:
    return [one for pair in value.items() for one in pair]


def _deep(name: str, value: dict[str, Any], said: Callable[[Any], str]) -> Iterable[str]:
    for key, one in value.items():
        inner = f"{name}[{key}]"
        if isinstance(one, dict):
            yield from _deep(inner, cast(dict[str, Any], one), said)
        else:
            every = cast(list[Any], one) if isinstance(one, list) else [one]
            yield from (f"{_quoted(inner)}={said(item)}" for item in every)


def _simple(name: str, explode: bool, value: Any, said: Callable[[Any], str], between: str = ",") -> str:
    if isinstance(value, dict):
        given = cast(dict[str, Any], value)
        if explode:
            return between.join(f"{said(key)}={said(one)}" for key, one in given.items())
        return ",".join(said(one) for one in _flat(given))
    if isinstance(value, list):
        return between.join(said(one) for one in cast(list[Any], value))
    return said(value)


def _label(name: str, explode: bool, value: Any, said: Callable[[Any], str]) -> str:
    return "." + _simple(name, explode, value, said, "." if explode else ",")


def _matrix(name: str, explode: bool, value: Any, said: Callable[[Any], str]) -> str:
    key = quote(name, safe="")
    if explode and isinstance(value, dict):
        return ";" + _simple(name, explode, value, said, ";")
    if explode and isinstance(value, list):
        return "".join(f";{key}={said(one)}" for one in cast(list[Any], value))
    return f";{key}={_simple(name, False, value, said)}"


_PATH: dict[str, Callable[[str, bool, Any, Callable[[Any], str]], str]] = {"label": _label, "matrix": _matrix}
