"""A function as a tool that is handed what it was let in with, under ADK's name."""

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any

from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.function_tool import FunctionTool

_HANDED = "credential"


class AuthenticatedFunctionTool(FunctionTool):
    """`FunctionTool(func, auth_config=...)`, for a function that takes the AuthCredential as `credential`.

    Source: google-adk 2.13, `tools/authenticated_function_tool.py`.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        auth_config: AuthConfig,
        response_for_auth_required: dict[str, Any] | str | None = None,
        **more: Any,
    ) -> None:
        """As FunctionTool.

        Args:
            func: The model is not told of its parameter `credential`, if it has one.
            auth_config: What it has to be let in with.
            response_for_auth_required: Stands as the call's result while a person is asked. None: words of our own.
            more: Other arguments of FunctionTool.
        """
        if not isinstance(auth_config, AuthConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError("AuthenticatedFunctionTool needs auth_config=AuthConfig(...); or use FunctionTool")
        takes_it = (
            callable(func) and not isinstance(func, FunctionTool) and _HANDED in inspect.signature(func).parameters
        )
        told = functools.partial(func, **{_HANDED: None}) if takes_it else func
        super().__init__(told, auth_config=auth_config, **more)
        self._takes_it = takes_it
        self.response_for_auth_required = response_for_auth_required

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if not self._takes_it:
            return await super().run_async(args=args, tool_context=tool_context)
        ready = copy.copy(self)
        ready.func, ready._takes_it = functools.partial(self.func, **{_HANDED: tool_context.auth_credential}), False
        return await ready.run_async(args=args, tool_context=tool_context)
