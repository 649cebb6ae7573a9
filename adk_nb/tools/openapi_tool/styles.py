"""Encodes values for the path, query, headers and cookies of a request, in the styles of OpenAPI.

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
"""Location -> allowed styles; the first is the default."""
_SEPARATORS = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]")
_RESERVED = "/:?@!$'()*,;[]"
"""Characters that `allowReserved` leaves unencoded; `&`, `=`, `+` and `#` would be misread."""


def text(value: Any) -> str:
    """A value without a style: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def in_path(name: str, style: str, explode: bool, value: Any) -> str:
    """Encode a path segment.

    Raises:
        ValueError: It would change the path, or be empty.
    """
    segment = _PATH_STYLES.get(style, _simple)(name, explode, value, _quote)
    segments = re.split(r"[/\\]", ",".join(_texts(value)))  # some servers take \ for /
    # RFC 3986, 5.2.4: dot segments are removed, so the value would name another resource.
    if segment in ("", ".", "..") or {".", ".."} & set(segments) or _CONTROL_CHARACTERS.search(text(value)):
        raise ValueError(f"{name}={value!r:.200} is not allowed in a URL path")
    return segment


def in_query(name: str, style: str, explode: bool, value: Any, *, reserved: bool = False) -> str:
    """Encode one or several query pairs, as `a=1&a=2`; empty if there are none."""

    def encode(part: Any) -> str:
        """Percent-encode a value."""
        return quote(text(part), safe=_RESERVED if reserved else "")

    if not isinstance(value, dict | list):
        return f"{_quote(name)}={encode(value)}"
    items = cast(dict[str, Any] | list[Any], value)
    if isinstance(items, list):
        pairs = [(name, item) for item in items]
    elif style == "deepObject":
        return "&".join(_deep_object(name, items, encode))
    else:
        pairs = list(items.items())
    if explode:
        return "&".join(f"{_quote(key)}={encode(item)}" for key, item in pairs)
    flat_items = items if isinstance(items, list) else _flatten(items)
    # OpenAPI: a separator between values is not encoded, one within a value is.
    joined = _SEPARATORS.get(style, ",").join(encode(item) for item in flat_items)
    return f"{_quote(name)}={joined}" if flat_items else ""


def in_header(name: str, explode: bool, value: Any) -> str:
    """Format a header value; headers are not encoded."""
    return _simple(name, explode, value, text)


def in_cookie(value: Any) -> str:
    """Encode a cookie value."""
    return quote(_simple("", False, value, text), safe="")  # a comma or a semicolon would end the cookie


def _quote(value: Any) -> str:
    return quote(text(value), safe="")


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, list):
        return [text(item) for item in cast(list[Any], value)]
    return [text(item) for item in _flatten(cast(dict[str, Any], value))] if isinstance(value, dict) else [text(value)]


def _flatten(value: dict[str, Any]) -> list[Any]:
    return [item for pair in value.items() for item in pair]


def _deep_object(name: str, value: dict[str, Any], encode: Callable[[Any], str]) -> Iterable[str]:
    for key, child in value.items():
        inner = f"{name}[{key}]"
        if isinstance(child, dict):
            yield from _deep_object(inner, cast(dict[str, Any], child), encode)
        else:
            items = cast(list[Any], child) if isinstance(child, list) else [child]
            yield from (f"{_quote(inner)}={encode(item)}" for item in items)


def _simple(name: str, explode: bool, value: Any, encode: Callable[[Any], str], separator: str = ",") -> str:
    if isinstance(value, dict):
        properties = cast(dict[str, Any], value)
        if explode:
            return separator.join(f"{encode(key)}={encode(item)}" for key, item in properties.items())
        return ",".join(encode(item) for item in _flatten(properties))
    if isinstance(value, list):
        return separator.join(encode(item) for item in cast(list[Any], value))
    return encode(value)


def _label(name: str, explode: bool, value: Any, encode: Callable[[Any], str]) -> str:
    # RFC 6570, 3.2.5: a label begins with a dot, and exploded values have one between them.
    return "." + _simple(name, explode, value, encode, "." if explode else ",")


def _matrix(name: str, explode: bool, value: Any, encode: Callable[[Any], str]) -> str:
    key = quote(name, safe="")
    if explode and isinstance(value, dict):
        return ";" + _simple(name, explode, value, encode, ";")
    if explode and isinstance(value, list):
        # RFC 6570, 3.2.7: exploded, each value has its name.
        return "".join(f";{key}={encode(item)}" for item in cast(list[Any], value))
    return f";{key}={_simple(name, False, value, encode)}"


_PATH_STYLES: dict[str, Callable[[str, bool, Any, Callable[[Any], str]], str]] = {"label": _label, "matrix": _matrix}
