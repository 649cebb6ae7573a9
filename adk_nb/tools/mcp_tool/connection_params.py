"""How an MCP server is reached: a command to start, or an address."""

from pathlib import Path
from typing import Any, Literal, SupportsIndex
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field

from adk_nb.redaction import refuse_pickle, remember_named, remember_url, without_known


class _Params(BaseModel):
    """What secrets stand in variables, headers and addresses, it does not tell, and nothing tells from then on."""

    model_config = ConfigDict(from_attributes=True, extra="forbid", hide_input_in_errors=True)

    def model_post_init(self, context: Any, /) -> None:
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
    """A program that is started, and spoken to through its input and output. The same as that of the package `mcp`."""

    command: str
    args: list[str] = Field(default_factory=list[str])
    """No shell reads them."""
    env: dict[str, str] | None = Field(default=None, repr=False)
    """Besides the few variables that any program needs: the others of this process are not handed on."""
    cwd: str | Path | None = None
    encoding: str = "utf-8"
    encoding_error_handler: Literal["strict", "ignore", "replace"] = "strict"


class StdioConnectionParams(_Params):
    """A server that is started when it is first needed."""

    server_params: StdioServerParameters = Field(strict=False)
    timeout: float = Field(default=5.0, gt=0)
    """Seconds until it answers first."""


class SseConnectionParams(_Params):
    """A server on the web that speaks the older way, server-sent events."""

    url: str
    headers: dict[str, Any] | None = Field(default=None, repr=False)
    timeout: float = Field(default=5.0, gt=0)
    """Seconds until it answers first, and for each message to it."""
    sse_read_timeout: float = Field(default=300.0, gt=0)
    """Seconds that it may be silent."""


class StreamableHTTPConnectionParams(_Params):
    """A server on the web."""

    url: str
    headers: dict[str, Any] | None = Field(default=None, repr=False)
    timeout: float = Field(default=5.0, gt=0)
    """Seconds until it answers first, and to reach it."""
    sse_read_timeout: float = Field(default=300.0, gt=0)
    """Seconds that it may be silent."""
    terminate_on_close: bool = True
    """Tell the server when this side has done."""


def place_of(params: "ConnectionParams") -> str:
    """Where a server is, for people to read: without arguments, user info or query, which may hold secrets."""
    if isinstance(params, StdioConnectionParams):
        return params.server_params.command
    found = urlsplit(params.url)
    return urlunsplit((found.scheme, found.netloc.rpartition("@")[2], found.path, "", ""))


SseServerParams = SseConnectionParams
ConnectionParams = StdioConnectionParams | SseConnectionParams | StreamableHTTPConnectionParams
