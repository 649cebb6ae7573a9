"""Options of an agent's cell: fields set by name, and YAML front matter."""

import ast
import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args, get_origin

from adk_nb import types
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError, closest, did_you_mean, yaml_reason
from adk_nb.lazy import require
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.notebook.cells.definitions import FieldValue
from adk_nb.notebook.variables import user_variables

_HINTS = {
    "name": "the name follows %%agent",
    "instruction": "the instruction goes below the line",
    "model": "write --model",
    "tools": "write --tools",
    "sub_agents": "write --sub",
    "mode": "write --mode",
    "description": "write --description",
    "output_key": "write --output-key",
    "output_schema": "write --output-schema",
    "input_schema": "write --input-schema",
    "max_iterations": "write --max-iterations",
    "template": "write --raw",
    "parent_agent": "a parent lists its agents with --sub",
}
"""Fields that `--set` does not take -> what to write instead."""
FIELDS = [field for field in LlmAgent.model_fields if field not in _HINTS]
"""Fields that `--set` takes."""
_FENCE = "---"
_KEY = re.compile(r"([a-z][\w-]*)\s*:(?:\s|$)")


def schema_of(option: str, name: str, variables: Mapping[str, Any]) -> FieldValue:
    """The type or the JSON schema in a variable. `option`: the option that names it, for errors.

    Raises:
        InputError: There is no such variable.
    """
    if not name.isidentifier():
        raise InputError(
            f"{option} takes the name of a variable, got {name!r:.60}; write Wanted = {name:.60} in a "
            f"cell, and {option} Wanted"
        )
    if name not in variables:
        raise _unknown_variable(option, name, variables)
    return FieldValue(name, variables[name], name)


def field_of(mark: str, name: str, value: Any, variables: Mapping[str, Any]) -> FieldValue:
    """The value of `--set name=value`: JSON or a literal of Python's, else a variable, else text.

    Args:
        mark: As it is typed, for errors.
        name: The field's.
        value: The text; anything else is the value itself.
        variables: The notebook's.

    Raises:
        InputError: There is no such field, it has an option of its own, or the text is nothing that it could be.
    """
    if name in _HINTS:
        raise InputError(f"{mark} is not needed for {name}: {_HINTS[name]}")
    config_fields = types.GenerateContentConfig.model_fields
    if name not in FIELDS and name in config_fields:
        raise InputError(f"{mark}: {name} belongs into generate_content_config; {_config_hint(name, value)}")
    if name not in FIELDS:
        near = closest(name.replace("-", "_"), [*FIELDS, *_HINTS, *config_fields])
        hint = _HINTS.get(near or "") or (f"did you mean {near}?" if near else f"there is {', '.join(FIELDS)}")
        if near in config_fields:
            hint += f" {_config_hint(near, value)}"
        raise InputError(f"{mark}: an agent has no field {name!r}; {hint}")
    if not isinstance(value, str):
        return FieldValue(json.dumps(value, default=str, sort_keys=True), value)
    annotation: Any = LlmAgent.model_fields[name].annotation
    choices = get_args(annotation) if get_origin(annotation) is Literal else ()
    if value in choices:
        return FieldValue(value, value)
    with suppress(ValueError):
        return FieldValue(value, _parse_literal(value))
    if value in variables:
        return FieldValue(value, variables[value], value)
    if choices and all(isinstance(choice, str) for choice in choices):
        near = closest(value, choices)
        hint = f"; did you mean {near}?" if near else ""
        raise InputError(f"{mark}: {name} must be {' or '.join(choices)}, got {value!r:.60}{hint}")
    takes_text = annotation in (str, Any) or str in get_args(annotation)
    if value.isidentifier() and not takes_text:
        raise _unknown_variable(mark, value, variables)
    return FieldValue(value, value)


def _config_hint(name: str, value: Any) -> str:
    with suppress(ValueError):
        value = _parse_literal(value) if isinstance(value, str) else value
    return f"write --set generate_content_config={json.dumps({name: value}, default=str)}"


def _parse_literal(text: str) -> Any:
    """Parse JSON, or else a literal of Python.

    Raises:
        ValueError: It is neither.
    """
    with suppress(ValueError):
        return json.loads(text)
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(text) from error


def _unknown_variable(option: str, name: str, variables: Mapping[str, Any]) -> InputError:
    hint = did_you_mean(name, user_variables(variables), "define it in a cell above")
    return InputError(f"{option}: there is no variable {name!r}; {hint}")


@dataclass(frozen=True)
class FrontMatter:
    """Options as YAML between two lines `---` at the beginning of a cell's body."""

    texts: Mapping[str, Any]
    """Key -> text, a list of texts, or a mapping of them: as typed, so that `no` and `0.5` are text."""
    values: Mapping[str, Any]
    """Key -> the same as YAML reads it."""


def split_front_matter(body: str, mark: str) -> tuple[FrontMatter | None, str]:
    """The front matter of a cell's body, None if it has none, and the rest of the body with its line numbers kept.

    `mark`: as the cell begins, for errors.

    Raises:
        InputError: It is not closed, or is not valid YAML of keys.
        MissingExtraError: PyYAML is not installed.
    """
    lines = body.split("\n")
    first = next((index for index, line in enumerate(lines) if line.strip()), None)
    if first is None or lines[first].rstrip() != _FENCE:
        return None, body
    last = next((index for index in range(first + 1, len(lines)) if lines[index].rstrip() == _FENCE), None)
    if last is None:
        raise InputError(
            f"{mark}: line {first + 2} is ---, so options follow it; close them with another line ---, or begin the "
            "text otherwise"
        )
    matter = _parse_yaml("\n" * (first + 1) + "\n".join(lines[first + 1 : last]), mark)
    return matter, "\n" * (last + 1) + "\n".join(lines[last + 1 :])


def looks_like_options(body: str, keys: Collection[str]) -> bool:
    """True for a body that begins with an option and has no `---` around it."""
    first = next((line for line in body.split("\n") if line.strip()), "")
    match = _KEY.match(first)
    return bool(match) and match[1].replace("_", "-") in keys


def _parse_yaml(text: str, mark: str) -> FrontMatter:
    yaml: Any = require("yaml", package="pyyaml")
    try:
        texts, values = yaml.load(text, yaml.BaseLoader), yaml.load(text, yaml.SafeLoader)
    except (yaml.YAMLError, ValueError) as error:
        position = getattr(error, "problem_mark", None)
        location = f"line {position.line + 2}" if position else "front matter"
        reason = yaml_reason(error)
        raise InputError(f"{mark}, {location}: {reason}; write one option a line, as model: {GEMINI_MODEL}") from None
    if texts is None or texts == "":
        return FrontMatter({}, {})
    if not isinstance(texts, dict):
        raise InputError(f"{mark}: the lines between --- are options; write them as key: value, one a line")
    return FrontMatter(cast(dict[str, Any], texts), cast(dict[str, Any], values))
