"""Options of an agent's cell: fields set by name, and YAML front matter."""

import ast
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args, get_origin

from adk_nb import types
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import InputError, closest
from adk_nb.lazy import require
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.notebook.variables import user_variables

_ELSEWHERE = {
    "name": "the name stands behind %%agent",
    "instruction": "the instruction stands below the line",
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
    "parent_agent": "an agent is under another by that one's --sub",
}
"""Fields that a cell says otherwise -> how."""
FIELDS = [one for one in LlmAgent.model_fields if one not in _ELSEWHERE]
"""Those that are set by name."""


@dataclass(frozen=True, eq=False)
class FieldValue:
    """What a field is set to."""

    text: str
    """As it is written."""
    value: Any
    variable: str = ""
    """The notebook's variable that holds it; empty: the text says it."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FieldValue):
            return NotImplemented
        same = self.value is other.value if self.variable else True
        return (self.text, self.variable) == (other.text, other.variable) and same


def schema_of(option: str, name: str, variables: Mapping[str, Any]) -> FieldValue:
    """The type or the JSON schema that a variable holds. `option`: as it is typed.

    Raises:
        InputError: There is no such variable.
    """
    if not name.isidentifier():
        raise InputError(
            f"{option} takes the name of a variable, and {name!r:.60} is none; write Wanted = {name:.60} in a "
            f"cell, and {option} Wanted"
        )
    if name not in variables:
        raise InputError(f"{option}: there is no variable {name!r}; {_near(name, variables)}")
    return FieldValue(name, variables[name], name)


def field_of(mark: str, name: str, said: Any, variables: Mapping[str, Any]) -> FieldValue:
    """What `--set name=said` means: JSON or a literal of Python's, else a variable, else text.

    Args:
        mark: As it is typed, for errors.
        name: The field's.
        said: The text; what is no text is the value itself.
        variables: The notebook's.

    Raises:
        InputError: There is no such field, it has a way of its own, or the text means nothing that it could be.
    """
    _refuse_no_field(mark, name, said)
    if not isinstance(said, str):
        return FieldValue(json.dumps(said, default=str, sort_keys=True), said)
    choices = _choices(LlmAgent.model_fields[name].annotation)
    if said in choices:
        return FieldValue(said, said)
    try:
        return FieldValue(said, _literal(said))
    except ValueError:
        pass
    if said in variables:
        return FieldValue(said, variables[said], said)
    if choices and all(isinstance(one, str) for one in choices):
        near = closest(said, choices)
        raise InputError(f"{mark}: {name} is {' or '.join(choices)}, and not {said!r:.60}" + _meant(near))
    if said.isidentifier() and not _takes_text(LlmAgent.model_fields[name].annotation):
        raise InputError(f"{mark}: there is no variable {said!r}; {_near(said, variables)}")
    return FieldValue(said, said)


def _in_the_config(name: str, said: Any) -> str:
    whole = json.dumps({name: _or_text(said)}, default=str)
    return f"write --set generate_content_config={whole}"


def _refuse_no_field(mark: str, name: str, said: Any) -> None:
    if name in _ELSEWHERE:
        raise InputError(f"{mark} is not needed for {name}: {_ELSEWHERE[name]}")
    if name in FIELDS:
        return
    of_the_model = types.GenerateContentConfig.model_fields
    if name in of_the_model:
        raise InputError(f"{mark}: {name} belongs into generate_content_config; {_in_the_config(name, said)}")
    near = closest(name.replace("-", "_"), [*FIELDS, *_ELSEWHERE, *of_the_model])
    hint = _ELSEWHERE.get(near or "") or (f"did you mean {near}?" if near else f"there is {', '.join(FIELDS)}")
    if near in of_the_model:
        hint += f" {_in_the_config(near, said)}"
    raise InputError(f"{mark}: an agent has no field {name!r}; {hint}")


def _or_text(said: Any) -> Any:
    try:
        return _literal(said) if isinstance(said, str) else said
    except ValueError:
        return said


def _literal(text: str) -> Any:
    """What JSON, or else Python, reads.

    Raises:
        ValueError: Neither can.
    """
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(text.strip())
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError(text) from error


def _choices(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _takes_text(annotation: Any) -> bool:
    return annotation in (str, Any) or str in get_args(annotation)


def _near(name: str, variables: Mapping[str, Any]) -> str:
    near = closest(name, user_variables(variables))
    return f"did you mean {near!r}?" if near else "define it in a cell above"


def _meant(near: str | None) -> str:
    return f"; did you mean {near}?" if near else ""


_FENCE = "---"
_KEY = re.compile(r"([a-z][\w-]*)\s*:(?:\s|$)")


@dataclass(frozen=True)
class FrontMatter:
    """What stands between the lines."""

    texts: Mapping[str, Any]
    """Key -> text, a list of texts, or a mapping of them: as typed, so that `no` and `0.5` are text."""
    values: Mapping[str, Any]
    """Key -> the same as YAML reads it."""


def split_front_matter(body: str, mark: str) -> tuple[FrontMatter | None, str]:
    """A cell's body as its front matter, None if it has none, and what follows that, on the same lines as before.

    Args:
        body: What stands below the line of the magic.
        mark: As the cell begins, for errors.

    Raises:
        InputError: It is not closed, or is no YAML of keys.
        MissingExtraError: What reads YAML is not installed.
    """
    lines = body.split("\n")
    first = next((at for at, line in enumerate(lines) if line.strip()), None)
    if first is None or lines[first].rstrip() != _FENCE:
        return None, body
    last = next((at for at in range(first + 1, len(lines)) if lines[at].rstrip() == _FENCE), None)
    if last is None:
        raise InputError(
            f"{mark}: line {first + 2} is ---, so options follow it; close them with another line ---, or begin the "
            "text otherwise"
        )
    matter = _read("\n" * first + "\n".join(["", *lines[first + 1 : last]]), mark)
    return matter, "\n" * (last + 1) + "\n".join(lines[last + 1 :])


def looks_like_options(body: str, keys: Collection[str]) -> bool:
    """Whether a body begins with what is meant as such options, and has no `---` around it."""
    first = next((line for line in body.split("\n") if line.strip()), "")
    found = _KEY.match(first)
    return bool(found) and found[1].replace("_", "-") in keys


def _read(text: str, mark: str) -> FrontMatter:
    yaml: Any = require("yaml", package="pyyaml")
    try:
        texts, values = yaml.load(text, yaml.BaseLoader), yaml.load(text, yaml.SafeLoader)
    except (yaml.YAMLError, ValueError) as error:
        at = getattr(error, "problem_mark", None)
        where = f"line {at.line + 2}" if at else "front matter"
        why = getattr(error, "problem", None) or error
        raise InputError(f"{mark}, {where}: {why}; write one option a line, as model: {GEMINI_MODEL}") from None
    if texts is None or texts == "":
        return FrontMatter({}, {})
    if not isinstance(texts, dict):
        raise InputError(f"{mark}: between the lines --- stand options; write them as key: value, one a line")
    return FrontMatter(cast(dict[str, Any], texts), cast(dict[str, Any], values))
