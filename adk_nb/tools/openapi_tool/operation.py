"""What one operation of a web service takes, and the HTTP request that a model's arguments make of it."""

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast
from urllib.parse import quote, urlencode

Place = Literal["path", "query", "header", "cookie", "body"]

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
_NOT_FROM_ARGUMENTS = {"accept", "content-type", "authorization", "host", "content-length", "cookie"}
"""Header parameters that mean nothing. Source: OpenAPI 3.1, Parameter Object (the first three); the rest is the
client's own."""
_BETWEEN = {"spaceDelimited": " ", "pipeDelimited": "|"}


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
    explode: bool = True
    as_json: bool = False
    """The parameter's value is sent as JSON text."""


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

    @property
    def schema(self) -> dict[str, Any]:
        """JSON Schema of all arguments together."""
        made: dict[str, Any] = {"type": "object", "properties": {one.name: one.schema for one in self.arguments}}
        if required := [one.name for one in self.arguments if one.required]:
            made["required"] = required
        return made | ({"$defs": self.definitions} if self.definitions else {})

    def request(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """What to send: the arguments of `WebAccess.ask`.

        Raises:
            ValueError: A value would change the path.
        """
        given = [
            (one, value)
            for one in self.arguments
            if (value := args.get(one.name, one.schema.get("default"))) is not None
        ]
        url, headers = self.url, {"Accept": "application/json, */*;q=0.5"}
        for one, value in given:
            if one.place == "path":
                url = url.replace(f"{{{one.sent_as}}}", _segment(one, value))
            elif one.place == "header" and one.sent_as.lower() not in _NOT_FROM_ARGUMENTS:
                headers[one.sent_as] = _joined(one, value, ",")
        if cookies := [
            f"{one.sent_as}={quote(_joined(one, value, ','))}" for one, value in given if _in(one, "cookie")
        ]:
            headers["Cookie"] = "; ".join(cookies)
        pairs = [pair for one, value in given if _in(one, "query") for pair in _query(one, value)]
        body = self._body([(one, value) for one, value in given if _in(one, "body")], headers)
        return {"method": self.method, "url": url, "params": pairs, "headers": headers, **body}

    def _body(self, given: list[tuple[Argument, Any]], headers: dict[str, str]) -> dict[str, Any]:
        if not given or self.media_type is None:
            return {}
        if self.media_type == MULTIPART and not self.whole_body:
            return {"files": [(one.sent_as, _piece(one, value)) for one, value in given]}
        headers["Content-Type"] = self.media_type
        value = given[0][1] if self.whole_body else {one.sent_as: value for one, value in given}
        if self.media_type == FORM and isinstance(value, dict):
            fields = cast(dict[str, Any], value)
            return {"content": urlencode([(key, _text(one)) for key, one in fields.items()]).encode()}
        if is_json(self.media_type) or not isinstance(value, str):
            return {"content": json.dumps(value, ensure_ascii=False).encode()}
        return {"content": _bytes(given[0][0], value) if self.whole_body else value.encode()}


def is_json(media_type: str) -> bool:
    """Whether what is of that type is JSON."""
    kind = media_type.split(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _in(one: Argument, place: Place) -> bool:
    return one.place == place


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)  # true and not True, and objects within objects


def _joined(one: Argument, value: Any, between: str, encoded: Callable[[str], str] = str) -> str:
    if one.as_json:
        return encoded(json.dumps(value, ensure_ascii=False))
    if isinstance(value, list):
        return between.join(encoded(_text(item)) for item in cast(list[Any], value))
    if isinstance(value, dict):
        to = "=" if one.explode and one.place != "query" else between
        pairs = cast(dict[str, Any], value).items()
        return between.join(f"{encoded(key)}{to}{encoded(_text(item))}" for key, item in pairs)
    return encoded(_text(value))


def _segment(one: Argument, value: Any) -> str:
    made = _joined(one, value, ",", lambda text: quote(text, safe=""))
    if made in ("", ".", ".."):
        raise ValueError(f"{one.name}={value!r} cannot stand in a path")
    return made


def _query(one: Argument, value: Any) -> Iterable[tuple[str, str]]:
    """Source: OpenAPI 3.1, Parameter Object, style and explode."""
    if one.as_json or not isinstance(value, dict | list):
        return [(one.sent_as, _joined(one, value, ","))]
    if isinstance(value, list):
        if one.explode:
            return [(one.sent_as, _text(item)) for item in cast(list[Any], value)]
        return [(one.sent_as, _joined(one, value, _BETWEEN.get(one.style, ",")))]
    fields = cast(dict[str, Any], value)
    if one.style == "deepObject":
        return [(f"{one.sent_as}[{key}]", _text(item)) for key, item in fields.items()]
    if one.explode:
        return [(key, _text(item)) for key, item in fields.items()]
    return [(one.sent_as, _joined(one, fields, ","))]


def _is_binary(one: Argument) -> bool:
    said = one.schema
    return said.get("format") == "binary" or "contentMediaType" in said or said.get("contentEncoding") == "base64"


def _piece(one: Argument, value: Any) -> tuple[str | None, bytes, str] | tuple[None, str]:
    """A field of a multipart body: a file where the service says so, else a plain field."""
    if _is_binary(one) and isinstance(value, str):
        return one.sent_as, _bytes(one, value), "application/octet-stream"
    return None, _text(value)


def _bytes(one: Argument, value: str) -> bytes:
    """The bytes that a text stands for: what its base64 says where it is said to be that, else the text itself."""
    if one.schema.get("contentEncoding") == "base64":
        try:
            return base64.b64decode(value, validate=True)
        except binascii.Error as error:
            raise ValueError(f"{one.name} is no base64: {error}") from error
    return value.encode()
