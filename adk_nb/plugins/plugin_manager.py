"""The plugins of a runner, and their hooks for each point of a run."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any

from adk_nb.errors import ConfigurationError, PluginError
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.runtime.hooks import Hook

logger = logging.getLogger(__name__)

_POINTS = (
    "on_user_message", "before_run", "after_run", "on_event",
    "before_agent", "after_agent", "on_agent_error",
    "before_model", "after_model", "on_model_error",
    "before_tool", "after_tool", "on_tool_error",
    "on_run_error",
)  # fmt: skip
_PLUGIN_ARGUMENTS = {"args": "tool_args", "tool_response": "result"}
"""Argument names of agents' callbacks that differ in plugins' hooks."""


class PluginManager:
    """Plugins in the order of their hooks.

    Raises:
        ConfigurationError: Two have the same name, or one has none.
    """

    def __init__(self, plugins: Iterable[BasePlugin] = (), close_timeout: float = 5.0) -> None:
        """`close_timeout`: seconds for each plugin to close."""
        self.plugins: list[BasePlugin] = []
        self._close_timeout = close_timeout
        self._hooks: dict[str, tuple[Hook, ...]] = dict.fromkeys(_POINTS, ())
        for plugin in plugins:
            self.register_plugin(plugin)

    def register_plugin(self, plugin: BasePlugin) -> None:
        """Append a plugin. The hooks that it overrides are looked up now, once."""
        name = getattr(plugin, "name", None)
        if not name:
            raise ConfigurationError(
                f"{type(plugin).__name__} has no name; call super().__init__(name='...') in its __init__"
            )
        if self.get_plugin(name):
            raise ConfigurationError(f"two plugins are named {name!r}; give one of them another name")
        self.plugins.append(plugin)
        for point in _POINTS:
            # A hook that nobody overrides is not called at all: some points are passed for every token.
            method = getattr(plugin, f"{point}_callback")
            # A function set on the instance has no `__func__`.
            if getattr(method, "__func__", method) is not getattr(BasePlugin, f"{point}_callback"):
                self._hooks[point] = (*self._hooks[point], _hook(plugin, point))

    def get_plugin(self, plugin_name: str) -> BasePlugin | None:
        """The plugin with this name, or None."""
        return next((plugin for plugin in self.plugins if plugin.name == plugin_name), None)

    def hooks(self, name: str, /) -> tuple[Hook, ...]:
        """The hooks of a point such as `before_tool`, to be called with the runtime's argument names."""
        return self._hooks[name]

    async def close(self) -> None:
        """Close all plugins, even if some fail.

        Raises:
            PluginError: One or more raised or timed out; raised after all were closed.
        """
        failed: list[tuple[str, Exception]] = []
        for plugin in self.plugins:  # in this task, one by one: a plugin's resources may be bound to the task
            try:
                async with asyncio.timeout(self._close_timeout):
                    await plugin.close()
            except TimeoutError as error:
                # asyncio's own TimeoutError has no text; one with a text is the plugin's.
                failed.append((plugin.name, error if error.args else TimeoutError(f"{self._close_timeout:g} s passed")))
            except Exception as error:
                logger.exception("plugin %r did not close", plugin.name)
                failed.append((plugin.name, error))
        if failed:
            messages = "; ".join(f"{name!r}: {_error_text(error)}" for name, error in failed)
            raise PluginError(f"plugins that did not close: {messages}") from failed[0][1]


def _hook(plugin: BasePlugin, point: str) -> Hook:
    """Wrap a plugin's method, sync or async; errors name the plugin."""
    method = getattr(plugin, f"{point}_callback")
    is_agent_hook = point.endswith(("_agent", "_agent_error"))

    def failed(error: Exception) -> PluginError:
        return PluginError(f"plugin {plugin.name!r}: {point}_callback raised {_error_text(error)}")

    def call(arguments: Mapping[str, Any]) -> Any:
        try:
            if is_agent_hook:
                return method(agent=arguments["callback_context"].get_invocation_context().agent, **arguments)
            return method(**{_PLUGIN_ARGUMENTS.get(name, name): value for name, value in arguments.items()})
        except Exception as error:
            raise failed(error) from error

    async def outcome(result: Awaitable[Any]) -> Any:
        try:
            return await result
        except Exception as error:
            raise failed(error) from error

    async def async_hook(**arguments: Any) -> Any:
        """Call the method with the plugin's argument names."""
        return await outcome(call(arguments))

    def hook(**arguments: Any) -> Any:
        """Call the method with the plugin's argument names."""
        result = call(arguments)
        return outcome(result) if inspect.isawaitable(result) else result

    return async_hook if inspect.iscoroutinefunction(method) else hook


def _error_text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
