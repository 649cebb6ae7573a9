"""SKILL.md: YAML between two lines `---`, and markdown below them."""

import json
from typing import Any

from pydantic import ValidationError

from adk_nb.errors import InputError, yaml_reason
from adk_nb.lazy import require
from adk_nb.skills.models import Frontmatter, hidden_character
from adk_nb.wire import field_errors

MAX_FRONT_MATTER = 16_000
"""Length in characters."""
_MAX_NESTING = 10
"""Lists and mappings inside each other."""
_FENCE = "---"


def parse_skill(text: str) -> tuple[Frontmatter, str]:
    """The front matter of a SKILL.md, and the instructions below it.

    Raises:
        InputError: It has no front matter, or a wrong one, or characters that cannot be seen.
        MissingExtraError: PyYAML is not installed.
    """
    # Editors on Windows begin a file with a byte order mark.
    lines = text.removeprefix("\ufeff").split("\n")
    if lines[0].rstrip() != _FENCE:
        raise InputError("SKILL.md does not begin with a line ---, name: and description:, and another line ---")
    last = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if last is None:
        raise InputError("the front matter of SKILL.md is not closed; write another line --- below it")
    for number, line in enumerate(lines, 1):
        # Invisible characters can hide instructions from the person who reviews the skill.
        if hidden := hidden_character(line):
            raise InputError(f"SKILL.md line {number} has a character that cannot be seen ({hidden})")
    return _front_matter("\n".join(lines[1:last])), "\n".join(lines[last + 1 :]).strip()


def _front_matter(source: str) -> Frontmatter:
    if len(source) > MAX_FRONT_MATTER:
        limit = f"at most {MAX_FRONT_MATTER:,} are allowed"
        raise InputError(f"the front matter of SKILL.md has {len(source):,} characters, and {limit}")
    fields = _parse_yaml(source)
    if not isinstance(fields, dict):
        raise InputError("the front matter of SKILL.md must have a key a line, as name: trip-planner")
    try:
        return Frontmatter.model_validate(fields)
    except ValidationError as error:
        message = field_errors(error, Frontmatter.model_fields, got=False)
        raise InputError(f"the front matter of SKILL.md is wrong: {message}") from None


def _parse_yaml(source: str) -> Any:
    """The value of a YAML text, as JSON has it: dates are text."""
    yaml: Any = require("yaml", package="pyyaml")
    try:
        _refuse_bombs(yaml, source)
        # Through JSON: a date or a NaN in the metadata could not be sent to a model.
        return json.loads(json.dumps(yaml.safe_load(source), default=str), parse_constant=str)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"SKILL.md line {mark.line + 2}" if mark else "the front matter of SKILL.md"
        raise InputError(f"{place} is not valid YAML: {yaml_reason(error)}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise (
            error
            if isinstance(error, InputError)
            else InputError(f"the front matter of SKILL.md cannot be read: {error}")
        ) from None


def _refuse_bombs(yaml: Any, source: str) -> None:
    """Refuse what makes a short text a huge value: values that are repeated by name, and deep nesting.

    Tokens are read one by one, so that a deep text costs no more than its first levels.
    """
    depth = 0
    for token in yaml.scan(source, Loader=yaml.SafeLoader):
        kind = type(token).__name__
        # Nested aliases grow exponentially ("billion laughs") once they are written out as JSON.
        if kind in ("AnchorToken", "AliasToken"):
            raise InputError(f"SKILL.md line {token.start_mark.line + 2} repeats a value by its name (& or *)")
        if kind.endswith("StartToken") and kind != "StreamStartToken":
            depth += 1
        elif kind.endswith("EndToken") and kind != "StreamEndToken":
            depth -= 1
        if depth > _MAX_NESTING:
            limit = f"more than {_MAX_NESTING} lists and mappings inside each other"
            raise InputError(f"SKILL.md line {token.start_mark.line + 2} has {limit}")
