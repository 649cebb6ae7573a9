"""The pipeline of a model call, for all services: attempts, time limits, chunks, errors.

A vendor is an `Adapter`: it builds the request, reads the chunks and converts the errors.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from adk_nb import types
from adk_nb.errors import AdkNbError, ModelTimeoutError
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import Attempt, LlmResponse, note_attempts
from adk_nb.models.retrying import retry

_END: Any = object()
"""Marks the end of the chunks: a vendor's client yields None for a chunk that is `null`."""
Payload = dict[str, Any]
"""The arguments of a vendor's client; `model` is the name that the service knows."""


class Assembler(Protocol):
    """Assembles the chunks of one answer."""

    def add(self, chunk: Any, /) -> LlmResponse | None:
        """Add a chunk; returns the part of it that can be shown already."""
        ...

    def complete(self) -> LlmResponse:
        """The complete answer. Raises UnexpectedModelAnswer if the chunks ended before the answer did."""
        ...

    def counts(self) -> LlmResponse | None:
        """The token counts that came so far, as a partial response without content. None: there are none."""
        ...

    def broken_message(self, reason: str) -> str:
        """The message for an answer that broke off."""
        ...


class WholeAnswer:
    """The assembler of an answer in one chunk."""

    def __init__(self, read: Callable[[Any], LlmResponse]) -> None:
        self._read = read
        self._answer = LlmResponse()

    def add(self, chunk: Any) -> None:
        """Convert the only chunk."""
        self._answer = self._read(chunk)

    def complete(self) -> LlmResponse:
        """The converted answer."""
        return self._answer

    def counts(self) -> LlmResponse | None:
        """None: the counts come with the answer."""
        return None

    def broken_message(self, reason: str) -> str:
        """The message for a connection that broke off."""
        return f"the answer broke off ({reason}); ask again"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An error of a vendor's client, converted."""

    error: Exception
    """Raised when no attempt is left: a clearer error, or the vendor's own."""
    is_temporary: bool = False
    """Another attempt may succeed."""
    retry_after: float | None = None
    """Seconds that the service asks to wait."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Time limits of one request, in seconds, and its attempts."""

    timeout: float
    """Of an attempt, up to its first chunk."""
    retry_seconds: float
    """Of all attempts together; an attempt that would start later is not made."""
    stall_timeout: float = math.inf
    """From one chunk to the next."""
    total_timeout: float = math.inf
    """From the request to the end of the answer."""
    retry_options: types.HttpRetryOptions | None = None
    attempts: int = 5
    """Default for `retry_options`."""
    address: str | None = None
    """URL of the service, if it is known."""

    @property
    def until_first_chunk(self) -> tuple[str, float]:
        """Name and seconds of the limit that ends the wait for the first chunk."""
        limits = {"timeout": self.timeout, "total_timeout": self.total_timeout}
        return min(limits.items(), key=lambda limit: limit[1])


class Adapter(Protocol):
    """One vendor's protocol."""

    def payload(self, request: LlmRequest, model: str, /) -> Payload:
        """Convert the request to the vendor's arguments."""
        ...

    def chunks(self, payload: Payload, /, *, stream: bool) -> AsyncGenerator[Any, None]:
        """One attempt: send the request, yield the chunks of its answer, or the whole answer as one chunk.

        Closing the generator closes the connection.
        """
        ...

    def assembler(self, payload: Payload, /, *, stream: bool) -> Assembler:
        """Create an assembler for the chunks of one answer."""
        ...

    def failure(self, error: Exception, payload: Payload, started: Assembler | None, /) -> Failure:
        """Convert an error of `chunks` or the assembler.

        Args:
            error: As the vendor's client raised it.
            payload: The request.
            started: The streamed answer that broke off; None before its first chunk.
        """
        ...

    @property
    def limits(self) -> Limits:
        """Time limits and attempts."""
        ...


async def run(adapter: Adapter, payload: Payload, *, stream: bool) -> AsyncGenerator[LlmResponse, None]:
    """Send a request until it is answered.

    Yields:
        Partial responses of a streamed answer, then the complete answer with the attempts that failed before it. Of an
        answer that breaks off, last the token counts that came, if any.

    Raises:
        ModelError: As the adapter converts the error.
    """
    loop, limits = asyncio.get_running_loop(), adapter.limits
    end = loop.time() + limits.total_timeout
    assembler, attempts_made = adapter.assembler(payload, stream=stream), list[Attempt]()
    # The error of each request, converted once: the retry, its wait and the final error read it.
    failures: list[Failure] = []

    async def send() -> tuple[AsyncGenerator[Any, None], Any]:
        # Services refuse before their first chunk, and nothing is shown before it: a retry up to then is safe.
        chunks = adapter.chunks(payload, stream=stream)
        try:
            async with asyncio.timeout_at(min(loop.time() + limits.timeout, end)):
                return chunks, await anext(chunks, _END)
        except Exception as error:
            failures.append(adapter.failure(error, payload, None))
            raise

    with note_attempts(attempts_made):
        try:
            chunks, chunk = await retry(
                send,
                limits.retry_options,
                model=payload["model"],
                max_seconds=limits.retry_seconds,
                is_temporary=lambda error: isinstance(error, Exception) and failures[-1].is_temporary,
                requested_wait=lambda _: failures[-1].retry_after,
                attempts_made=attempts_made,
                attempts=limits.attempts,
                address=limits.address,
            )
        except Exception as error:
            _raise_replacement(failures[-1].error, error)
        try:
            async with aclosing(chunks):
                with convert_errors(adapter, payload, assembler if stream else None):
                    while chunk is not _END:
                        piece = None if chunk is None else assembler.add(chunk)
                        if piece and stream:
                            yield piece
                        async with asyncio.timeout_at(min(loop.time() + limits.stall_timeout, end)):
                            chunk = await anext(chunks, _END)
            # Inside `note_attempts`: an error of `complete` names the earlier attempts, too.
            answer = assembler.complete()
        except Exception:
            # An answer that broke off has to be paid for, too.
            if stream and (counts := assembler.counts()):
                yield counts
            raise
    answer.attempts = attempts_made or None
    yield answer


@contextmanager
def convert_errors(adapter: Adapter, payload: Payload, started: Assembler | None = None) -> Generator[None, None, None]:
    """Raise errors of a vendor's client as its adapter converts them."""
    try:
        yield
    except AdkNbError:
        raise  # of the assembler, such as UnexpectedModelAnswer: not the client's, and clear already
    except Exception as error:
        _raise_replacement(adapter.failure(error, payload, started).error, error)


def _raise_replacement(replacement: Exception, error: Exception) -> NoReturn:
    """Raise `replacement` for `error`; the cause of a timeout tells in which step the client waited."""
    if replacement is error:
        raise error
    raise replacement from (error if isinstance(replacement, ModelTimeoutError) else None)
