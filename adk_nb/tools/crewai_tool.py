"""`CrewaiTool`: a tool that was written for CrewAI."""

import functools
import inspect
from typing import Any

from adk_nb.tools.conditions import Decides
from adk_nb.tools.foreign_tool import ForeignTool, way_to_call, words_of
from adk_nb.tools.function_tool import name_of


class CrewaiTool(ForeignTool):
    """Wraps anything with CrewAI's `run`, or with `_run` or `func`; CrewAI itself is not needed."""

    def __init__(
        self,
        tool: Any,
        name: str | None = None,
        description: str | None = None,
        *,
        require_confirmation: Decides = False,
    ) -> None:
        """Take `tool`; its name, in small letters with `_` for blanks, and its description are the defaults.

        Args:
            tool: What is wrapped.
            name: What the model calls it.
            description: What the model is told.
            require_confirmation: As for FunctionTool.

        Raises:
            ConfigurationError: It has nothing that could be called.
        """
        code = way_to_call(tool, "func", "_run", "run")
        schema = getattr(tool, "args_schema", None)
        # CrewAI's `run` starts an event loop of its own for an async `_run`.
        own = [one for one in ("_run", "run", "func") if inspect.iscoroutinefunction(getattr(tool, one, None))]
        call = way_to_call(tool, *own, "run", "_run", "func")
        super().__init__(
            functools.partial(_acalled if own else _called, call, code) if schema is not None else call,
            schema,
            name=name or words_of(tool, "name", None).lower() or name_of(code),
            description=words_of(tool, "description", description),
            require_confirmation=require_confirmation,
        )


def _called(call: Any, code: Any, /, **given: Any) -> Any:
    """`code` stands here because an approval holds for it."""
    return call(**given)


async def _acalled(call: Any, code: Any, /, **given: Any) -> Any:
    return await call(**given)
