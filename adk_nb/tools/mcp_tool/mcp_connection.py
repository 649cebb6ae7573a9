"""A connection to an MCP server, opened and closed by one task on the package's background loop."""

import asyncio
import logging
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Any, cast

import httpx2

from adk_nb import clock
from adk_nb.errors import CredentialError
from adk_nb.lazy import require
from adk_nb.models.connections import transport_of_page
from adk_nb.redaction import hidden
from adk_nb.tools.mcp_tool.connection_params import (
    ConnectionParams,
    SseConnectionParams,
    StdioConnectionParams,
    server_label,
)

logger = logging.getLogger(__name__)

EXTRA = "adk-nb[mcp]"
"""The extra that installs the package `mcp`."""
SILENT_SECONDS = 300.0
"""Maximum wait for a response of a program; for a service it is `sse_read_timeout`."""
_MAX_STDERR = 500
"""Characters of stderr shown if a server does not start."""
MAX_BYTES = 64 * 1024 * 1024
"""Limit of one HTTP response; the package `mcp` limits the events of a stream."""

QuestionHandler = Callable[[Any, Any], Awaitable[Any]]
"""`(context, params) -> answer`: handles a server's question, with the callback arguments of the package `mcp`."""
_own_handler: ContextVar[QuestionHandler | None] = ContextVar("adk_nb_mcp_question_handler", default=None)
"""Handler of questions for the call that this task belongs to."""


class UnauthorizedError(CredentialError):
    """The server demands a credential, or rejects the one it got: HTTP 401."""


class Connection:
    """A connection, which opens at once. One task opens and closes it, as anyio's cancel scopes require."""

    def __init__(self, params: ConnectionParams, headers: Mapping[str, str], client_options: Mapping[str, Any]) -> None:
        """`client_options`: options of `mcp.Client`."""
        self._params = params
        param_headers: Mapping[str, Any] = getattr(params, "headers", None) or {}
        self._headers: dict[str, Any] = {**param_headers, **headers}
        self._ended_event = asyncio.Event()
        self._calls: list[QuestionHandler] = []
        """Handlers of questions for the calls under way."""
        self._status = 0
        """401 after a response with that status, else 0."""
        self._changes = 0
        """Number of changes that the server has announced."""
        self._cached: tuple[int, Any, float] | None = None
        """Number of changes before the last fetch, and its result."""
        self.announces_changes = False
        """True if the server announces changes of its tools and resources, and the connection delivers them."""
        self.client: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        """A connected `mcp.Client`, set once the server has responded."""
        # Retrieve the exception, in case nobody awaits the client.
        self.client.add_done_callback(lambda future: future.cancelled() or future.exception())
        self.task = asyncio.create_task(self._run(client_options), name="adk-nb-mcp")

    @property
    def ended(self) -> bool:
        """True if no more responses will come."""
        return self._ended_event.is_set() or self.task.done()

    def end(self) -> None:
        """Ask the task to close the connection."""
        self._ended_event.set()
        if not self.client.done():
            self.task.cancel()

    async def cached(
        self, fetch: Callable[[], Awaitable[Any]], *, refresh: bool, keep_seconds: float | None = None
    ) -> Any:
        """The last result of `fetch`, while the server has announced no change, or for `keep_seconds`."""
        now = clock.ticks()
        is_current = self._cached is not None and self._cached[0] == self._changes and not refresh
        is_fresh = keep_seconds is not None and self._cached is not None and now < self._cached[2] + keep_seconds
        if self._cached and is_current and (self.announces_changes or is_fresh):
            return self._cached[1]
        # Read before the fetch: a change that is announced meanwhile makes the result stale.
        version = self._changes
        value = await fetch()
        self._cached = (version, value, now)
        return value

    def explain(self, error: Exception) -> Exception:
        """`error`, or an UnauthorizedError if the service answered HTTP 401."""
        # mcp's own error does not carry the HTTP status, so it is noted from the response.
        if self._status != 401 or isinstance(error, UnauthorizedError):
            return error
        message = f"the MCP server {server_label(self._params)!r} refused access: HTTP 401"
        unauthorized = UnauthorizedError(
            f"{message}; give it McpToolset(auth_scheme=..., auth_credential=...)", refused=True
        )
        unauthorized.__cause__ = error
        return unauthorized

    @contextmanager
    def call(self, answers: QuestionHandler | None) -> Generator[None, None, None]:
        """Context of a call during which the server may ask questions, which `answers` handles."""
        # A 401 of an earlier call says nothing about this one.
        self._status = 0
        if answers is None:
            yield
            return
        # Also in a list: a program's questions are read by another task, which does not have this call's context.
        self._calls.append(answers)
        token = _own_handler.set(answers)
        try:
            yield
        finally:
            _own_handler.reset(token)
            self._calls.remove(answers)

    async def _on_elicitation(self, context: Any, params: Any) -> Any:
        """Route a server's question to its call.

        A server on the web asks in the context of a call. A program does not: it is answered only if a single call is
        under way, since a question for one user must not be shown to another.
        """
        own_handler = _own_handler.get()
        answers = own_handler if own_handler in self._calls else self._calls[0] if len(self._calls) == 1 else None
        if answers is None:
            reason = "several calls are under way: it is not clear whose question this is"
            mcp_types = require("mcp_types", package=EXTRA)
            return mcp_types.ErrorData(
                code=mcp_types.INVALID_REQUEST, message=reason if self._calls else "no call is under way"
            )
        return await answers(context, params)

    async def _on_message(self, message: Any) -> None:
        # MCP: notifications/tools/list_changed, and that of resources.
        if str(getattr(message, "method", "")).endswith("/list_changed"):
            self._changes += 1

    async def _run(self, client_options: Mapping[str, Any]) -> None:
        listening: asyncio.Task[None] | None = None
        try:
            async with AsyncExitStack() as stack:
                # Of the handshake only: each request has a timeout of its own.
                async with asyncio.timeout(self._params.timeout):
                    client = await stack.enter_async_context(self._open_client(client_options))
                # Not awaited: a subscription ends with its connection.
                listening = asyncio.create_task(self._listen(client))
                self.client.set_result(client)
                await self._ended_event.wait()
                # Before the stack closes: the subscription uses the client.
                await _cancel(listening)
        except Exception as error:
            if not self.client.done():
                explained: BaseException = self.explain(error)
                if not isinstance(explained, UnauthorizedError):
                    notes = getattr(explained, "__notes__", ()) or getattr(explained.__cause__, "__notes__", ())
                    while isinstance(explained, BaseExceptionGroup):  # anyio's task groups nest them
                        explained = cast(BaseExceptionGroup[BaseException], explained).exceptions[0]
                    is_late = isinstance(explained, TimeoutError)
                    reason = f"no answer within {self._params.timeout:g} seconds" if is_late else str(explained)
                    output = "; it said: " + notes[0] if notes else ""
                    message = f"the MCP server {server_label(self._params)!r} was not reached: {reason}{output}"
                    cause, explained = explained, ConnectionError(hidden(message))
                    explained.__cause__ = cause
                self.client.set_exception(explained)
            else:
                logger.debug("a connection to an MCP server ended: %s", error)
        finally:
            self._ended_event.set()
            if listening:
                listening.cancel()
            if not self.client.done():
                self.client.set_exception(ConnectionError("the connection to the MCP server was closed"))

    async def _listen(self, client: Any) -> None:
        """Subscribe to changes; a protocol version without subscriptions sends them unasked, if the transport can."""
        capabilities = client.server_capabilities
        flags = [
            bool(capability.list_changed) for capability in (capabilities.tools, capabilities.resources) if capability
        ]
        if not (flags and all(flags)):
            return
        if client.protocol_version not in require("mcp_types.version", package=EXTRA).MODERN_PROTOCOL_VERSIONS:
            # Over streamable HTTP a server may be unable to send anything outside of a response.
            self.announces_changes = isinstance(self._params, StdioConnectionParams | SseConnectionParams)
            return
        subscriptions = {"tools_list_changed": True, "resources_list_changed": capabilities.resources is not None}
        try:
            async with client.listen(**subscriptions) as subscription:
                self.announces_changes = all(
                    getattr(subscription.honored, name) for name, requested in subscriptions.items() if requested
                )
                async for _ in subscription:
                    self._changes += 1
        except Exception as error:  # without announcements the server is queried each time
            logger.debug("an MCP server does not announce changes: %s", error)
        finally:
            self.announces_changes = False

    @asynccontextmanager
    async def _open_client(self, client_options: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
        """A connected client. On failure the end of a program's stderr is added to the error as a note."""
        mcp = require("mcp", package=EXTRA)
        read_timeout = getattr(self._params, "sse_read_timeout", SILENT_SECONDS)
        options: dict[str, Any] = {
            "client_info": mcp.Implementation(name="adk-nb", version="1"),
            "read_timeout_seconds": read_timeout,
            # Announced changes decide what is fetched again, in `cached`.
            "cache": None,
            "message_handler": self._on_message,
            "elicitation_callback": self._on_elicitation,
            **client_options,
        }
        # A kernel's sys.stderr is not a file, and the server's last output helps its author.
        with tempfile.TemporaryFile("w+", errors="replace") as stderr:
            try:
                async with AsyncExitStack() as stack:
                    transport = WatchedTransport(await self._transport(stderr, stack), self._ended_event.set)
                    client = await stack.enter_async_context(mcp.Client(transport, **options))
                    client.session.validate_tool_result = _skip_validation
                    yield client
            except BaseException as error:
                stderr.seek(0)
                if text := hidden(stderr.read()[-10 * _MAX_STDERR :])[-_MAX_STDERR:].strip():
                    # A note: the error's own text is the protocol's.
                    error.add_note(text)
                raise

    async def _transport(self, stderr: Any, stack: AsyncExitStack) -> Any:
        params = self._params
        if isinstance(params, StdioConnectionParams):
            stdio = require("mcp.client.stdio", package=EXTRA)
            program = params.server_params.model_dump()
            if program["encoding_error_handler"] == "strict":  # mcp 2.3 hangs after bytes that do not decode
                program["encoding_error_handler"] = "replace"
            return stdio.stdio_client(stdio.StdioServerParameters(**program), errlog=stderr)
        if isinstance(params, SseConnectionParams):
            sse = require("mcp.client.sse", package=EXTRA)
            read_timeout = params.sse_read_timeout
            return sse.sse_client(
                params.url,
                timeout=params.timeout,
                sse_read_timeout=read_timeout,
                httpx_client_factory=self._new_http_client,
            )
        http = require("mcp.client.streamable_http", package=EXTRA)
        timeout = httpx2.Timeout(params.timeout, read=params.sse_read_timeout)
        client = await stack.enter_async_context(self._new_http_client(timeout=timeout))
        return http.streamable_http_client(params.url, http_client=client, terminate_on_close=params.terminate_on_close)

    def _new_http_client(self, headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
        """An HTTP client for the author's URL, private networks included. Proxies of the environment are not used.

        The package `mcp` follows redirects only to the same origin.
        """

        async def note_status(response: httpx2.Response) -> None:
            if response.status_code == 401:
                self._status = 401

        return httpx2.AsyncClient(
            # Uncompressed, so that the size limit counts the bytes of the content.
            headers={**self._headers, "Accept-Encoding": "identity"},
            timeout=timeout,
            transport=BoundedTransport(),
            trust_env=False,
            event_hooks={"response": [note_status]},
        )


async def _skip_validation(name: str, result: Any) -> None:
    """Replaces the validation of results in mcp 2.3, which matches a server's patterns with `re`, in unbounded time;
    `McpTool` validates them itself.
    """


async def _cancel(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait({task})


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Aborts responses that are too long."""

    def __init__(self) -> None:
        self._transport = transport_of_page() or httpx2.AsyncHTTPTransport(trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request with a size limit on its response."""
        response = await self._transport.handle_async_request(request)
        # A stream of events has no end by design; `mcp` limits each event.
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _BoundedStream(response.stream, packed="content-encoding" in response.headers)
        return response

    async def aclose(self) -> None:
        """Close its connections."""
        await self._transport.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, *, packed: bool) -> None:
        self._stream = stream
        self._packed = packed

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        if self._packed:
            raise httpx2.StreamError("the response is compressed, which was not requested, so its size is unknown")
        remaining = MAX_BYTES
        async for chunk in self._stream:
            remaining -= len(chunk)
            if remaining < 0:
                raise httpx2.StreamError(f"the answer has more than {MAX_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()


class WatchedTransport:
    """A transport of the package `mcp` that reports when the server sends nothing more, or reads nothing."""

    def __init__(self, transport: Any, on_end: Callable[[], None]) -> None:
        self._transport = transport
        self._on_end = on_end

    async def __aenter__(self) -> Any:
        read, write = await self._transport.__aenter__()
        return _WatchedStream(read, self._on_end), _WatchedWriter(write, self._on_end)

    async def __aexit__(self, *exc_info: Any) -> Any:
        return await self._transport.__aexit__(*exc_info)


class _WatchedStream:
    """The transport's stream of incoming messages."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> "_WatchedStream":
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._on_end()
            raise

    async def __aenter__(self) -> "_WatchedStream":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exc_info: Any) -> Any:
        return await self._stream.__aexit__(*exc_info)


class _WatchedWriter:
    """The transport's stream of outgoing messages."""

    def __init__(self, stream: Any, on_end: Callable[[], None]) -> None:
        self._stream = stream
        self._on_end = on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def send(self, message: Any) -> None:
        """Send a message, or end the connection if the server takes none for too long."""
        # The time limit of a request begins in `mcp` only after this.
        limit = asyncio.timeout(SILENT_SECONDS)
        try:
            async with limit:
                await self._stream.send(message)
        except TimeoutError as error:
            if not limit.expired():
                raise
            self._on_end()
            raise TimeoutError(f"its server has read nothing for {SILENT_SECONDS:g} seconds") from error

    async def __aenter__(self) -> "_WatchedWriter":
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *exc_info: Any) -> Any:
        return await self._stream.__aexit__(*exc_info)
