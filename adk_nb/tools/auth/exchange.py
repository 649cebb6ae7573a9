"""Which credential a tool is let in with: the author's, a kept one, a fresh one, or none before a person is asked."""

import asyncio
from typing import Any
from weakref import WeakValueDictionary

from adk_nb import clock
from adk_nb.auth.auth_credential import AuthCredential, AuthCredentialTypes, HttpAuth, HttpCredentials, OAuth2Auth
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import CredentialError
from adk_nb.runtime.context import Context
from adk_nb.tools.auth import oauth
from adk_nb.tools.auth.service_account import token_of

LEEWAY = 60
"""Seconds. A token that holds no longer than this is fetched anew."""
_BY_TOKEN = (AuthCredentialTypes.OAUTH2, AuthCredentialTypes.OPEN_ID_CONNECT)
_locks: WeakValueDictionary[tuple[Any, ...], asyncio.Lock] = WeakValueDictionary()


async def credential_for(config: AuthConfig, context: Context) -> AuthCredential | None:
    """What a tool can show to its service now. None: a person has to be asked.

    Of several that need the same one at the same time, one fetches it.

    Raises:
        CredentialError: The service gives none, and no person could change that.
        MissingExtraError: It is got by an optional package.
        StorageError: What is kept cannot be read or written.
    """
    known = context.get_credential(config.credential_key) or config.raw_auth_credential
    if known and _is_ready(known):
        return known
    async with _one_at_a_time(config, context):
        kept = await context.load_credential(config)
        if kept and _is_ready(kept):
            return kept
        credential = await _refreshed(config, kept or known, context) or await _without_asking(config)
        if credential:
            await keep(config, credential, context)
        return credential


async def renewed(config: AuthConfig, rejected: AuthCredential, context: Context) -> AuthCredential | None:
    """Another credential in the place of one that the service has rejected, though it looked good.

    Returns:
        None: there is none; what was kept is forgotten, and a person has to be asked.

    Raises:
        CredentialError: As `credential_for`.
    """
    async with _one_at_a_time(config, context):
        kept = await context.load_credential(config)
        if kept and kept != rejected and _is_ready(kept):
            return kept  # someone else was faster
        credential = await _refreshed(config, kept or rejected, context) or await _without_asking(config)
        await keep(config, credential, context)
        return credential


async def keep(config: AuthConfig, credential: AuthCredential | None, context: Context) -> None:
    """Keep what a user's tools are let in with, for this invocation and those after it; None: forget it."""
    known = context.get_invocation_context().credential_by_key
    if credential is None:
        known.pop(config.credential_key, None)
    else:
        known[config.credential_key] = credential
    await context.save_credential(config.model_copy(update={"exchanged_auth_credential": credential}))


def _one_at_a_time(config: AuthConfig, context: Context) -> asyncio.Lock:
    service = context.get_invocation_context().credential_service
    whose = (context.session.app_name, context.user_id, config.credential_key)
    return _locks.setdefault((asyncio.get_running_loop(), id(service), *whose), asyncio.Lock())


def _is_ready(credential: AuthCredential) -> bool:
    if credential.auth_type is AuthCredentialTypes.API_KEY:
        return bool(credential.api_key)
    token = credential.oauth2
    if credential.auth_type is AuthCredentialTypes.HTTP:
        given = credential.http and credential.http.credentials
        return bool(given and (given.token or given.username)) and not (token and _is_over(token))
    return credential.auth_type in _BY_TOKEN and bool(token and token.access_token and not _is_over(token))


def _is_over(token: OAuth2Auth) -> bool:
    return token.expires_at is not None and token.expires_at - LEEWAY <= clock.now()


async def _refreshed(config: AuthConfig, old: AuthCredential | None, context: Context) -> AuthCredential | None:
    if not (old and old.oauth2 and old.oauth2.refresh_token):
        return None
    token, raw = old.oauth2, config.raw_auth_credential
    if raw and raw.oauth2:
        token = token.model_copy(update={"client_secret": raw.oauth2.client_secret})
    try:
        return as_credential(config, await oauth.fresh_token(config.auth_scheme, token))
    except CredentialError as error:
        if not error.refused:
            raise
        await keep(config, None, context)  # withdrawn: it would be refused each time
        return None


async def _without_asking(config: AuthConfig) -> AuthCredential | None:
    raw = config.raw_auth_credential
    if raw and raw.service_account:
        token, until = await token_of(raw.service_account)
        bearer = HttpAuth(scheme="bearer", credentials=HttpCredentials(token=token))
        held = OAuth2Auth(access_token=token, expires_at=until)
        return AuthCredential(auth_type=AuthCredentialTypes.HTTP, http=bearer, oauth2=held)
    if raw and raw.oauth2 and raw.oauth2.client_secret and oauth.asks_nobody(config.auth_scheme):
        return as_credential(config, await oauth.token_for_client(config.auth_scheme, raw.oauth2))
    return None


def as_credential(config: AuthConfig, token: OAuth2Auth) -> AuthCredential:
    """A token as a credential of the kind that `config` is about, without the client's secret if `config` has it."""
    raw = config.raw_auth_credential
    if raw and raw.oauth2:
        token = token.model_copy(update={"client_secret": None})
    return as_asked(config, token)


def as_asked(config: AuthConfig, client: OAuth2Auth) -> AuthCredential:
    """A client that is on its way to a token as a credential of that kind."""
    raw = config.raw_auth_credential
    kind = raw.auth_type if raw else AuthCredentialTypes(config.auth_scheme.type_.value)
    return AuthCredential(auth_type=kind, oauth2=client)
