"""Adds credentials to HTTP requests."""

import base64
from typing import Any

from adk_nb.auth.auth_credential import AuthCredential, HttpAuth
from adk_nb.auth.auth_schemes import APIKey, APIKeyIn, AuthScheme
from adk_nb.tools.openapi_tool.operation import with_query
from adk_nb.tools.openapi_tool.styles import in_query


def with_credential(request: dict[str, Any], scheme: AuthScheme, credential: AuthCredential | None) -> dict[str, Any]:
    """Add `credential` to `request` (arguments of `WebAccess.send`) as `scheme` demands. None adds nothing.

    Source: OpenAPI 3.1, Security Scheme Object; RFC 6750 and RFC 7617 for the header.
    """
    if credential is None:
        return request
    request = {**request, "secrets": {*request.get("secrets", ()), *credential.secrets()}}
    if isinstance(scheme, APIKey):
        return _with_key(request, scheme, credential.api_key or "")
    headers = dict(request["headers"])
    if credential.http:
        headers |= credential.http.additional_headers or {}
        headers["Authorization"] = authorization(credential.http)
    elif credential.oauth2 and credential.oauth2.access_token:
        headers["Authorization"] = f"Bearer {credential.oauth2.access_token}"
    return {**request, "headers": headers}


def _with_key(request: dict[str, Any], scheme: APIKey, key: str) -> dict[str, Any]:
    if scheme.in_ is APIKeyIn.query:
        return {**request, "url": with_query(request["url"], [in_query(scheme.name, "form", True, key)])}
    headers = dict(request["headers"])
    if scheme.in_ is APIKeyIn.cookie:
        headers["Cookie"] = "; ".join([*filter(None, [headers.get("Cookie")]), f"{scheme.name}={key}"])
    else:
        headers[scheme.name] = key
    return {**request, "headers": headers}


def authorization(auth: HttpAuth) -> str:
    """Value of the header `Authorization`."""
    values = auth.credentials
    if auth.scheme.lower() == "basic":
        pair = f"{values.username or ''}:{values.password or ''}"
        return "Basic " + base64.b64encode(pair.encode()).decode()
    name = "Bearer" if auth.scheme.lower() == "bearer" else auth.scheme
    return f"{name} {values.token or ''}"
