"""A stand-in for ADK's AuthHandler, whose error names the replacement."""

from typing import Any, NoReturn

from adk_nb.errors import ConfigurationError


class AuthHandler:
    """Not available: ADK's class stores tokens in the session's state, and is meant for ADK's internal use.

    Source: google-adk 2.13, `auth/auth_handler.py`.
    """

    def __init__(self, auth_config: Any) -> NoReturn:
        """Raises ConfigurationError, which names the replacement."""
        raise ConfigurationError(
            "AuthHandler would store tokens in the session's state, where everything can read them; in a tool, write "
            "tool_context.request_credential(auth_config), and then tool_context.get_auth_response(auth_config)"
        )
