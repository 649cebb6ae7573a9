"""Parses the text of an OpenAPI document, which is untrusted."""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require

MAX_VALUES = 2_000_000
"""Limit of values in a document after expansion: a YAML alias counts each time."""
MAX_DEPTH = 200
"""Limit of nesting."""
_NOT_JSON = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")
_TRUE_OR_FALSE = re.compile("(?:true|True|TRUE|false|False|FALSE)$")


def parse_document(text: str, kind: str, package: str) -> Mapping[str, Any]:
    """Parse the text of a document.

    Args:
        text: JSON or YAML.
        kind: `json` or `yaml`.
        package: The extra that installs the YAML parser, for the error if it is missing.

    Raises:
        ConfigurationError: It is invalid, or larger than `MAX_VALUES`.
        MissingExtraError: The YAML parser is not installed.
    """
    if kind not in ("json", "yaml"):
        raise ConfigurationError(f"spec_str_type is 'json' or 'yaml', and not {kind!r}")
    try:
        document: Any = _yaml(text, package) if kind == "yaml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"the OpenAPI document is not valid {kind.upper()}: {error}") from error
    if not isinstance(document, dict):
        raise ConfigurationError(f"the OpenAPI document is {type(document).__name__}, and not an object")
    return cast(Mapping[str, Any], document)


def _yaml(text: str, package: str) -> Any:
    yaml: Any = require("yaml", package=package)
    loader = _loader(yaml)
    try:
        _refuse_depth(yaml, text, loader)
        document = yaml.load(text, loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    if _size(document, {}) > MAX_VALUES:
        raise ConfigurationError(f"the OpenAPI document has more than {MAX_VALUES} values, once its aliases are read")
    return json.loads(json.dumps(document, default=str))  # YAML keys may be numbers


def _refuse_depth(yaml: Any, text: str, loader: Any) -> None:
    """Check the nesting before loading: the C loader recurses, and would overflow the stack."""
    depth = 0
    for event in yaml.parse(text, loader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ConfigurationError(f"the OpenAPI document is nested more than {MAX_DEPTH} levels deep")


def _loader(yaml: Any) -> Any:
    """A safe loader that reads `no` and `2020-01-01` as text. Source: OpenAPI 3.1, Format; YAML 1.2, 10.3."""
    loader: Any = type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NOT_JSON]
        for first, resolvers in loader.yaml_implicit_resolvers.items()
    }
    loader.add_implicit_resolver(_NOT_JSON[0], _TRUE_OR_FALSE, list("tTfF"))
    return loader


def _size(value: Any, sizes: dict[int, int]) -> int:
    """Number of values in `value` with aliases expanded. Raises ValueError for a recursive alias."""
    if not isinstance(value, dict | list):
        return 1
    key = id(cast(Any, value))
    if key not in sizes:
        sizes[key] = -1
        children: Any = cast(dict[Any, Any], value).values() if isinstance(value, dict) else cast(list[Any], value)
        sizes[key] = 1 + sum(_size(child, sizes) for child in children)
    if sizes[key] < 0:
        raise ValueError("a recursive alias")
    return sizes[key]
