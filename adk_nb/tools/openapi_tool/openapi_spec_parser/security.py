"""How an OpenAPI document wants its operations' callers to be let in."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import urljoin

from adk_nb.auth.auth_schemes import AuthScheme, AuthSchemeType, HTTPBase, OAuth2
from adk_nb.errors import ConfigurationError
from adk_nb.tools.openapi_tool.auth.auth_helpers import dict_to_auth_scheme

logger = logging.getLogger(__name__)

Json = dict[str, Any]

_ADDRESSES = ("authorizationUrl", "tokenUrl", "refreshUrl", "openIdConnectUrl")


class Security:
    """Reads what operations say of it, and what the document says for those that say nothing."""

    def __init__(self, document: Mapping[str, Any], resolved: Callable[[Any], Json]) -> None:
        """`resolved`: what a value is, or refers to."""
        self._resolved = resolved
        self._every: Any = document.get("security")
        components: Json = document.get("components") or {}
        self._said: Json = resolved(components.get("securitySchemes"))

    def of(self, operation: Json, server: str) -> tuple[Mapping[str, AuthScheme], ...]:
        """The ways in, in order, each with all that it takes. `server`: what addresses are relative to.

        Raises:
            ConfigurationError: A scheme is none.
        """
        ways: list[Json] = operation.get("security", self._every) or []
        return tuple(
            {name: scheme for name in way if (scheme := self._scheme(name, server)) is not None} for way in ways
        )

    def _scheme(self, name: str, server: str) -> AuthScheme | None:
        said = self._resolved(self._said.get(name))
        if not said:
            logger.warning("the OpenAPI document wants to be shown %r and does not say how: it is not shown", name)
            return None
        if said.get("type") == "mutualTLS":
            return None  # shown by the connection: ssl_verify takes a context with a certificate
        try:
            scheme = dict_to_auth_scheme(_absolute(said, server))
        except ConfigurationError as error:
            raise ConfigurationError(f"securityScheme {name!r} of the OpenAPI document: {error}") from error
        if isinstance(scheme, OAuth2) and not (scheme.flows.authorization_code or scheme.flows.client_credentials):
            # No flow that is gone through here: a token is got elsewhere, and shown as any other.
            return HTTPBase(type=AuthSchemeType.http, scheme="bearer", description=scheme.description)
        return scheme


def _absolute(value: Json, server: str) -> Json:
    return {
        key: urljoin(f"{server}/", one)
        if key in _ADDRESSES and isinstance(one, str)
        else _absolute(cast(Json, one), server)
        if isinstance(one, dict)
        else one
        for key, one in value.items()
    }
