"""The one-use record of a request for a credential: which calls wait, what a person is asked, and what they answered.

Source of the shapes: google-adk 2.13.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

from pydantic import ValidationError

from adk_nb import types
from adk_nb.auth.auth_credential import AuthCredential, AuthCredentialTypes, HttpAuth, HttpCredentials, OAuth2Auth
from adk_nb.auth.auth_tool import AuthConfig, AuthToolArguments
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.events.requests import CREDENTIAL_REQUEST as REQUEST
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime.invocation_context import Decided, InvocationContext
from adk_nb.runtime.rewind import surviving

logger = logging.getLogger(__name__)

WAITING = "this call waits until a person has let it in at the service; it runs once they have"
TOOLSET = "_adk_toolset_auth_"
"""The id of the call that waits starts so where it is none, but a toolset, which has to be let in before it can say
what it has. Source: google-adk 2.13."""
NODE = "wf_auth:"
"""The id of the call that waits starts so where it is none, but a node of a graph. Source: google-adk 2.13."""
_CALLS = "calls"
"""Key of a request beside those of ADK: the calls that wait, and what a person has approved of them."""
_PROBLEM = "problem"
"""Key of a request beside those of ADK: why it is asked again."""
_RECEIVED = {"received": True}
"""What is stored of an answer that is no refusal."""


@dataclass(frozen=True, kw_only=True)
class WaitingCall:
    """A call that waits for a credential."""

    call: types.FunctionCall
    decided: Decided | None = None
    """What a person has approved of it already."""


@dataclass(frozen=True, kw_only=True)
class PendingCredential:
    """A request for a credential that nobody has answered yet."""

    id: str
    """What an answer names."""
    auth_config: AuthConfig
    """Without secrets."""
    calls: list[WaitingCall]
    author: str
    """The agent whose calls they are."""
    problem: str = ""
    """Why it is asked again; empty if it is not."""
    branch: str | None = None
    """Where its agent works."""

    @property
    def of_toolset(self) -> bool:
        """No call waits, but a toolset: nothing but the answer settles it."""
        return any(is_of_toolset(one.call) for one in self.calls)

    @property
    def asked(self) -> OAuth2Auth:
        """What a person needs in order to answer; empty for a key or a password."""
        credential = self.auth_config.exchanged_auth_credential
        return (credential and credential.oauth2) or OAuth2Auth()

    @property
    def auth_uri(self) -> str | None:
        """The address at which a person lets the tool in. None: a key, a token or a password is asked for."""
        return self.asked.auth_uri


def placeholder() -> dict[str, Any]:
    """What stands as a call's result while it waits."""
    return {"result": WAITING}


def is_of_toolset(call: types.FunctionCall) -> bool:
    """Whether it is none, and stands for a toolset, or for a node of a graph."""
    return (call.id or "").startswith((TOOLSET, NODE))


def is_waiting(event: Event, response: types.FunctionResponse) -> bool:
    """True if `response` does not say the outcome, since its call waits for a credential."""
    return response.id in event.actions.requested_auth_configs


def request(request_id: str, auth_config: AuthConfig, calls: Sequence[WaitingCall], problem: str = "") -> types.Part:
    """The part of an event that asks for one credential, which has no secrets in it."""
    asks = AuthToolArguments(function_call_id=calls[0].call.id or "", auth_config=auth_config.public())
    args = asks.model_dump(mode="json", by_alias=True, exclude_none=True)
    args[_CALLS] = [_written(one) for one in calls]
    if problem:
        args[_PROBLEM] = problem
    return types.Part(function_call=types.FunctionCall(id=request_id, name=REQUEST, args=args))


def _written(one: WaitingCall) -> dict[str, Any]:
    said: dict[str, Any] = {"call": one.call.model_dump(exclude_none=True)}
    if one.decided:
        confirmation = one.decided.confirmation.model_dump(mode="json", by_alias=True, exclude_none=True)
        said["approved"] = {"confirmation": confirmation, "ran": one.decided.ran, "tool": one.decided.tool}
    return said


def pending(events: Iterable[Event]) -> list[PendingCredential]:
    """The requests that are open, oldest first."""
    open_now: dict[str, PendingCredential] = {}
    answered: list[str] = []
    for event in surviving(events):
        for key in answered:
            open_now.pop(key, None)
        answered = [one.id or "" for one in event.get_function_responses() if one.name == REQUEST] if open_now else []
        answered = [key for key in answered if key in open_now and open_now[key].of_toolset] if answered else answered
        # Only the runtime marks a request as long-running: one that a model wrote is not a request.
        later = event.long_running_tool_ids or ()
        for call in event.get_function_calls() if later else ():
            if call.name == REQUEST and call.id in later:
                asked = _pending(call, event)
                _settle(open_now, {one.call.id for one in asked.calls})  # asked again, the newest request stands
                open_now[asked.id] = asked
        if open_now and not (event.content and event.content.role == "model"):
            responses = event.get_function_responses()
            _settle(open_now, {one.id for one in responses if one.name != REQUEST and not is_waiting(event, one)})
    return list(open_now.values())


def _settle(open_now: dict[str, PendingCredential], done: set[str | None]) -> None:
    for key, asked in list(open_now.items()):
        if all(one.call.id in done for one in asked.calls):
            del open_now[key]
        elif any(one.call.id in done for one in asked.calls):
            left = [one for one in asked.calls if one.call.id not in done]
            open_now[key] = replace(asked, calls=left)


def _pending(call: types.FunctionCall, event: Event) -> PendingCredential:
    args = call.args or {}
    return PendingCredential(
        id=call.id or "",
        auth_config=AuthConfig.model_validate(args.get("authConfig")),
        calls=[_read(one) for one in args.get(_CALLS, [])],
        author=event.author,
        problem=str(args.get(_PROBLEM, "")),
        branch=event.branch,
    )


def _read(said: dict[str, Any]) -> WaitingCall:
    approved = said.get("approved")
    decided = approved and Decided(
        confirmation=ToolConfirmation.model_validate(approved["confirmation"]),
        ran=approved["ran"] is True,
        tool=approved["tool"],
    )
    return WaitingCall(call=types.FunctionCall.model_validate(said["call"]), decided=decided or None)


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


def check_answer(asked: PendingCredential, said: Mapping[str, Any]) -> None:
    """Refuse what answers no such request.

    Raises:
        InputError: It cannot be read, is of another kind, or was not given for this request. It tells no secrets.
    """
    if said == _RECEIVED:
        return
    credential, wanted = read_answer(said), asked.auth_config.auth_scheme.type_.value
    if credential and credential.oauth2:
        _check_origin(asked.asked, credential.oauth2)
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


def _how(asked: PendingCredential) -> str:
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


def answer(request_id: str, response: dict[str, Any]) -> types.Part:
    """The part of a user's message that answers a request."""
    return types.Part(function_response=types.FunctionResponse(id=request_id, name=REQUEST, response=response))


def use_of(request_id: str) -> str:
    """What a session service consumes when a request is answered."""
    return f"credential:{request_id}"


def _from_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
