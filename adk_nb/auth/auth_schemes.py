"""How a service wants to be shown a credential: the security schemes of OpenAPI.

Source: https://spec.openapis.org/oas/v3.1.0#security-scheme-object; names of google-adk 2.13 and of FastAPI's models.
"""

from enum import Enum
from typing import ClassVar, Literal

from pydantic import Field

from adk_nb.wire import WireModel


class AuthSchemeType(str, Enum):  # noqa: UP042  # a str that prints as FastAPI's does
    """What kind of scheme it is."""

    apiKey = "apiKey"
    http = "http"
    oauth2 = "oauth2"
    openIdConnect = "openIdConnect"


class APIKeyIn(str, Enum):  # noqa: UP042
    """Where a key is sent."""

    query = "query"
    header = "header"
    cookie = "cookie"


class SecurityBase(WireModel):
    """What all schemes have."""

    takes_unknown: ClassVar[bool] = True  # as FastAPI's models

    description: str | None = None


class APIKey(SecurityBase):
    """A key, in a header, in the query or in a cookie."""

    type_: Literal[AuthSchemeType.apiKey] = Field(AuthSchemeType.apiKey, alias="type")
    in_: APIKeyIn = Field(alias="in")
    name: str
    """Of the header, the parameter or the cookie."""


class HTTPBase(SecurityBase):
    """An `Authorization` header."""

    type_: Literal[AuthSchemeType.http] = Field(AuthSchemeType.http, alias="type")
    scheme: str
    """`basic`, `bearer`."""
    bearer_format: str | None = None


class OAuthFlow(WireModel):
    """What all flows have."""

    takes_unknown: ClassVar[bool] = True  # as FastAPI's models

    refresh_url: str | None = None
    """None: where tokens are had, too."""
    scopes: dict[str, str] = Field(default_factory=dict[str, str])
    """Name -> what it allows."""


class OAuthFlowImplicit(OAuthFlow):
    """Known to OpenAPI; not gone through here: its token comes in an address, for all to see."""

    authorization_url: str


class OAuthFlowPassword(OAuthFlow):
    """Known to OpenAPI; not gone through here: it needs a person's password."""

    token_url: str


class OAuthFlowClientCredentials(OAuthFlow):
    """The program itself is let in, with its client's secret; nobody is asked."""

    token_url: str


class OAuthFlowAuthorizationCode(OAuthFlow):
    """A person lets the program in, at the service's own page."""

    authorization_url: str
    token_url: str


class OAuthFlows(WireModel):
    """The flows that a service knows."""

    takes_unknown: ClassVar[bool] = True  # as FastAPI's models

    implicit: OAuthFlowImplicit | None = None
    password: OAuthFlowPassword | None = None
    client_credentials: OAuthFlowClientCredentials | None = None
    authorization_code: OAuthFlowAuthorizationCode | None = None


class OAuth2(SecurityBase):
    """OAuth 2, by one of its flows."""

    type_: Literal[AuthSchemeType.oauth2] = Field(AuthSchemeType.oauth2, alias="type")
    flows: OAuthFlows


class OpenIdConnect(SecurityBase):
    """OpenID Connect: its endpoints are read from the document at the address."""

    type_: Literal[AuthSchemeType.openIdConnect] = Field(AuthSchemeType.openIdConnect, alias="type")
    open_id_connect_url: str
    """Ends in `/.well-known/openid-configuration`."""


class OpenIdConnectWithConfig(SecurityBase):
    """OpenID Connect, with its endpoints at hand."""

    type_: Literal[AuthSchemeType.openIdConnect] = Field(AuthSchemeType.openIdConnect, alias="type")
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str | None = None
    revocation_endpoint: str | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None
    grant_types_supported: list[str] | None = None
    scopes: list[str] | None = None


AuthScheme = APIKey | HTTPBase | OAuth2 | OpenIdConnect | OpenIdConnectWithConfig
"""One security scheme; `pydantic.TypeAdapter(AuthScheme)` reads one from an OpenAPI document."""
