"""Plugins, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "BasePlugin": "adk_nb.plugins.base_plugin",
        "ContextFilterPlugin": "adk_nb.plugins.context_filter_plugin",
        "DebugLoggingPlugin": "adk_nb.plugins.debug_logging_plugin",
        "GlobalInstructionPlugin": "adk_nb.plugins.global_instruction_plugin",
        "LoggingPlugin": "adk_nb.plugins.logging_plugin",
        "PluginManager": "adk_nb.plugins.plugin_manager",
        "ReflectAndRetryModelPlugin": "adk_nb.plugins.reflect_retry_model_plugin",
        "ReflectAndRetryToolPlugin": "adk_nb.plugins.reflect_retry_tool_plugin",
        "SaveFilesAsArtifactsPlugin": "adk_nb.plugins.save_files_as_artifacts_plugin",
    },
)
