"""Credentials for as long as this process lives."""

from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService, Whose, place_of


class InMemoryCredentialService(BaseCredentialService):
    """Nothing is written anywhere."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, str], AuthCredential] = {}

    async def load_credential(self, auth_config: AuthConfig, callback_context: Whose) -> AuthCredential | None:
        kept = self._kept.get(place_of(auth_config, callback_context))
        return kept and kept.model_copy(deep=True)

    async def save_credential(self, auth_config: AuthConfig, callback_context: Whose) -> None:
        place, credential = place_of(auth_config, callback_context), auth_config.exchanged_auth_credential
        if credential is None:
            self._kept.pop(place, None)
        else:
            self._kept[place] = credential.model_copy(deep=True)
