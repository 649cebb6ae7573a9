"""Shortcuts for schemes and credentials. Names and shapes of google-adk 2.13."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import httpx2
from pydantic import BaseModel, TypeAdapter, ValidationError

from adk_nb.auth.auth_credential import (
    AuthCredential,
    AuthCredentialTypes,
    HttpAuth,
    HttpCredentials,
    OAuth2Auth,
    ServiceAccount,
    ServiceAccountCredential,
)
from adk_nb.auth.auth_schemes import APIKey, AuthScheme, HTTPBase, OpenIdConnectWithConfig
from adk_nb.errors import ConfigurationError
from adk_nb.tools.openapi_tool.credential import authorization

_SCHEMES: TypeAdapter[AuthScheme] = TypeAdapter(AuthScheme)
INTERNAL_AUTH_PREFIX = "_auth_prefix_vaf_"
"""Prefix of `ApiParameter.py_name`; no parameter of an operation starts with it. Source: google-adk 2.13."""
_DISCOVERY_SECONDS = 10.0
_DISCOVERY_BYTES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class ApiParameter:
    """The place of a credential in a request."""

    original_name: str
    """Name of the header, the query parameter or the cookie."""
    param_location: str
    """`header`, `query` or `cookie`."""
    param_schema: Mapping[str, Any] = field(default_factory=lambda: {"type": "string"})
    description: str = ""
    py_name: str
    """Key of the value in the second result."""


def token_to_scheme_credential(
    token_type: Literal["apikey", "oauth2Token"],
    location: Literal["header", "query", "cookie"] | None = None,
    name: str | None = None,
    credential_value: str | None = None,
) -> tuple[AuthScheme, AuthCredential | None]:
    """A scheme and a credential for an API key or a bearer token.

    Args:
        token_type: The kind.
        location: The place of the key; a token is always sent in the header `Authorization`.
        name: Name of the key's header, parameter or cookie.
        credential_value: The key or token. None: no credential, so that the user is asked.

    Raises:
        ConfigurationError: Another kind, or a key without a place.
    """
    if token_type == "apikey":
        key = credential_value and AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key=credential_value)
        return dict_to_auth_scheme({"type": "apiKey", "in": location, "name": name}), key or None
    if token_type != "oauth2Token":
        raise ConfigurationError(f"token_type must be 'apikey' or 'oauth2Token', got {token_type!r}")
    scheme = dict_to_auth_scheme({"type": "http", "scheme": "bearer", "bearerFormat": "JWT"})
    if not credential_value:
        return scheme, None
    bearer = HttpAuth(scheme="bearer", credentials=HttpCredentials(token=credential_value))
    return scheme, AuthCredential(auth_type=AuthCredentialTypes.HTTP, http=bearer)


def service_account_dict_to_scheme_credential(
    config: Mapping[str, Any], scopes: Sequence[str]
) -> tuple[AuthScheme, AuthCredential]:
    """A Google service account, from the JSON of its key."""
    key = ServiceAccountCredential.model_validate(dict(config))
    return service_account_scheme_credential(ServiceAccount(service_account_credential=key, scopes=list(scopes)))


def service_account_scheme_credential(config: ServiceAccount) -> tuple[AuthScheme, AuthCredential]:
    """A Google service account; its token is sent as a bearer token."""
    scheme = dict_to_auth_scheme({"type": "http", "scheme": "bearer", "bearerFormat": "JWT"})
    return scheme, AuthCredential(auth_type=AuthCredentialTypes.SERVICE_ACCOUNT, service_account=config)


def openid_dict_to_scheme_credential(
    config_dict: Mapping[str, Any], scopes: Sequence[str], credential_dict: Mapping[str, Any]
) -> tuple[OpenIdConnectWithConfig, AuthCredential]:
    """OpenID Connect with explicit endpoints.

    Args:
        config_dict: `authorization_endpoint` and `token_endpoint`, as in a discovery document.
        scopes: The scopes to request.
        credential_dict: `client_id`, `client_secret`, optionally `redirect_uri`; or such a dict under a single key, as
            exported from Google's console.

    Raises:
        ConfigurationError: A value is missing.
    """
    try:
        scheme = OpenIdConnectWithConfig.model_validate({**config_dict, "type": "openIdConnect", "scopes": [*scopes]})
    except ValidationError as error:
        missing = ", ".join(str(fault["loc"][-1]) for fault in error.errors())
        raise ConfigurationError(f"the OpenID Connect configuration lacks or has wrong: {missing}") from error
    values = list(credential_dict.values())
    # Google's console exports a client as {"web": {...}} or {"installed": {...}}.
    inner = cast(Mapping[str, Any], values[0]) if len(values) == 1 and isinstance(values[0], Mapping) else None
    client = credential_dict if inner is None else inner
    if missing := ", ".join(key for key in ("client_id", "client_secret") if not client.get(key)):
        raise ConfigurationError(f"the OpenID Connect client lacks {missing}")
    auth = OAuth2Auth(
        client_id=client["client_id"],
        client_secret=client["client_secret"],
        redirect_uri=client.get("redirect_uri"),
    )
    return scheme, AuthCredential(auth_type=AuthCredentialTypes.OPEN_ID_CONNECT, oauth2=auth)


def openid_url_to_scheme_credential(
    openid_url: str, scopes: Sequence[str], credential_dict: Mapping[str, Any]
) -> tuple[OpenIdConnectWithConfig, AuthCredential]:
    """OpenID Connect from a discovery document, which is fetched now.

    Args:
        openid_url: URL of the document; it ends in `/.well-known/openid-configuration`.
        scopes: As for `openid_dict_to_scheme_credential`.
        credential_dict: As for `openid_dict_to_scheme_credential`.

    Raises:
        ConfigurationError: The document cannot be fetched, is not JSON, or lacks a value.
    """
    try:
        with (
            httpx2.Client(timeout=_DISCOVERY_SECONDS) as client,
            client.stream("GET", openid_url) as response,
        ):
            response.raise_for_status()
            # Read in pieces: a server may send without end.
            body = bytearray()
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > _DISCOVERY_BYTES:
                    raise ValueError(f"it has more than {_DISCOVERY_BYTES:,} bytes")
        configuration = json.loads(body)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise ConfigurationError(
            f"the OpenID Connect document at {openid_url.partition('?')[0]} was not read: {error}"
        ) from error
    if not isinstance(configuration, dict):
        # Without its query, which may have a secret.
        raise ConfigurationError(f"the OpenID Connect document at {openid_url.partition('?')[0]} is not a JSON object")
    return openid_dict_to_scheme_credential(cast(dict[str, Any], configuration), scopes, credential_dict)


def credential_to_param(
    auth_scheme: AuthScheme | BaseModel, auth_credential: AuthCredential | None
) -> tuple[ApiParameter | None, dict[str, Any] | None]:
    """The place of a credential in a request, and its value there: `{parameter.py_name: value}`.

    Both are None without a credential, and for OAuth 2 and OpenID Connect without a token.

    Raises:
        ConfigurationError: The scheme does not accept the credential, or the credential is incomplete.
    """
    if auth_credential is None:
        return None, None
    if not isinstance(auth_scheme, AuthScheme):  # FastAPI's models, which examples for ADK use
        auth_scheme = dict_to_auth_scheme(auth_scheme.model_dump(by_alias=True, exclude_none=True, mode="json"))
    if isinstance(auth_scheme, APIKey) and auth_credential.api_key:
        return _param(auth_scheme, auth_scheme.name, auth_scheme.in_.value, auth_credential.api_key)
    http = auth_credential.http
    token = http and http.credentials.token
    if http and token:
        return _param(auth_scheme, "Authorization", "header", f"Bearer {token}", "Bearer token")
    if http and auth_credential.auth_type is AuthCredentialTypes.HTTP and http.scheme.lower() == "basic":
        # RFC 7617, 2: the first colon ends the user name.
        if ":" in (http.credentials.username or ""):
            raise ConfigurationError("a user name of HTTP basic authentication has no ':' in it")
        if http.credentials.username is not None or http.credentials.password is not None:
            return _param(auth_scheme, "Authorization", "header", authorization(http), "Basic authentication")
    if isinstance(auth_scheme, APIKey | HTTPBase) or auth_credential.auth_type is AuthCredentialTypes.HTTP:
        raise ConfigurationError(
            f"a scheme of type {auth_scheme.type_.value!r} takes no credential of type "
            f"{auth_credential.auth_type.value!r}, or the credential lacks its key, token, user name or password"
        )
    return None, None


def _param(
    scheme: AuthScheme, name: str, location: str, value: str, description: str = ""
) -> tuple[ApiParameter, dict[str, Any]]:
    parameter = ApiParameter(
        original_name=name,
        param_location=location,
        description=scheme.description or description,
        py_name=INTERNAL_AUTH_PREFIX + name,
    )
    return parameter, {parameter.py_name: value}


def dict_to_auth_scheme(data: Mapping[str, Any]) -> AuthScheme:
    """Parse a security scheme of an OpenAPI document.

    Raises:
        ConfigurationError: It is invalid.
    """
    try:
        return _SCHEMES.validate_python(dict(data))
    except ValidationError as error:
        raise ConfigurationError(
            f"{data.get('type')!r:.40} is not a security scheme; "
            "write apiKey, http, oauth2 or openIdConnect, with its fields"
        ) from error
