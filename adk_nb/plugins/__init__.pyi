from adk_nb.plugins.base_plugin import BasePlugin as BasePlugin
from adk_nb.plugins.plugin_manager import PluginManager as PluginManager
