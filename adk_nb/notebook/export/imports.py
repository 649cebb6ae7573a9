"""The imports of what is written: collected one by one, written once each."""

from adk_nb.notebook.export.target import Target

_STANDARD = {
    "Any": ("typing", "Any"),
    "AsyncGenerator": ("collections.abc", "AsyncGenerator"),
    "json": ("json", ""),
    "Path": ("pathlib", "Path"),
    "re": ("re", ""),
    "types": ("types", ""),
}
"""What the written helpers need of Python itself."""
_ROOMS = {
    "BaseAgent": "agents",
    "DEFAULT_ROUTE": "workflow",
    "Event": "events",
    "EventActions": "events",
    "FunctionTool": "tools",
    "InvocationContext": "agents.invocation_context",
    "JoinNode": "workflow",
    "LlmAgent": "agents",
    "LongRunningFunctionTool": "tools",
    "LoopAgent": "agents",
    "McpToolset": "tools.mcp_tool",
    "OpenAPIToolset": "tools.openapi_tool.openapi_spec_parser.openapi_toolset",
    "ParallelAgent": "agents",
    "SequentialAgent": "agents",
    "SseConnectionParams": "tools.mcp_tool.mcp_session_manager",
    "StreamableHTTPConnectionParams": "tools.mcp_tool.mcp_session_manager",
    "Workflow": "workflow",
}
"""What is written itself -> where both packages have it."""


class Imports:
    """Import lines, by module."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._whole: dict[str, str] = {}
        self._names: dict[str, dict[str, str]] = {}
        """Module -> what is bound -> what of the module."""

    def add(self, bound: str, module: str, name: str) -> None:
        """Bind `bound` to `name` of `module`, or to the module itself where `name` is empty."""
        if name:
            self._names.setdefault(module, {})[bound] = name
        else:
            self._whole[bound] = module

    def add_known(self, bound: str) -> bool:
        """Bind what the written code uses by that name; False: it is none of that."""
        if bound in _ROOMS:
            self.add(bound, f"{self._target.package}.{_ROOMS[bound]}", bound)
        elif bound in _STANDARD:
            self.add(bound, *_STANDARD[bound])
        else:
            return False
        return True

    @property
    def code(self) -> str:
        """The lines; Python's and other packages first, then those of the target."""
        whole = [_import(bound, module) for bound, module in self._whole.items()]
        named = [f"from {module} import {', '.join(_named(names))}" for module, names in sorted(self._names.items())]
        lines = [*sorted(whole), *named]
        theirs = [one for one in lines if self._target.package in one]
        others = [one for one in lines if one not in theirs]
        return "\n\n".join("\n".join(group) for group in (others, theirs) if group)


def _import(bound: str, module: str) -> str:
    return f"import {module}" if bound == module.partition(".")[0] else f"import {module} as {bound}"


def _named(names: dict[str, str]) -> list[str]:
    return sorted(name if bound == name else f"{name} as {bound}" for bound, name in names.items())
