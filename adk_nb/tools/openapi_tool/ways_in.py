"""Which credentials an operation of a web service is called with, by what its author has and what its document asks."""

from collections.abc import Iterable, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from adk_nb.auth.auth_credential import AuthCredential, AuthCredentialTypes
from adk_nb.auth.auth_schemes import APIKey, AuthScheme, HTTPBase
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.tools.openapi_tool.operation import Operation

Credentials = AuthCredential | Mapping[str, AuthCredential]
"""One credential, or one for each security scheme: its name in the document -> credential."""


class WaysIn:
    """Chooses among the ways that a document's operations offer."""

    def __init__(
        self, operations: Iterable[Operation], credential: Credentials | None, key: str | None, *, shown: bool
    ) -> None:
        """`key`: under which a user's credential is kept. `shown`: the author sends headers that may let it in.

        Raises:
            ConfigurationError: A credential is given that no operation asks for, or what is none.
        """
        _check_kind(credential)
        self._credential = credential
        self._key = key
        self._asks = credential is not None or not shown
        known = {name: scheme for one in operations for way in one.security for name, scheme in way.items()}
        self._several = len(known) > 1
        given = {name for name, scheme in known.items() if self._given(name, scheme)}
        unknown = set(credential) - set(known) if isinstance(credential, Mapping) else set[str]()
        if credential is not None and (not given or unknown):
            raise ConfigurationError(
                f"auth_credential says what to show, and not where: the document's security schemes are "
                f"{', '.join(sorted(known)) or 'none'}, and it fits none of them; write auth_scheme=... too"
            )

    def of(self, operation: Operation) -> tuple[AuthConfig, ...]:
        """What `operation` is called with.

        The first way for which all is there; else nothing, if nothing is needed; else the first way, where a person is
        asked for what is missing.
        """
        for way in operation.security:
            if way and all(self._given(name, scheme) for name, scheme in way.items()):
                return self._configs(operation, way)
        if not self._asks or not all(operation.security):
            return ()
        return self._configs(operation, operation.security[0]) if operation.security else ()

    def _given(self, name: str, scheme: AuthScheme) -> AuthCredential | None:
        if isinstance(self._credential, Mapping):
            return self._credential.get(name)
        return self._credential if self._credential and _fits(scheme, self._credential) else None

    def _configs(self, operation: Operation, way: Mapping[str, AuthScheme]) -> tuple[AuthConfig, ...]:
        made: list[AuthConfig] = []
        for name, scheme in way.items():
            config = AuthConfig(auth_scheme=scheme, raw_auth_credential=self._given(name, scheme), credential_key="")
            # Two services may well ask for a key in a header of one name: a user's key for one is not for the other.
            own = f"{config.credential_key}@{urlsplit(operation.url).netloc}"
            key = f"{self._key}/{name}" if self._key and self._several else self._key
            made.append(config.model_copy(update={"credential_key": key or own}))
        return tuple(made)


def _check_kind(credential: Any) -> None:
    """Refuse what is no credential, such as a key itself; it is not repeated, since it may be secret."""
    held: list[Any] = list(cast(Any, credential).values()) if isinstance(credential, Mapping) else [credential]
    for one in held:
        if not isinstance(one, AuthCredential | None):
            raise ConfigurationError(
                f"auth_credential is an AuthCredential, or a dict of those by security scheme, and not "
                f"{type(one).__name__}; for a key write AuthCredential(auth_type='apiKey', api_key=...)"
            )


def _fits(scheme: AuthScheme, credential: AuthCredential) -> bool:
    kind = credential.auth_type
    if isinstance(scheme, APIKey):
        return kind is AuthCredentialTypes.API_KEY
    http, by_token = credential.http, kind is AuthCredentialTypes.SERVICE_ACCOUNT
    if isinstance(scheme, HTTPBase) and scheme.scheme.lower() != "bearer":
        return http is not None and http.scheme.lower() == scheme.scheme.lower()
    by_token = by_token or bool(http and http.credentials.token)
    if isinstance(scheme, HTTPBase):
        return by_token or bool(credential.oauth2 and credential.oauth2.access_token)
    return by_token or kind in (AuthCredentialTypes.OAUTH2, AuthCredentialTypes.OPEN_ID_CONNECT)
