"""Plugins, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "BasePlugin": "adk_nb.plugins.base_plugin",
        "PluginManager": "adk_nb.plugins.plugin_manager",
    },
)
