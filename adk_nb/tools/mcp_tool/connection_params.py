"""How an MCP server is reached: a command to start, or an address."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class StdioServerParameters(BaseModel):
    """A program that is started, and spoken to through its input and output. The same as that of the package `mcp`."""

    model_config = ConfigDict(from_attributes=True, extra="forbid")

    command: str
    args: list[str] = Field(default_factory=list[str])
    """No shell reads them."""
    env: dict[str, str] | None = None
    """Besides the few variables that any program needs: the others of this process are not handed on."""
    cwd: str | Path | None = None
    encoding: str = "utf-8"
    encoding_error_handler: Literal["strict", "ignore", "replace"] = "strict"


class StdioConnectionParams(BaseModel):
    """A server that is started when it is first needed."""

    model_config = ConfigDict(extra="forbid")

    server_params: StdioServerParameters = Field(strict=False)
    timeout: float = Field(default=5.0, gt=0)
    """Seconds until it answers first."""


class SseConnectionParams(BaseModel):
    """A server on the web that speaks the older way, server-sent events."""

    model_config = ConfigDict(extra="forbid")

    url: str
    headers: dict[str, Any] | None = None
    timeout: float = Field(default=5.0, gt=0)
    """Seconds until it answers first, and for each message to it."""
    sse_read_timeout: float = Field(default=300.0, gt=0)
    """Seconds that it may be silent."""


class StreamableHTTPConnectionParams(BaseModel):
    """A server on the web."""

    model_config = ConfigDict(extra="forbid")

    url: str
    headers: dict[str, Any] | None = None
    timeout: float = Field(default=5.0, gt=0)
    """Seconds until it answers first, and to reach it."""
    sse_read_timeout: float = Field(default=300.0, gt=0)
    """Seconds that it may be silent."""
    terminate_on_close: bool = True
    """Tell the server when this side has done."""


SseServerParams = SseConnectionParams
ConnectionParams = StdioConnectionParams | SseConnectionParams | StreamableHTTPConnectionParams
