"""Finds the credential for a tool: the author's, a stored one or a new one; None if the user must be asked."""

import asyncio
import calendar
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from adk_nb import clock, sync
from adk_nb.auth.auth_credential import (
    AuthCredential,
    AuthCredentialTypes,
    HttpAuth,
    HttpCredentials,
    OAuth2Auth,
    ServiceAccount,
)
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import CredentialError
from adk_nb.lazy import require
from adk_nb.runtime.context import Context
from adk_nb.tools.auth import oauth

LEEWAY = 60
"""Seconds before expiry at which a token is renewed."""
_GOOGLE_AUTH = "'google-auth[requests]'"
_DEFAULT_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
_BY_TOKEN = (AuthCredentialTypes.OAUTH2, AuthCredentialTypes.OPEN_ID_CONNECT)
_locks: WeakValueDictionary[tuple[Any, ...], asyncio.Lock] = WeakValueDictionary()  # a lock lives while it is used


async def find_credential(config: AuthConfig, context: Context) -> AuthCredential | None:
    """The credential that a tool can use now. None: the user has to be asked.

    Concurrent requests for the same credential fetch it once.

    Raises:
        CredentialError: The service issues none; asking the user would not help.
        MissingExtraError: It needs an optional package.
        StorageError: Stored credentials cannot be read or written.
    """
    configured = context.get_credential(config.credential_key) or config.raw_auth_credential
    if configured and _is_ready(configured):
        return configured
    async with _lock(config, context):
        stored = await context.load_credential(config)
        if stored and _is_ready(stored):
            return stored
        credential = await _refresh(config, stored or configured, context) or await _fetch_unattended(config)
        if credential:
            await store(config, credential, context)
        return credential


async def renew_credential(config: AuthConfig, rejected: AuthCredential, context: Context) -> AuthCredential | None:
    """Replace a credential that the service rejected before it expired.

    Returns:
        None: there is no other; the stored one was deleted, and the user has to be asked.

    Raises:
        CredentialError: As for `find_credential`.
    """
    async with _lock(config, context):
        stored = await context.load_credential(config)
        if stored and stored != rejected and _is_ready(stored):
            return stored  # renewed by a concurrent call
        credential = await _refresh(config, stored or rejected, context) or await _fetch_unattended(config)
        await store(config, credential, context)
        return credential


async def store(config: AuthConfig, credential: AuthCredential | None, context: Context) -> None:
    """Store a user's credential for this invocation and later ones; None deletes it."""
    run_credentials = context.get_invocation_context().credential_by_key
    if credential is None:
        run_credentials.pop(config.credential_key, None)
    else:
        run_credentials[config.credential_key] = credential
    await context.save_credential(config.model_copy(update={"exchanged_auth_credential": credential}))


def _lock(config: AuthConfig, context: Context) -> asyncio.Lock:
    service = context.get_invocation_context().credential_service
    owner = (context.session.app_name, context.user_id, config.credential_key)
    # By loop: an asyncio lock cannot be shared between event loops.
    return _locks.setdefault((asyncio.get_running_loop(), id(service), *owner), asyncio.Lock())


def _is_ready(credential: AuthCredential) -> bool:
    if credential.auth_type is AuthCredentialTypes.API_KEY:
        return bool(credential.api_key)
    token = credential.oauth2
    if credential.auth_type is AuthCredentialTypes.HTTP:
        values = credential.http and credential.http.credentials
        return bool(values and (values.token or values.username)) and not (token and _is_expired(token))
    return credential.auth_type in _BY_TOKEN and bool(token and token.access_token and not _is_expired(token))


def _is_expired(token: OAuth2Auth) -> bool:
    return token.expires_at is not None and token.expires_at - LEEWAY <= clock.now()


async def _refresh(config: AuthConfig, old: AuthCredential | None, context: Context) -> AuthCredential | None:
    if not (old and old.oauth2 and old.oauth2.refresh_token):
        return None
    token, raw = old.oauth2, config.raw_auth_credential
    if raw and raw.oauth2:
        # Stored tokens have no client secret; the author's configuration does.
        token = token.model_copy(update={"client_secret": raw.oauth2.client_secret})
    try:
        return as_credential(config, await oauth.refresh_token(config.auth_scheme, token))
    except CredentialError as error:
        if not error.refused:
            raise
        # Revoked or expired: the server would refuse it each time.
        await store(config, None, context)
        return None


async def _fetch_unattended(config: AuthConfig) -> AuthCredential | None:
    raw = config.raw_auth_credential
    if raw and raw.service_account:
        token, expires_at = await fetch_token(raw.service_account)
        bearer = HttpAuth(scheme="bearer", credentials=HttpCredentials(token=token))
        token_info = OAuth2Auth(access_token=token, expires_at=expires_at)
        return AuthCredential(auth_type=AuthCredentialTypes.HTTP, http=bearer, oauth2=token_info)
    if raw and raw.oauth2 and raw.oauth2.client_secret and oauth.is_unattended(config.auth_scheme):
        return as_credential(config, await oauth.token_for_client(config.auth_scheme, raw.oauth2))
    return None


def as_credential(config: AuthConfig, token: OAuth2Auth) -> AuthCredential:
    """A token as a credential for `config`, without the client's secret if `config` has it."""
    raw = config.raw_auth_credential
    if raw and raw.oauth2:
        token = token.model_copy(update={"client_secret": None})
    return as_client_credential(config, token)


def as_client_credential(config: AuthConfig, client: OAuth2Auth) -> AuthCredential:
    """An OAuth client, with or without a token, as a credential for `config`."""
    raw = config.raw_auth_credential
    kind = raw.auth_type if raw else AuthCredentialTypes(config.auth_scheme.type_.value)
    return AuthCredential(auth_type=kind, oauth2=client)


async def fetch_token(account: ServiceAccount) -> tuple[str, int | None]:
    """Fetch a token. The second value is its expiry in seconds since the epoch (UTC), if that is known.

    Raises:
        CredentialError: Google issues none, or the key cannot be read.
    """
    if key := account.service_account_credential:
        oauth.refuse_insecure(key.token_uri)

    def fetch() -> tuple[str, int | None]:
        """Ask Google, in a thread: google-auth has no async requests."""
        google = partial(require, package=_GOOGLE_AUTH)
        auth_error: Any = google("google.auth.exceptions").GoogleAuthError
        request: Any = google("google.auth.transport.requests").Request()
        scopes = account.scopes or _DEFAULT_SCOPES
        try:
            if not key and account.use_id_token:
                return google("google.oauth2.id_token").fetch_id_token(request, account.audience), None
            if not key:
                credentials = google("google.auth").default(scopes=scopes)[0]
            else:
                kinds: Any = google("google.oauth2.service_account")
                info = key.model_dump(by_alias=False) | {"type": key.type_}
                if account.use_id_token:
                    new = partial(kinds.IDTokenCredentials.from_service_account_info, target_audience=account.audience)
                else:
                    new = partial(kinds.Credentials.from_service_account_info, scopes=scopes)
                credentials = new(info)
            credentials.refresh(request)
        except auth_error as error:
            raise CredentialError(f"no token for the service account: {type(error).__name__}") from None
        except ValueError:  # its message may contain the key
            raise CredentialError("the key of the service account cannot be read", refused=True) from None
        expiry = credentials.expiry
        return credentials.token, calendar.timegm(expiry.timetuple()) if expiry else None

    return await sync.blocking(fetch, thread=True)
