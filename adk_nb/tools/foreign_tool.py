"""A tool that was written for another library: its schema is told as it is, and the library's own way calls it."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from pydantic import BaseModel

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.tools.conditions import Decides, as_condition
from adk_nb.tools.function_tool import FunctionTool

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


_WRAPPERS = {"langchain": "LangchainTool(tool={})", "crewai": "CrewaiTool(tool={})"}
"""First word of the modules of a library -> how a tool of it becomes one of ours."""


def how_to_wrap(tool: object) -> str | None:
    """What makes a tool of another library one of ours, with `{}` for its name. None: it is none, or of none known."""
    modules = {re.split("[._]", str(kind.__module__), maxsplit=1)[0] for kind in type(tool).__mro__}
    return next((how for library, how in _WRAPPERS.items() if library in modules), None)


class ForeignTool(FunctionTool):
    """A tool of which no more is known than what it has: a name, a description, a schema, and a way to call it."""

    _json_schema: dict[str, Any] | None = None

    def __init__(
        self,
        func: Callable[..., Any],
        schema: object,
        *,
        name: str,
        description: str,
        require_confirmation: Decides = False,
    ) -> None:
        """Take what calls the tool with keyword arguments.

        Args:
            func: Sync or async.
            schema: Of the arguments: a pydantic model, with which they are checked; JSON Schema, of which only
                `required` is; a model of pydantic 1, as its JSON Schema. None: the signature of `func` says it.
            name: Other signs than those of names become `_`.
            description: What the model is told.
            require_confirmation: As for FunctionTool.
        """
        super().__init__(func, name=_NOT_IN_A_NAME.sub("_", name).strip("_"), description=description)
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            required = [one.alias or name for name, one in schema.model_fields.items() if one.is_required()]
            self.signature = replace(self.signature, arguments=schema, required=required, takes_any=False)
        elif schema is not None:
            told: Any = cast(Any, schema) if isinstance(schema, dict) else cast(Any, schema).schema()
            self._json_schema = told
            self.signature = replace(self.signature, required=told.get("required", []))
        known = list((self._json_schema or {}).get("properties", ())) or self.signature.names
        self.require_confirmation = as_condition(require_confirmation, f"tool {self.name!r}", known)

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        if self._json_schema is None:
            return super()._get_declaration()
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._json_schema
        )


def way_to_call(tool: Any, *names: str) -> Callable[..., Any]:
    """The first of these that `tool` has and that can be called.

    Raises:
        ConfigurationError: It has none.
    """
    found = next((one for name in names if callable(one := getattr(tool, name, None))), None)
    if found is None:
        has = ", ".join(names)
        raise ConfigurationError(f"{tool!r:.80} has no {has} that could be called; pass a tool, or write a function")
    return found


def words_of(tool: Any, attribute: str, given: str | None) -> str:
    """A name or a description: what was given, or else what `tool` says of itself."""
    said = given or getattr(tool, attribute, None)
    return said if isinstance(said, str) else ""
