"""Credential requests on the wire: the request, the answers that clients send, and their checks.

Source of the shapes: google-adk 2.13.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from pydantic import ValidationError

from adk_nb import types
from adk_nb.auth.auth_credential import AuthCredential, AuthCredentialTypes, HttpAuth, HttpCredentials, OAuth2Auth
from adk_nb.auth.auth_tool import AuthConfig, AuthToolArguments
from adk_nb.errors import InputError
from adk_nb.events.requests import CREDENTIAL_REQUEST as REQUEST
from adk_nb.runtime.interrupts import CALLS, PROBLEM, Interrupt, WaitingCall
from adk_nb.runtime.invocation_context import InvocationContext
from adk_nb.wire import json_or_text

logger = logging.getLogger(__name__)

PENDING = "this call waits for a credential from the user; it runs once that is given"
_RECEIVED = {"received": True}
"""Stored instead of an answer, so that no secret is in the session."""


def placeholder() -> dict[str, Any]:
    """The result of a call while its credential request is pending."""
    return {"result": PENDING}


def request(request_id: str, auth_config: AuthConfig, calls: Sequence[WaitingCall], problem: str = "") -> types.Part:
    """The part that requests one credential; it has no secrets."""
    arguments = AuthToolArguments(function_call_id=calls[0].call.id or "", auth_config=auth_config.public())
    args = arguments.model_dump(mode="json", by_alias=True, exclude_none=True)
    args[CALLS] = []
    for waiting_call in calls:
        fields: dict[str, Any] = {"call": waiting_call.call.model_dump(exclude_none=True)}
        if decided := waiting_call.decided:
            confirmation = decided.confirmation.model_dump(mode="json", by_alias=True, exclude_none=True)
            fields["approved"] = {
                "confirmation": confirmation,
                "ran": decided.ran,
                "tool": decided.tool_fingerprint,
            }
        args[CALLS].append(fields)
    if problem:
        args[PROBLEM] = problem
    return types.Part(function_call=types.FunctionCall(id=request_id, name=REQUEST, args=args))


def take_secrets(ctx: InvocationContext, message: types.Content) -> types.Content:
    """Move the credentials in a message to `ctx.credential_answers`, and return the message without them."""
    parts = message.parts or []
    if not any(part.function_response and part.function_response.name == REQUEST for part in parts):
        return message
    public_parts: list[types.Part] = []
    for part in parts:
        if (response := part.function_response) and response.name == REQUEST:
            answer = response.response or {}
            if answer != _RECEIVED:  # else a plugin returned a message whose secrets are removed already
                ctx.credential_answers[response.id or ""] = answer
            # A refusal is no secret, and the model needs the reason.
            stored = {"error": reason[:200]} if (reason := refusal(answer)) else dict(_RECEIVED)
            response = types.FunctionResponse(id=response.id, name=REQUEST, response=stored)
            part = types.Part(function_response=response)
        public_parts.append(part)
    return message.model_copy(update={"parts": public_parts})


def auth_config(interrupt: Interrupt) -> AuthConfig:
    """The auth config of a credential interrupt."""
    assert interrupt.auth_config is not None
    return interrupt.auth_config


def check_answer(interrupt: Interrupt, answer: Mapping[str, Any]) -> None:
    """Check the answer to a credential request.

    Raises:
        InputError: It cannot be parsed, has another auth scheme, or answers another request. Its text has no secrets.
    """
    if answer == _RECEIVED:
        return
    credential, scheme = read_answer(answer), auth_config(interrupt).auth_scheme.type_.value
    # Before the refusal: a forged redirect with `error=...` must not refuse the open request.
    if credential and credential.oauth2:
        _check_origin(interrupt.auth_request, credential.oauth2)
    if refusal(answer):
        return
    has_credential = False
    if credential and scheme in ("oauth2", "openIdConnect"):
        oauth2 = credential.oauth2 or OAuth2Auth()
        has_credential = bool(oauth2.access_token or oauth2.auth_code or oauth2.auth_response_uri)
    elif credential:
        has_credential = bool(credential.api_key if scheme == "apiKey" else credential.http)
    if not has_credential:
        hint = "send it as exchanged_auth_credential"
        if interrupt.auth_uri:
            hint = "open its auth_uri, and send the address that it leads to as auth_response_uri"
        raise InputError(f"the answer to credential request {interrupt.id!r} has no {scheme} credential; {hint}")


def _check_origin(request: OAuth2Auth, answer: OAuth2Auth) -> None:
    """Refuse a redirect URL whose `state` or redirect URI is not the request's (CSRF; RFC 6749, section 10.12)."""
    uri, redirect = answer.auth_response_uri, request.redirect_uri or answer.redirect_uri
    state = _query(uri).get("state", [""])[0] if uri else answer.state
    if request.state and (uri or state) and state != request.state:
        raise InputError(f"this redirect URL answers another request: its `state` does not match; {_RETRY_HINT}")
    if uri and redirect and _endpoint(uri) != _endpoint(redirect):
        raise InputError(f"this redirect URL does not begin with {redirect}, the redirect_uri asked for; {_RETRY_HINT}")


_RETRY_HINT = "open the link that is shown now, and paste the address that it leads to"


def _endpoint(uri: str) -> tuple[str, ...]:
    """Scheme, host and path of a URL, without query and fragment."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # such as an unclosed bracket of an IPv6 address
        return (uri,)
    return parts.scheme.lower(), parts.netloc.lower(), parts.path or "/"


def _query(uri: str) -> dict[str, list[str]]:
    try:
        return parse_qs(urlsplit(uri).query)
    except ValueError:  # as above
        return {}


def refusal(answer: Mapping[str, Any]) -> str | None:
    """The reason why the user or the service refused. None: not a refusal."""
    if isinstance(error := answer.get("error"), str) and error:
        return error
    credential = read_answer(answer)
    uri = credential and credential.oauth2 and credential.oauth2.auth_response_uri
    query = _query(uri) if uri else {}
    return ": ".join(query["error"] + query.get("error_description", [])) if "error" in query else None


def read_answer(answer: Mapping[str, Any]) -> AuthCredential | None:
    """Parse an answer in any shape that ADK's clients send: an AuthConfig, its exchanged credential, or its fields."""
    value: Any = answer
    # Clients nest these keys in this order, and send some of them as JSON text.
    for key in ("response", "result", "authConfig", "exchangedAuthCredential", "exchanged_auth_credential"):
        if isinstance(value, Mapping) and key in value:
            value = cast(Mapping[str, Any], value)[key]
            value = json_or_text(value) if isinstance(value, str) else value
    if not isinstance(value, Mapping):
        return None
    fields = cast(dict[str, Any], value)
    try:
        if "authType" in fields or "auth_type" in fields:
            return AuthCredential.model_validate(fields)
        if key := fields.get("apiKey") or fields.get("api_key"):
            return AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key=key)
        oauth2 = OAuth2Auth.model_validate(fields)
        if oauth2.access_token or oauth2.auth_code or oauth2.auth_response_uri:
            return AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=oauth2)
        credentials = HttpCredentials.model_validate(fields)
        if credentials.token or credentials.password is not None:
            http = HttpAuth(scheme="bearer" if credentials.token else "basic", credentials=credentials)
            return AuthCredential(auth_type=AuthCredentialTypes.HTTP, http=http)
    except ValidationError:  # not logged: its message may contain the secret
        pass
    return None
