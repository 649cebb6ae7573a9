"""Agents and graphs that are written in YAML, as google-adk 2.13 reads them."""

import importlib
import inspect
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from adk_nb import agents, tools, workflow
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.common_configs import AgentRefConfig, CodeConfig
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.errors import AdkNbError, ConfigurationError, did_you_mean, yaml_reason
from adk_nb.examples.example import Example
from adk_nb.lazy import require
from adk_nb.tools import mcp_tool
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.tool_configs import ToolArgsConfig
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.function_node import FunctionNode
from adk_nb.workflow.graph import END, START, Edge

ALLOW_CONFIG_STDIO_SERVERS_ENV_VAR = "ADK_ALLOW_CONFIG_STDIO_MCP_SERVERS"
"""Environment variable that lets files name programs for McpToolset to start. Source: google-adk 2.13."""
_FILE = "root_agent.yaml"
_RUNS_CODE = (
    "asynchat asyncore cgi commands crypt distutils imp mailcap nntplib pipes pip pkg_resources pytest IPython ruamel "
    "setuptools smtpd telnetlib test uu yaml _testcapi _testinternalcapi cloudpickle dill joblib"
)
_BLOCKED = frozenset((*sys.stdlib_module_names, *sys.builtin_module_names, *_RUNS_CODE.split())) - {"__main__"}
"""Packages that a file must not name: the standard library, and what runs any code or program that it is given."""
_SCHEMAS = ("input_schema", "output_schema", "state_schema")
_STDIO = ("stdio_server_params", "stdio_connection_params")
_CONNECTIONS = {
    "stdio_server_params": "StdioServerParameters",
    "stdio_connection_params": "StdioConnectionParams",
    "sse_connection_params": "SseConnectionParams",
    "streamable_http_connection_params": "StreamableHTTPConnectionParams",
}


def from_config(config_path: str | os.PathLike[str]) -> Any:
    """The agent, or the node of a graph, that a YAML file describes.

    References such as `my_agent.tools.roll` are imported; the folder above that of the file is added to `sys.path` for
    them. `.tools.roll` is a name in the file's own folder, `__main__.roll` one of this notebook.

    Args:
        config_path: The file, or a folder with a `root_agent.yaml`.

    Raises:
        FileNotFoundError: There is no such file.
        ConfigurationError: The file is no YAML, has an unknown key, or names something that does not exist or that a
            file must not name.
    """
    path = Path(config_path).expanduser().absolute()
    path = path / _FILE if path.is_dir() else path
    above = str(path.parent.parent)
    if above not in sys.path:
        sys.path.append(above)
    return _File(path, ()).node()


def resolve_agent_reference(ref_config: AgentRefConfig, referencing_agent_config_abs_path: str) -> Any:
    """The agent of a reference in a file.

    Raises:
        ConfigurationError: It names a file outside of the folder, or no agent.
    """
    return _File(Path(referencing_agent_config_abs_path), ()).agent(ref_config.model_dump(exclude_none=True), "agent")


def resolve_code_reference(code_config: CodeConfig) -> Any:
    """What a reference names.

    Raises:
        ConfigurationError: There is no such name, or a file must not name it.
    """
    return resolve_fully_qualified_name(code_config.name)


def resolve_callbacks(callbacks_config: Iterable[CodeConfig]) -> list[Any]:
    """What references name."""
    return [resolve_code_reference(config) for config in callbacks_config]


def resolve_fully_qualified_name(name: str) -> Any:
    """Import `package.module.name`.

    Raises:
        ConfigurationError: There is no such name, or a file must not name it.
    """
    module_name, _, attribute = name.rpartition(".")
    if module_name == "google.adk" or module_name.startswith("google.adk."):
        module_name = f"adk_nb{module_name.removeprefix('google.adk')}"
    if not module_name or not attribute:
        raise ConfigurationError(f"{name!r} names no module; write it whole, as my_agent.tools.roll")
    _check_module(module_name, name)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module was found, and what it imports was not
        raise ConfigurationError(f"{name!r}: {error}; it is looked for in sys.path") from error
    if not hasattr(module, attribute):
        hint = did_you_mean(attribute, dir(module), "define it there")
        raise ConfigurationError(f"{name!r}: module {module_name!r} has no {attribute!r}; {hint}")
    value = getattr(module, attribute)
    # A module of the user may have imported it: `from os import system`.
    if inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value):
        home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
        _check_module(home or "builtins", name)
    return value


def build(cls: type[Any], config: Any, config_abs_path: str) -> Any:
    """An agent of a class: `BaseAgent.from_config`."""
    data = cast(Mapping[str, Any], config) if isinstance(config, Mapping) else config.model_dump(exclude_unset=True)
    return _File(Path(config_abs_path), ()).made(cls, data)


class _File:
    """A YAML file, and the nodes that its edges have named."""

    def __init__(self, path: Path, within: tuple[Path, ...]) -> None:
        """`within`: the files that lead to it."""
        self._path = path
        self._within = (*within, Path(os.path.realpath(path)))
        self._nodes: dict[str, Any] = {}

    def node(self) -> Any:
        if self._within[-1] in self._within[:-1]:
            raise self._error(f"it leads back to itself: {' -> '.join(path.name for path in self._within)}")
        if not self._path.is_file():
            raise FileNotFoundError(f"there is no file {str(self._path)!r}")
        yaml: Any = require("yaml", package="pyyaml")
        try:
            data = yaml.safe_load(self._path.read_text(encoding="utf-8"))
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise self._error(f"it is no YAML: {yaml_reason(error)}") from error
        if not isinstance(data, dict):
            raise self._error("it is empty" if data is None else "it has no keys; write name: and instruction:")
        return self.inline(cast(dict[str, Any], data))

    def inline(self, data: Mapping[str, Any]) -> Any:
        """The agent or node that a mapping describes."""
        name = data.get("agent_class") or "LlmAgent"
        if not isinstance(name, str):
            raise self._error(f"agent_class: {name!r} is no name of a class")
        # A class without a module is looked for in these packages.
        known = {one: package for package in (agents, workflow) for one in dir(package)}
        cls: Any = self._code(name, "agent_class") if "." in name else getattr(known.get(name), name, None)
        if not (isinstance(cls, type) and _is_node(cls)):
            hint = did_you_mean(name, known, "write LlmAgent, SequentialAgent, LoopAgent, ParallelAgent or Workflow")
            raise self._error(f"agent_class: {name!r} is no class of agents; {hint}")
        own = getattr(cls, "from_config", None)
        if own is not None and own.__func__ is not BaseAgent.from_config.__func__:
            return own(dict(data), str(self._path))
        return self.made(cast(type[Any], cls), data)

    def made(self, cls: type[Any], data: Mapping[str, Any]) -> Any:
        """An object of the class, with the mapping's fields."""
        fields, known = set(cls.model_fields), {"agent_class"}
        known |= fields | {f"{field}s" for field in fields if field.endswith("_callback")}
        found: dict[str, Any] = {}
        for key, value in data.items():
            if key == "agent_class":
                continue
            field = key
            if key not in fields:
                field = key.removesuffix("s") if key.endswith("_callbacks") else key.removesuffix("_code")
            if field not in fields:
                hint = did_you_mean(key, known, f"it has: {', '.join(sorted(known))}")
                raise self._error(f"{cls.__name__} has no field {key!r}; {hint}")
            if field in found:
                raise self._error(f"{key!r} is there in two spellings; write one of them")
            is_code = key != field and key.endswith("_code")
            found[field] = self._code(value, key) if is_code else self._value(field, value)
        try:
            return cls(**found)
        except (AdkNbError, TypeError, ValueError) as error:
            raise self._error(str(error)) from error

    def agent(self, reference: Any, key: str) -> Any:
        """The agent of `config_path` or `code`."""
        given: dict[str, Any] = {"config_path": reference} if isinstance(reference, str) else dict(reference or {})
        if (
            len(given) != 1
            or not isinstance(next(iter(given.values())), str)
            or not given.keys() & {"config_path", "code"}
        ):
            raise self._error(f"{key}: {reference!r} is no agent; write config_path: FILE.yaml or code: MODULE.NAME")
        if "code" in given:
            agent = self._code(given["code"], key)
            if isinstance(agent, type) or not _is_node(agent):
                raise self._error(f"{key}: {given['code']!r} is a {type(agent).__name__}; name an agent")
            return agent
        name, folder = given["config_path"], os.path.realpath(self._path.parent)
        path = os.path.realpath(os.path.join(folder, name))
        if os.path.isabs(name) or not Path(path).is_relative_to(folder):
            raise self._error(f"{key}: {name!r} is outside of the folder of this file; write a path below it")
        return _File(Path(path), self._within).node()

    def _value(self, field: str, value: Any) -> Any:
        if field == "sub_agents":
            return [self.agent(one, field) for one in self._list(value, field)]
        if field == "tools":
            return [self._tool(one) for one in self._list(value, field)]
        if field == "edges":
            edges: list[Any] = []
            for one in self._list(value, field):
                edge = cast(dict[str, Any], one) if isinstance(one, dict) else {}
                if isinstance(one, list):
                    edges.append(tuple(self._step(step) for step in cast(list[Any], one)))
                elif {"from_node", "to_node"} <= edge.keys() <= {"from_node", "to_node", "route"}:
                    ends = {key: self._node(edge[key]) for key in ("from_node", "to_node")}
                    edges.append(Edge(**ends, route=edge.get("route")))
                else:
                    raise self._error(
                        f"edges: {one!r} is no edge; write [START, first, second], or from_node: and to_node:"
                    )
            return edges
        if field.endswith("_callback"):
            references = cast(list[Any], value) if isinstance(value, list) else [value]
            return [self._code(one, field) for one in references]
        is_reference = isinstance(value, dict) and set(cast(dict[str, Any], value)) == {"name"}
        if (field in _SCHEMAS and (is_reference or isinstance(value, str))) or (field == "model" and is_reference):
            return self._code(cast(Any, value), field)
        return cast(Any, value)

    def _list(self, value: Any, key: str) -> list[Any]:
        if not isinstance(value, list):
            raise self._error(f"{key} is a {type(value).__name__}; write a list, a line with - each")
        return cast(list[Any], value)

    def _code(self, reference: Any, key: str) -> Any:
        """What `module.name`, or `name: module.name`, refers to."""
        name = cast(dict[str, Any], reference).get("name") if isinstance(reference, dict) else reference
        if not isinstance(name, str):
            raise self._error(f"{key}: {reference!r} is no reference; write name: MODULE.NAME")
        if name.startswith("."):
            name = self._path.parent.name + name
        try:
            return resolve_fully_qualified_name(name)
        except ConfigurationError as error:
            raise self._error(f"{key}: {error}") from error

    def _tool(self, entry: Any) -> Any:
        given: dict[str, Any] = {"name": entry} if isinstance(entry, str) else dict(entry)
        name, args = given.pop("name", None), cast(dict[str, Any], given.pop("args", None) or {})
        if given or not isinstance(name, str) or not isinstance(args, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise self._error(f"tools: {entry!r} is no tool; write name: NAME, and args: with names, if it takes some")
        if "." in name:
            found = self._code(name, "tools")
        elif name in dir(tools):
            found = getattr(tools, name)
        else:
            hint = did_you_mean(name, dir(tools), "a tool of yours has a module: my_agent.tools.roll")
            raise self._error(f"tools: adk_nb.tools has no {name!r}; {hint}")
        if isinstance(found, BaseTool | BaseToolset) or (not args and callable(found) and not isinstance(found, type)):
            return found
        try:
            if not isinstance(found, type):
                return found(ToolArgsConfig(**args))
            if not issubclass(found, BaseTool | BaseToolset):
                raise ConfigurationError("it is no class of tools")
            if own := getattr(found, "from_config", None):
                return own(ToolArgsConfig(**args), str(self._path))
            return found(**self._tool_args(found, args))
        except (AdkNbError, TypeError, ValueError) as error:
            raise self._error(f"tools: {name}: {error}") from error

    def _tool_args(self, cls: type[Any], args: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a class of tools, with agents, examples and connections in place of their descriptions."""
        args = dict(args)
        if cls.__name__ == "AgentTool" and "agent" in args:
            args["agent"] = self.agent(args["agent"], "AgentTool")
        if cls.__name__ == "ExampleTool" and isinstance(args.get("examples"), str):
            args["examples"] = self._code(args["examples"], "examples")
        if cls.__name__ == "ExampleTool" and isinstance(args.get("examples"), list):
            args["examples"] = [Example.model_validate(one) for one in args["examples"]]
        if cls.__name__ == "McpToolset":
            named = [key for key in _CONNECTIONS if args.get(key) is not None]
            if len(named) != 1:
                raise ConfigurationError(f"write one of {', '.join(_CONNECTIONS)}")
            allowed = os.environ.get(ALLOW_CONFIG_STDIO_SERVERS_ENV_VAR, "").strip().lower() in ("1", "true")
            if named[0] in _STDIO and not allowed:
                raise ConfigurationError(
                    "a file must not name a program to start; make the McpToolset in Python and name it here, or set "
                    f"{ALLOW_CONFIG_STDIO_SERVERS_ENV_VAR}=1 if you trust all files that you load"
                )
            params = getattr(mcp_tool, _CONNECTIONS[named[0]])
            args["connection_params"] = params.model_validate(args.pop(named[0]))
        return args

    # -- graphs

    def _step(self, entry: Any) -> Any:
        """A node of a chain, several in parallel, or a map of routes."""
        if isinstance(entry, list):
            return tuple(self._node(one) for one in cast(list[Any], entry))
        if not isinstance(entry, dict):
            return self._node(entry)
        described = cast(dict[Any, Any], entry)
        is_code = described.keys() == {"code"} and isinstance(described["code"], str)
        # A key `name` alone may be a route, too.
        fields = set(LlmAgent.model_fields)
        is_agent = "name" in described and all(
            key in fields or str(key).removesuffix("_code") in fields or str(key).removesuffix("s") in fields
            for key in described
        )
        if is_code or is_agent or described.keys() & {"agent_class", "config_path", "func_code"}:
            return self._node(entry)
        return {
            route: tuple(self._node(one) for one in cast(list[Any], ends))
            if isinstance(ends, list)
            else self._node(ends)
            for route, ends in described.items()
        }

    def _node(self, entry: Any) -> Any:
        if entry in (START, END):
            return entry
        if isinstance(entry, dict):
            described = cast(dict[str, Any], entry)
            known = self._nodes.get(str(described.get("name")))
            if known is not None:
                return known
            is_reference = "config_path" in described or set(described) == {"code"}
            found = self.agent(described, "edges") if is_reference else self.inline(described)
            return self._named(found, str(described.get("config_path") or found.name))
        if not isinstance(entry, str):
            raise self._error(f"edges: {entry!r} is no node")
        if entry in self._nodes:
            return self._nodes[entry]
        if entry.endswith((".yaml", ".yml")):
            found = self.agent(entry, "edges")
        elif "." not in entry:
            hint = did_you_mean(entry, self._nodes, "an edge before must have made it")
            raise self._error(f"edges: there is no node {entry!r}; {hint}")
        else:
            found = self._code(entry, "edges")
            if inspect.isroutine(found):
                found = FunctionNode(name=entry.rpartition(".")[2], func=found)
            if isinstance(found, type) or not _is_node(found):
                raise self._error(f"edges: {entry!r} is a {type(found).__name__}; name a function, an agent or a node")
        return self._named(found, entry)

    def _named(self, node: Any, reference: str) -> Any:
        self._nodes[reference] = self._nodes[node.name] = node
        return node

    def _error(self, message: str) -> ConfigurationError:
        return ConfigurationError(f"{self._path.name}: {message}")


def _is_node(value: Any) -> bool:
    """True for an agent or a node of a graph, or a class of them."""
    nodes = (BaseAgent, BaseNode)
    return issubclass(value, nodes) if isinstance(value, type) else isinstance(value, nodes)


def _check_module(module: str, name: str) -> None:
    if module.partition(".")[0] in _BLOCKED:
        raise ConfigurationError(
            f"{name!r}: a file must not name things of {module.partition('.')[0]!r}, which can run any code; write a "
            "function of your own and name it"
        )
