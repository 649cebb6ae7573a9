"""What models have in common that a package of their vendor's asks: retries, time limits, errors in our words."""

import asyncio
import json
import os
import ssl
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator
from contextlib import aclosing, contextmanager
from functools import cache
from typing import Any, ClassVar, Protocol, TypeVar, cast

import httpx2
from pydantic import ValidationError

from adk_nb.errors import (
    AdkNbError,
    MissingKeyError,
    ModelError,
    ModelHTTPError,
    ModelTimeoutError,
    UnexpectedModelAnswer,
)
from adk_nb.lazy import require
from adk_nb.models.attempts import Attempt, told
from adk_nb.models.base_llm import LlmCapabilities
from adk_nb.models.fitting import fitted
from adk_nb.models.http_address import place_of, redirect_hint
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.own_task import OwnTask
from adk_nb.models.retrying import BUSY, OUT_OF_QUOTA, ask_again, for_as_long, found_no_way, is_spent, seconds_of
from adk_nb.models.service_llm import ServiceLlm
from adk_nb.redaction import hidden, remember
from adk_nb.wire import copied

T = TypeVar("T")


class Reader(Protocol):
    """Adds up the pieces of one streamed answer."""

    def add(self, chunk: Any, /) -> LlmResponse | None:
        """Keep a piece, as the vendor's package hands it out; returns what of it can be shown already."""
        ...

    def whole(self) -> LlmResponse:
        """All pieces in one. Raises UnexpectedModelAnswer if they ended before the answer did."""
        ...

    def broken(self, why: str) -> str:
        """What to say of an answer that broke off."""
        ...


class VendorLlm(ServiceLlm):
    """A model that a package of its vendor's asks, or of one who keeps up with many vendors.

    Raises:
        MissingExtraError: That package is not installed.
    """

    KEY_VARIABLE: ClassVar[str] = ""
    """Of the environment."""

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._load()

    @property
    def capabilities(self) -> LlmCapabilities:
        return LlmCapabilities(**dict.fromkeys(self.lacks, False))

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        request = copied(llm_request, contents=self.with_a_user_turn(llm_request))
        request = fitted(request, self.capabilities)
        question = self._question(request, request.model or self.model)
        if not stream:
            yield await self._answered(question)
            return
        async with OwnTask(self._streamed(question)) as answers:
            async for answer in answers:
                yield answer

    # ---- what each vendor has its own way of

    @abstractmethod
    def _load(self) -> Any:
        """The vendor's package, or MissingExtraError."""

    @abstractmethod
    def _question(self, request: LlmRequest, model: str) -> dict[str, Any]:
        """The request in the vendor's words: the arguments of its client."""

    @abstractmethod
    async def _ask(self, question: dict[str, Any]) -> LlmResponse:
        """One attempt at a whole answer."""

    @abstractmethod
    async def _begin(self, question: dict[str, Any]) -> AsyncIterator[Any]:
        """One attempt at a streamed answer: its pieces, and `close` to end it early."""

    @abstractmethod
    def _reader(self, model: str) -> Reader: ...

    def _address(self) -> str | None:
        """Where it is asked, if that is known."""
        return self.base_url

    @property
    def _if_gone(self) -> str:
        """What to do when no connection comes about."""
        return "look at the network and at base_url"

    @property
    def _errors(self) -> Any:
        """Where APIError, APIStatusError, APIConnectionError and APITimeoutError are."""
        return self._load()

    def _status(self, error: Any) -> int | None:
        """The HTTP status that `error` tells of, if it tells of one."""
        return error.status_code if isinstance(error, self._errors.APIStatusError) else None

    # ---- the same for all

    async def _answered(self, question: dict[str, Any]) -> LlmResponse:
        async def ask() -> LlmResponse:
            async with asyncio.timeout(self.timeout):
                return await self._ask(question)

        tried: list[Attempt] = []
        with told(tried), self._our_errors(question["model"]):
            answer = await self._patiently(ask, question["model"], tried)
        answer.attempts = tried or None
        return answer

    async def _streamed(self, question: dict[str, Any]) -> AsyncGenerator[LlmResponse, None]:
        loop, model = asyncio.get_running_loop(), question["model"]
        end = loop.time() + self.total_timeout
        reader = self._reader(model)

        async def start() -> tuple[AsyncGenerator[Any, None], Any]:
            async with asyncio.timeout_at(min(loop.time() + self.timeout, end)):
                chunks = _closing(await self._begin(question))
                return chunks, await anext(chunks, None)

        tried: list[Attempt] = []
        with told(tried), self._our_errors(model):
            chunks, chunk = await self._patiently(start, model, tried)
        async with aclosing(chunks):
            while chunk is not None:
                with self._our_errors(model, reader):
                    piece = reader.add(chunk)
                if piece:
                    yield piece
                with self._our_errors(model, reader):
                    async with asyncio.timeout_at(min(loop.time() + self.stall_timeout, end)):
                        chunk = await anext(chunks, None)
        whole = reader.whole()
        whole.attempts = tried or None
        yield whole

    async def _patiently(self, ask: Callable[[], Awaitable[T]], model: str, tried: list[Attempt]) -> T:
        options = self.retry_options
        statuses = (options and options.http_status_codes) or self._passing_statuses
        return await ask_again(
            ask,
            options,
            model=model,
            within=self.retry_seconds,
            passes=lambda error: (
                (self._status(error) in statuses and not is_spent(_kinds(error))) or self._is_lost(error)
            ),
            asked_to_wait=_asked_to_wait,
            tried=tried,
            address=self._address(),
        )

    @property
    def _passing_statuses(self) -> tuple[int, ...]:
        return BUSY

    def _is_lost(self, error: BaseException) -> bool:
        """True for a connection that could not be made or broke; waiting too long for an answer passes by nothing."""
        if isinstance(error, self._errors.APITimeoutError):
            return found_no_way(error)
        return isinstance(error, (self._errors.APIConnectionError, httpx2.NetworkError, httpx2.RemoteProtocolError))

    def _key(self) -> str | None:
        if self.api_key:
            return self.api_key.get_secret_value()
        key = os.environ.get(self.KEY_VARIABLE, "").strip() or None
        remember(key)
        return key

    def _no_key(self, page: str) -> MissingKeyError:
        return MissingKeyError(
            f"model {self.model!r} needs a key, and {self.KEY_VARIABLE} is not set; type: "
            f"%key {self.KEY_VARIABLE}, or, in a script, import os, getpass; "
            f"os.environ[{self.KEY_VARIABLE!r}] = getpass.getpass() ({page} makes one), or work without a key: "
            'model="offline"'
        )

    @contextmanager
    def _our_errors(self, model: str, reader: Reader | None = None) -> Generator[None, None, None]:
        """Turn what the vendor's package raises inside into this package's errors."""
        try:
            yield
        except AdkNbError:
            raise
        except (TimeoutError, self._errors.APITimeoutError, httpx2.TimeoutException) as error:
            raise self._late(error, model, reader) from error
        except (self._errors.APIConnectionError, httpx2.HTTPError, OSError) as error:
            why = _why(error.__cause__ or error)
            said = reader.broken(why) if reader else f"{self._service(model)} cannot be reached ({why})"
            raise ModelError(f"{said}; {self._if_gone}") from None
        except self._errors.APIError as error:
            raise self._refused(error, model, reader) from None
        except _NO_ANSWER as error:
            why = f"what came is no answer of its API: {_why(error)}"
            said = reader.broken(why) if reader else f"the service of model {model!r} is not understood ({why})"
            raise UnexpectedModelAnswer(said) from None

    def _refused(self, error: Any, model: str, reader: Reader | None) -> ModelError:
        status, body = self._status(error), _body(error)
        if status is None:
            said = f"its service said: {body}"
            return ModelError(reader.broken(said) if reader else f"model {model!r} gave no answer; {said}")
        hint = f"look at {self._sent_key()}" if status in (401, 403) else _NEXT.get(status, "")
        hint = OUT_OF_QUOTA if is_spent(_kinds(error)) else hint
        hint = redirect_hint(getattr(error, "response", None)) or hint
        return ModelHTTPError(status, body, model, hint=for_as_long(hint, _asked_to_wait(error)))

    def _sent_key(self) -> str:
        """What a service that refuses a key was sent, in words."""
        if self.api_key or not self.KEY_VARIABLE:
            return "api_key"
        kind = type(self).__name__
        return self.KEY_VARIABLE if self._key() else f"api_key, for none was sent: {kind}(api_key=..., base_url=...)"

    def _service(self, model: str) -> str:
        """The service in words, with its address."""
        address = place_of(self._address() or "")
        return f"the service of model {model!r}" + (f" at {address}" if address and address not in model else "")

    def _late(self, error: Any, model: str, reader: Reader | None) -> ModelTimeoutError:
        if found_no_way(error):
            within = f"within {self.connect_timeout:g} s"
            return ModelTimeoutError(f"no connection to {self._service(model)} {within}; {self._if_gone}")
        if reader:
            said, limit = reader.broken("nothing more came in time"), f"stall_timeout={self.stall_timeout:g}"
            limit += f" or total_timeout={self.total_timeout:g}"
        else:
            said, limit = f"model {model!r} did not answer in time", f"timeout={self.timeout:g}"
        return ModelTimeoutError(f"{said}; raise {type(self).__name__}({limit}) if it needs longer")


async def _closing(chunks: Any) -> AsyncGenerator[Any, None]:
    """`chunks`, their connection let go with this generator."""
    try:
        async for chunk in chunks:
            yield chunk
    finally:
        close: Any = getattr(chunks, "close", None) or getattr(chunks, "aclose", None)
        if close:
            await close()


_NO_ANSWER = (json.JSONDecodeError, UnicodeError, ValidationError, TypeError, AttributeError, LookupError, ValueError)
_NEXT = {
    404: "look at the model's name, and at base_url",
    413: "shorten what is sent",
    429: "wait, or look at your quota",
    503: "wait, or take another model",
    529: "wait, or take another model",
}


def _why(error: Any) -> str:
    said = f"{type(error).__name__}: {hidden(str(error))[:300]}"
    return said.removesuffix(": ")


def _kinds(error: Any) -> list[str]:
    """The words by which a service classes its refusal."""
    body: Any = getattr(error, "body", None)
    outer = cast(dict[str, Any], body) if isinstance(body, dict) else {}
    inner: Any = outer.get("error") or outer
    told = cast(dict[str, Any], inner) if isinstance(inner, dict) else {}
    return [str(told.get(name)) for name in ("type", "code")]


def _body(error: Any) -> str:
    """What the service said of its refusal, in its own words."""
    body: Any = error.body
    if isinstance(body, dict):
        outer = cast(dict[str, Any], body)
        inner: Any = outer.get("error") or outer
        told = cast(dict[str, Any], inner) if isinstance(inner, dict) else {"message": inner}
        kind = told.get("type") or told.get("code")
        said = ": ".join(str(one) for one in (kind, told.get("message")) if one) or json.dumps(body, default=str)
    else:
        said = str(body or error)
    return hidden(said)[:500]


def _asked_to_wait(error: BaseException) -> float | None:
    """Seconds. `retry-after-ms` is OpenAI's, and stands above HTTP's own header; litellm keeps both apart."""
    theirs: Any = getattr(error, "litellm_response_headers", None)
    headers: Any = theirs or getattr(getattr(error, "response", None), "headers", None) or {}
    if (exact := headers.get("retry-after-ms")) and (milliseconds := seconds_of(exact)) is not None:
        return milliseconds / 1000
    return seconds_of(said) if (said := headers.get("retry-after")) else None


@cache
def _tls() -> ssl.SSLContext:
    """One for all connections: reading the certificates takes 70 ms."""
    return httpx2.create_ssl_context()


def http_client() -> httpx2.AsyncClient:
    """A pool of connections for a vendor's package.

    It follows no redirect: on the way to another host httpx2 takes off `Authorization`, and no other header with a key.
    """
    return httpx2.AsyncClient(verify=_tls(), follow_redirects=False, timeout=None)


def extra(module: str, name: str) -> Any:
    """An optional package, or MissingExtraError with the command that installs it.

    Args:
        module: As it is imported.
        name: The extra of this package that brings it.
    """
    return require(module, package=f"'adk-nb[{name}]'")
