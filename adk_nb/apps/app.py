"""An app: a root agent under a name, and what holds for all of its runs."""

import re
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import ConfigurationError, closest
from adk_nb.plugins.base_plugin import BasePlugin

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class App(BaseModel):
    """What a runner runs: `Runner(app=App(name="shop", root_agent=agent, plugins=[...]), session_service=...)`.

    Raises:
        ConfigurationError: A field is unknown, missing or wrong.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    name: str
    """A letter, then letters, digits, `_` and `-`; not `user`. Sessions and artifacts are kept under it."""
    root_agent: BaseAgent
    """The agent that a message goes to."""
    plugins: list[BasePlugin] = Field(default_factory=list[BasePlugin])
    """Asked in this order, before the agents' own callbacks."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise ConfigurationError(f"app {given.get('name')!r}: {'; '.join(_told(error))}") from error
        _check_name(self.name)


def _told(error: ValidationError) -> list[str]:
    told: list[str] = []
    for wrong in error.errors(include_url=False, include_context=False):
        field = ".".join(str(step) for step in wrong["loc"])
        if wrong["type"] == "missing":
            told.append(f"{field!r} is missing")
        elif wrong["type"] == "extra_forbidden":
            near = closest(field, App.model_fields)
            told.append(f"there is no field {field!r}" + (f"; did you mean {near!r}?" if near else ""))
        else:
            told.append(f"{field!r}: {wrong['msg']} (got {' '.join(repr(wrong['input']).split()):.80})")
    return told


def _check_name(name: str) -> None:
    if name == "user":
        raise ConfigurationError("an app cannot be named 'user': that is the author of the user's own messages")
    if not _NAME.fullmatch(name):
        better = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")
        better = better if _NAME.fullmatch(better) else f"app_{better}".rstrip("_")
        raise ConfigurationError(
            f"an app's name is a letter, then letters, digits, '_' and '-', and {name!r} is not; try {better!r}"
        )
