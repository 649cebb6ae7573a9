"""Credentials in the system's secret store, through keyring."""

import functools
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from adk_nb import sync
from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService, CredentialOwner, storage_key
from adk_nb.errors import ConfigurationError, StorageError
from adk_nb.lazy import require


class KeyringCredentialService(BaseCredentialService):
    """One entry per credential in this machine's keychain, credential manager or secret service."""

    def __init__(self, service_name: str = "adk_nb") -> None:
        """`service_name`: the name under which the system lists the entries.

        Raises:
            MissingExtraError: keyring is not installed.
            ConfigurationError: keyring finds no secret store on this machine.
        """
        self._keyring: Any = require("keyring", package="adk-nb[auth]")
        self._keyring_error: Any = require("keyring.errors", package="adk-nb[auth]").KeyringError
        self.service_name = service_name
        # keyring's backends `fail` and `null` have a priority of 0 and below.
        if self._keyring.get_keyring().priority <= 0:
            raise ConfigurationError(
                "keyring found no secret store on this machine; write FileCredentialService('~/.adk_nb')"
            )

    async def load_credential(
        self, auth_config: AuthConfig, callback_context: CredentialOwner
    ) -> AuthCredential | None:
        """Read the credential's entry."""
        name = self._name(auth_config, callback_context)
        try:
            data = await self._call_keyring("get_password", name)
            return AuthCredential.model_validate_json(data) if data else None
        except (self._keyring_error, ValidationError) as error:
            raise StorageError(f"the keyring could not read {name!r}: {type(error).__name__}") from None

    async def save_credential(self, auth_config: AuthConfig, callback_context: CredentialOwner) -> None:
        """Write or delete the credential's entry."""
        name, credential = self._name(auth_config, callback_context), auth_config.exchanged_auth_credential
        try:
            if credential is not None:
                data = credential.model_dump_json(by_alias=True, exclude_none=True)
                await self._call_keyring("set_password", name, data)
            elif await self._call_keyring("get_password", name) is not None:
                await self._call_keyring("delete_password", name)
        except self._keyring_error as error:
            raise StorageError(f"the keyring could not store {name!r}: {type(error).__name__}") from None

    async def _call_keyring(self, method: str, *arguments: str) -> Any:
        """Call keyring in a worker thread: the system may prompt the user."""
        call = functools.partial(getattr(self._keyring, method), self.service_name, *arguments)
        return await sync.service_call(call)

    def _name(self, auth_config: AuthConfig, callback_context: CredentialOwner) -> str:
        return "/".join(quote(part, safe="", errors="replace") for part in storage_key(auth_config, callback_context))
