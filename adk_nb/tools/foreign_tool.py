"""Tools written for other libraries: declared with their own schema, called through their own method."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from pydantic import BaseModel

from adk_nb import types
from adk_nb.errors import ConfigurationError
from adk_nb.tools.conditions import Condition, parse_condition
from adk_nb.tools.function_tool import FunctionTool

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_.-]+")
_WRAPPERS = {"langchain": "LangchainTool(tool={})", "crewai": "CrewaiTool(tool={})"}
"""First component of a library's module names -> code that wraps its tool."""


def wrapper_template(tool: object) -> str | None:
    """Code that wraps a tool of another library, with `{}` for its variable. None: not a tool of a known library."""
    modules = {re.split("[._]", str(kind.__module__), maxsplit=1)[0] for kind in type(tool).__mro__}
    return next((template for library, template in _WRAPPERS.items() if library in modules), None)


class ForeignTool(FunctionTool):
    """A tool of another library: a name, a description, a schema and a callable."""

    _json_schema: dict[str, Any] | None = None

    def __init__(
        self,
        func: Callable[..., Any],
        schema: object,
        *,
        name: str,
        description: str,
        require_confirmation: Condition = False,
    ) -> None:
        """Wrap a callable that takes keyword arguments.

        Args:
            func: Sync or async.
            schema: Schema of the arguments: a pydantic model, which validates them; or a JSON Schema or a pydantic 1
                model, of which only `required` is enforced. None: use the signature of `func`.
            name: Characters that are not allowed in a name become `_`.
            description: Description for the model.
            require_confirmation: As for FunctionTool.
        """
        super().__init__(func, name=_NOT_IN_A_NAME.sub("_", name).strip("_"), description=description)
        if isinstance(schema, type) and issubclass(schema, BaseModel):
            required = [field.alias or name for name, field in schema.model_fields.items() if field.is_required()]
            self.signature = replace(self.signature, arguments=schema, required=required, takes_any=False)
        elif schema is not None:
            json_schema: Any = cast(Any, schema) if isinstance(schema, dict) else cast(Any, schema).schema()
            self._json_schema = json_schema
            self.signature = replace(self.signature, required=json_schema.get("required", []))
        parameters = list((self._json_schema or {}).get("properties", ())) or self.signature.names
        self.require_confirmation = parse_condition(require_confirmation, f"tool {self.name!r}", parameters)

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        if self._json_schema is None:
            return super()._get_declaration()
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._json_schema
        )


def find_callable(tool: Any, *names: str) -> Callable[..., Any]:
    """The first callable attribute of `tool` among `names`.

    Raises:
        ConfigurationError: There is none.
    """
    function = next((attribute for name in names if callable(attribute := getattr(tool, name, None))), None)
    if function is None:
        expected = ", ".join(names)
        raise ConfigurationError(
            f"{tool!r:.80} has no {expected} that could be called; pass a tool, or write a function"
        )
    return function


def text_attribute(tool: Any, attribute: str, override: str | None) -> str:
    """A name or description: `override`, or the attribute of `tool`."""
    text = override or getattr(tool, attribute, None)
    return text if isinstance(text, str) else ""
