"""Tokens for Google service accounts, through google-auth."""

import calendar
from typing import Any

from adk_nb import sync
from adk_nb.auth.auth_credential import ServiceAccount
from adk_nb.errors import CredentialError
from adk_nb.lazy import require
from adk_nb.tools.auth.oauth import refuse_insecure

_PACKAGE = "'google-auth[requests]'"
_DEFAULT_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]


async def fetch_token(account: ServiceAccount) -> tuple[str, int | None]:
    """Fetch a token, and its expiry in seconds since the epoch (UTC); None if that is not known.

    Raises:
        CredentialError: Google issues none, or the key cannot be read.
    """
    if key := account.service_account_credential:
        refuse_insecure(key.token_uri)
    return await sync.blocking(lambda: _token(account), thread=True)


def _token(account: ServiceAccount) -> tuple[str, int | None]:
    auth_error: Any = require("google.auth.exceptions", package=_PACKAGE).GoogleAuthError
    request: Any = require("google.auth.transport.requests", package=_PACKAGE).Request()
    try:
        if account.use_id_token and not account.service_account_credential:
            id_token = require("google.oauth2.id_token", package=_PACKAGE)
            return id_token.fetch_id_token(request, account.audience), None
        credentials = _credentials(account)
        credentials.refresh(request)
    except auth_error as error:
        raise CredentialError(f"no token for the service account: {type(error).__name__}") from None
    except ValueError:  # its message may contain the key
        raise CredentialError("the key of the service account cannot be read", refused=True) from None
    expiry = credentials.expiry
    return credentials.token, calendar.timegm(expiry.timetuple()) if expiry else None


def _credentials(account: ServiceAccount) -> Any:
    if not (key := account.service_account_credential):
        return require("google.auth", package=_PACKAGE).default(scopes=account.scopes or _DEFAULT_SCOPES)[0]
    service_account: Any = require("google.oauth2.service_account", package=_PACKAGE)
    info = key.model_dump(by_alias=False) | {"type": key.type_}
    if account.use_id_token:
        return service_account.IDTokenCredentials.from_service_account_info(info, target_audience=account.audience)
    return service_account.Credentials.from_service_account_info(info, scopes=account.scopes or _DEFAULT_SCOPES)
