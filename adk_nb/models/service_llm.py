"""Models behind a service: time limits and failures; and, for those of vendors, keys and addresses."""

import asyncio
import json
import os
import re
from abc import abstractmethod
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, ClassVar, Generic, SupportsIndex, TypeVar, cast

import httpx2
from pydantic import ConfigDict, Field, SecretStr

from adk_nb import types
from adk_nb.errors import (
    AdkNbError,
    MissingKeyError,
    ModelError,
    ModelHTTPError,
    ModelTimeoutError,
    UnexpectedModelAnswer,
)
from adk_nb.models.adaptation import MissingCapability, adapt_request
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.http_address import public_url
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.pipeline import Assembler, Failure, Limits, Payload, run
from adk_nb.models.retrying import BUSY, OUT_OF_QUOTA, add_wait, is_connect_error
from adk_nb.redaction import hidden, refuse_pickle, remember, remember_url, without_known
from adk_nb.wire import copy_model

T = TypeVar("T")
_END: Any = object()
"""Marks the end of a stream."""
_MALFORMED = (TypeError, AttributeError, LookupError, ValueError)
"""Errors while an answer is read; those of json and pydantic are ValueErrors."""
_CONTEXT_FULL = re.compile(
    r"context[ _](length|size|window)|prompt is too long|input token count .{0,40}exceeds|too many (input )?tokens",
    re.IGNORECASE,
)
"""Refusals of a conversation that is too long: OpenAI and vLLM, llama.cpp, Claude, Gemini."""
_WAYS_OUT = (
    "the conversation is too long for this model. Begin a new session (%session new NAME), fork an earlier point "
    "(%session fork NAME --at EVENT), send fewer turns "
    "(App(plugins=[ContextFilterPlugin(num_invocations_to_keep=10)])), or let earlier turns be summed up "
    "(App(events_compaction_config=EventsCompactionConfig(...)))"
)
_NO_SETTINGS = ("system_instruction", "tools", "automatic_function_calling", "should_return_http_response")
"""Fields of a request's config that are sent in another way, or are for the client alone."""
_HINTS = {
    404: "check the model's name, and base_url",
    413: "shorten the request",
    429: "wait, or check your quota",
    503: "wait, or take another model",
    529: "wait, or take another model",
}


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A service's refusal of a request."""

    status: int | None
    """HTTP status. None: there is none, as within a stream."""
    body: str
    retry_after: float | None = None
    """Seconds."""
    is_quota_error: bool = False
    """The account's quota is used up: retrying does not help."""
    wrong_key: bool = False
    """The service does not accept the key."""
    hint: str = ""
    """Replaces the hint for the status."""


class OwnTask(Generic[T]):
    """Reads a stream in a task of its own, which ends with the block: `async with OwnTask(stream) as items:`.

    A client library's stream is often a generator within a generator. Closing the outer one leaves the inner ones to
    the garbage collector, which closes them late and in any order. Cancelling the task that waits in the innermost
    closes all of them, from the inside out.
    """

    def __init__(self, stream: AsyncGenerator[T, None]) -> None:
        self._stream = stream
        # Without a limit: the service sets the pace, and an answer fits into memory.
        self._items: asyncio.Queue[T] = asyncio.Queue()

    async def __aenter__(self) -> "OwnTask[T]":
        self._task = asyncio.create_task(self._read())
        self._task.add_done_callback(lambda _: self._items.put_nowait(_END))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.exception()  # retrieved, or asyncio logs it

    def __aiter__(self) -> "OwnTask[T]":
        return self

    async def __anext__(self) -> T:
        item = await self._items.get()
        if item is _END:
            self._task.result()
            raise StopAsyncIteration
        return item

    async def _read(self) -> None:
        async with aclosing(self._stream) as items:
            async for item in items:
                self._items.put_nowait(item)


class ServiceLlm(BaseLlm):
    """A model behind a service: its time limits, and its failures as errors that tell what to do."""

    retry_options: types.HttpRetryOptions | None = None
    """For a busy or unreachable service: 5 attempts, after 1 s and then twice as long each, or as the service asks."""
    timeout: float = Field(default=300.0, gt=0)
    """Seconds to wait for an answer, or for the first chunk of a streamed one."""
    total_timeout: float = Field(default=1800.0, gt=0)
    """Seconds from the request to the end of the answer."""

    ATTEMPTS: ClassVar[int] = 5
    """Default for `retry_options`."""
    TEMPORARY_STATUSES: ClassVar[tuple[int, ...]] = BUSY
    """HTTP statuses that may be temporary."""
    SECRET_FIELDS: ClassVar[tuple[str, ...]] = ()
    """A model that has one of them is not pickled."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if any(getattr(self, name) for name in self.SECRET_FIELDS):
            refuse_pickle(self)
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return without_known(super().__repr__())

    @property
    def limits(self) -> Limits:
        """Time limits and attempts, from the fields."""
        return Limits(
            timeout=self.timeout,
            total_timeout=self.total_timeout,
            retry_seconds=self.total_timeout,
            retry_options=self.retry_options,
            attempts=self.ATTEMPTS,
            address=self.address(),
        )

    def failure(self, error: Exception, payload: Payload, started: Assembler | None, /) -> Failure:
        """Convert an error of the client: a refusal, a timeout, a lost connection, or a malformed answer."""
        if isinstance(error, AdkNbError):
            return Failure(error=error)
        model: str = payload["model"]
        refusal = self.refusal(error)
        if isinstance(refusal, AdkNbError):
            return Failure(error=refusal)
        if refusal:
            return self.refused(refusal, model, started)
        if isinstance(error, self.timeout_errors):
            return self.timed_out(error, model, started)
        is_lost = isinstance(error, self.connection_errors)
        if is_lost or isinstance(error, httpx2.HTTPError | OSError):
            return Failure(error=self.unreached(error, model, started), is_temporary=is_lost)
        if not isinstance(error, _MALFORMED):
            return Failure(error=error)
        problem = f"sent a malformed answer: {_short_error(error)}"
        if started:
            message = started.broken_message(f"it {problem}")
        elif isinstance(error, ValueError):
            message = f"the service of model {model!r} {problem}; ask again"
        else:  # before an answer it may as well be our request that has the fault
            message = (
                f"model {model!r} could not be asked, or its answer not be read: {_short_error(error)}; "
                f"check the arguments of {type(self).__name__}(...), or ask again"
            )
        return Failure(error=UnexpectedModelAnswer(message))

    def is_busy(self, status: int) -> bool:
        """True for an HTTP status after which another attempt may succeed."""
        options = self.limits.retry_options
        return status in ((options and options.http_status_codes) or self.TEMPORARY_STATUSES)

    # ---- the service's part (see also pipeline.Adapter)

    @abstractmethod
    def payload(self, request: LlmRequest, model: str, /) -> Payload:
        """Convert the request to the client's arguments."""

    @abstractmethod
    def chunks(self, payload: Payload, /, *, stream: bool) -> AsyncGenerator[Any, None]:
        """One attempt: send the request, yield the chunks of its answer."""

    @abstractmethod
    def assembler(self, payload: Payload, /, *, stream: bool) -> Assembler:
        """Create an assembler for the chunks of one answer."""

    @abstractmethod
    def refusal(self, error: Exception, /) -> Refusal | AdkNbError | None:
        """Convert the client's error for a refusal, or to an error of this package; None for any other error."""

    @abstractmethod
    def refused(self, refusal: Refusal, model: str, started: Assembler | None, /) -> Failure:
        """The failure for a refusal."""

    @abstractmethod
    def timed_out(self, error: Exception, model: str, started: Assembler | None, /) -> Failure:
        """The failure for one of `timeout_errors`."""

    @abstractmethod
    def unreached(self, error: Exception, model: str, started: Assembler | None, /) -> ModelError:
        """The error for a connection that broke or was not made."""

    @abstractmethod
    def address(self) -> str | None:
        """Address of the service, if it is known."""

    @property
    def timeout_errors(self) -> tuple[type[Exception], ...]:
        """Errors of the client for a timeout."""
        return (TimeoutError, httpx2.TimeoutException)

    @property
    def connection_errors(self) -> tuple[type[Exception], ...]:
        """Errors of the client for a connection that broke or was not made."""
        return (httpx2.NetworkError, httpx2.RemoteProtocolError)


class VendorLlm(ServiceLlm):
    """A model with a vendor's API, at the vendor or elsewhere: its key, its address, and what it is not sent."""

    model_config = ConfigDict(hide_input_in_errors=True)

    api_key: SecretStr | None = None
    """None: from the environment, when a request is sent."""
    base_url: str | None = None
    """Address of the API, if it is not the vendor's: a gateway, or your own server."""
    lacks: frozenset[MissingCapability] = frozenset()
    """Capabilities that this model lacks; requests are adapted (see `models.adaptation`)."""
    retry_seconds: float = 120.0
    """Seconds for all attempts together; an attempt that would start later is not made."""
    connect_timeout: float = Field(default=10.0, gt=0)
    """Seconds."""
    stall_timeout: float = Field(default=120.0, gt=0)
    """Seconds from one chunk of a streamed answer to the next."""

    KEY_VARIABLES: ClassVar[tuple[str, ...]] = ()
    """Environment variables; the first that is set is used."""
    KEY_NAME: ClassVar[str] = ""
    """Name for `%key`. Empty: the name of its first variable."""
    KEY_PAGE: ClassVar[str] = ""
    """The page where keys are created."""
    SENT_AS: ClassVar[Mapping[str, tuple[str, ...]] | None] = None
    """Setting of a request -> arguments of the vendor's client, one of which has it. None: all settings are sent."""
    SECRET_FIELDS: ClassVar[tuple[str, ...]] = ("api_key",)

    def model_post_init(self, context: Any, /) -> None:
        """Register the key and the secrets of the URL for redaction."""
        super().model_post_init(context)
        remember(self.api_key.get_secret_value() if self.api_key else None)
        remember_url(self.base_url)

    @property
    def capabilities(self) -> LlmCapabilities:
        """All capabilities but those in `lacks`."""
        return LlmCapabilities(**dict.fromkeys(self.lacks, False))

    @property
    def limits(self) -> Limits:
        """Time limits and attempts, from the fields."""
        return replace(super().limits, stall_timeout=self.stall_timeout, retry_seconds=self.retry_seconds)

    def address(self) -> str | None:
        """Address of the service, if it is known."""
        return self.base_url

    @property
    def connection_hint(self) -> str:
        """The next step for the user if no connection is made."""
        return "check the network and base_url"

    def unsent_settings(self, llm_request: LlmRequest) -> dict[str, str]:
        """Settings of the request that the service is not sent, each with the reason."""
        if self.SENT_AS is None:
            return {}
        config, model = llm_request.config, llm_request.model or self.model
        settings = {name: value for name in type(config).model_fields if (value := getattr(config, name)) is not None}
        payload: dict[str, Any] = {}
        if self.SENT_AS:
            # The same settings with a short message: a long history is not converted again.
            contents = [types.Content(role="user", parts=[types.Part(text="?")])]
            payload = self.payload(
                adapt_request(LlmRequest(config=config, contents=contents), self.capabilities), model
            )
        objects = [(name, cast(dict[str, Any], value)) for name, value in payload.items() if isinstance(value, dict)]
        nested = {f"{name}.{key}" for name, value in objects for key in value}
        sent = payload.keys() | nested
        return {
            name: self.why_unsent(name, model)
            for name, value in settings.items()
            if name not in _NO_SETTINGS and value not in ([], {}) and sent.isdisjoint(self.SENT_AS.get(name, ()))
        }

    def why_unsent(self, setting: str, model: str) -> str:
        """Why a setting is not sent to `model`."""
        return f"{type(self).__name__} sends no such setting"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer through the pipeline, with the request adapted to the model's capabilities."""
        contents = llm_request.contents
        # Most services require a user turn at the end.
        if not contents or contents[-1].role != "user":
            text = "Do what your system instruction says."
            if contents:
                text = "Go on, or sum up what you have found if there is nothing left to do."
            contents = [*contents, types.Content(role="user", parts=[types.Part(text=text)])]
        request = adapt_request(copy_model(llm_request, contents=contents), self.capabilities)
        answers = self._answers(request, self.payload(request, request.model or self.model), stream)
        async with OwnTask(answers) if stream else aclosing(answers) as responses:
            async for response in responses:
                yield response

    def _answers(self, request: LlmRequest, payload: Payload, stream: bool) -> AsyncGenerator[LlmResponse, None]:
        return run(self, payload, stream=stream)

    def refused(self, refusal: Refusal, model: str, started: Assembler | None, /) -> Failure:
        """The failure for a refusal: what to do about a key, a quota, or a conversation that is too long."""
        status = refusal.status
        is_too_long = status in (None, 400, 413, 422, 500) and bool(_CONTEXT_FULL.search(refusal.body))
        if status is None:
            reason = f"its service sent an error: {refusal.body}" + (f"; {_WAYS_OUT}" if is_too_long else "")
            message = started.broken_message(reason) if started else f"model {model!r} did not answer; {reason}"
            return Failure(error=ModelError(message))
        if refusal.is_quota_error:
            hint = OUT_OF_QUOTA
        elif refusal.hint:
            hint = refusal.hint
        elif not refusal.wrong_key and status not in (401, 403):
            hint = _WAYS_OUT if is_too_long else _HINTS.get(status, "")
        elif self.api_key or not self.KEY_VARIABLES:
            hint = "check api_key"
        elif self._key():
            hint = f"check {next(name for name in self.KEY_VARIABLES if os.environ.get(name, '').strip())}"
        else:
            hint = f"check api_key, since none was sent: {type(self).__name__}(api_key=..., base_url=...)"
        return Failure(
            error=ModelHTTPError(status, refusal.body, model, hint=add_wait(hint, refusal.retry_after)),
            is_temporary=self.is_busy(status) and not (refusal.is_quota_error or is_too_long),
            retry_after=refusal.retry_after,
        )

    def timed_out(self, error: Exception, model: str, started: Assembler | None, /) -> Failure:
        """The failure for a timeout: which limit to raise."""
        if is_connect_error(error):
            within = f"within {self.connect_timeout:g} s"
            message = f"no connection to {self._service(model)} {within}; {self.connection_hint}"
            return Failure(error=ModelTimeoutError(message), is_temporary=True)
        if started:
            message = started.broken_message("nothing more came in time")
            limit = f"stall_timeout={self.stall_timeout:g} or total_timeout={self.total_timeout:g}"
        else:
            message, (name, seconds) = f"model {model!r} did not answer in time", self.limits.until_first_chunk
            limit = f"{name}={seconds:g}"
        # It was sent, and the service may be at work: a second request would be paid twice.
        return Failure(error=ModelTimeoutError(f"{message}; raise {type(self).__name__}({limit}) if it needs longer"))

    def unreached(self, error: Exception, model: str, started: Assembler | None, /) -> ModelError:
        """The error for a connection that broke or was not made."""
        reason = _short_error(error.__cause__ or error)
        message = started.broken_message(reason) if started else f"{self._service(model)} cannot be reached ({reason})"
        return ModelError(f"{message}; {self.connection_hint}")

    def _service(self, model: str) -> str:
        """The service and its address, for an error."""
        address = public_url(self.address() or "")
        return f"the service of model {model!r}" + (f" at {address}" if address and address not in model else "")

    def _key(self) -> str | None:
        if self.api_key:
            return self.api_key.get_secret_value()
        key = next((key for name in self.KEY_VARIABLES if (key := os.environ.get(name, "").strip())), None)
        remember(key)
        return key

    def _missing_key(self, model: str) -> MissingKeyError:
        first, *alternatives = self.KEY_VARIABLES
        missing = f"neither {' nor '.join(self.KEY_VARIABLES)} is set" if alternatives else f"{first} is not set"
        return MissingKeyError(
            f"model {model!r} needs a key, and {missing}; type: "
            f"%key {self.KEY_NAME or first}, or, in a script, import os, getpass; "
            f"os.environ[{first!r}] = getpass.getpass() (get one at {self.KEY_PAGE}), or work without a key: "
            'model="offline", -m offline'
        )


def _short_error(error: BaseException) -> str:
    text = f"{error}: {error.doc}" if isinstance(error, json.JSONDecodeError) else str(error)
    return f"{type(error).__name__}: {hidden(text)[:300]}".removesuffix(": ")
