"""One connection to an MCP server, opened and closed by one task on the package's background loop."""

import asyncio
import logging
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, cast

import httpx2

from adk_nb.errors import CredentialError
from adk_nb.lazy import require
from adk_nb.redaction import hidden
from adk_nb.tools.mcp_tool.connection_params import (
    ConnectionParams,
    SseConnectionParams,
    StdioConnectionParams,
    place_of,
)
from adk_nb.tools.mcp_tool.mcp_transport import Bounded, Watched

logger = logging.getLogger(__name__)

EXTRA = "'adk-nb[mcp]'"
"""What brings the package that speaks with servers."""
SILENT_SECONDS = 300.0
"""How long a program may take for an answer; a service has `sse_read_timeout` for it."""
_TOLD = 500
"""Characters of what a server that did not start has said."""

Asked = Callable[[Any, Any], Awaitable[Any]]
"""`(context, params)`: what a server wants to know while it works, with what the package `mcp` hands its callbacks."""
_call: ContextVar[Asked | None] = ContextVar("adk_nb_mcp_call", default=None)
"""Who answers for the call that this task belongs to."""


class NotLetInError(CredentialError):
    """A server on the web wants to be shown a credential, or another one: HTTP 401."""


class Connection:
    """Opens at once, in a task of its own: what a cancel scope opened, only its own task may close."""

    def __init__(self, params: ConnectionParams, headers: Mapping[str, str], more: Mapping[str, Any]) -> None:
        """`more`: for `mcp.Client`."""
        self._params = params
        own: Mapping[str, Any] = getattr(params, "headers", None) or {}
        self._headers: dict[str, Any] = {**own, **headers}
        self._over = asyncio.Event()
        self._calls: list[Asked] = []
        self._status = 0
        self._changes = 0
        self._kept: tuple[int, Any] | None = None
        self.tells = False
        """The server has promised to say when it offers something else, and has a way to."""
        self.client: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        """A connected `mcp.Client`, once the server has answered."""
        self.client.add_done_callback(lambda done: done.cancelled() or done.exception())  # nobody may wait for it
        self.task = asyncio.create_task(self._hold(more), name="adk-nb-mcp")

    @property
    def ended(self) -> bool:
        """Whether there will be no answer any more."""
        return self._over.is_set() or self.task.done()

    def end(self) -> None:
        """Let the task close it."""
        self._over.set()
        if not self.client.done():
            self.task.cancel()

    async def kept(self, work: Callable[[], Awaitable[Any]], *, anew: bool) -> Any:
        """What `work` gave before, for as long as the server is known to offer the same."""
        if self.tells and self._kept and self._kept[0] == self._changes and not anew:
            return self._kept[1]
        before = self._changes
        made = await work()
        self._kept = (before, made)
        return made

    def told_apart(self, error: Exception) -> Exception:
        """`error`, or what is known of it besides: that the service has asked for credentials, or other ones."""
        if self._status != 401 or isinstance(error, NotLetInError):
            return error
        told = f"the MCP server {place_of(self._params)!r} does not let this in: HTTP 401"
        made = NotLetInError(f"{told}; give it McpToolset(auth_scheme=..., auth_credential=...)", refused=True)
        made.__cause__ = error
        return made

    @contextmanager
    def call(self, answers: Asked | None) -> Generator[None, None, None]:
        """Work during which the server may ask something, which `answers` answers."""
        self._status = 0
        if answers is None:
            yield
            return
        self._calls.append(answers)
        token = _call.set(answers)
        try:
            yield
        finally:
            _call.reset(token)
            self._calls.remove(answers)

    async def _asked(self, context: Any, params: Any) -> Any:
        """A server on the web asks in the context of a call; a program just asks, and is answered if only one can be
        meant: what one user is asked, another is not to see.
        """
        own = _call.get()
        answers = own if own in self._calls else self._calls[0] if len(self._calls) == 1 else None
        if answers is None:
            why = "several calls are under way: it is not clear whose question this is"
            known = require("mcp_types", package=EXTRA)
            return known.ErrorData(code=known.INVALID_REQUEST, message=why if self._calls else "no call is under way")
        return await answers(context, params)

    async def _heard(self, message: Any) -> None:
        if str(getattr(message, "method", "")).endswith("/list_changed"):
            self._changes += 1

    async def _hold(self, more: Mapping[str, Any]) -> None:
        listening: asyncio.Task[None] | None = None
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(self._params.timeout):
                    client = await stack.enter_async_context(self._opened(more))
                listening = asyncio.create_task(self._listen(client))
                self.client.set_result(client)
                await self._over.wait()
                await _ended(listening)
        except Exception as error:
            if not self.client.done():
                self.client.set_exception(_cause(self.told_apart(error), self._params))
            else:
                logger.debug("a connection to an MCP server ended: %s", error)
        finally:
            self._over.set()
            if listening:
                listening.cancel()
            if not self.client.done():
                self.client.set_exception(ConnectionError("the connection to the MCP server was closed"))

    async def _listen(self, client: Any) -> None:
        """Hear of changes: with a subscription, or as it always was on a connection that cannot be half lost."""
        offered = client.server_capabilities
        promised = [bool(one.list_changed) for one in (offered.tools, offered.resources) if one]
        if not (promised and all(promised)):
            return
        if client.protocol_version not in require("mcp_types.version", package=EXTRA).MODERN_PROTOCOL_VERSIONS:
            # On the web, nothing says whether the server can reach this side outside of an answer.
            self.tells = isinstance(self._params, StdioConnectionParams | SseConnectionParams)
            return
        wanted = {"tools_list_changed": True, "resources_list_changed": offered.resources is not None}
        try:
            async with client.listen(**wanted) as told:
                self.tells = all(getattr(told.honored, name) for name, one in wanted.items() if one)
                async for _ in told:
                    self._changes += 1
        except Exception as error:  # then it is asked each time
            logger.debug("an MCP server does not tell of changes: %s", error)
        finally:
            self.tells = False

    @asynccontextmanager
    async def _opened(self, more: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """A connected client; a program that was started has the last word in the error, as its note."""
        mcp = require("mcp", package=EXTRA)
        silent = getattr(self._params, "sse_read_timeout", SILENT_SECONDS)
        options: dict[str, Any] = {
            "client_info": mcp.Implementation(name="adk-nb", version="1"),
            "read_timeout_seconds": silent,
            "cache": None,
            "message_handler": self._heard,
            "elicitation_callback": self._asked,
            **more,
        }
        # A kernel's sys.stderr is no file; and what a server says before it gives up is what its author wants to know.
        with tempfile.TemporaryFile("w+", errors="replace") as said:
            try:
                async with AsyncExitStack() as stack:
                    transport = Watched(await self._transport(said, stack), self._over.set)
                    client = await stack.enter_async_context(mcp.Client(transport, **options))
                    client.session.validate_tool_result = _not_validated
                    yield client
            except BaseException as error:
                said.seek(0)
                if text := hidden(said.read()[-10 * _TOLD :])[-_TOLD:].strip():
                    error.add_note(text)
                raise

    async def _transport(self, said: Any, stack: AsyncExitStack) -> Any:
        params = self._params
        if isinstance(params, StdioConnectionParams):
            stdio = require("mcp.client.stdio", package=EXTRA)
            program = params.server_params.model_dump()
            if program["encoding_error_handler"] == "strict":  # mcp 2.3 waits for ever after bytes that are no text
                program["encoding_error_handler"] = "replace"
            return stdio.stdio_client(stdio.StdioServerParameters(**program), errlog=said)
        if isinstance(params, SseConnectionParams):
            sse = require("mcp.client.sse", package=EXTRA)
            silent = params.sse_read_timeout
            return sse.sse_client(
                params.url, timeout=params.timeout, sse_read_timeout=silent, httpx_client_factory=self._web
            )
        http = require("mcp.client.streamable_http", package=EXTRA)
        timeout = httpx2.Timeout(params.timeout, read=params.sse_read_timeout)
        client = await stack.enter_async_context(self._web(timeout=timeout))
        return http.streamable_http_client(params.url, http_client=client, terminate_on_close=params.terminate_on_close)

    def _web(self, headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
        """Reaches what the author wrote, private networks too, and no other: proxies of the environment are not used,
        and `mcp` follows a redirect to the same origin only.
        """
        return httpx2.AsyncClient(
            headers={**self._headers, "Accept-Encoding": "identity"},
            timeout=timeout,
            transport=Bounded(),
            trust_env=False,
            event_hooks={"response": [self._note_status]},
        )

    async def _note_status(self, response: httpx2.Response) -> None:
        if response.status_code == 401:
            self._status = 401


async def _not_validated(name: str, result: Any) -> None:
    """Validate nothing: `McpTool` does, in bounded time. mcp 2.3 matches a server's patterns with Python's `re`."""


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait({task})


def _cause(error: BaseException, params: ConnectionParams) -> Exception:
    """The one error at the bottom of a group of groups, in words that say what was not reached."""
    if isinstance(error, NotLetInError):
        return error
    notes = [*getattr(error, "__notes__", ()), *getattr(error.__cause__, "__notes__", ())]
    while isinstance(error, BaseExceptionGroup):
        error = cast(BaseExceptionGroup[BaseException], error).exceptions[0]
    why = f"no answer within {params.timeout:g} seconds" if isinstance(error, TimeoutError) else str(error)
    told = "; it said: " + notes[0] if notes else ""
    made = ConnectionError(hidden(f"the MCP server {place_of(params)!r} was not reached: {why}{told}"))
    made.__cause__ = error
    return made
