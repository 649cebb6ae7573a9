"""ADK's own hand in a flow of credentials: known by name, so that one is told what does its work here."""

from typing import Any, NoReturn

from adk_nb.errors import ConfigurationError


class AuthHandler:
    """Not to be had: it reads and writes tokens in a session's state, and ADK says that only ADK itself should use it.

    Source: google-adk 2.13, `auth/auth_handler.py`.
    """

    def __init__(self, auth_config: Any) -> NoReturn:
        """Raises ConfigurationError: it says what to write instead."""
        raise ConfigurationError(
            "AuthHandler keeps what a person answers in the session's state, and nothing here does; in a tool, write "
            "tool_context.request_credential(auth_config), and then tool_context.get_auth_response(auth_config)"
        )
