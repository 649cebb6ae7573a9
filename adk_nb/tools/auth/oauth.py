"""OAuth 2 and OpenID Connect, through Authlib: authorization URLs for the user, and tokens.

Source: RFC 6749, RFC 7636 (PKCE), OpenID Connect Discovery 1.0.
"""

import functools
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import httpx2

from adk_nb import clock
from adk_nb.auth.auth_credential import OAuth2Auth, redact
from adk_nb.auth.auth_schemes import APIKey, AuthScheme, HTTPBase, OAuth2, OpenIdConnect
from adk_nb.errors import ConfigurationError, CredentialError
from adk_nb.lazy import require
from adk_nb.models.connections import transport_of_page
from adk_nb.models.http_address import is_loopback

PACKAGE = "adk-nb[auth]"
SECONDS = 30.0
"""Timeout of one response of an authorization server."""
_DISCOVERY = "/.well-known/openid-configuration"
_REFUSALS = ("invalid_grant", "access_denied", "invalid_token")
"""Error codes after which the same request can never succeed. Source: RFC 6749, 4.1.2.1 and 5.2; RFC 6750, 3.1."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """An authorization server, as described by a scheme."""

    authorization: str | None
    """The authorization endpoint, for the user. None: no user is involved."""
    token: str
    refresh: str
    scopes: tuple[str, ...]
    issuer: str | None = None
    """Identifier of the server, a URL. None: not known."""
    sends_issuer: bool = False
    """True: each of its authorization responses has the parameter `iss` (RFC 9207)."""


async def server_of(scheme: AuthScheme) -> Server:
    """The server of `scheme`; for OpenID Connect from its discovery document, which is fetched each time.

    Raises:
        ConfigurationError: The scheme has no supported flow, or an endpoint without https.
        CredentialError: The discovery document is unavailable, or belongs to another issuer.
    """
    if isinstance(scheme, APIKey | HTTPBase):
        raise ConfigurationError(f"a scheme of type {scheme.type_.value!r} has no tokens to exchange")
    if isinstance(scheme, OAuth2):
        server = _flow_server(scheme)
    elif isinstance(scheme, OpenIdConnect):
        server = await _discover(scheme.open_id_connect_url)
    else:
        scopes = tuple(scheme.scopes or ("openid",))
        authorization = None if is_unattended(scheme) else scheme.authorization_endpoint
        token = scheme.token_endpoint
        server = Server(authorization=authorization, token=token, refresh=token, scopes=scopes)
    for url in (server.authorization, server.token, server.refresh):
        if url:
            refuse_insecure(url)
    return server


def is_unattended(scheme: AuthScheme) -> bool:
    """True if the client gets its token without the user."""
    if isinstance(scheme, OAuth2):
        return scheme.flows.client_credentials is not None and scheme.flows.authorization_code is None
    grants = getattr(scheme, "grant_types_supported", None) or ()
    return "client_credentials" in grants and "authorization_code" not in grants


def _flow_server(scheme: OAuth2) -> Server:
    if flow := scheme.flows.authorization_code:
        authorization = flow.authorization_url
    elif flow := scheme.flows.client_credentials:
        authorization = None
    else:
        raise ConfigurationError(
            "this OAuth 2 scheme has neither the flow authorizationCode nor clientCredentials; "
            "no other flow is supported"
        )
    # RFC 6749, 6: the token endpoint refreshes; OpenAPI's refreshUrl may name another.
    refresh = flow.refresh_url or flow.token_url
    return Server(authorization=authorization, token=flow.token_url, refresh=refresh, scopes=tuple(flow.scopes))


async def _discover(url: str) -> Server:
    refuse_insecure(url)
    async with (
        _hide_secrets("the discovery document"),
        httpx2.AsyncClient(timeout=SECONDS, verify=_certificates(), transport=transport_of_page()) as client,
    ):
        response = (await client.get(url)).raise_for_status()
        document: Any = response.json()
    metadata = cast(dict[str, Any], document) if isinstance(document, dict) else {}
    # The issuer must match the URL. Source: OpenID Connect Discovery 1.0, 4.3.
    if str(metadata.get("issuer", "")).rstrip("/") + _DISCOVERY != url:
        raise CredentialError(
            f"the discovery document at {_without_query(url)} is not that of its issuer", refused=True
        )
    if not all(isinstance(metadata.get(key), str) for key in ("authorization_endpoint", "token_endpoint")):
        raise CredentialError(
            f"the discovery document at {_without_query(url)} does not name its endpoints", refused=True
        )
    token: str = metadata["token_endpoint"]
    return Server(
        authorization=metadata["authorization_endpoint"],
        token=token,
        refresh=token,
        scopes=("openid",),
        issuer=metadata["issuer"],
        sends_issuer=metadata.get("authorization_response_iss_parameter_supported") is True,
    )


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Cached: loading them takes longer than a request."""
    return ssl.create_default_context()


def refuse_insecure(url: str) -> None:
    """Refuse a URL to which a secret would be sent unencrypted.

    Raises:
        ConfigurationError: It is neither https nor on this machine.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(url)):
        raise ConfigurationError(f"an authorization server must have an https URL, got {_without_query(url)!r}")


def _without_query(url: str) -> str:
    """The URL without query and password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


async def start_authorization(scheme: AuthScheme, client: OAuth2Auth) -> OAuth2Auth:
    """`client` with an authorization URL for the user, and the state and verifier to check the answer with."""
    server = await server_of(scheme)
    if not server.authorization:
        raise ConfigurationError(
            "the flow clientCredentials involves no user; it needs a client_id and a client_secret"
        )
    generate: Any = require("authlib.common.security", package=PACKAGE).generate_token
    verifier = generate(64)  # PKCE, RFC 7636: 43 to 128 characters
    options = {"audience": client.audience, "nonce": client.nonce}
    async with _client(client, server) as oauth:
        uri, state = oauth.create_authorization_url(
            server.authorization,
            state=generate(32),  # against forged answers: RFC 6749, 10.12
            code_verifier=verifier,
            # Google issues refresh tokens only for offline access with consent. Source:
            # https://developers.google.com/identity/protocols/oauth2/web-server#offline
            access_type="offline",
            prompt=client.prompt or "consent",
            **{key: value for key, value in options.items() if value},
        )
    return client.model_copy(
        update={"auth_uri": uri, "state": state, "code_verifier": verifier, "code_challenge_method": "S256"}
    )


async def token_for_answer(scheme: AuthScheme, authorization: OAuth2Auth, answer: OAuth2Auth) -> OAuth2Auth:
    """Exchange the user's answer for a token.

    Args:
        scheme: The scheme of the server.
        authorization: The result of `start_authorization`.
        answer: A redirect URL, a code, or a token that the user's own program has fetched already.

    Raises:
        CredentialError: The server refuses.
    """
    if answer.access_token:
        return _with_token(authorization, answer.model_dump(exclude_none=True))
    server = await server_of(scheme)
    # RFC 6749, 4.1.3: it must equal that of the authorization request.
    redirect = answer.redirect_uri or authorization.redirect_uri
    options: dict[str, Any] = {"code_verifier": authorization.code_verifier, "redirect_uri": redirect}
    if answer.auth_response_uri:
        # An answer of another server: its code would be sent to this one. The whole list is compared, since two `iss`
        # parameters are a mix-up, too. Source: RFC 9207.
        issuers = parse_qs(urlsplit(answer.auth_response_uri).query).get("iss", [])
        if server.issuer and issuers != [server.issuer] and (issuers or server.sends_issuer):
            raise CredentialError(f"the answer is not from {_without_query(server.issuer)}", refused=True)
        # Authlib takes the code from it and compares its state: CSRF, RFC 6749, 10.12.
        options["authorization_response"] = answer.auth_response_uri
    else:
        options["code"] = answer.auth_code
    async with _client(authorization, server) as oauth:
        token = await oauth.fetch_token(
            server.token, grant_type="authorization_code", state=authorization.state, **options
        )
    return _with_token(authorization.model_copy(update={"redirect_uri": redirect}), token)


async def token_for_client(scheme: AuthScheme, client: OAuth2Auth) -> OAuth2Auth:
    """Fetch a token for the client itself. Raises as `token_for_answer`."""
    server = await server_of(scheme)
    options = {"audience": client.audience} if client.audience else {}
    async with _client(client, server) as oauth:
        return _with_token(client, await oauth.fetch_token(server.token, grant_type="client_credentials", **options))


async def refresh_token(scheme: AuthScheme, old: OAuth2Auth) -> OAuth2Auth:
    """Refresh a token; the old refresh token is kept unless a new one is issued. Raises as `token_for_answer`."""
    server = await server_of(scheme)
    async with _client(old, server) as oauth:
        return _with_token(old, await oauth.refresh_token(server.refresh, refresh_token=old.refresh_token))


_SIGNED_AUTH = {"client_secret_jwt": "ClientSecretJWT", "private_key_jwt": "PrivateKeyJWT"}
"""Authlib's classes for methods in which the client signs: with its secret, which may be a private key in PEM."""


@asynccontextmanager
async def _client(auth: OAuth2Auth, server: Server) -> AsyncGenerator[Any, None]:
    oauth2: Any = require("authlib.integrations.httpx_client", package=PACKAGE).AsyncOAuth2Client
    if not auth.client_id:
        raise ConfigurationError("the OAuth 2 client has no id; write OAuth2Auth(client_id='...')")
    client = oauth2(
        client_id=auth.client_id,
        client_secret=auth.client_secret,
        token_endpoint_auth_method=auth.token_endpoint_auth_method,
        redirect_uri=auth.redirect_uri,
        scope=" ".join(server.scopes) or None,
        code_challenge_method="S256",
        timeout=SECONDS,
        verify=_certificates(),
        transport=transport_of_page(),
    )
    if auth.token_endpoint_auth_method in _SIGNED_AUTH:
        auth_method: Any = getattr(
            require("authlib.oauth2.rfc7523", package=PACKAGE), _SIGNED_AUTH[auth.token_endpoint_auth_method]
        )
        # RFC 7523: the assertion's audience is the token endpoint.
        client.register_client_auth_method(auth_method(server.token))
    async with _hide_secrets(_without_query(server.token), auth), client:
        yield client


@asynccontextmanager
async def _hide_secrets(endpoint: str, auth: OAuth2Auth | None = None) -> AsyncGenerator[None, None]:
    """Report errors without the requests, responses and secrets that errors of HTTP clients carry."""
    oauth_error: Any = require("authlib.integrations.base_client", package=PACKAGE).OAuthError
    try:
        yield
    except oauth_error as error:
        message = ": ".join(str(text) for text in (error.error, error.description) if text)
        message = redact(message, auth.secrets() if auth else ())
        raise CredentialError(f"{endpoint} gave no token: {message:.300}", refused=error.error in _REFUSALS) from None
    except httpx2.HTTPStatusError as error:
        raise CredentialError(f"{endpoint} answered HTTP {error.response.status_code}") from None
    except httpx2.HTTPError as error:
        raise CredentialError(f"{endpoint} cannot be reached: {type(error).__name__}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise CredentialError(f"{endpoint} returned no valid token") from None


def _with_token(auth: OAuth2Auth, token: dict[str, Any]) -> OAuth2Auth:
    """`auth` with the token, and without the data of the exchange."""
    if not isinstance(token.get("access_token"), str):
        raise CredentialError("the server returned no token")
    seconds = token.get("expires_in")
    # The server's clock may differ: a lifetime counts from now, in ours.
    expires_at = token.get("expires_at") if seconds is None else clock.now() + float(seconds)
    values = {
        "access_token": token["access_token"],
        "expires_at": None if expires_at is None else int(float(expires_at)),
    }
    values |= {key: token[key] for key in ("refresh_token", "id_token") if token.get(key)}
    # State, verifier and code are for one exchange: kept, they could be replayed.
    cleared = ("auth_uri", "state", "nonce", "code_verifier", "auth_code", "auth_response_uri", "expires_in")
    return auth.model_copy(update=dict.fromkeys(cleared) | values)
