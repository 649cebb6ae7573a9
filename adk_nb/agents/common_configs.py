"""ADK's path to references in a YAML file."""

from pydantic import BaseModel, ConfigDict


class CodeConfig(BaseModel):
    """A name in a module: `my_agent.tools.roll`."""

    model_config = ConfigDict(extra="forbid")

    name: str


class AgentRefConfig(BaseModel):
    """Another agent: the path of its file, or its name in a module."""

    model_config = ConfigDict(extra="forbid")

    config_path: str | None = None
    code: str | None = None
