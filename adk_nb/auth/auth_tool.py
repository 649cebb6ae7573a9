"""What a tool needs to be let in: the scheme, what its author gives, and what came of it."""

import hashlib
import json
from typing import Any

from pydantic import BaseModel, Field, field_validator

from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_schemes import AuthScheme
from adk_nb.auth.secrets import Guarded

_OF_ONE_RUN = {"auth_uri", "state", "nonce", "redirect_uri", "expires_at", "expires_in"}


class AuthConfig(Guarded):
    """Which credential a tool needs. The same config on several tools is one credential."""

    auth_scheme: AuthScheme
    raw_auth_credential: AuthCredential | None = None
    """What the author gives: a key, a token, an OAuth client. None: a person is asked for all of it."""
    exchanged_auth_credential: AuthCredential | None = None
    """What can be shown to the service; while a person is asked, what they need to answer."""
    credential_key: str = Field("", validate_default=False)
    """Under this name a user's credential is kept. Made of scheme and client if none is given: schemes that do not say
    whose they are, as API keys in one header, then share it, so give each service's its own.
    """

    @field_validator("auth_scheme", mode="before")
    @classmethod
    def _of_fastapi(cls, given: Any) -> Any:
        """Also takes the models of `fastapi.openapi.models`, which snippets for ADK use."""
        return given.model_dump(by_alias=True, mode="json") if isinstance(given, BaseModel) else given

    @field_validator("credential_key", mode="before")
    @classmethod
    def _or_none(cls, given: Any) -> Any:
        return given or ""

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self.credential_key = self.credential_key or self._made_key()

    def _made_key(self) -> str:
        """`adk_<scheme>_<16 hex>_<credential>_<16 hex>`; nothing secret goes into it, so it may be read by anyone."""
        key = f"adk_{self.auth_scheme.type_.value}_{_digest(self.auth_scheme)}"
        if not (raw := self.raw_auth_credential):
            return key + "_"
        public = raw.public()
        if public.oauth2:
            public.oauth2 = public.oauth2.model_copy(update=dict.fromkeys(_OF_ONE_RUN))
        return f"{key}_{raw.auth_type.value}_{_digest(public)}"


class AuthToolArguments(Guarded):
    """The arguments of the call that asks a person for a credential."""

    function_call_id: str
    """Of the call that needs it."""
    auth_config: AuthConfig


def _digest(record: BaseModel) -> str:
    said = record.model_dump(mode="json", by_alias=True, exclude_none=True)
    text = json.dumps(said, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
