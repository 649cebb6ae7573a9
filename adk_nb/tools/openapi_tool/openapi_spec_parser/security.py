"""Security requirements of the operations in an OpenAPI document."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import urljoin

from adk_nb.auth.auth_schemes import AuthScheme, AuthSchemeType, HTTPBase, OAuth2
from adk_nb.errors import ConfigurationError
from adk_nb.tools.openapi_tool.auth.auth_helpers import dict_to_auth_scheme

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_URL_KEYS = ("authorizationUrl", "tokenUrl", "refreshUrl", "openIdConnectUrl")


class Security:
    """Reads the security requirements of operations, and the document's default."""

    def __init__(self, document: Mapping[str, Any], resolve: Callable[[Any], Json]) -> None:
        """`resolve`: resolves references."""
        self._resolve = resolve
        self._default: Any = document.get("security")
        components: Json = document.get("components") or {}
        self._schemes: Json = resolve(components.get("securitySchemes"))

    def requirements(self, operation: Json, server: str) -> tuple[Mapping[str, AuthScheme], ...]:
        """Alternative requirements in order, each a dict of scheme names to schemes. `server`: base of relative URLs.

        Raises:
            ConfigurationError: A scheme is invalid.
        """
        # An empty list of an operation overrides the document's default: no credential is needed.
        alternatives: list[Json] = operation.get("security", self._default) or []
        return tuple(
            {name: scheme for name in requirement if (scheme := self._scheme(name, server)) is not None}
            for requirement in alternatives
        )

    def _scheme(self, name: str, server: str) -> AuthScheme | None:
        definition = self._resolve(self._schemes.get(name))
        if not definition:
            logger.warning("the OpenAPI document wants to be shown %r and does not say how: it is not shown", name)
            return None
        if definition.get("type") == "mutualTLS":
            return None  # part of the connection: ssl_verify takes a context with a client certificate
        try:
            scheme = dict_to_auth_scheme(_absolute(definition, server))
        except ConfigurationError as error:
            raise ConfigurationError(f"securityScheme {name!r} of the OpenAPI document: {error}") from error
        if isinstance(scheme, OAuth2) and not (scheme.flows.authorization_code or scheme.flows.client_credentials):
            # No supported flow: the token comes from elsewhere, and is sent as a bearer token.
            return HTTPBase(type=AuthSchemeType.http, scheme="bearer", description=scheme.description)
        return scheme


def _absolute(value: Json, server: str) -> Json:
    return {
        key: urljoin(f"{server}/", inner)
        if key in _URL_KEYS and isinstance(inner, str)
        else _absolute(cast(Json, inner), server)
        if isinstance(inner, dict)
        else inner
        for key, inner in value.items()
    }
