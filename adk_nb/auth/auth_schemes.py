"""Security schemes of OpenAPI: how a service expects a credential.

Source: https://spec.openapis.org/oas/v3.1.0#security-scheme-object; names of google-adk 2.13 and of FastAPI's models.
"""

from enum import Enum
from typing import ClassVar, Literal

from pydantic import Field

from adk_nb.wire import WireModel


class AuthSchemeType(str, Enum):  # noqa: UP042  # a str that prints as FastAPI's does
    """Kinds of security schemes."""

    apiKey = "apiKey"
    http = "http"
    oauth2 = "oauth2"
    openIdConnect = "openIdConnect"


class APIKeyIn(str, Enum):  # noqa: UP042
    """The place of an API key in a request."""

    query = "query"
    header = "header"
    cookie = "cookie"


class SecurityBase(WireModel):
    """Base of all schemes."""

    takes_unknown: ClassVar[bool] = True  # as FastAPI's models

    description: str | None = None


class APIKey(SecurityBase):
    """An API key in a header, in the query or in a cookie."""

    type_: Literal[AuthSchemeType.apiKey] = Field(AuthSchemeType.apiKey, alias="type")
    in_: APIKeyIn = Field(alias="in")
    name: str
    """Name of the header, the parameter or the cookie."""


class HTTPBase(SecurityBase):
    """An `Authorization` header."""

    type_: Literal[AuthSchemeType.http] = Field(AuthSchemeType.http, alias="type")
    scheme: str
    """`basic`, `bearer`."""
    bearer_format: str | None = None


class OAuthFlow(WireModel):
    """Base of all OAuth 2 flows."""

    takes_unknown: ClassVar[bool] = True  # as FastAPI's models

    refresh_url: str | None = None
    """None: the token URL."""
    scopes: dict[str, str] = Field(default_factory=dict[str, str])
    """Name -> description."""


class OAuthFlowImplicit(OAuthFlow):
    """Part of OpenAPI but not supported: its token is part of a URL, visible to others."""

    authorization_url: str


class OAuthFlowPassword(OAuthFlow):
    """Part of OpenAPI but not supported: it needs the user's password."""

    token_url: str


class OAuthFlowClientCredentials(OAuthFlow):
    """The client itself gets a token with its secret; no user is involved."""

    token_url: str


class OAuthFlowAuthorizationCode(OAuthFlow):
    """The user authorizes the client on the service's own page."""

    authorization_url: str
    token_url: str


class OAuthFlows(WireModel):
    """The flows that a service supports."""

    takes_unknown: ClassVar[bool] = True  # as FastAPI's models

    implicit: OAuthFlowImplicit | None = None
    password: OAuthFlowPassword | None = None
    client_credentials: OAuthFlowClientCredentials | None = None
    authorization_code: OAuthFlowAuthorizationCode | None = None


class OAuth2(SecurityBase):
    """OAuth 2, with its flows."""

    type_: Literal[AuthSchemeType.oauth2] = Field(AuthSchemeType.oauth2, alias="type")
    flows: OAuthFlows


class OpenIdConnect(SecurityBase):
    """OpenID Connect with a discovery document."""

    type_: Literal[AuthSchemeType.openIdConnect] = Field(AuthSchemeType.openIdConnect, alias="type")
    open_id_connect_url: str
    """URL of the discovery document; ends in `/.well-known/openid-configuration`."""


class OpenIdConnectWithConfig(SecurityBase):
    """OpenID Connect with explicit endpoints."""

    type_: Literal[AuthSchemeType.openIdConnect] = Field(AuthSchemeType.openIdConnect, alias="type")
    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str | None = None
    revocation_endpoint: str | None = None
    token_endpoint_auth_methods_supported: list[str] | None = None
    grant_types_supported: list[str] | None = None
    scopes: list[str] | None = None


AuthScheme = APIKey | HTTPBase | OAuth2 | OpenIdConnect | OpenIdConnectWithConfig
"""A security scheme; `pydantic.TypeAdapter(AuthScheme)` parses one from an OpenAPI document."""
