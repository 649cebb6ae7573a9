"""Parses OpenAPI 3 documents: one operation for each method of each path."""

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

from adk_nb.auth.auth_schemes import AuthScheme, AuthSchemeType, HTTPBase, OAuth2
from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require
from adk_nb.tools.openapi_tool.auth.auth_helpers import dict_to_auth_scheme
from adk_nb.tools.openapi_tool.operation import FORM, MULTIPART, STYLES, Argument, Operation, Place, is_json

logger = logging.getLogger(__name__)

Json = dict[str, Any]

EXTRA = "adk-nb[openapi]"
"""The extra that installs the parser's packages."""
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_MAX_NAME = 60
_PREFERRED: tuple[Callable[[str], Any], ...] = (is_json, FORM.__eq__, MULTIPART.__eq__, re.compile("text/").match)
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9]+")
_CAMEL_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_URL_KEYS = ("authorizationUrl", "tokenUrl", "refreshUrl", "openIdConnectUrl")


def operations_of(document: Mapping[str, Any], *, preserve_property_names: bool = False) -> list[Operation]:
    """Parse the operations of `document`, in order.

    Args:
        document: An OpenAPI document of version 3.0 or 3.1, as JSON values.
        preserve_property_names: Keep the names of arguments as they are in the document, instead of snake_case.

    Raises:
        ConfigurationError: It is not such a document, has a broken reference, or names no server.
        MissingExtraError: The package that resolves references is not installed.
    """
    if not str(document.get("openapi", "")).startswith("3."):
        raise ConfigurationError("this is not an OpenAPI 3 document: its field 'openapi' must be 3.x")
    return _Reader(document, str if preserve_property_names else snake_case).operations()


def snake_case(text: str) -> str:
    """Convert `listPets`, `list-pets` and `List Pets` to `list_pets`."""
    return _NOT_IN_A_NAME.sub("_", _CAMEL_BOUNDARY.sub("_", text)).strip("_").lower()


_DROPPED_KEYWORDS = {
    "xml",
    "externalDocs",
    "discriminator",
    "example",
    "examples",
    "nullable",
    "deprecated",
    "readOnly",
    "writeOnly",
}
"""Keywords that mean nothing to a model, or are converted."""
_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else")
_MAPS = ("properties", "patternProperties", "dependentSchemas")


class Schemas:
    """Converts the schemas of one operation. Referenced schemas are collected in `definitions`."""

    def __init__(self, look_up: Callable[[str], Any]) -> None:
        """`look_up`: resolves a reference."""
        self._look_up = look_up
        self._names: dict[str, str] = {}
        self.definitions: Json = {}
        """Name -> schema, referred to as `#/$defs/name`, so that a schema may contain itself."""

    def read(self, schema: Any) -> Json:
        """Convert to JSON Schema 2020-12. Source: OpenAPI 3.0 and 3.1, Schema Object."""
        if not isinstance(schema, dict):
            return {}  # true: anything; a property with schema false is not declared
        source = cast(Json, schema)
        converted = {
            key: self._value(key, value)
            for key, value in source.items()
            if key not in _DROPPED_KEYWORDS and key[:2] != "x-"  # x-: specification extensions
        }
        if "$ref" in source:
            reference = str(source["$ref"])
            if reference not in self._names:
                base = name = reference.rsplit("/", 1)[-1]
                number = 1
                while name in self.definitions:
                    number += 1
                    name = f"{base}_{number}"
                self._names[reference] = name
                self.definitions[name] = {}  # reserved before the conversion: the schema may refer to itself
                self.definitions[name] = self.read(self._look_up(reference))
            converted["$ref"] = f"#/$defs/{self._names[reference]}"
        # In OpenAPI 3.0 exclusive limits are booleans beside the limit.
        for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
            if isinstance(converted.get(exclusive), bool) and converted.pop(exclusive) and limit in converted:
                converted[exclusive] = converted.pop(limit)
        # Some documents write `String` or `Any`, which model services refuse.
        if "type" in converted:
            declared: Any = converted["type"]
            names = cast(list[Any], declared) if isinstance(declared, list) else [declared]
            if types := [kind for name in names if (kind := str(name).lower()) in _TYPES]:
                converted["type"] = types if isinstance(declared, list) else types[0]
            else:
                del converted["type"]
        _convert_one_of(converted, source)
        if converted.get("properties") and "required" in converted:
            converted["required"] = [name for name in converted["required"] if name in converted["properties"]]
        return {"anyOf": [converted, {"type": "null"}]} if source.get("nullable") else converted

    def fields(self, schema: Any) -> tuple[Json, set[str]] | None:
        """Properties and required names of an object schema; None if it is not one, or has alternatives."""
        if not isinstance(schema, dict):
            return None
        source = cast(Json, schema)
        if "$ref" in source:
            name = str(source["$ref"])
            return self.fields(self._look_up(name)) if not self._refers_to_itself(name) else None
        if "anyOf" in source or "oneOf" in source:
            return None
        properties = self._value("properties", source.get("properties") or {})
        required: set[str] = set(source.get("required") or ())
        parts: list[Any] = source.get("allOf") or []
        for part in parts:
            inner = self.fields(part)
            if inner is None:
                return None
            properties |= inner[0]
            required |= inner[1]
        return (properties, required) if properties else None

    def _refers_to_itself(self, reference: str) -> bool:
        """True if following references from `reference` alone returns to it."""
        seen, pending = set[str](), [reference]
        while pending:
            current = pending.pop()
            if current in seen:
                return True
            seen.add(current)
            target = _object(self._look_up(current))
            all_of: list[Any] = target.get("allOf") or []
            parts = [target, *(_object(part) for part in all_of)]
            pending += [str(part["$ref"]) for part in parts if "$ref" in part]
        return False

    def _value(self, key: str, value: Any) -> Any:
        if key in _LISTS and isinstance(value, list):
            return [self.read(item) for item in cast(list[Any], value)]
        if key in _SINGLE and isinstance(value, dict):
            return self.read(value)
        if key in _MAPS and isinstance(value, dict):
            return {
                name: self.read(subschema)
                for name, subschema in cast(Json, value).items()
                if not _object(subschema).get("readOnly")  # only the service writes it
            }
        return value


def _object(value: Any) -> Json:
    return cast(Json, value) if isinstance(value, dict) else {}


def _convert_one_of(schema: Json, source: Json) -> None:
    """Convert `oneOf` to `anyOf`, the only one that model services know; the service itself checks for uniqueness."""
    if "oneOf" not in schema:
        return
    alternatives: list[Any] = schema.pop("oneOf")
    if "anyOf" in schema:
        schema["allOf"] = [*schema.get("allOf", []), {"anyOf": alternatives}]
    else:
        schema["anyOf"] = alternatives
    discriminator = _object(source.get("discriminator"))
    names = list(_object(discriminator.get("mapping"))) or [
        str(_object(alternative).get("$ref", "")).rsplit("/", 1)[-1] for alternative in cast(list[Any], source["oneOf"])
    ]
    if discriminator.get("propertyName") and all(names):
        hint = f"{discriminator['propertyName']!r} says which: {', '.join(names)}."
        schema["description"] = " ".join(filter(None, [schema.get("description"), hint]))


class _Reader:
    def __init__(self, document: Mapping[str, Any], rename: Callable[[str], str]) -> None:
        self._document = document
        self._rename = rename
        referencing, drafts = require("referencing", package=EXTRA), require("referencing.jsonschema", package=EXTRA)
        resource = referencing.Resource(contents=document, specification=drafts.DRAFT202012)
        self._resolver: Any = referencing.Registry().with_resource("", resource).resolver("")
        self._unresolvable: Any = require("referencing.exceptions", package=EXTRA).Unresolvable
        self._names: set[str] = set()
        self._security = Security(document, self._resolve)

    def operations(self) -> list[Operation]:
        """Parse all operations."""
        operations: list[Operation] = []
        for path, item in self._document.get("paths", {}).items():
            item = self._resolve(item)
            operations += [self._operation(path, method, item) for method in _METHODS if method in item]
        if not operations:
            return []
        try:
            home = self._server()
        except ConfigurationError:  # each operation has a server of its own
            home = operations[0].url
        return [
            operation if _origin(operation.url) == _origin(home) else replace(operation, foreign_to=home)
            for operation in operations
        ]

    def _look_up(self, reference: str) -> Any:
        try:
            return self._resolver.lookup(reference).contents
        except (self._unresolvable, ValueError) as error:
            raise ConfigurationError(
                f"the OpenAPI document refers to {reference!r}, which is not in it; write it into the document"
            ) from error

    def _resolve(self, value: Any) -> Json:
        seen: set[str] = set()
        while isinstance(value, dict) and "$ref" in value:
            reference = str(cast(Json, value)["$ref"])
            if reference in seen:
                raise ConfigurationError(f"the OpenAPI document refers to {reference!r} in a circle")
            seen.add(reference)
            value = self._look_up(reference)
        return cast(Json, value) if isinstance(value, dict) else {}

    def _operation(self, path: str, method: str, item: Json) -> Operation:
        definition = self._resolve(item[method])
        schemas = Schemas(self._look_up)
        arguments = [self._parameter(parameter, schemas) for parameter in self._parameters(item, definition)]
        body = self._resolve(definition.get("requestBody"))
        media_type = _preferred_type(body.get("content") or {})
        fields, is_whole = self._fields(body, media_type, schemas) if media_type else ([], False)
        # Duplicate names are qualified by their place, then by a number.
        names: set[str] = set()
        for position, argument in enumerate(arguments := [*arguments, *fields]):
            qualified, number = f"{argument.place}_{argument.name}", 1
            while argument.name in names:
                argument = replace(argument, name=qualified if number == 1 else f"{qualified}_{number}")
                number += 1
            names.add(argument.name)
            arguments[position] = argument
        server = self._server(definition, item)
        return Operation(
            name=self._name(str(definition.get("operationId") or f"{path}_{method}")),
            description=str(
                definition.get("description") or definition.get("summary") or item.get("description") or ""
            ),
            method=method.upper(),
            url=server + path,
            arguments=tuple(arguments),
            definitions=schemas.definitions,
            media_type=_concrete_type(media_type),
            whole_body=is_whole,
            needs_body=bool(body.get("required")),
            security=self._security.requirements(definition, server),
        ).without_keys()

    def _name(self, text: str) -> str:
        base = snake_case(text)[:_MAX_NAME] or "operation"
        base = f"_{base}"[:_MAX_NAME] if base[0].isdigit() else base
        name, number = base, 1
        while name in self._names:
            number += 1
            name = f"{base[: _MAX_NAME - len(str(number)) - 1]}_{number}"
        self._names.add(name)
        return name

    def _server(self, *owners: Json) -> str:
        # The operation's servers override those of the path, which override the document's. Source: OpenAPI 3.1,
        # Operation Object and Path Item Object.
        servers: list[list[Json]] = [
            owner_servers for owner in (*owners, self._document) if (owner_servers := owner.get("servers"))
        ]
        server: Json = servers[0][0] if servers else {}  # the first one is the default
        variables: dict[str, Json] = server.get("variables") or {}
        url = str(server.get("url") or "/")
        for name, variable in variables.items():
            default, values = str(variable.get("default", "")), [str(value) for value in variable.get("enum") or ()]
            # OpenAPI 3.1, Server Variable Object. Else a host that nobody listed would get the credentials.
            if values and default not in values:
                raise ConfigurationError(
                    f"the variable {name!r} of the server {url!r} has the default {default!r}, which its 'enum' does "
                    f'not list: {", ".join(values)}; write "default": "{values[0]}"'
                )
            url = url.replace(f"{{{name}}}", default)
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
            raise ConfigurationError(
                f"the OpenAPI document's first server is {url!r}, which is not an absolute URL; put one first: "
                '"servers": [{"url": "https://..."}]'
            )
        if "{" in parts.netloc:
            raise ConfigurationError(
                f"the OpenAPI document's server {url!r} has a variable in its host that is not defined, so a model's "
                'argument could name the host; write "variables": {"...": {"default": "..."}} beside its "url"'
            )
        return url.rstrip("/")

    def _parameters(self, item: Json, definition: Json) -> list[Json]:
        """Parameters of the path, overridden by those of the operation."""
        references: list[Any] = [*(item.get("parameters") or []), *(definition.get("parameters") or [])]
        parameters = [self._resolve(reference) for reference in references]
        # A parameter is identified by name and location. Source: OpenAPI 3.1, Parameter Object.
        return list({(parameter.get("name"), parameter.get("in")): parameter for parameter in parameters}.values())

    def _parameter(self, definition: Json, schemas: Schemas) -> Argument:
        place: Place = definition.get("in", "query")
        if place not in STYLES or not definition.get("name"):
            raise ConfigurationError(
                f"a parameter of the OpenAPI document has no name, or is in {place!r}: {definition!r:.200}"
            )
        content: dict[str, Json] = definition.get("content") or {}
        media_type = _preferred_type(content)
        schema: Any = content[media_type].get("schema") if media_type else definition.get("schema")
        style = definition.get("style") if definition.get("style") in STYLES[place] else STYLES[place][0]
        return Argument(
            name=self._rename(definition["name"]) or place,
            sent_as=definition["name"],
            place=place,
            schema=_with_description(schemas.read(schema or {}), definition.get("description")),
            required=place == "path" or bool(definition.get("required")),
            style=str(style),
            explode=bool(definition.get("explode", style == "form")),  # OpenAPI: the default for style form is true
            reserved=bool(definition.get("allowReserved")),
            media_type=media_type,
        )

    def _fields(self, body: Json, media_type: str, schemas: Schemas) -> tuple[list[Argument], bool]:
        """The fields of an object body, or the body as one argument; True for the latter."""
        content: dict[str, Json] = body["content"]
        media = content[media_type] or {}
        schema: Any = media.get("schema") or {}
        # OpenAPI: the default is false; but most documents that omit `required` mean a body that is required.
        body_required = bool(body.get("required", True))
        if object_fields := schemas.fields(schema) if is_json(media_type) or media_type in (FORM, MULTIPART) else None:
            properties, required = object_fields
            encodings: dict[str, Json] = media.get("encoding") or {}
            fields: list[Argument] = []
            for name, subschema in properties.items():
                # Of a form. Source: OpenAPI 3.1, Encoding Object.
                encoding = encodings.get(name) or {}
                kind = str(encoding.get("contentType") or "").split(",")[0].strip()
                style = str(encoding.get("style") or ("form" if "explode" in encoding else ""))
                fields.append(
                    Argument(
                        name=self._rename(name) or "field",
                        sent_as=name,
                        place="body",
                        schema=subschema,
                        required=body_required and name in required,
                        style=style,
                        explode=bool(encoding.get("explode", style == "form")),
                        reserved=bool(encoding.get("allowReserved")),
                        media_type=_concrete_type(kind) or None,
                    )
                )
            return fields, False
        body_schema = _with_description(schemas.read(schema) or {"type": "string"}, body.get("description"))
        return [Argument(name="body", sent_as="body", place="body", schema=body_schema, required=body_required)], True


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower().removesuffix({"http": ":80", "https": ":443"}.get(parts.scheme, ""))


def _concrete_type(media_type: str | None) -> str | None:
    """A media type that can be sent, for a range such as `text/*`."""
    if not media_type or "*" not in media_type:
        return media_type
    return "text/plain" if media_type.startswith("text/") else "application/octet-stream"


def _preferred_type(content: Json) -> str | None:
    """The media type that suits a model's arguments best."""
    for is_match in _PREFERRED:
        if match := next((media_type for media_type in content if is_match(media_type)), None):
            return match
    return next(iter(content), None)


def _with_description(schema: Json, description: str | None) -> Json:
    return {**schema, "description": description} if description else schema


class Security:
    """Reads the security requirements of operations, and the document's default."""

    def __init__(self, document: Mapping[str, Any], resolve: Callable[[Any], Json]) -> None:
        """`resolve`: resolves references."""
        self._resolve = resolve
        self._default: Any = document.get("security")
        components: Json = document.get("components") or {}
        self._schemes: Json = resolve(components.get("securitySchemes"))

    def requirements(self, operation: Json, server: str) -> tuple[Mapping[str, AuthScheme], ...]:
        """Alternative requirements in order, each a dict of scheme names to schemes. `server`: base of relative URLs.

        Raises:
            ConfigurationError: A scheme is invalid.
        """
        # An empty list of an operation overrides the document's default: no credential is needed.
        alternatives: list[Json] = operation.get("security", self._default) or []
        return tuple(
            {name: scheme for name in requirement if (scheme := self._scheme(name, server)) is not None}
            for requirement in alternatives
        )

    def _scheme(self, name: str, server: str) -> AuthScheme | None:
        definition = self._resolve(self._schemes.get(name))
        if not definition:
            logger.warning("the OpenAPI document requires the credential %r and has no securityScheme for it", name)
            return None
        if definition.get("type") == "mutualTLS":
            return None  # part of the connection: ssl_verify takes a context with a client certificate
        try:
            scheme = dict_to_auth_scheme(_absolute(definition, server))
        except ConfigurationError as error:
            raise ConfigurationError(f"securityScheme {name!r} of the OpenAPI document: {error}") from error
        if isinstance(scheme, OAuth2) and not (scheme.flows.authorization_code or scheme.flows.client_credentials):
            # No supported flow: the token comes from elsewhere, and is sent as a bearer token.
            return HTTPBase(type=AuthSchemeType.http, scheme="bearer", description=scheme.description)
        return scheme


def _absolute(value: Json, server: str) -> Json:
    return {
        key: urljoin(f"{server}/", inner)
        if key in _URL_KEYS and isinstance(inner, str)
        else _absolute(cast(Json, inner), server)
        if isinstance(inner, dict)
        else inner
        for key, inner in value.items()
    }
