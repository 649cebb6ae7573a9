"""ADK's path to what a YAML file says about a tool."""

from pydantic import BaseModel, ConfigDict


class BaseToolConfig(BaseModel):
    """Base of the arguments of a tool of your own: `MyConfig.model_validate(config.model_dump())` in `from_config`."""

    model_config = ConfigDict(extra="forbid")


class ToolArgsConfig(BaseModel):
    """The `args` of a tool, under any names."""

    model_config = ConfigDict(extra="allow")


class ToolConfig(BaseModel):
    """A tool: its name, and the arguments with which it is made."""

    model_config = ConfigDict(extra="forbid")

    name: str
    args: ToolArgsConfig | None = None
