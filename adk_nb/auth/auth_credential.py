"""Credentials, and the secrets they are made of: copies of records without secrets, and redaction of text.

Source of names and JSON: google-adk 2.13.
"""

import base64
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Annotated, Any, ClassVar, Literal, Self, SupportsIndex, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from adk_nb.redaction import HIDDEN, refuse_pickle, remember, remember_url
from adk_nb.wire import WireModel

_MIN_LENGTH = 6
"""Shorter values are not redacted: they may occur in text by chance."""

Secret = Annotated[str | None, Field(repr=False)]
"""Left out of `repr` and of `public()`."""


class SecretModel(WireModel):
    """A record whose errors and `repr` contain no secrets. `model_dump` does, for storage.

    From construction on, its secrets are redacted in everything that this process writes. It refuses to be pickled.
    """

    model_config = ConfigDict(hide_input_in_errors=True)
    takes_unknown: ClassVar[bool] = True  # google-adk's take any field

    def model_post_init(self, context: Any, /) -> None:
        """Register the secrets for redaction."""
        for secret in self.secrets():
            remember(secret)
            remember_url(secret)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self.secrets() - {HIDDEN}:  # a public() copy may be pickled
            refuse_pickle(self)
        return super().__reduce_ex__(protocol)

    def public(self) -> Self:
        """A deep copy without secrets, for events, logs and pages."""
        fields = {name: _public(value) for name, value in self if type(self).model_fields[name].repr}
        for name, field in type(self).model_fields.items():
            fields.setdefault(name, None if field.default is None else HIDDEN)
        return type(self).model_construct(_fields_set=self.model_fields_set, **fields)

    def secrets(self) -> set[str]:
        """All secrets in it, at any depth."""
        return set(_secrets(self))


def _public(value: Any) -> Any:
    return value.public() if isinstance(value, SecretModel) else value


def _secrets(record: BaseModel) -> Iterator[str]:
    for name, value in record:
        if isinstance(value, SecretModel):
            yield from _secrets(value)
        elif value and not type(record).model_fields[name].repr:
            yield from _texts(value)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in cast(dict[str, Any], value).values():
            yield from _texts(item)


def redact(value: Any, secrets: Iterable[str]) -> Any:
    """Replace each of `secrets` in the texts of a JSON value by `[secret]`."""
    # Longest first: one secret may contain another.
    ordered = sorted((secret for secret in secrets if len(secret) >= _MIN_LENGTH), key=len, reverse=True)
    return _without(value, ordered) if ordered else value


def _without(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, HIDDEN)
        return value
    if isinstance(value, list):
        return [_without(item, secrets) for item in cast(list[Any], value)]
    if isinstance(value, dict):
        return {key: _without(item, secrets) for key, item in cast(dict[str, Any], value).items()}
    return value


ClientAuthMethod = Literal["client_secret_basic", "client_secret_post", "client_secret_jwt", "private_key_jwt", "none"]


class AuthCredentialTypes(str, Enum):  # noqa: UP042  # a str that prints as ADK's does
    """Kinds of credentials."""

    API_KEY = "apiKey"
    HTTP = "http"
    OAUTH2 = "oauth2"
    OPEN_ID_CONNECT = "openIdConnect"
    SERVICE_ACCOUNT = "serviceAccount"


class HttpCredentials(SecretModel):
    """A user name and a password, or a token."""

    username: str | None = None
    password: Secret = None
    token: Secret = None

    def model_post_init(self, context: Any, /) -> None:
        """Register the secrets for redaction, also in the form that is sent."""
        super().model_post_init(context)
        # Basic authentication sends base64 of `name:password`. Source: RFC 7617, section 2
        if self.password:
            remember(base64.b64encode(f"{self.username or ''}:{self.password}".encode()).decode())


class HttpAuth(SecretModel):
    """Credentials of an HTTP authentication scheme."""

    scheme: str
    """As in the `Authorization` header: `basic`, `bearer`."""
    credentials: HttpCredentials
    additional_headers: Annotated[dict[str, str] | None, Field(repr=False)] = None
    """Header -> value; sent in addition to `Authorization`."""


class OAuth2Auth(SecretModel):
    """An OAuth 2 client at any stage of the flow: with an authorization URL, an answer, or a token."""

    client_id: str | None = None
    client_secret: Secret = None
    auth_uri: str | None = None
    """The authorization URL, which the user opens."""
    nonce: str | None = None
    state: str | None = None
    """The service returns it with the answer, which proves that the answer belongs to this request."""
    redirect_uri: str | None = None
    """URL to which the service redirects the browser. None: filled in by the client that asks the user."""
    auth_response_uri: Secret = None
    """The complete URL that the browser was redirected to."""
    auth_code: Secret = None
    access_token: Secret = None
    refresh_token: Secret = None
    id_token: Secret = None
    expires_at: int | None = None
    """Expiry of the access token, in seconds since the epoch, UTC. None: unknown."""
    expires_in: int | None = None
    """Lifetime in seconds from issue."""
    audience: str | None = None
    prompt: str | None = None
    """The parameter `prompt` of the authorization URL. None: `consent`, which is needed for a refresh token."""
    code_verifier: Secret = None
    code_challenge_method: str | None = None
    """Always `S256`, whether it is set or not."""
    token_endpoint_auth_method: ClientAuthMethod | None = None
    """Authentication of the client. None: `client_secret_basic`, or `none` without a secret."""


class ServiceAccountCredential(SecretModel):
    """The JSON key of a Google service account."""

    type_: str = Field("service_account", alias="type")
    project_id: str = ""
    private_key_id: Annotated[str, Field(repr=False)] = ""
    private_key: Annotated[str, Field(repr=False)]
    client_email: str
    client_id: str = ""
    auth_uri: str = ""
    token_uri: str = "https://oauth2.googleapis.com/token"
    auth_provider_x509_cert_url: str = ""
    client_x509_cert_url: str = ""
    universe_domain: str = "googleapis.com"


class ServiceAccount(SecretModel):
    """A Google service account: its key, or the account that this machine runs as."""

    service_account_credential: ServiceAccountCredential | None = None
    scopes: list[str] | None = None
    """None: `https://www.googleapis.com/auth/cloud-platform`."""
    use_default_credential: bool | None = False
    """True: use application default credentials instead of a key."""
    use_id_token: bool | None = False
    """True: fetch an ID token, which identifies the caller, as for Cloud Run; not an access token."""
    audience: str | None = None
    """URL of the service that an ID token is for."""

    @model_validator(mode="after")
    def _check_complete(self) -> Self:
        if not self.use_default_credential and self.service_account_credential is None:
            raise ValueError("a service account needs service_account_credential=..., or use_default_credential=True")
        # Google refuses an ID token without an audience; an access token has scopes instead.
        if self.use_id_token and not self.audience:
            raise ValueError("use_id_token=True needs audience='https://...': the service that the token is for")
        return self


class AuthCredential(SecretModel):
    """A credential; the field for its `auth_type` is set."""

    auth_type: AuthCredentialTypes
    resource_ref: str | None = None
    api_key: Secret = None
    http: HttpAuth | None = None
    service_account: ServiceAccount | None = None
    oauth2: OAuth2Auth | None = None
    """For OAUTH2 and OPEN_ID_CONNECT."""
