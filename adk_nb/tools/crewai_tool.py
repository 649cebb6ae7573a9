"""`CrewaiTool` wraps a tool written for CrewAI."""

import functools
import inspect
from typing import Any

from adk_nb.tools.conditions import Condition
from adk_nb.tools.foreign_tool import ForeignTool, find_callable, text_attribute
from adk_nb.tools.function_tool import name_of


class CrewaiTool(ForeignTool):
    """Wraps an object with CrewAI's `run`, or with `_run` or `func`; CrewAI need not be installed."""

    def __init__(
        self,
        tool: Any,
        name: str | None = None,
        description: str | None = None,
        *,
        require_confirmation: Condition = False,
    ) -> None:
        """Wrap `tool`. Its name (lower case, `_` for blanks) and description are the defaults.

        Args:
            tool: The object to wrap.
            name: The name for the model.
            description: The description for the model.
            require_confirmation: As for FunctionTool.

        Raises:
            ConfigurationError: It has no method that can be called.
        """
        code = find_callable(tool, "func", "_run", "run")
        schema = getattr(tool, "args_schema", None)
        # CrewAI's `run` starts an event loop of its own for an async `_run`.
        async_names = [
            method for method in ("_run", "run", "func") if inspect.iscoroutinefunction(getattr(tool, method, None))
        ]
        call = find_callable(tool, *async_names, "run", "_run", "func")
        super().__init__(
            functools.partial(_acall if async_names else _call, call, code) if schema is not None else call,
            schema,
            name=name or text_attribute(tool, "name", None).lower() or name_of(code),
            description=text_attribute(tool, "description", description),
            require_confirmation=require_confirmation,
        )


def _call(call: Any, code: Any, /, **args: Any) -> Any:
    """`code` is bound to the partial so that the tool's fingerprint covers it."""
    return call(**args)


async def _acall(call: Any, code: Any, /, **args: Any) -> Any:
    return await call(**args)
