"""What one operation of a web service takes, and the HTTP request that a model's arguments make of it."""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast
from urllib.parse import quote, quote_plus

from adk_nb.auth.auth_schemes import AuthScheme
from adk_nb.tools.openapi_tool import styles
from adk_nb.tools.openapi_tool.styles import text

Place = Literal["path", "query", "header", "cookie", "body"]
Pieces = list[tuple[str, tuple[str | None, bytes, str] | tuple[str | None, bytes]]]
"""Of a multipart body: name, and file name, content and type."""

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_BINARY = "application/octet-stream"
_NOT_FROM_ARGUMENTS = {"accept", "content-type", "authorization", "host", "content-length", "cookie"}
"""Header parameters that mean nothing. Source: OpenAPI 3.1, Parameter Object (the first three); the rest is the
client's own."""


@dataclass(frozen=True, kw_only=True)
class Argument:
    """One thing that a model can send."""

    name: str
    """As the model says it."""
    sent_as: str
    """As the service calls it."""
    place: Place
    schema: dict[str, Any]
    required: bool = False
    style: str = ""
    """Empty: none is said; of a field of a form, that it is a plain one."""
    explode: bool = True
    reserved: bool = False
    """True: characters that mean something in a query are sent as they are."""
    media_type: str | None = None
    """Of this one value. None: text, as its place and style have it."""

    @property
    def takes_null(self) -> bool:
        """Whether null is a value of it, and not the lack of one."""
        return any("null" in _listed(one.get("type")) for one in _kinds(self.schema))


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method of one path of a web service."""

    name: str
    description: str
    method: str
    """Upper case."""
    url: str
    """With `{name}` where a path parameter goes."""
    arguments: tuple[Argument, ...]
    definitions: dict[str, Any] = field(default_factory=dict[str, Any])
    """Name -> JSON Schema, as the arguments refer to them by `#/$defs/name`."""
    media_type: str | None = None
    """Of the body. None: it takes none."""
    whole_body: bool = False
    """True: the one argument of place `body` is the body; False: such arguments are its fields."""
    needs_body: bool = False
    """True: one is sent even if there is nothing in it."""
    security: tuple[Mapping[str, AuthScheme], ...] = ()
    """Ways to be let in, each with all that it takes: name -> scheme. One that takes nothing: it need not be."""

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of all arguments together."""
        made: dict[str, Any] = {"type": "object", "properties": {one.name: one.schema for one in self.arguments}}
        if required := [one.name for one in self.arguments if one.required]:
            made["required"] = required
        return made | ({"$defs": self.definitions} if self.definitions else {})

    def given(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """`args` without the nulls that some models send for what they leave out."""
        meant = {one.name for one in self.arguments if one.place == "body" and one.required and one.takes_null}
        return {key: one for key, one in args.items() if one is not None or key in meant}

    def request(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """What to send: the arguments of `WebAccess.ask`. `args`: as `given` leaves them.

        Raises:
            ValueError: A value would change the path, or is not what the document says it is.
        """
        # A default of a body's field is the service's to set: in a PATCH, what is sent is changed.
        told = [one for one in self.arguments if "default" in one.schema and (one.required or one.place != "body")]
        said = {one.name: one.schema["default"] for one in told} | dict(args)
        given = [(one, said[one.name]) for one in self.arguments if one.name in said]
        body = [pair for pair in given if pair[0].place == "body"]
        given = [(one, _written(one, value)) for one, value in given if one.place != "body" and value is not None]
        url, headers = self.url, {"Accept": "application/json, */*;q=0.5"}
        for one, value in given:
            if one.place == "path":
                step = styles.in_path(one.sent_as, one.style, one.explode, value)
                url = url.replace(f"{{{one.sent_as}}}", step)
            elif one.place == "header" and one.sent_as.lower() not in _NOT_FROM_ARGUMENTS:
                headers[one.sent_as] = styles.in_header(one.sent_as, one.explode, value)
        cookies = [(one.sent_as, styles.in_cookie(value)) for one, value in given if one.place == "cookie"]
        if cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies)
        pairs = [
            styles.in_query(one.sent_as, one.style, one.explode, value, reserved=one.reserved)
            for one, value in given
            if one.place == "query"
        ]
        return {"method": self.method, "url": with_query(url, pairs), "headers": headers, **self._body(body, headers)}

    def _is_sent_empty(self) -> bool:
        return self.needs_body and not self.whole_body and is_json(self.media_type or "")

    def _body(self, given: list[tuple[Argument, Any]], headers: dict[str, str]) -> dict[str, Any]:
        if self.media_type is None or not (given or self._is_sent_empty()):
            return {}
        if self.media_type == MULTIPART and not self.whole_body:
            return {"files": [piece for one, value in given for piece in _pieces(one, value)]}
        headers["Content-Type"] = self.media_type
        value = given[0][1] if self.whole_body else {one.sent_as: value for one, value in given}
        if self.media_type == FORM and isinstance(value, dict):
            fields = given if not self.whole_body else _as_fields(cast(dict[str, Any], value))
            return {"content": "&".join(filter(None, (_field(one, said) for one, said in fields))).encode()}
        if is_json(self.media_type) or not isinstance(value, str):
            return {"content": json.dumps(value, ensure_ascii=False).encode()}
        return {"content": _bytes(given[0][0], value)}


def is_json(media_type: str) -> bool:
    """Whether what is of that type is JSON."""
    kind = media_type.split(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def with_query(url: str, pairs: Iterable[str]) -> str:
    """`url` with more pairs, such as `a=1`, in its query."""
    query = "&".join(filter(None, pairs))
    return f"{url}{'&' if '?' in url else '?'}{query}" if query else url


def _listed(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else [value]


def _kinds(schema: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A schema, and those of which a value may fit one."""
    either: list[Any] = [schema, *(schema.get("anyOf") or []), *(schema.get("oneOf") or [])]
    return [cast(dict[str, Any], one) for one in either if isinstance(one, dict)]


def _written(one: Argument, value: Any) -> Any:
    """A parameter's value as text, if the document says what it is written in."""
    return json.dumps(value, ensure_ascii=False) if one.media_type and is_json(one.media_type) else value


def _as_fields(value: Mapping[str, Any]) -> list[tuple[Argument, Any]]:
    return [(Argument(name=key, sent_as=key, place="body", schema={}), one) for key, one in value.items()]


def _field(one: Argument, value: Any) -> str:
    """A field of a form. A list is said item by item, as browsers do, and an object as JSON, unless it has a style."""
    if one.style:
        return styles.in_query(one.sent_as, one.style, one.explode, value, reserved=one.reserved)
    values: list[Any] = _listed(_written(one, value))
    return "&".join(f"{quote(one.sent_as, safe='')}={quote_plus(text(item))}" for item in values)


def _is_binary(schema: Mapping[str, Any]) -> bool:
    return any(
        one.get("format") == "binary" or "contentMediaType" in one or one.get("contentEncoding") == "base64"
        for one in _kinds(schema)
    )


def _pieces(one: Argument, value: Any) -> Pieces:
    """A field of a multipart body: a file where the service says so, else a plain field; a list is several."""
    if isinstance(value, list):
        inner = replace(one, schema=_items(one.schema))
        return [piece for item in cast(list[Any], value) for piece in _pieces(inner, item)]
    if isinstance(value, str) and _is_binary(one.schema):
        return [(one.sent_as, (one.sent_as, _bytes(one, value), one.media_type or _BINARY))]
    kind = one.media_type or ("application/json" if isinstance(value, dict) else None)
    said = json.dumps(value, ensure_ascii=False) if kind and is_json(kind) else text(value)
    return [(one.sent_as, (None, said.encode(), kind) if kind else (None, said.encode()))]


def _items(schema: Mapping[str, Any]) -> dict[str, Any]:
    found: list[dict[str, Any]] = [one["items"] for one in _kinds(schema) if isinstance(one.get("items"), dict)]
    return found[0] if found else {}


def _bytes(one: Argument, value: str) -> bytes:
    """The bytes that a text stands for: what its base64 says where it is said to be that, else the text itself."""
    if one.schema.get("contentEncoding") == "base64":
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{one.name} is no base64: {error}") from error
    return value.encode()
