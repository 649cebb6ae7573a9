"""The text of an OpenAPI document, which may be anyone's, as JSON values."""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require

MAX_VALUES = 2_000_000
"""Values in a document, each counted where it stands: a YAML alias repeats all that it stands for."""
MAX_DEPTH = 200
"""Levels of lists and objects in each other."""
_NOT_JSON = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")
_TRUE_OR_FALSE = re.compile("(?:true|True|TRUE|false|False|FALSE)$")


def read(text: str, kind: str, package: str) -> Mapping[str, Any]:
    """The document that is written in `text`.

    Args:
        text: Its text.
        kind: `json` or `yaml`.
        package: What brings the reader of YAML.

    Raises:
        ConfigurationError: It is none, or is larger than `MAX_VALUES`.
        MissingExtraError: The reader of YAML is not installed.
    """
    if kind not in ("json", "yaml"):
        raise ConfigurationError(f"spec_str_type is 'json' or 'yaml', and not {kind!r}")
    try:
        found: Any = _yaml(text, package) if kind == "yaml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"the OpenAPI document is no {kind.upper()}: {error}") from error
    if not isinstance(found, dict):
        raise ConfigurationError(f"the OpenAPI document is {type(found).__name__}, and not an object")
    return cast(Mapping[str, Any], found)


def _yaml(text: str, package: str) -> Any:
    yaml: Any = require("yaml", package=package)
    loader = _loader(yaml)
    try:
        _refuse_depth(yaml, text, loader)
        found = yaml.load(text, loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    if _size(found, {}) > MAX_VALUES:
        raise ConfigurationError(f"the OpenAPI document has more than {MAX_VALUES} values, once its aliases are read")
    return json.loads(json.dumps(found, default=str))  # keys may be numbers there


def _refuse_depth(yaml: Any, text: str, loader: Any) -> None:
    """The loader in C is recursive, and takes the process with it where Python's raises RecursionError."""
    depth = 0
    for event in yaml.parse(text, loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ConfigurationError(f"the OpenAPI document is no YAML of use: it is more than {MAX_DEPTH} levels deep")


def _loader(yaml: Any) -> Any:
    """The safe loader, for which `no` and `2020-01-01` are text. Source: OpenAPI 3.1, Format; YAML 1.2, 10.3."""
    loader: Any = type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in every if tag not in _NOT_JSON]
        for first, every in loader.yaml_implicit_resolvers.items()
    }
    loader.add_implicit_resolver(_NOT_JSON[0], _TRUE_OR_FALSE, list("tTfF"))
    return loader


def _size(value: Any, known: dict[int, int]) -> int:
    """How many values `value` has in it, itself included. Raises ValueError if it is in itself."""
    if not isinstance(value, dict | list):
        return 1
    key = id(cast(Any, value))
    if key not in known:
        known[key] = -1
        inner: Any = cast(dict[Any, Any], value).values() if isinstance(value, dict) else cast(list[Any], value)
        known[key] = 1 + sum(_size(one, known) for one in inner)
    if known[key] < 0:
        raise ValueError("an alias stands for what it is in")
    return known[key]
