"""A scheme and a credential, made of the few words that a service's page gives. Names and shapes of google-adk 2.13."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from pydantic import TypeAdapter, ValidationError

from adk_nb.auth.auth_credential import (
    AuthCredential,
    AuthCredentialTypes,
    HttpAuth,
    HttpCredentials,
    OAuth2Auth,
    ServiceAccount,
    ServiceAccountCredential,
)
from adk_nb.auth.auth_schemes import AuthScheme, OpenIdConnectWithConfig
from adk_nb.errors import ConfigurationError

_SCHEMES: TypeAdapter[AuthScheme] = TypeAdapter(AuthScheme)


def token_to_scheme_credential(
    token_type: Literal["apikey", "oauth2Token"],
    location: Literal["header", "query", "cookie"] | None = None,
    name: str | None = None,
    credential_value: str | None = None,
) -> tuple[AuthScheme, AuthCredential | None]:
    """A key, or a token that is shown as `Bearer`.

    Args:
        token_type: Which of both.
        location: Where the key is sent; a token is sent in the header `Authorization`.
        name: Of the key's header, parameter or cookie.
        credential_value: The key or token. None: no credential, so that a person is asked.

    Raises:
        ConfigurationError: It is neither, or is sent nowhere.
    """
    if token_type == "apikey":
        key = credential_value and AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key=credential_value)
        return dict_to_auth_scheme({"type": "apiKey", "in": location, "name": name}), key or None
    if token_type != "oauth2Token":
        raise ConfigurationError(f"token_type is 'apikey' or 'oauth2Token', and not {token_type!r}")
    scheme = dict_to_auth_scheme({"type": "http", "scheme": "bearer", "bearerFormat": "JWT"})
    if not credential_value:
        return scheme, None
    bearer = HttpAuth(scheme="bearer", credentials=HttpCredentials(token=credential_value))
    return scheme, AuthCredential(auth_type=AuthCredentialTypes.HTTP, http=bearer)


def service_account_dict_to_scheme_credential(
    config: Mapping[str, Any], scopes: Sequence[str]
) -> tuple[AuthScheme, AuthCredential]:
    """A Google service account by the JSON of its key."""
    key = ServiceAccountCredential.model_validate(dict(config))
    return service_account_scheme_credential(ServiceAccount(service_account_credential=key, scopes=list(scopes)))


def service_account_scheme_credential(config: ServiceAccount) -> tuple[AuthScheme, AuthCredential]:
    """A Google service account; its token is shown as `Bearer`."""
    scheme = dict_to_auth_scheme({"type": "http", "scheme": "bearer", "bearerFormat": "JWT"})
    return scheme, AuthCredential(auth_type=AuthCredentialTypes.SERVICE_ACCOUNT, service_account=config)


def openid_dict_to_scheme_credential(
    config_dict: Mapping[str, Any], scopes: Sequence[str], credential_dict: Mapping[str, Any]
) -> tuple[OpenIdConnectWithConfig, AuthCredential]:
    """OpenID Connect with its endpoints at hand.

    Args:
        config_dict: `authorization_endpoint` and `token_endpoint`, as a discovery document has them.
        scopes: What is asked for.
        credential_dict: `client_id`, `client_secret`, perhaps `redirect_uri`; or such a dict under one key, as Google's
            console gives it.

    Raises:
        ConfigurationError: Something is missing.
    """
    try:
        scheme = OpenIdConnectWithConfig.model_validate({**config_dict, "type": "openIdConnect", "scopes": [*scopes]})
    except ValidationError as error:
        missing = ", ".join(str(one["loc"][-1]) for one in error.errors())
        raise ConfigurationError(f"the OpenID Connect configuration lacks or has wrong: {missing}") from error
    values = list(credential_dict.values())
    inner = cast(Mapping[str, Any], values[0]) if len(values) == 1 and isinstance(values[0], Mapping) else None
    client = credential_dict if inner is None else inner
    if missing := ", ".join(one for one in ("client_id", "client_secret") if not client.get(one)):
        raise ConfigurationError(f"the OpenID Connect client lacks {missing}")
    auth = OAuth2Auth(
        client_id=client["client_id"],
        client_secret=client["client_secret"],
        redirect_uri=client.get("redirect_uri"),
    )
    return scheme, AuthCredential(auth_type=AuthCredentialTypes.OPEN_ID_CONNECT, oauth2=auth)


def dict_to_auth_scheme(data: Mapping[str, Any]) -> AuthScheme:
    """A security scheme as an OpenAPI document writes it.

    Raises:
        ConfigurationError: It is none.
    """
    try:
        return _SCHEMES.validate_python(dict(data))
    except ValidationError as error:
        raise ConfigurationError(
            f"{data.get('type')!r:.40} is no security scheme: say apiKey, http, oauth2 or openIdConnect, and its fields"
        ) from error
