"""A stand-in for ADK's SessionStateCredentialService, whose error names the replacements."""

from typing import NoReturn

from adk_nb.errors import ConfigurationError


class SessionStateCredentialService:
    """Not available: a session's state is stored, shown and sent unencrypted, so tokens do not belong there.

    Source: google-adk 2.13, `auth/credential_service/session_state_credential_service.py`, which warns of the same.
    """

    def __init__(self) -> NoReturn:
        """Raises ConfigurationError, which names the replacements."""
        raise ConfigurationError(
            "SessionStateCredentialService would store tokens in the session's state, where everything can read them; "
            "write InMemoryCredentialService(), KeyringCredentialService() or FileCredentialService('~/.adk_nb')"
        )
