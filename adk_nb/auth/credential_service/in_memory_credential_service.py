"""Credentials in memory, for the lifetime of the process."""

from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService, CredentialOwner, storage_key


class InMemoryCredentialService(BaseCredentialService):
    """Stores credentials in memory only."""

    def __init__(self) -> None:
        self._credentials: dict[tuple[str, str, str], AuthCredential] = {}

    async def load_credential(
        self, auth_config: AuthConfig, callback_context: CredentialOwner
    ) -> AuthCredential | None:
        """A copy of the stored credential."""
        credential = self._credentials.get(storage_key(auth_config, callback_context))
        return credential and credential.model_copy(deep=True)

    async def save_credential(self, auth_config: AuthConfig, callback_context: CredentialOwner) -> None:
        """Store a copy of the credential, or delete the stored one."""
        key, credential = storage_key(auth_config, callback_context), auth_config.exchanged_auth_credential
        if credential is None:
            self._credentials.pop(key, None)
        else:
            self._credentials[key] = credential.model_copy(deep=True)
