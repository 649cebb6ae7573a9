"""What a tool shows to a service to be let in, and the secrets it is made of.

Source of names and JSON: google-adk 2.13.
"""

import base64
from enum import Enum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from adk_nb.auth.secrets import Guarded, Secret
from adk_nb.redaction import remember

ClientAuthMethod = Literal["client_secret_basic", "client_secret_post", "client_secret_jwt", "private_key_jwt", "none"]


class AuthCredentialTypes(str, Enum):  # noqa: UP042  # a str that prints as ADK's does
    """What kind of credential it is."""

    API_KEY = "apiKey"
    HTTP = "http"
    OAUTH2 = "oauth2"
    OPEN_ID_CONNECT = "openIdConnect"
    SERVICE_ACCOUNT = "serviceAccount"


class HttpCredentials(Guarded):
    """A name and a password, or a token."""

    username: str | None = None
    password: Secret = None
    token: Secret = None

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        if self.password:  # as a service is shown it. Source: RFC 7617
            remember(base64.b64encode(f"{self.username or ''}:{self.password}".encode()).decode())


class HttpAuth(Guarded):
    """Credentials of an HTTP authentication scheme."""

    scheme: str
    """As in the `Authorization` header: `basic`, `bearer`."""
    credentials: HttpCredentials
    additional_headers: Annotated[dict[str, str] | None, Field(repr=False)] = None
    """Header -> value; sent beside `Authorization`."""


class OAuth2Auth(Guarded):
    """An OAuth 2 client, and how far it has come: from an address to open, by an answer, to a token."""

    client_id: str | None = None
    client_secret: Secret = None
    auth_uri: str | None = None
    """The address at which a person lets this client in."""
    nonce: str | None = None
    state: str | None = None
    """Has to come back with the answer: so it is the answer to this very question."""
    redirect_uri: str | None = None
    """Where the person's browser is sent afterwards. None: whoever asks the person fills it in."""
    auth_response_uri: Secret = None
    """The whole address that the browser was sent to."""
    auth_code: Secret = None
    access_token: Secret = None
    refresh_token: Secret = None
    id_token: Secret = None
    expires_at: int | None = None
    """Seconds since the epoch, UTC, of the access token. None: not known."""
    expires_in: int | None = None
    """Seconds, from when it was issued."""
    audience: str | None = None
    prompt: str | None = None
    """What the authorization server asks of the person. None: `consent`, which is what brings a refresh token."""
    code_verifier: Secret = None
    code_challenge_method: str | None = None
    """`S256`, whether it is set or not: there is no reason to go without."""
    token_endpoint_auth_method: ClientAuthMethod | None = None
    """How the client shows its secret. None: `client_secret_basic`, or `none` if it has none."""


class ServiceAccountCredential(Guarded):
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


class ServiceAccount(Guarded):
    """A Google service account: its key, or the one that this machine runs as."""

    service_account_credential: ServiceAccountCredential | None = None
    scopes: list[str] | None = None
    """None: `https://www.googleapis.com/auth/cloud-platform`."""
    use_default_credential: bool | None = False
    """True: application default credentials instead of a key."""
    use_id_token: bool | None = False
    """True: a token that says who the caller is, as Cloud Run wants it, and not what it may do."""
    audience: str | None = None
    """The address of the service that an ID token is for."""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if not self.use_default_credential and self.service_account_credential is None:
            raise ValueError("a service account needs service_account_credential=..., or use_default_credential=True")
        if self.use_id_token and not self.audience:
            raise ValueError("use_id_token=True needs audience='https://...': the service that the token is for")
        return self


class AuthCredential(Guarded):
    """One credential, of one kind; the field that goes with the kind is set."""

    auth_type: AuthCredentialTypes
    resource_ref: str | None = None
    api_key: Secret = None
    http: HttpAuth | None = None
    service_account: ServiceAccount | None = None
    oauth2: OAuth2Auth | None = None
    """Of OAUTH2 and of OPEN_ID_CONNECT."""
