"""Models called through a vendor's package: openai, anthropic, or litellm. Their errors have the same shape."""

import json
from abc import abstractmethod
from collections.abc import AsyncGenerator
from typing import Any, ClassVar, cast

import httpx2

from adk_nb.lazy import require
from adk_nb.models.connections import PerLoop, check_url, http_client
from adk_nb.models.http_address import redirect_hint
from adk_nb.models.pipeline import Payload
from adk_nb.models.retrying import is_quota_error, seconds_of
from adk_nb.models.service_llm import Refusal, VendorLlm
from adk_nb.redaction import hidden

_NO_KEY = "none"
"""Sent to a user's own server without a key: the packages require one."""


class SdkLlm(VendorLlm):
    """A model called through a package that is an extra of this one.

    Raises:
        MissingExtraError: That package is not installed.
    """

    PACKAGE: ClassVar[str]
    """Name of the module, and of the extra that installs it."""

    def model_post_init(self, context: Any, /) -> None:
        """Import the package, so that a missing one is reported here."""
        super().model_post_init(context)
        self._package()

    def _package(self) -> Any:
        return import_extra(self.PACKAGE, self.PACKAGE)

    @property
    def _errors(self) -> Any:
        """The module with APIError, APIStatusError, APIConnectionError and APITimeoutError."""
        return self._package()

    @property
    def timeout_errors(self) -> tuple[type[Exception], ...]:
        """Timeouts of the package's client, beside those of every service."""
        return (*super().timeout_errors, self._errors.APITimeoutError)

    @property
    def connection_errors(self) -> tuple[type[Exception], ...]:
        """Connection errors of the package's client, beside those of every service."""
        return (*super().connection_errors, self._errors.APIConnectionError)

    def refusal(self, error: Any, /) -> Refusal | None:
        """Convert an APIError of the package; None for a connection error, or any other."""
        errors = self._errors
        if not isinstance(error, errors.APIError) or isinstance(error, errors.APIConnectionError):
            return None
        details = _details(error)
        return Refusal(
            status=self._status(error),
            body=_body(error, details),
            retry_after=_retry_after(error),
            is_quota_error=is_quota_error(str(details.get(name)) for name in ("type", "code")),
            hint=redirect_hint(getattr(error, "response", None)),
        )

    def _status(self, error: Any) -> int | None:
        """The HTTP status of `error`, if it has one."""
        return error.status_code if isinstance(error, self._errors.APIStatusError) else None


class HttpSdkLlm(SdkLlm):
    """A model whose package takes an address, a key and a connection pool."""

    @abstractmethod
    def _client_class(self) -> Any: ...

    async def _client(self) -> Any:
        """The package's client, shared by all models of a loop with the same settings."""
        key, address = self._key(), self.address()
        if not key and not address:
            raise self._missing_key(self.model)
        settings = (self.PACKAGE, key, address, self.connect_timeout)
        return (await _clients.get(settings, lambda: self._connect(key or _NO_KEY, address))).client

    async def _post(
        self, client: Any, path: str, payload: Payload, answer: type[Any], chunk: Any, *, stream: bool
    ) -> Any:
        """Send `payload` to a method of the API; returns the answer, or the package's stream of chunks.

        The packages' own methods walk each message in Python and copy it, which takes seconds in long conversations
        (`benchmarks/wire.py`): what they would send is the JSON of the same arguments.
        """
        fields = {name: value for name, value in payload.items() if name not in ("extra_headers", "extra_body")}
        body = fields | ({"stream": True} if stream else {}) | payload.get("extra_body", {})
        # As the packages spell it.
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        headers = {"headers": payload["extra_headers"]} if "extra_headers" in payload else {}
        streamed = {"stream": True, "stream_cls": self._package().AsyncStream[chunk]} if stream else {}
        return await client.post(path, cast_to=answer, content=text.encode(), options=headers, **streamed)

    def _connect(self, key: str, address: str | None) -> "_Client":
        if address:
            check_url(address, f"model {self.model!r}")
        limit = httpx2.Timeout(None, connect=self.connect_timeout)
        return _Client(
            self._client_class()(api_key=key, base_url=address, max_retries=0, timeout=limit, http_client=http_client())
        )


class _Client:
    """A package's client with an `aclose`."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def aclose(self) -> None:
        """Close the client's connections."""
        await self.client.close()


_clients: PerLoop[_Client] = PerLoop()
"""Shared by all models with the same settings: many agents have a model object each."""


async def close_after(stream: Any) -> AsyncGenerator[Any, None]:
    """Yield the chunks of a package's stream. Closing this generator closes the stream's connection."""
    try:
        async for chunk in stream:
            yield chunk
    finally:
        # Generators have `aclose`, the streams of openai and anthropic an async `close`.
        close: Any = getattr(stream, "aclose", None) or getattr(stream, "close", None)
        if close:
            await close()


def import_extra(module: str, extra: str) -> Any:
    """Import `module`, which `extra` of this package installs. Raises MissingExtraError with the command to type."""
    return require(module, package=f"adk-nb[{extra}]")


def _details(error: Any) -> dict[str, Any]:
    """The JSON of a refusal; empty if the service sent none."""
    body: Any = getattr(error, "body", None)
    outer = cast(dict[str, Any], body) if isinstance(body, dict) else {}
    inner: Any = outer.get("error") or outer
    return cast(dict[str, Any], inner) if isinstance(inner, dict) else {"message": inner}


def _body(error: Any, details: dict[str, Any]) -> str:
    """The service's message for a refusal."""
    body: Any = error.body
    if not isinstance(body, dict):
        return hidden(str(body or error))[:500]
    kind = details.get("type") or details.get("code")
    text = ": ".join(str(detail) for detail in (kind, details.get("message")) if detail)
    return hidden(text or json.dumps(body, default=str))[:500]


def _retry_after(error: Any) -> float | None:
    """Seconds. `retry-after-ms` of OpenAI and Anthropic goes before HTTP's header; litellm has headers of its own."""
    litellm_headers: Any = getattr(error, "litellm_response_headers", None)
    headers: Any = litellm_headers or getattr(getattr(error, "response", None), "headers", None) or {}
    if (exact := headers.get("retry-after-ms")) and (milliseconds := seconds_of(exact)) is not None:
        return milliseconds / 1000
    return seconds_of(value) if (value := headers.get("retry-after")) else None
