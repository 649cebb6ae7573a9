"""OAuth 2 and OpenID Connect, through Authlib: an address for a person to open, and tokens for what comes of it.

Source: RFC 6749, RFC 7636 (PKCE), OpenID Connect Discovery 1.0.
"""

import functools
import ipaddress
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import httpx2

from adk_nb import clock
from adk_nb.auth.auth_credential import OAuth2Auth
from adk_nb.auth.auth_schemes import APIKey, AuthScheme, HTTPBase, OAuth2, OpenIdConnect
from adk_nb.auth.secrets import without
from adk_nb.errors import ConfigurationError, CredentialError
from adk_nb.lazy import require

PACKAGE = "'adk-nb[auth]'"
SECONDS = 30.0
"""The longest that an authorization server may take for one answer."""
_DISCOVERY = "/.well-known/openid-configuration"
_REFUSALS = ("invalid_grant", "access_denied", "invalid_token")
"""What a server says that will never give a token for this. Source: RFC 6749, 5.2."""


@dataclass(frozen=True, kw_only=True)
class Server:
    """An authorization server, as a scheme tells of it."""

    authorization: str | None
    """Where a person lets a client in. None: nobody is asked."""
    token: str
    refresh: str
    scopes: tuple[str, ...]
    issuer: str | None = None
    """What it calls itself in its answers. None: not known."""
    names_itself: bool = False
    """Each of its answers says who it is."""


async def server_of(scheme: AuthScheme) -> Server:
    """The server of `scheme`; for OpenID Connect as its discovery document has it, which is read each time.

    Raises:
        ConfigurationError: It has no flow that is gone through here, or an endpoint that is not https.
        CredentialError: The discovery document cannot be had, or is not the issuer's own.
    """
    if isinstance(scheme, APIKey | HTTPBase):
        raise ConfigurationError(f"a scheme of type {scheme.type_.value!r} has no tokens to be exchanged")
    if isinstance(scheme, OAuth2):
        server = _by_flow(scheme)
    elif isinstance(scheme, OpenIdConnect):
        server = await _discovered(scheme.open_id_connect_url)
    else:
        scopes = tuple(scheme.scopes or ("openid",))
        authorization = None if asks_nobody(scheme) else scheme.authorization_endpoint
        token = scheme.token_endpoint
        server = Server(authorization=authorization, token=token, refresh=token, scopes=scopes)
    for url in (server.authorization, server.token, server.refresh):
        if url:
            refuse_open(url)
    return server


def asks_nobody(scheme: AuthScheme) -> bool:
    """True if a program gets its token without a person."""
    if isinstance(scheme, OAuth2):
        return scheme.flows.client_credentials is not None and scheme.flows.authorization_code is None
    grants = getattr(scheme, "grant_types_supported", None) or ()
    return "client_credentials" in grants and "authorization_code" not in grants


def _by_flow(scheme: OAuth2) -> Server:
    if flow := scheme.flows.authorization_code:
        authorization = flow.authorization_url
    elif flow := scheme.flows.client_credentials:
        authorization = None
    else:
        raise ConfigurationError(
            "this OAuth 2 scheme has neither the flow authorizationCode nor clientCredentials; no other is gone through"
        )
    refresh = flow.refresh_url or flow.token_url
    return Server(authorization=authorization, token=flow.token_url, refresh=refresh, scopes=tuple(flow.scopes))


async def _discovered(url: str) -> Server:
    refuse_open(url)
    async with _told("the discovery document"), httpx2.AsyncClient(timeout=SECONDS, verify=_certificates()) as client:
        answer = (await client.get(url)).raise_for_status()
        said = cast(dict[str, Any], answer.json())
    if str(said.get("issuer", "")).rstrip("/") + _DISCOVERY != url:
        raise CredentialError(f"the discovery document at {_bare(url)} is not that of its issuer", refused=True)
    if not all(isinstance(said.get(key), str) for key in ("authorization_endpoint", "token_endpoint")):
        raise CredentialError(f"the discovery document at {_bare(url)} does not name its endpoints", refused=True)
    token: str = said["token_endpoint"]
    return Server(
        authorization=said["authorization_endpoint"],
        token=token,
        refresh=token,
        scopes=("openid",),
        issuer=said["issuer"],
        names_itself=said.get("authorization_response_iss_parameter_supported") is True,
    )


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Read once: that takes longer than a request."""
    return ssl.create_default_context()


def refuse_open(url: str) -> None:
    """Refuse an address to which a secret would go for all to read.

    Raises:
        ConfigurationError: It is not https, nor on this machine.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(parts.hostname or "")):
        raise ConfigurationError(f"an authorization server is reached by https, and {_bare(url)!r} is not")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bare(url: str) -> str:
    """Without query and password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


async def asking(scheme: AuthScheme, client: OAuth2Auth) -> OAuth2Auth:
    """`client` with an address for a person to open, and what its answer is checked against: a state, a verifier."""
    server = await server_of(scheme)
    if not server.authorization:
        raise ConfigurationError("nobody is asked in the flow clientCredentials; it needs a client_id and its secret")
    generate: Any = require("authlib.common.security", package=PACKAGE).generate_token
    verifier = generate(64)
    more = {"audience": client.audience, "nonce": client.nonce}
    async with _client(client, server) as oauth:
        uri, state = oauth.create_authorization_url(
            server.authorization,
            state=generate(32),
            code_verifier=verifier,
            access_type="offline",
            prompt=client.prompt or "consent",
            **{key: value for key, value in more.items() if value},
        )
    return client.model_copy(
        update={"auth_uri": uri, "state": state, "code_verifier": verifier, "code_challenge_method": "S256"}
    )


async def token_for_answer(scheme: AuthScheme, asked: OAuth2Auth, given: OAuth2Auth) -> OAuth2Auth:
    """What the server gives for a person's answer.

    Args:
        scheme: Where.
        asked: As `asking` made it.
        given: With a redirect URL, a code, or a token that the person's own program has got already.

    Raises:
        CredentialError: It gives nothing.
    """
    if given.access_token:
        return _with_token(asked, given.model_dump(exclude_none=True))
    server = await server_of(scheme)
    redirect = given.redirect_uri or asked.redirect_uri
    how: dict[str, Any] = {"code_verifier": asked.code_verifier, "redirect_uri": redirect}
    if given.auth_response_uri:
        _refuse_other_issuer(server, given.auth_response_uri)
        how["authorization_response"] = given.auth_response_uri
    else:
        how["code"] = given.auth_code
    async with _client(asked, server) as oauth:
        token = await oauth.fetch_token(server.token, grant_type="authorization_code", state=asked.state, **how)
    return _with_token(asked.model_copy(update={"redirect_uri": redirect}), token)


def _refuse_other_issuer(server: Server, uri: str) -> None:
    """Refuse an answer of another server, which would be sent to this one with its code. Source: RFC 9207."""
    says = parse_qs(urlsplit(uri).query).get("iss", [])
    if server.issuer and says != [server.issuer] and (says or server.names_itself):
        raise CredentialError(f"the answer is not one of {_bare(server.issuer)}", refused=True)


async def token_for_client(scheme: AuthScheme, client: OAuth2Auth) -> OAuth2Auth:
    """What the server gives the program itself. Raises as `token_for_answer`."""
    server = await server_of(scheme)
    more = {"audience": client.audience} if client.audience else {}
    async with _client(client, server) as oauth:
        return _with_token(client, await oauth.fetch_token(server.token, grant_type="client_credentials", **more))


async def fresh_token(scheme: AuthScheme, old: OAuth2Auth) -> OAuth2Auth:
    """What the server gives for a refresh token; the old one stays, if it gives no new one. Raises as above."""
    server = await server_of(scheme)
    async with _client(old, server) as oauth:
        return _with_token(old, await oauth.refresh_token(server.refresh, refresh_token=old.refresh_token))


_SIGNED = {"client_secret_jwt": "ClientSecretJWT", "private_key_jwt": "PrivateKeyJWT"}
"""What makes the clients that sign who they are, by Authlib's names: with their secret, or with it as a key in PEM."""


@asynccontextmanager
async def _client(auth: OAuth2Auth, server: Server) -> AsyncGenerator[Any, None]:
    oauth2: Any = require("authlib.integrations.httpx_client", package=PACKAGE).AsyncOAuth2Client
    if not auth.client_id:
        raise ConfigurationError("an OAuth 2 client has an id; write OAuth2Auth(client_id='...')")
    client = oauth2(
        client_id=auth.client_id,
        client_secret=auth.client_secret,
        token_endpoint_auth_method=auth.token_endpoint_auth_method,
        redirect_uri=auth.redirect_uri,
        scope=" ".join(server.scopes) or None,
        code_challenge_method="S256",
        timeout=SECONDS,
        verify=_certificates(),
    )
    if auth.token_endpoint_auth_method in _SIGNED:
        signs: Any = getattr(
            require("authlib.oauth2.rfc7523", package=PACKAGE), _SIGNED[auth.token_endpoint_auth_method]
        )
        client.register_client_auth_method(signs(server.token))
    async with _told(_bare(server.token), auth), client:
        yield client


@asynccontextmanager
async def _told(where: str, auth: OAuth2Auth | None = None) -> AsyncGenerator[None, None]:
    """Tells what went wrong without the requests, answers and secrets that the errors of clients carry."""
    oauth_error: Any = require("authlib.integrations.base_client", package=PACKAGE).OAuthError
    try:
        yield
    except oauth_error as error:
        said = ": ".join(str(one) for one in (error.error, error.description) if one)
        said = without(said, auth.secrets() if auth else ())
        raise CredentialError(f"{where} gave no token: {said:.300}", refused=error.error in _REFUSALS) from None
    except httpx2.HTTPStatusError as error:
        raise CredentialError(f"{where} gave nothing: it answered HTTP {error.response.status_code}") from None
    except httpx2.HTTPError as error:
        raise CredentialError(f"{where} cannot be reached: {type(error).__name__}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, ConfigurationError):
            raise
        raise CredentialError(f"{where} answered what is no token") from None


def _with_token(auth: OAuth2Auth, token: dict[str, Any]) -> OAuth2Auth:
    """`auth` with what it was given, and without what served to get there."""
    if not isinstance(token.get("access_token"), str):
        raise CredentialError("the server answered what is no token")
    seconds = token.get("expires_in")
    at = token.get("expires_at") if seconds is None else clock.now() + float(seconds)
    given = {"access_token": token["access_token"], "expires_at": None if at is None else int(float(at))}
    given |= {key: token[key] for key in ("refresh_token", "id_token") if token.get(key)}
    used = ("auth_uri", "state", "nonce", "code_verifier", "auth_code", "auth_response_uri", "expires_in")
    return auth.model_copy(update=dict.fromkeys(used) | given)
