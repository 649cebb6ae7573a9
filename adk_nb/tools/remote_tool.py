"""What tools of a remote service have in common: arguments with a JSON Schema, and a condition for approval."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.conditions import Condition, condition_holds, with_defaults
from adk_nb.tools.json_arguments import JsonArguments


class RemoteTool(BaseTool):
    """A tool whose arguments a schema of its service describes."""

    extra: str
    """The extra of this package whose tool it is, for the error if jsonschema is missing."""
    require_confirmation: Condition = False

    def set_schema(self, schema: Mapping[str, Any]) -> None:
        """Set the JSON Schema of the arguments."""
        self._schema = schema
        self.__dict__.pop("_arguments", None)

    @cached_property
    def _arguments(self) -> JsonArguments:
        return JsonArguments(self._schema, self.extra)  # lazy: of a thousand tools few are called

    def sent_args(self, args: dict[str, Any]) -> dict[str, Any]:
        """What is sent of `args`."""
        return args

    def check(self, args: dict[str, Any]) -> str | None:
        """Validate `args` against the schema."""
        if message := self._arguments.error_message(self.sent_args(args)):
            return f"{self.name}() was not called: wrong arguments: {message}. Call it again with arguments that fit."
        return None

    @property
    def may_need_approval(self) -> bool:
        """True if some calls need an approval."""
        return bool(self.require_confirmation)

    def comparable_args(self, args: dict[str, Any]) -> dict[str, Any]:
        """What is sent of `args`, with the defaults of the schema."""
        return with_defaults(self._schema, self.sent_args(args))

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        """Evaluate the approval condition, with the defaults of the schema."""
        if not self.require_confirmation or self.check(args):
            return False  # nothing will run: the error goes back to the model
        return await condition_holds(self.require_confirmation, with_defaults(self._schema, args), tool_context)
