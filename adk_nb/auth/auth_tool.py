"""The credential that a tool needs: scheme, the author's part, and the exchanged credential."""

import hashlib
import json
from typing import Any

from pydantic import BaseModel, Field, field_validator

from adk_nb.auth.auth_credential import AuthCredential, SecretModel
from adk_nb.auth.auth_schemes import AuthScheme

_FLOW_FIELDS = {"auth_uri", "state", "nonce", "redirect_uri", "expires_at", "expires_in"}


class AuthConfig(SecretModel):
    """The credential that a tool needs. Tools with equal configurations share one credential."""

    auth_scheme: AuthScheme
    raw_auth_credential: AuthCredential | None = None
    """The author's part: a key, a token, an OAuth client. None: the user is asked for all of it."""
    exchanged_auth_credential: AuthCredential | None = None
    """The credential for the service; while the user is asked, the data needed to answer."""
    credential_key: str = Field("", validate_default=False)
    """Key under which a user's credential is stored. Derived from scheme and client if empty: services whose schemes
    are equal, such as API keys in the same header, then share a credential, so set a key for each.
    """

    @field_validator("auth_scheme", mode="before")
    @classmethod
    def _accept_fastapi(cls, value: Any) -> Any:
        """Accept the models of `fastapi.openapi.models`, which examples for ADK use."""
        return value.model_dump(by_alias=True, mode="json") if isinstance(value, BaseModel) else value

    @field_validator("credential_key", mode="before")
    @classmethod
    def _default_key(cls, value: Any) -> Any:
        return value or ""

    def model_post_init(self, context: Any, /) -> None:
        """Derive the key if none is given."""
        super().model_post_init(context)
        self.credential_key = self.credential_key or self._derive_key()

    def _derive_key(self) -> str:
        """`adk_<scheme>_<16 hex>_<credential>_<16 hex>`; contains nothing secret."""
        key = f"adk_{self.auth_scheme.type_.value}_{_digest(self.auth_scheme)}"
        if not (raw := self.raw_auth_credential):
            return key + "_"
        public = raw.public()
        # Fields of a single authorization must not change the key.
        if public.oauth2:
            public.oauth2 = public.oauth2.model_copy(update=dict.fromkeys(_FLOW_FIELDS))
        return f"{key}_{raw.auth_type.value}_{_digest(public)}"


class AuthToolArguments(SecretModel):
    """Arguments of the call that asks the user for a credential."""

    function_call_id: str
    """Id of the call that needs the credential."""
    auth_config: AuthConfig


def _digest(record: BaseModel) -> str:
    dumped = record.model_dump(mode="json", by_alias=True, exclude_none=True)
    text = json.dumps(dumped, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
