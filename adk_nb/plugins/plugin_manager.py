"""The plugins of one runner: for each point of a run, the hooks that stand there."""

import asyncio
import inspect
import logging
from collections.abc import Iterable, Mapping
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
_IN_A_PLUGIN = {"args": "tool_args", "tool_response": "result"}
"""What the runtime, as an agent's callbacks, calls otherwise than a plugin's hooks do."""


class PluginManager:
    """Plugins in the order in which they are asked.

    Raises:
        ConfigurationError: Two have one name, or one has none.
    """

    def __init__(self, plugins: Iterable[BasePlugin] = (), close_timeout: float = 5.0) -> None:
        """`close_timeout`: seconds that each plugin has to close."""
        self.plugins: list[BasePlugin] = []
        self._close_timeout = close_timeout
        self._hooks: dict[str, tuple[Hook, ...]] = dict.fromkeys(_POINTS, ())
        for plugin in plugins:
            self.register_plugin(plugin)

    def register_plugin(self, plugin: BasePlugin) -> None:
        """Ask `plugin` too, after those that are there. What it overrides is looked up now, once."""
        name = getattr(plugin, "name", None)
        if not name:
            raise ConfigurationError(f"{type(plugin).__name__} has no name; call super().__init__(name='...') in it")
        if self.get_plugin(name):
            raise ConfigurationError(f"two plugins are named {name!r}; give one of them another name")
        self.plugins.append(plugin)
        for point in _POINTS:
            if _overrides(plugin, point):
                self._hooks[point] = (*self._hooks[point], _hook(plugin, point))

    def get_plugin(self, plugin_name: str) -> BasePlugin | None:
        """The plugin of that name, if it is here."""
        return next((one for one in self.plugins if one.name == plugin_name), None)

    def hooks(self, name: str, /) -> tuple[Hook, ...]:
        """The hooks at a point such as `before_tool`, to be called with the runtime's names for what they are told."""
        return self._hooks[name]

    async def close(self) -> None:
        """Close each plugin, all of them whatever one of them does.

        Raises:
            PluginError: One or more raised, or took too long; said after all were asked.
        """
        failed: list[tuple[str, Exception]] = []
        for plugin in self.plugins:  # one after the other, in this task: what one opened may be bound to it
            try:
                async with asyncio.timeout(self._close_timeout):
                    await plugin.close()
            except TimeoutError as error:
                failed.append((plugin.name, error if error.args else TimeoutError(f"{self._close_timeout:g} s passed")))
            except Exception as error:
                logger.exception("plugin %r did not close", plugin.name)
                failed.append((plugin.name, error))
        if failed:
            told = "; ".join(f"{name!r}: {_words(error)}" for name, error in failed)
            raise PluginError(f"plugins that did not close: {told}") from failed[0][1]


def _overrides(plugin: BasePlugin, point: str) -> bool:
    method = getattr(plugin, f"{point}_callback")
    return getattr(method, "__func__", method) is not getattr(BasePlugin, f"{point}_callback")


def _hook(plugin: BasePlugin, point: str) -> Hook:
    """A plugin's method as the runtime calls it, sync or async; what it raises says whose it is."""
    method = getattr(plugin, f"{point}_callback")
    of_agent = point.endswith(("_agent", "_agent_error"))

    async def hook(**said: Any) -> Any:
        try:
            answer = method(**(_with_agent(said) if of_agent else _renamed(said)))
            return await answer if inspect.isawaitable(answer) else answer
        except Exception as error:
            raise PluginError(f"plugin {plugin.name!r}: {point}_callback raised {_words(error)}") from error

    return hook


def _with_agent(said: Mapping[str, Any]) -> dict[str, Any]:
    return {"agent": said["callback_context"].get_invocation_context().agent, **said}


def _renamed(said: Mapping[str, Any]) -> dict[str, Any]:
    return {_IN_A_PLUGIN.get(name, name): one for name, one in said.items()}


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
