"""ADK's service that keeps credentials in a session's state: known by name, so that one is told why there is none."""

from typing import NoReturn

from adk_nb.errors import ConfigurationError


class SessionStateCredentialService:
    """Not to be had: a session's state is stored, shown and sent as it is, and so would be every user's tokens.

    Source: google-adk 2.13, `auth/credential_service/session_state_credential_service.py`, which warns of the same.
    """

    def __init__(self) -> NoReturn:
        """Raises ConfigurationError: it says what to write instead."""
        raise ConfigurationError(
            "SessionStateCredentialService would keep tokens in the session's state, where everything can read them; "
            "write InMemoryCredentialService(), KeyringCredentialService() or FileCredentialService('~/.adk_nb')"
        )
