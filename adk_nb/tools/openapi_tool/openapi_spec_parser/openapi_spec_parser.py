"""Reads an OpenAPI 3 document: one operation for each method of each path."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urlsplit

from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require
from adk_nb.tools.openapi_tool.openapi_spec_parser.schemas import Schemas
from adk_nb.tools.openapi_tool.openapi_spec_parser.security import Security
from adk_nb.tools.openapi_tool.operation import FORM, MULTIPART, Argument, Operation, Place, is_json
from adk_nb.tools.openapi_tool.styles import STYLES

Json = dict[str, Any]

EXTRA = "'adk-nb[openapi]'"
"""What brings the packages that this reader needs."""
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_MAX_NAME = 60
_PREFERRED: tuple[Callable[[str], Any], ...] = (is_json, FORM.__eq__, MULTIPART.__eq__, re.compile("text/").match)
_NO_NAME = re.compile(r"[^A-Za-z0-9]+")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def operations_of(document: Mapping[str, Any], *, preserve_property_names: bool = False) -> list[Operation]:
    """The operations of `document`, in its order.

    Args:
        document: An OpenAPI document of version 3.0 or 3.1, as JSON values.
        preserve_property_names: Arguments are called what the document calls them, not in snake_case.

    Raises:
        ConfigurationError: It is no such document, refers to what is not in it, or names no server.
        MissingExtraError: What reads references is not installed.
    """
    if not str(document.get("openapi", "")).startswith("3."):
        raise ConfigurationError("this is no OpenAPI 3 document: it has no field 'openapi' that says 3.x")
    return _Reader(document, snake_case if not preserve_property_names else str).operations()


def snake_case(text: str) -> str:
    """`listPets`, `list-pets` and `List Pets` as `list_pets`."""
    return _NO_NAME.sub("_", _HUMP.sub("_", text)).strip("_").lower()


class _Reader:
    def __init__(self, document: Mapping[str, Any], spell: Callable[[str], str]) -> None:
        self._document = document
        self._spell = spell
        referencing, drafts = require("referencing", package=EXTRA), require("referencing.jsonschema", package=EXTRA)
        resource = referencing.Resource(contents=document, specification=drafts.DRAFT202012)
        self._resolver: Any = referencing.Registry().with_resource("", resource).resolver("")
        self._unresolvable: Any = require("referencing.exceptions", package=EXTRA).Unresolvable
        self._names: set[str] = set()
        self._security = Security(document, self._resolved)

    def operations(self) -> list[Operation]:
        made: list[Operation] = []
        for path, item in self._document.get("paths", {}).items():
            item = self._resolved(item)
            made += [self._operation(path, method, item) for method in _METHODS if method in item]
        return made

    def _look_up(self, reference: str) -> Any:
        try:
            return self._resolver.lookup(reference).contents
        except (self._unresolvable, ValueError) as error:
            raise ConfigurationError(
                f"the OpenAPI document refers to {reference!r}, which is not in it; write it into the document"
            ) from error

    def _resolved(self, value: Any) -> Json:
        seen: set[str] = set()
        while isinstance(value, dict) and "$ref" in value:
            reference = str(cast(Json, value)["$ref"])
            if reference in seen:
                raise ConfigurationError(f"the OpenAPI document refers to {reference!r} in a circle")
            seen.add(reference)
            value = self._look_up(reference)
        return cast(Json, value) if isinstance(value, dict) else {}

    def _operation(self, path: str, method: str, item: Json) -> Operation:
        said = self._resolved(item[method])
        schemas = Schemas(self._look_up)
        arguments = [self._parameter(one, schemas) for one in self._parameters(item, said)]
        body = self._resolved(said.get("requestBody"))
        media_type = _preferred(body.get("content") or {})
        fields, whole = self._fields(body, media_type, schemas) if media_type else ([], False)
        server = self._server(said, item)
        return Operation(
            name=self._name(str(said.get("operationId") or f"{path}_{method}")),
            description=str(said.get("description") or said.get("summary") or item.get("description") or ""),
            method=method.upper(),
            url=server + path,
            arguments=tuple(_told_apart([*arguments, *fields])),
            definitions=schemas.definitions,
            media_type=_definite(media_type),
            whole_body=whole,
            needs_body=bool(body.get("required")),
            security=self._security.of(said, server),
        )

    def _name(self, text: str) -> str:
        wanted = snake_case(text)[:_MAX_NAME] or "operation"
        wanted = f"_{wanted}"[:_MAX_NAME] if wanted[0].isdigit() else wanted
        name, number = wanted, 1
        while name in self._names:
            number += 1
            name = f"{wanted[: _MAX_NAME - len(str(number)) - 1]}_{number}"
        self._names.add(name)
        return name

    def _server(self, *places: Json) -> str:
        servers: list[list[Json]] = [found for one in (*places, self._document) if (found := one.get("servers"))]
        said: Json = servers[0][0] if servers else {}
        variables: dict[str, Json] = said.get("variables") or {}
        url = str(said.get("url") or "/")
        for name, variable in variables.items():
            url = url.replace(f"{{{name}}}", str(variable.get("default", "")))
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ConfigurationError(
                f"the OpenAPI document's first server is {url!r}, which is no address; put one in front of the others: "
                '"servers": [{"url": "https://..."}]'
            )
        return url.rstrip("/")

    def _parameters(self, item: Json, said: Json) -> list[Json]:
        """Those of the path, and those of the operation, which may take their places."""
        given: list[Any] = [*(item.get("parameters") or []), *(said.get("parameters") or [])]
        every = [self._resolved(one) for one in given]
        return list({(one.get("name"), one.get("in")): one for one in every}.values())

    def _parameter(self, said: Json, schemas: Schemas) -> Argument:
        place: Place = said.get("in", "query")
        if place not in STYLES or not said.get("name"):
            raise ConfigurationError(
                f"a parameter of the OpenAPI document has no name, or is in {place!r}: {said!r:.200}"
            )
        content: dict[str, Json] = said.get("content") or {}
        media_type = _preferred(content)
        schema: Any = content[media_type].get("schema") if media_type else said.get("schema")
        style = said.get("style") if said.get("style") in STYLES[place] else STYLES[place][0]
        return Argument(
            name=self._spell(said["name"]) or place,
            sent_as=said["name"],
            place=place,
            schema=_described(schemas.read(schema or {}), said.get("description")),
            required=place == "path" or bool(said.get("required")),
            style=str(style),
            explode=bool(said.get("explode", style == "form")),
            reserved=bool(said.get("allowReserved")),
            media_type=media_type,
        )

    def _fields(self, body: Json, media_type: str, schemas: Schemas) -> tuple[list[Argument], bool]:
        """The fields of a body that is an object, or the body as one argument; and which of both."""
        content: dict[str, Json] = body["content"]
        said = content[media_type] or {}
        schema: Any = said.get("schema") or {}
        # By the standard a body is optional unless it says otherwise; most documents only forget to say so.
        needed = bool(body.get("required", True))
        if found := schemas.fields(schema) if is_json(media_type) or media_type in (FORM, MULTIPART) else None:
            properties, required = found
            encodings: dict[str, Json] = said.get("encoding") or {}
            return [
                self._field(name, one, needed and name in required, encodings.get(name) or {})
                for name, one in properties.items()
            ], False
        told = _described(schemas.read(schema) or {"type": "string"}, body.get("description"))
        return [Argument(name="body", sent_as="body", place="body", schema=told, required=needed)], True

    def _field(self, name: str, schema: Json, required: bool, encoding: Json) -> Argument:
        """Source of `encoding`: OpenAPI 3.1, Encoding Object."""
        kind = str(encoding.get("contentType") or "").split(",")[0].strip()
        style = str(encoding.get("style") or ("form" if "explode" in encoding else ""))
        return Argument(
            name=self._spell(name) or "field",
            sent_as=name,
            place="body",
            schema=schema,
            required=required,
            style=style,
            explode=bool(encoding.get("explode", style == "form")),
            reserved=bool(encoding.get("allowReserved")),
            media_type=_definite(kind) or None,
        )


def _definite(media_type: str | None) -> str | None:
    """A media type that can be sent, for one that may stand for several."""
    if not media_type or "*" not in media_type:
        return media_type
    return "text/plain" if media_type.startswith("text/") else "application/octet-stream"


def _preferred(content: Json) -> str | None:
    """The one of several media types that an argument is best told in."""
    for fits in _PREFERRED:
        if found := next((one for one in content if fits(one)), None):
            return found
    return next(iter(content), None)


def _described(schema: Json, description: str | None) -> Json:
    return {**schema, "description": description} if description else schema


def _told_apart(arguments: list[Argument]) -> list[Argument]:
    """The same, where one that has the name of another has its place in it, and then a number."""
    names: set[str] = set()
    made: list[Argument] = []
    for one in arguments:
        wanted, number = one.name, 1
        while one.name in names:
            placed = f"{one.place}_{wanted}"
            one = replace(one, name=placed if number == 1 else f"{placed}_{number}")
            number += 1
        names.add(one.name)
        made.append(one)
    return made
