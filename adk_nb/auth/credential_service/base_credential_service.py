"""The interface of credential services."""

from abc import ABC, abstractmethod
from typing import Any, Protocol

from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_tool import AuthConfig


class _OwnerSession(Protocol):
    @property
    def app_name(self) -> Any:
        """Name of the app."""
        ...


class CredentialOwner(Protocol):
    """The members that a service reads of the owner; every Context has them."""

    @property
    def user_id(self) -> str:
        """Id of the user."""
        ...

    @property
    def session(self) -> _OwnerSession:
        """The session, for the name of its app."""
        ...


class BaseCredentialService(ABC):
    """Stores one credential per user and `credential_key`. Never in a session's state or events."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @abstractmethod
    async def load_credential(
        self, auth_config: AuthConfig, callback_context: CredentialOwner
    ) -> AuthCredential | None:
        """Load the stored credential, as a copy; None if there is none.

        Raises:
            StorageError: It cannot be read.
        """

    @abstractmethod
    async def save_credential(self, auth_config: AuthConfig, callback_context: CredentialOwner) -> None:
        """Store `auth_config.exchanged_auth_credential`; None deletes the stored one.

        Raises:
            StorageError: It cannot be written; the stored credential is unchanged.
        """


def storage_key(auth_config: AuthConfig, owner: CredentialOwner) -> tuple[str, str, str]:
    """App, user and key: the storage key of a credential."""
    return str(owner.session.app_name), owner.user_id, auth_config.credential_key
