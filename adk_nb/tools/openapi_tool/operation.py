"""Operations of web services: their arguments, and the HTTP requests made from a model's arguments."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast
from urllib.parse import quote, quote_plus, unquote_plus

from adk_nb.auth.auth_schemes import APIKey, AuthScheme

# ---- values in the path, query, headers and cookies of a request
# Source: OpenAPI 3.1.1, Parameter Object and appendix C; RFC 6570.

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
    texts = ",".join(_texts(value))
    segments = re.split(r"[/\\]", texts)  # some servers take \ for /
    # RFC 3986, 5.2.4: dot segments are removed, so the value would name another resource.
    if segment in ("", ".", "..") or {".", ".."} & set(segments) or _CONTROL_CHARACTERS.search(texts):
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


# ---- operations


Place = Literal["path", "query", "header", "cookie", "body"]
FormParts = list[tuple[str, tuple[str | None, bytes, str] | tuple[str | None, bytes]]]
"""Parts of a multipart body: name, and file name, content and type."""

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_BINARY = "application/octet-stream"
_NOT_FROM_ARGUMENTS = {"accept", "content-type", "authorization", "host", "content-length", "cookie"}
"""Ignored header parameters: the first three by OpenAPI 3.1, Parameter Object; the HTTP client sets the others."""


@dataclass(frozen=True, kw_only=True)
class Argument:
    """An argument of an operation."""

    name: str
    """The name for the model."""
    sent_as: str
    """The name in the request."""
    place: Place
    schema: dict[str, Any]
    required: bool = False
    style: str = ""
    """Empty: no style is given; a form field is then sent as plain text."""
    explode: bool = True
    reserved: bool = False
    """True: reserved characters are sent unencoded in a query."""
    media_type: str | None = None
    """Media type of this value. None: text in its location's style."""

    @property
    def takes_null(self) -> bool:
        """True if null is a valid value, not just a missing one."""
        return any("null" in _as_list(value.get("type")) for value in _alternatives(self.schema))


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A method of a path of a web service."""

    name: str
    description: str
    method: str
    """Upper case."""
    url: str
    """URL with `{name}` for each path parameter."""
    arguments: tuple[Argument, ...]
    definitions: dict[str, Any] = field(default_factory=dict[str, Any])
    """Name -> JSON Schema; the arguments refer to them by `#/$defs/name`."""
    media_type: str | None = None
    """Media type of the body. None: there is no body."""
    whole_body: bool = False
    """True: the single argument of place `body` is the body; False: such arguments are its fields."""
    needs_body: bool = False
    """True: a body is sent even if it is empty."""
    security: tuple[Mapping[str, AuthScheme], ...] = ()
    """Alternative security requirements, each a dict of scheme names to schemes. An empty dict: no credential is
    needed.
    """
    foreign_to: str = ""
    """The document's server, if the operation names another host; credentials are meant for the former. Empty: it does
    not.
    """

    def without_keys(self, *schemes: AuthScheme) -> "Operation":
        """The operation without the arguments that are keys of its own security schemes or of `schemes`."""
        own_schemes = [scheme for requirement in self.security for scheme in requirement.values()]
        # In any case: some services read names of queries and cookies so, too, and take the first value.
        keys = {
            (scheme.in_.value, scheme.name.lower()) for scheme in (*own_schemes, *schemes) if isinstance(scheme, APIKey)
        }
        arguments = tuple(
            argument for argument in self.arguments if (argument.place, argument.sent_as.lower()) not in keys
        )
        return self if len(arguments) == len(self.arguments) else replace(self, arguments=arguments)

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {argument.name: argument.schema for argument in self.arguments},
        }
        if required := [argument.name for argument in self.arguments if argument.required]:
            schema["required"] = required
        return schema | ({"$defs": self.definitions} if self.definitions else {})

    def without_nulls(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """`args` without the nulls that some models send for missing values."""
        nullable = {
            argument.name
            for argument in self.arguments
            if argument.place == "body" and argument.required and argument.takes_null
        }
        return {key: value for key, value in args.items() if value is not None or key in nullable}

    def build_request(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Build the request as arguments of `WebAccess.send`. `args`: the result of `without_nulls`.

        Raises:
            ValueError: A value would change the path, or does not match its declared encoding.
        """
        # Defaults of body fields are set by the service: in a PATCH, any field that is sent is changed.
        defaulted = [
            argument
            for argument in self.arguments
            if "default" in argument.schema and (argument.required or argument.place != "body")
        ]
        values = {argument.name: argument.schema["default"] for argument in defaulted} | dict(args)
        pairs = [(argument, values[argument.name]) for argument in self.arguments if argument.name in values]
        body = [pair for pair in pairs if pair[0].place == "body"]
        pairs = [
            (argument, _serialize(argument, value))
            for argument, value in pairs
            if argument.place != "body" and value is not None
        ]
        url, headers = self.url, {"Accept": "application/json, */*;q=0.5"}  # JSON is preferred
        for argument, value in pairs:
            if argument.place == "path":
                segment = in_path(argument.sent_as, argument.style, argument.explode, value)
                url = url.replace(f"{{{argument.sent_as}}}", segment)
            elif argument.place == "header" and argument.sent_as.lower() not in _NOT_FROM_ARGUMENTS:
                headers[argument.sent_as] = in_header(argument.sent_as, argument.explode, value)
        cookies = [(argument.sent_as, in_cookie(value)) for argument, value in pairs if argument.place == "cookie"]
        if cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies)
        query = [
            in_query(argument.sent_as, argument.style, argument.explode, value, reserved=argument.reserved)
            for argument, value in pairs
            if argument.place == "query"
        ]
        return {"method": self.method, "url": with_query(url, query), "headers": headers, **self._body(body, headers)}

    def _body(self, pairs: list[tuple[Argument, Any]], headers: dict[str, str]) -> dict[str, Any]:
        if self.media_type is None:
            return {}
        may_be_empty = self.needs_body and not self.whole_body and is_json(self.media_type)
        if not pairs and not may_be_empty:
            return {}
        if self.media_type == MULTIPART and not self.whole_body:
            return {"files": [part for argument, value in pairs for part in _form_parts(argument, value)]}
        headers["Content-Type"] = self.media_type
        value = pairs[0][1] if self.whole_body else {argument.sent_as: value for argument, value in pairs}
        if self.media_type == FORM and isinstance(value, dict):
            fields = pairs
            if self.whole_body:
                members = cast(dict[str, Any], value).items()
                fields = [(Argument(name=key, sent_as=key, place="body", schema={}), item) for key, item in members]
            return {"content": "&".join(filter(None, (_field(argument, item) for argument, item in fields))).encode()}
        if is_json(self.media_type) or not isinstance(value, str):
            return {"content": json.dumps(value, ensure_ascii=False).encode()}
        return {"content": _bytes(pairs[0][0], value)}


def is_json(media_type: str) -> bool:
    """True if the media type is JSON."""
    kind = media_type.split(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def with_headers(headers: Mapping[str, str], others: Mapping[str, str]) -> dict[str, str]:
    """`headers` overridden by `others`, whatever the case of their names."""
    names = {name.lower() for name in others}
    return {name: value for name, value in headers.items() if name.lower() not in names} | dict(others)


def without_query(url: str, name: str) -> str:
    """The URL without query parameters of this name, in any case."""
    start, _, query = url.partition("?")
    others = [pair for pair in query.split("&") if unquote_plus(pair.partition("=")[0]).lower() != name.lower()]
    return with_query(start, others)


def with_query(url: str, pairs: Iterable[str]) -> str:
    """Add pairs, such as `a=1`, to the query of `url`."""
    query = "&".join(filter(None, pairs))
    return f"{url}{'&' if '?' in url else '?'}{query}" if query else url


def _as_list(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else [value]


def _alternatives(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A schema and its alternatives."""
    schemas: list[Any] = [schema, *(schema.get("anyOf") or []), *(schema.get("oneOf") or [])]
    return [cast(dict[str, Any], alternative) for alternative in schemas if isinstance(alternative, dict)]


def _serialize(argument: Argument, value: Any) -> Any:
    """Serialize a parameter's value if the document declares a media type for it."""
    return json.dumps(value, ensure_ascii=False) if argument.media_type and is_json(argument.media_type) else value


def _field(argument: Argument, value: Any) -> str:
    """A form field. Without a style, a list is sent item by item, as browsers do, and an object as JSON."""
    if argument.style:
        return in_query(argument.sent_as, argument.style, argument.explode, value, reserved=argument.reserved)
    values: list[Any] = _as_list(_serialize(argument, value))
    return "&".join(f"{quote(argument.sent_as, safe='')}={quote_plus(text(item))}" for item in values)


def _form_parts(argument: Argument, value: Any) -> FormParts:
    """Multipart parts of a field: a file if the schema is binary, else plain text; a list gives several."""
    if isinstance(value, list):
        item_argument = replace(argument, schema=_items(argument.schema))
        return [part for item in cast(list[Any], value) for part in _form_parts(item_argument, item)]
    is_binary = any(
        alternative.get("format") == "binary"
        or "contentMediaType" in alternative
        or alternative.get("contentEncoding") == "base64"
        for alternative in _alternatives(argument.schema)
    )
    if isinstance(value, str) and is_binary:
        return [(argument.sent_as, (argument.sent_as, _bytes(argument, value), argument.media_type or _BINARY))]
    kind = argument.media_type or ("application/json" if isinstance(value, dict) else None)
    encoded = json.dumps(value, ensure_ascii=False) if kind and is_json(kind) else text(value)
    return [(argument.sent_as, (None, encoded.encode(), kind) if kind else (None, encoded.encode()))]


def _items(schema: Mapping[str, Any]) -> dict[str, Any]:
    item_schemas: list[dict[str, Any]] = [
        alternative["items"] for alternative in _alternatives(schema) if isinstance(alternative.get("items"), dict)
    ]
    return item_schemas[0] if item_schemas else {}


def _bytes(argument: Argument, value: str) -> bytes:
    """Decode base64 text if the schema declares it, else encode the text as UTF-8."""
    if argument.schema.get("contentEncoding") == "base64":
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{argument.name} is no base64: {error}") from error
    return value.encode()
