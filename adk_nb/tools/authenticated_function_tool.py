"""`AuthenticatedFunctionTool`, ADK's name for a function tool with a credential."""

import copy
import functools
import inspect
from collections.abc import Callable
from typing import Any

from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.function_tool import FunctionTool

_PARAMETER = "credential"


class AuthenticatedFunctionTool(FunctionTool):
    """`FunctionTool(func, auth_config=...)`, for a function that takes the AuthCredential as `credential`.

    Source: google-adk 2.13, `tools/authenticated_function_tool.py`.
    """

    def __init__(
        self,
        func: Callable[..., Any],
        auth_config: AuthConfig,
        response_for_auth_required: dict[str, Any] | str | None = None,
        **options: Any,
    ) -> None:
        """As FunctionTool.

        Args:
            func: Its parameter `credential`, if it has one, is hidden from the model.
            auth_config: The credential it needs.
            response_for_auth_required: Result for the model while the user is asked for the credential. None: a
                default.
            options: Other arguments of FunctionTool.
        """
        if not isinstance(auth_config, AuthConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigurationError("AuthenticatedFunctionTool needs auth_config=AuthConfig(...); or use FunctionTool")
        takes_credential = (
            callable(func) and not isinstance(func, FunctionTool) and _PARAMETER in inspect.signature(func).parameters
        )
        visible_func = functools.partial(func, **{_PARAMETER: None}) if takes_credential else func
        super().__init__(visible_func, auth_config=auth_config, **options)
        self._takes_credential = takes_credential
        self.response_for_auth_required = response_for_auth_required

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Call the function with the credential."""
        if not self._takes_credential:
            return await super().run_async(args=args, tool_context=tool_context)
        bound_tool = copy.copy(self)
        bound_tool.func = functools.partial(self.func, **{_PARAMETER: tool_context.auth_credential})
        bound_tool._takes_credential = False
        return await bound_tool.run_async(args=args, tool_context=tool_context)
