"""Credentials in the system's own store of secrets, through keyring."""

import functools
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from adk_nb import sync
from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService, Whose, place_of
from adk_nb.errors import ConfigurationError, StorageError
from adk_nb.lazy import require


class KeyringCredentialService(BaseCredentialService):
    """Each credential is one entry of the keychain, the credential manager or the secret service of this machine."""

    def __init__(self, service_name: str = "adk_nb") -> None:
        """`service_name`: under which the system shows the entries.

        Raises:
            MissingExtraError: keyring is not installed.
            ConfigurationError: This machine has no store of secrets that keyring knows.
        """
        self._keyring: Any = require("keyring", package="'adk-nb[auth]'")
        self._failed: Any = require("keyring.errors", package="'adk-nb[auth]'").KeyringError
        self.service_name = service_name
        if self._keyring.get_keyring().priority <= 0:
            raise ConfigurationError(
                "this machine has no store of secrets that keyring knows; write FileCredentialService('~/.adk_nb')"
            )

    async def load_credential(self, auth_config: AuthConfig, callback_context: Whose) -> AuthCredential | None:
        name = self._name(auth_config, callback_context)
        try:
            kept = await self._ask("get_password", name)
            return AuthCredential.model_validate_json(kept) if kept else None
        except (self._failed, ValidationError) as error:
            raise StorageError(f"the keyring did not give {name!r}: {type(error).__name__}") from None

    async def save_credential(self, auth_config: AuthConfig, callback_context: Whose) -> None:
        name, credential = self._name(auth_config, callback_context), auth_config.exchanged_auth_credential
        try:
            if credential is not None:
                kept = credential.model_dump_json(by_alias=True, exclude_none=True)
                await self._ask("set_password", name, kept)
            elif await self._ask("get_password", name) is not None:
                await self._ask("delete_password", name)
        except self._failed as error:
            raise StorageError(f"the keyring did not keep {name!r}: {type(error).__name__}") from None

    async def _ask(self, method: str, *said: str) -> Any:
        """In a worker thread: the system may ask the person whether this may be."""
        call = functools.partial(getattr(self._keyring, method), self.service_name, *said)
        return await sync.service_call(call)

    def _name(self, auth_config: AuthConfig, callback_context: Whose) -> str:
        return "/".join(quote(part, safe="", errors="replace") for part in place_of(auth_config, callback_context))
