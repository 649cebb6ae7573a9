"""Models that a service answers for: a key that nobody sees, an address, time limits, errors by name."""

import json
import os
from abc import abstractmethod
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, ClassVar, SupportsIndex

import httpx2
from pydantic import ConfigDict, Field, SecretStr, ValidationError

from adk_nb import types
from adk_nb.errors import (
    AdkNbError,
    MissingKeyError,
    ModelError,
    ModelHTTPError,
    ModelTimeoutError,
    UnexpectedModelAnswer,
)
from adk_nb.models.base_llm import BaseLlm, LlmCapabilities
from adk_nb.models.fitting import Lack, fitted
from adk_nb.models.http_address import place_of
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.pipeline import Assembler, Failure, Limits, OwnTask, Payload, run
from adk_nb.models.retrying import BUSY, OUT_OF_QUOTA, for_as_long, found_no_way
from adk_nb.redaction import hidden, refuse_pickle, remember, remember_url, without_known
from adk_nb.wire import copy_model

_MALFORMED = (json.JSONDecodeError, UnicodeError, ValidationError, TypeError, AttributeError, LookupError, ValueError)
_BROKEN = (httpx2.NetworkError, httpx2.RemoteProtocolError)
_HINTS = {
    404: "look at the model's name, and at base_url",
    413: "shorten what is sent",
    429: "wait, or look at your quota",
    503: "wait, or take another model",
    529: "wait, or take another model",
}


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The error by which a service refuses a request."""

    status: int | None
    """Of HTTP. None: the service tells none, as in the midst of a stream."""
    body: str
    retry_after: float | None = None
    """Seconds."""
    is_spent: bool = False
    """The account has nothing left: no other attempt may succeed."""
    wrong_key: bool = False
    hint: str = ""
    """In place of the status's own."""


class ServiceLlm(BaseLlm):
    """A model that a service answers for."""

    model_config = ConfigDict(hide_input_in_errors=True)

    api_key: SecretStr | None = None
    """None: what the environment says, when a question is asked."""
    base_url: str | None = None
    """Where the API is, when it is not at its vendor: a gateway, or a server of your own."""
    lacks: frozenset[Lack] = frozenset()
    """What this model cannot do though others of its kind can; it is worked around (see `models.fitting`)."""
    retry_options: types.HttpRetryOptions | None = None
    """When the service is busy or cannot be reached: 5 attempts, 1 s and then twice as long each, or as it asks for."""
    retry_seconds: float = 120.0
    """All attempts together; one that could only start later is not made."""
    connect_timeout: float = Field(default=10.0, gt=0)
    """Seconds."""
    timeout: float = Field(default=300.0, gt=0)
    """Seconds to wait for an answer, and when streaming for the first piece."""
    stall_timeout: float = Field(default=120.0, gt=0)
    """Seconds from one piece of a streamed answer to the next."""
    total_timeout: float = Field(default=1800.0, gt=0)
    """Seconds from the question to the end of the answer."""

    KEY_VARIABLES: ClassVar[tuple[str, ...]] = ()
    """Of the environment; the first that is set is used."""
    KEY_NAME: ClassVar[str] = ""
    """What `%key` calls it. Empty: as its first variable is named."""
    KEY_PAGE: ClassVar[str] = ""
    """The page that makes a key."""
    PASSING_STATUSES: ClassVar[tuple[int, ...]] = BUSY
    """Statuses of HTTP that may pass by themselves."""

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        remember(self.api_key.get_secret_value() if self.api_key else None)
        remember_url(self.base_url)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self.api_key:
            refuse_pickle(self)
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return without_known(super().__repr__())

    @property
    def capabilities(self) -> LlmCapabilities:
        return LlmCapabilities(**dict.fromkeys(self.lacks, False))

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        request = copy_model(llm_request, contents=self.with_a_user_turn(llm_request))
        request = fitted(request, self.capabilities)
        answers = self._answers(request, self.payload(request, request.model or self.model), stream)
        async with OwnTask(answers) if stream else aclosing(answers) as responses:
            async for response in responses:
                yield response

    def _answers(self, request: LlmRequest, payload: Payload, stream: bool) -> AsyncGenerator[LlmResponse, None]:
        return run(self, payload, stream=stream)

    # ---- the part of an adapter (see pipeline.Adapter)

    @abstractmethod
    def payload(self, request: LlmRequest, model: str, /) -> Payload: ...

    @abstractmethod
    def chunks(self, payload: Payload, /, *, stream: bool) -> AsyncGenerator[Any, None]: ...

    @abstractmethod
    def assembler(self, payload: Payload, /, *, stream: bool) -> Assembler: ...

    @abstractmethod
    def refusal(self, error: Exception, /) -> Refusal | AdkNbError | None:
        """The refusal that the vendor's client raised, or an error of ours for it; None for any other error."""

    def address(self) -> str | None:
        """Of the service, if it is known."""
        return self.base_url

    @property
    def late_errors(self) -> tuple[type[Exception], ...]:
        """Errors of the client that waited too long."""
        return (TimeoutError, httpx2.TimeoutException)

    @property
    def lost_errors(self) -> tuple[type[Exception], ...]:
        """Errors of the client that lost its connection, or made none."""
        return _BROKEN

    @property
    def advice(self) -> str:
        """The next step for a person when no connection comes about."""
        return "look at the network and at base_url"

    # ---- the same for all

    @property
    def limits(self) -> Limits:
        return Limits(
            timeout=self.timeout,
            stall_timeout=self.stall_timeout,
            total_timeout=self.total_timeout,
            retry_seconds=self.retry_seconds,
            retry_options=self.retry_options,
            address=self.address(),
        )

    def failure(self, error: Exception, payload: Payload, begun: Assembler | None, /) -> Failure:
        if isinstance(error, AdkNbError):
            return Failure(error=error)
        model: str = payload["model"]
        refusal = self.refusal(error)
        if isinstance(refusal, AdkNbError):
            return Failure(error=refusal)
        if refusal:
            return self._refused(refusal, model, begun)
        if isinstance(error, self.late_errors):
            return Failure(error=self._too_late(error, model, begun), passes=found_no_way(error))
        is_lost = isinstance(error, self.lost_errors)
        if is_lost or isinstance(error, httpx2.HTTPError | OSError):
            why = _in_short(error.__cause__ or error)
            message = begun.broken(why) if begun else f"{self._service(model)} cannot be reached ({why})"
            return Failure(error=ModelError(f"{message}; {self.advice}"), passes=is_lost)
        if isinstance(error, _MALFORMED):
            return Failure(error=self._malformed(error, model, begun))
        return Failure(error=error)

    def _refused(self, refusal: Refusal, model: str, begun: Assembler | None) -> Failure:
        status, retry_after = refusal.status, refusal.retry_after
        if status is None:
            why = f"its service said: {refusal.body}"
            message = begun.broken(why) if begun else f"model {model!r} gave no answer; {why}"
            return Failure(error=ModelError(message))
        hint = refusal.hint or _HINTS.get(status, "")
        if not refusal.hint and (refusal.wrong_key or status in (401, 403)):
            hint = f"look at {self._sent_key()}"
        hint = for_as_long(OUT_OF_QUOTA if refusal.is_spent else hint, retry_after)
        options = self.limits.retry_options
        statuses = (options and options.http_status_codes) or self.PASSING_STATUSES
        return Failure(
            error=ModelHTTPError(status, refusal.body, model, hint=hint),
            passes=status in statuses and not refusal.is_spent,
            retry_after=retry_after,
        )

    def _too_late(self, error: Exception, model: str, begun: Assembler | None) -> ModelTimeoutError:
        if found_no_way(error):
            within = f"within {self.connect_timeout:g} s"
            return ModelTimeoutError(f"no connection to {self._service(model)} {within}; {self.advice}")
        if begun:
            message, limit = begun.broken("nothing more came in time"), f"stall_timeout={self.stall_timeout:g}"
            limit += f" or total_timeout={self.total_timeout:g}"
        else:
            message, (name, seconds) = f"model {model!r} did not answer in time", self.limits.first
            limit = f"{name}={seconds:g}"
        return ModelTimeoutError(f"{message}; raise {type(self).__name__}({limit}) if it needs longer")

    def _malformed(self, error: Exception, model: str, begun: Assembler | None) -> AdkNbError:
        why = f"what is no answer of its API: {_in_short(error)}"
        return UnexpectedModelAnswer(
            begun.broken(f"it sent {why}") if begun else f"the service of model {model!r} sent {why}; ask again"
        )

    def _service(self, model: str) -> str:
        """The service in words, with its address."""
        address = place_of(self.address() or "")
        return f"the service of model {model!r}" + (f" at {address}" if address and address not in model else "")

    def _key(self) -> str | None:
        if self.api_key:
            return self.api_key.get_secret_value()
        key = next((key for name in self.KEY_VARIABLES if (key := os.environ.get(name, "").strip())), None)
        remember(key)
        return key

    def _sent_key(self) -> str:
        """The key that a service refuses, in words."""
        if self.api_key or not self.KEY_VARIABLES:
            return "api_key"
        kind = type(self).__name__
        name = next((name for name in self.KEY_VARIABLES if os.environ.get(name, "").strip()), "")
        return (self._key() and name) or f"api_key, for none was sent: {kind}(api_key=..., base_url=...)"

    def _missing_key(self, model: str) -> MissingKeyError:
        first, *others = self.KEY_VARIABLES
        missing = f"neither {' nor '.join(self.KEY_VARIABLES)} is set" if others else f"{first} is not set"
        return MissingKeyError(
            f"model {model!r} needs a key, and {missing}; type: "
            f"%key {self.KEY_NAME or first}, or, in a script, import os, getpass; "
            f"os.environ[{first!r}] = getpass.getpass() ({self.KEY_PAGE} makes one), or work without a key: "
            'model="offline", -m offline'
        )


def _in_short(error: BaseException) -> str:
    text = f"{error}: {error.doc}" if isinstance(error, json.JSONDecodeError) else str(error)
    return f"{type(error).__name__}: {hidden(text)[:300]}".removesuffix(": ")
