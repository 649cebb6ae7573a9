"""The interface of what keeps users' credentials."""

from abc import ABC, abstractmethod
from typing import Any, Protocol

from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_tool import AuthConfig


class _OfApp(Protocol):
    @property
    def app_name(self) -> Any: ...


class Whose(Protocol):
    """What a service needs to know of who asks; every Context says it."""

    @property
    def user_id(self) -> str: ...

    @property
    def session(self) -> _OfApp: ...


class BaseCredentialService(ABC):
    """Keeps one credential of a user under each `credential_key`. Never in a session's state, nor in its events."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    async def load_credential(self, auth_config: AuthConfig, callback_context: Whose) -> AuthCredential | None:
        """What was saved last, or None. The caller's copy.

        Raises:
            StorageError: It cannot be read.
        """

    @abstractmethod
    async def save_credential(self, auth_config: AuthConfig, callback_context: Whose) -> None:
        """Keep `auth_config.exchanged_auth_credential`; None there: forget what is kept.

        Raises:
            StorageError: It cannot be written; what was kept before still is.
        """


def place_of(auth_config: AuthConfig, whose: Whose) -> tuple[str, str, str]:
    """App, user and key: where a service keeps a credential."""
    return str(whose.session.app_name), whose.user_id, auth_config.credential_key
