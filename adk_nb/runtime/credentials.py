"""Credential requests on the wire: the request, the answers that clients send, and which of them fit.

Source of the shapes: google-adk 2.13.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from pydantic import ValidationError

from adk_nb import types
from adk_nb.auth.auth_credential import AuthCredential, AuthCredentialTypes, HttpAuth, HttpCredentials, OAuth2Auth
from adk_nb.auth.auth_tool import AuthConfig, AuthToolArguments
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.events.requests import CREDENTIAL_REQUEST as REQUEST
from adk_nb.runtime.interrupts import CALLS, PROBLEM, Interrupt, WaitingCall
from adk_nb.runtime.invocation_context import InvocationContext

logger = logging.getLogger(__name__)

WAITING = "this call waits until a person has let it in at the service; it runs once they have"
_RECEIVED = {"received": True}
"""What is stored of an answer that is no refusal."""


def placeholder() -> dict[str, Any]:
    """What stands as a call's result while it waits."""
    return {"result": WAITING}


def is_waiting(event: Event, response: types.FunctionResponse) -> bool:
    """True if `response` does not say the outcome, since its call waits for a credential."""
    return response.id in event.actions.requested_auth_configs


def request(request_id: str, auth_config: AuthConfig, calls: Sequence[WaitingCall], problem: str = "") -> types.Part:
    """The part of an event that asks for one credential, which has no secrets in it."""
    asks = AuthToolArguments(function_call_id=calls[0].call.id or "", auth_config=auth_config.public())
    args = asks.model_dump(mode="json", by_alias=True, exclude_none=True)
    args[CALLS] = [_written(one) for one in calls]
    if problem:
        args[PROBLEM] = problem
    return types.Part(function_call=types.FunctionCall(id=request_id, name=REQUEST, args=args))


def _written(one: WaitingCall) -> dict[str, Any]:
    said: dict[str, Any] = {"call": one.call.model_dump(exclude_none=True)}
    if one.decided:
        confirmation = one.decided.confirmation.model_dump(mode="json", by_alias=True, exclude_none=True)
        said["approved"] = {"confirmation": confirmation, "ran": one.decided.ran, "tool": one.decided.tool}
    return said


def take_secrets(ctx: InvocationContext, message: types.Content) -> types.Content:
    """`message` as it may be stored: what it answers to requests for credentials goes into `ctx`, and nowhere else."""
    parts = message.parts or []
    if not any(part.function_response and part.function_response.name == REQUEST for part in parts):
        return message
    kept: list[types.Part] = []
    for part in parts:
        if (response := part.function_response) and response.name == REQUEST:
            said = response.response or {}
            if said != _RECEIVED:  # as it is where a plugin hands the message on
                ctx.credential_answers[response.id or ""] = said
            stored = {"error": no[:200]} if (no := refusal(said)) else dict(_RECEIVED)
            response = types.FunctionResponse(id=response.id, name=REQUEST, response=stored)
            part = types.Part(function_response=response)
        kept.append(part)
    return message.model_copy(update={"parts": kept})


def auth_config(asked: Interrupt) -> AuthConfig:
    """What a credential interrupt asks for."""
    assert asked.auth_config is not None
    return asked.auth_config


def check_answer(asked: Interrupt, said: Mapping[str, Any]) -> None:
    """Refuse what answers no such request.

    Raises:
        InputError: It cannot be read, is of another kind, or was not given for this request. It tells no secrets.
    """
    if said == _RECEIVED:
        return
    credential, wanted = read_answer(said), auth_config(asked).auth_scheme.type_.value
    if credential and credential.oauth2:
        _check_origin(asked.auth_request, credential.oauth2)
    if refusal(said):
        return
    if credential is None:
        raise InputError(f"the answer to credential request {asked.id!r} holds no {wanted} credential; {_how(asked)}")
    oauth2 = credential.oauth2
    if wanted in ("oauth2", "openIdConnect"):
        fits = oauth2 is not None and bool(oauth2.access_token or oauth2.auth_code or oauth2.auth_response_uri)
    else:
        fits = bool(credential.api_key if wanted == "apiKey" else credential.http)
    if not fits:
        raise InputError(f"the answer to credential request {asked.id!r} holds no {wanted} credential; {_how(asked)}")


def _check_origin(asked: OAuth2Auth, given: OAuth2Auth) -> None:
    """Refuse an answer to another request, and one that went another way than was asked for."""
    uri, redirect = given.auth_response_uri, asked.redirect_uri or given.redirect_uri
    back = _state_in(uri) if uri else given.state
    if asked.state and (uri or back) and back != asked.state:
        raise InputError(f"this redirect URL does not answer this request: its `state` is another one; {_ANEW}")
    if uri and redirect and _place(uri) != _place(redirect):
        raise InputError(f"this redirect URL does not lead to {redirect}, where the answer was to go; {_ANEW}")


_ANEW = "open the link that is shown now, and paste the address that it leads to"


def _place(uri: str) -> tuple[str, ...]:
    """Where an address leads, without what is asked or said there."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # half an IPv6 address
        return (uri,)
    return parts.scheme.lower(), parts.netloc.lower(), parts.path or "/"


def _how(asked: Interrupt) -> str:
    if asked.auth_uri:
        return "open its auth_uri, and send the address that it leads to as auth_response_uri"
    return "send it as exchanged_auth_credential"


def _state_in(uri: str) -> str:
    return _query(uri).get("state", [""])[0]


def _query(uri: str) -> dict[str, list[str]]:
    try:
        return parse_qs(urlsplit(uri).query)
    except ValueError:  # half an IPv6 address, or too much of it
        return {}


def refusal(said: Mapping[str, Any]) -> str | None:
    """Why a person, or the service, said no. None: they did not."""
    if isinstance(error := said.get("error"), str) and error:
        return error
    credential = read_answer(said)
    uri = credential and credential.oauth2 and credential.oauth2.auth_response_uri
    query = _query(uri) if uri else {}
    return ": ".join(query["error"] + query.get("error_description", [])) if "error" in query else None


def read_answer(said: Mapping[str, Any]) -> AuthCredential | None:
    """An answer in any shape that ADK's clients send: an AuthConfig, its exchanged credential, or what that holds."""
    inner: Any = said
    for key in ("response", "result", "authConfig", "exchangedAuthCredential", "exchanged_auth_credential"):
        if isinstance(inner, Mapping) and key in inner:
            inner = cast(Mapping[str, Any], inner)[key]
            inner = _from_json(inner) if isinstance(inner, str) else inner
    if not isinstance(inner, Mapping):
        return None
    found = cast(dict[str, Any], inner)
    try:
        if "authType" in found or "auth_type" in found:
            return AuthCredential.model_validate(found)
        return _short(found)
    except ValidationError:  # its words may hold what was sent
        return None


def _short(found: dict[str, Any]) -> AuthCredential | None:
    if key := found.get("apiKey") or found.get("api_key"):
        return AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key=key)
    oauth2 = OAuth2Auth.model_validate(found)
    if oauth2.access_token or oauth2.auth_code or oauth2.auth_response_uri:
        return AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=oauth2)
    given = HttpCredentials.model_validate(found)
    if given.token or given.password is not None:
        http = HttpAuth(scheme="bearer" if given.token else "basic", credentials=given)
        return AuthCredential(auth_type=AuthCredentialTypes.HTTP, http=http)
    return None


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
