"""Options that stand as YAML between two lines `---` at the beginning of a cell's body, for definitions with many."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from adk_nb.errors import InputError
from adk_nb.lazy import require
from adk_nb.models.default_model import GEMINI_MODEL

_FENCE = "---"
_KEY = re.compile(r"([a-z][\w-]*)\s*:(?:\s|$)")


@dataclass(frozen=True)
class FrontMatter:
    """What stands between the lines."""

    texts: Mapping[str, Any]
    """Key -> text, a list of texts, or a mapping of them: as typed, so that `no` and `0.5` are text."""
    values: Mapping[str, Any]
    """Key -> the same as YAML reads it."""


def split(body: str, mark: str) -> tuple[FrontMatter | None, str]:
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


def looks_like_one(body: str, keys: Collection[str]) -> bool:
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
