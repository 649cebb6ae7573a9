"""What a person answers to a request for a credential, as the runtime takes it."""

import getpass
from collections.abc import Sequence
from typing import Any

from adk_nb import types
from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_schemes import APIKey, HTTPBase
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.notebook.view.credential_words import needs, way
from adk_nb.notebook.view.event_words import Verdict
from adk_nb.runtime.credentials import check_answer
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import CREDENTIALS, Interrupt, answer

Given = str | dict[str, Any] | AuthCredential | None
ASK = "\0ask"
"""In the place of what is given: a person types it."""


def verdict_of(given: Given) -> Verdict:
    """How a card that asked for it stands from now on."""
    return Verdict("refused" if given is None else "given")


def open_words(asked: Sequence[Interrupt], magic: str) -> str:
    """That nothing can be asked while credentials are wanted, and what to type."""
    typed = way(magic)
    told = "; ".join(needs(one) for one in asked)
    return f"{told}; answer with {typed}, or refuse with {typed[:-1]}None)"


def one_of(asked: Sequence[Interrupt], which: str | int | None, session: str) -> Interrupt:
    """The request with that id or at that place, 1 for the oldest; None: the oldest.

    Raises:
        InputError: There is none.
    """
    if not asked:
        raise InputError(f"no tool waits to be let in, in session {session!r}")
    for number, one in enumerate(asked, 1):
        if which in (None, one.id, number):
            return one
    raise InputError(f"credential request {which!r} is not open; it was answered already, or there never was one")


def typed_in(one: Interrupt) -> str:
    """What a person types or pastes into a field that does not show it.

    Raises:
        InputError: There is nobody to ask, or nothing was typed.
    """
    asks = "the address that the page led to: " if one.auth_uri else f"{needs(one)}: "
    try:
        given = getpass.getpass(asks).strip()
    except (EOFError, OSError, NotImplementedError) as error:
        raise InputError("nobody can be asked here; write chat.submit_credential('...')") from error
    if not given:
        raise InputError("nothing was typed; to refuse, write chat.submit_credential(None)")
    return given


def response_for(one: Interrupt, given: Given) -> dict[str, Any]:
    """`given` as an answer to `one`: text is read as what that asks for.

    Raises:
        InputError: It does not answer `one`.
    """
    response = _read(one, given)
    check_answer(one, response)
    return response


def message(key: str, given: Given, events: Sequence[Event], session: str) -> types.Content:
    """What answers the request `key` of a session with `events`. Raises as `one_of` and `response_for`."""
    one = one_of(open_interrupts(events, CREDENTIALS), key, session)
    return types.Content(role="user", parts=[answer(one, response_for(one, given))])


def _read(one: Interrupt, given: Given) -> dict[str, Any]:
    if given is None:
        return {"error": "access_denied"}
    if isinstance(given, AuthCredential):
        return {"exchangedAuthCredential": given.model_dump(mode="json", by_alias=True, exclude_none=True)}
    if isinstance(given, dict):
        return given
    scheme = one.auth_scheme
    if isinstance(scheme, APIKey):
        return {"apiKey": given}
    if isinstance(scheme, HTTPBase):
        name, colon, password = given.partition(":")
        if scheme.scheme.lower() != "basic":
            return {"token": given}
        if not colon:  # what was given is not repeated: it may be the password
            raise InputError(f"{needs(one)}, and there is no colon in what was given; write it as name:password")
        return {"username": name, "password": password}
    return {"authResponseUri": given} if "://" in given else {"authCode": given}
