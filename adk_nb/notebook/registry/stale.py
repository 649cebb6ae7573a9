"""What of a cell is not as it was when the cell ran: a variable that it took over has another value since."""

from collections.abc import Mapping
from typing import Any

from adk_nb.errors import UserError
from adk_nb.notebook.registry.definitions import AgentDefinition
from adk_nb.notebook.registry.templates import read


def stale_in(definition: AgentDefinition, variables: Mapping[str, Any]) -> list[str]:
    """The variables, as the cell writes them."""
    found = [path for path, text in definition.variables.items() if _now(path, variables) != text]
    held = {definition.model: definition.model_object} if definition.model_object is not None else {}
    held |= {one.variable: one.value for one in definition.fields.values() if one.variable}
    return [*found, *(name for name, value in held.items() if variables.get(name) is not value)]


def _now(path: str, variables: Mapping[str, Any]) -> str | None:
    """The text that `{{path}}` would put in; None: it is not there."""
    try:
        return read(f"{{{{{path}}}}}", variables, keys=False).variables.get(path)
    except UserError:
        return None
