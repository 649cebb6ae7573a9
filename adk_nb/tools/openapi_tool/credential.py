"""Credentials of an operation: chosen among the author's and the document's, and added to its requests."""

import base64
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from adk_nb.auth.auth_credential import AuthCredential, AuthCredentialTypes, HttpAuth
from adk_nb.auth.auth_schemes import APIKey, APIKeyIn, AuthScheme, HTTPBase
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.tools.openapi_tool.operation import Operation, in_query, with_headers, with_query, without_query

Credentials = AuthCredential | Mapping[str, AuthCredential]
"""A credential, or a dict of security scheme names to credentials."""


class CredentialChooser:
    """Chooses among the security requirements of a document's operations."""

    def __init__(
        self,
        operations: Iterable[Operation],
        credential: Credentials | None,
        key: str | None,
        *,
        has_other_credentials: bool,
    ) -> None:
        """Collect the schemes of `operations`.

        Args:
            operations: The operations of the document.
            credential: The author's credentials. None: the user is asked.
            key: Key of the user's stored credential. None: a key for each scheme and host.
            has_other_credentials: The author sends headers that may authenticate.

        Raises:
            ConfigurationError: The credential is not an AuthCredential, or no operation asks for it.
        """
        given: list[Any] = list(credential.values()) if isinstance(credential, Mapping) else [credential]
        for item in given:
            # Another type, such as a bare key; its value is not repeated, since it may be secret.
            if not isinstance(item, AuthCredential | None):
                raise ConfigurationError(
                    f"auth_credential must be an AuthCredential, or a dict of them by security scheme, got "
                    f"{type(item).__name__}; for a key write AuthCredential(auth_type='apiKey', api_key=...)"
                )
        self._credential = credential
        self._key = key
        self._may_ask_user = credential is not None or not has_other_credentials
        schemes = {
            name: scheme
            for operation in operations
            for requirement in operation.security
            for name, scheme in requirement.items()
        }
        self._has_several_schemes = len(schemes) > 1
        usable = {name for name, scheme in schemes.items() if self._credential_for(name, scheme)}
        unknown = set(credential) - set(schemes) if isinstance(credential, Mapping) else set[str]()
        if credential is not None and (not usable or unknown):
            raise ConfigurationError(
                f"auth_credential fits none of the document's security schemes: "
                f"{', '.join(sorted(schemes)) or 'there are none'}; write auth_scheme=... too"
            )

    def configs_for(self, operation: Operation) -> tuple[AuthConfig, ...]:
        """Configurations for all credentials that `operation` is called with.

        The first requirement that the author's credentials meet; else none, if none is required; else the first
        requirement, whose missing credentials the user is asked for.
        """
        for requirement in operation.security:
            if requirement and all(self._credential_for(name, scheme) for name, scheme in requirement.items()):
                return self._configs(operation, requirement)
        if not self._may_ask_user or not all(operation.security):
            return ()
        return self._configs(operation, operation.security[0]) if operation.security else ()

    def _credential_for(self, name: str, scheme: AuthScheme) -> AuthCredential | None:
        if isinstance(self._credential, Mapping):
            return self._credential.get(name)
        return self._credential if self._credential and _is_suitable(scheme, self._credential) else None

    def _configs(self, operation: Operation, requirement: Mapping[str, AuthScheme]) -> tuple[AuthConfig, ...]:
        configs: list[AuthConfig] = []
        for name, scheme in requirement.items():
            config = AuthConfig(
                auth_scheme=scheme, raw_auth_credential=self._credential_for(name, scheme), credential_key=""
            )
            # Several services may use the same header name: a user's key for one must not be sent to another.
            default_key = f"{config.credential_key}@{urlsplit(operation.url).netloc}"
            key = f"{self._key}/{name}" if self._key and self._has_several_schemes else self._key
            configs.append(config.model_copy(update={"credential_key": key or default_key}))
        return tuple(configs)


def _is_suitable(scheme: AuthScheme, credential: AuthCredential) -> bool:
    kind = credential.auth_type
    if isinstance(scheme, APIKey):
        return kind is AuthCredentialTypes.API_KEY
    http = credential.http
    if isinstance(scheme, HTTPBase) and scheme.scheme.lower() != "bearer":
        return http is not None and http.scheme.lower() == scheme.scheme.lower()
    has_token = kind is AuthCredentialTypes.SERVICE_ACCOUNT or bool(http and http.credentials.token)
    if isinstance(scheme, HTTPBase):
        return has_token or bool(credential.oauth2 and credential.oauth2.access_token)
    return has_token or kind in (AuthCredentialTypes.OAUTH2, AuthCredentialTypes.OPEN_ID_CONNECT)


def with_credential(request: dict[str, Any], scheme: AuthScheme, credential: AuthCredential | None) -> dict[str, Any]:
    """Add `credential` to `request` (arguments of `WebAccess.send`) as `scheme` demands. None adds nothing.

    Source: OpenAPI 3.1, Security Scheme Object; RFC 6750 and RFC 7617 for the header.
    """
    if credential is None:
        return request
    request = {**request, "secrets": {*request.get("secrets", ()), *credential.secrets()}}
    headers: dict[str, str] = {}
    if isinstance(scheme, APIKey):
        # In place of any other value of that name.
        name, key = scheme.name, credential.api_key or ""
        if scheme.in_ is APIKeyIn.query:
            url = without_query(request["url"], name)
            return {**request, "url": with_query(url, [in_query(name, "form", True, key)])}
        headers[name] = key
        if scheme.in_ is not APIKeyIn.header:
            sent: dict[str, str] = request["headers"]
            cookies = [
                pair.strip()
                for header, value in sent.items()
                if header.lower() == "cookie"
                for pair in value.split(";")
            ]
            others = [pair for pair in cookies if pair and pair.partition("=")[0].lower() != name.lower()]
            headers = {"Cookie": "; ".join([*others, f"{name}={key}"])}
    elif credential.http:
        headers = {**(credential.http.additional_headers or {}), "Authorization": authorization(credential.http)}
    elif credential.oauth2 and credential.oauth2.access_token:
        headers["Authorization"] = f"Bearer {credential.oauth2.access_token}"
    return {**request, "headers": with_headers(request["headers"], headers)}


def authorization(auth: HttpAuth) -> str:
    """Value of the header `Authorization`."""
    values = auth.credentials
    if auth.scheme.lower() == "basic":
        pair = f"{values.username or ''}:{values.password or ''}"
        return "Basic " + base64.b64encode(pair.encode()).decode()
    name = "Bearer" if auth.scheme.lower() == "bearer" else auth.scheme
    return f"{name} {values.token or ''}"
