"""Connection parameters of MCP servers: a command to start, or a URL."""

from pathlib import Path
from typing import Any, Literal, SupportsIndex
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field

from adk_nb.redaction import refuse_pickle, remember_named, remember_url, without_known


class _Params(BaseModel):
    """Base of the parameters. Secrets in variables, headers and URLs are redacted everywhere from construction on."""

    model_config = ConfigDict(from_attributes=True, extra="forbid", hide_input_in_errors=True)

    def model_post_init(self, context: Any, /) -> None:
        """Register the secrets for redaction."""
        remember_named(getattr(self, "env", None))
        remember_named(getattr(self, "headers", None))
        remember_url(getattr(self, "url", None))

    def __repr__(self) -> str:
        return without_known(super().__repr__())

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if getattr(self, "env", None) or getattr(self, "headers", None) or "?" in getattr(self, "url", ""):
            refuse_pickle(self)
        return super().__reduce_ex__(protocol)


class StdioServerParameters(_Params):
    """A program that is started and talks over its stdin and stdout. Equal to the class of the package `mcp`."""

    command: str
    args: list[str] = Field(default_factory=list[str])
    """Passed without a shell."""
    env: dict[str, str] | None = Field(default=None, repr=False)
    """Added to the few variables that any program needs; others of this process are not passed on."""
    cwd: str | Path | None = None
    encoding: str = "utf-8"
    encoding_error_handler: Literal["strict", "ignore", "replace"] = "strict"


class StdioConnectionParams(_Params):
    """A server that is started on first use."""

    server_params: StdioServerParameters = Field(strict=False)
    timeout: float = Field(default=5.0, gt=0)
    """Seconds until its first response."""


class SseConnectionParams(_Params):
    """A server on the web with the older transport, server-sent events."""

    url: str
    headers: dict[str, Any] | None = Field(default=None, repr=False)
    timeout: float = Field(default=5.0, gt=0)
    """Seconds until its first response, and for each message to it."""
    sse_read_timeout: float = Field(default=300.0, gt=0)
    """Maximum seconds of silence."""


class StreamableHTTPConnectionParams(_Params):
    """A server on the web with the transport streamable HTTP."""

    url: str
    headers: dict[str, Any] | None = Field(default=None, repr=False)
    timeout: float = Field(default=5.0, gt=0)
    """Seconds to connect, and until its first response."""
    sse_read_timeout: float = Field(default=300.0, gt=0)
    """Maximum seconds of silence."""
    terminate_on_close: bool = True
    """End the server's session when the connection is closed."""


def server_label(params: "ConnectionParams") -> str:
    """A server's address for messages: without arguments, user info or query, which may contain secrets."""
    if isinstance(params, StdioConnectionParams):
        return params.server_params.command
    parts = urlsplit(params.url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


SseServerParams = SseConnectionParams
ConnectionParams = StdioConnectionParams | SseConnectionParams | StreamableHTTPConnectionParams
