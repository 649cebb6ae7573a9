"""What models have in common that a service answers for: a key that nobody sees, an address, time limits."""

from typing import Any, SupportsIndex

from pydantic import ConfigDict, Field, SecretStr

from adk_nb import types
from adk_nb.models.base_llm import BaseLlm
from adk_nb.models.fitting import Lack
from adk_nb.redaction import refuse_pickle, remember, remember_url, without_known


class ServiceLlm(BaseLlm):
    """A model that a service answers for."""

    model_config = ConfigDict(hide_input_in_errors=True)

    api_key: SecretStr | None = None
    """None: what the environment says, when a question is asked."""
    base_url: str | None = None
    """Where the API is, when it is not at its vendor: a gateway, or a server of your own."""
    lacks: frozenset[Lack] = frozenset()
    """What this model cannot do though others of its kind can; it is worked around (see `models.fitting`)."""
    retry_options: types.HttpRetryOptions | None = None
    """When the service is busy or cannot be reached: 5 attempts, 1 s and then twice as long each, or as it asks for."""
    retry_seconds: float = 120.0
    """All attempts together; one that could only start later is not made."""
    connect_timeout: float = Field(default=10.0, gt=0)
    """Seconds."""
    timeout: float = Field(default=300.0, gt=0)
    """Seconds to wait for an answer, and when streaming for the first piece."""
    stall_timeout: float = Field(default=120.0, gt=0)
    """Seconds from one piece of a streamed answer to the next."""
    total_timeout: float = Field(default=1800.0, gt=0)
    """Seconds from the question to the end of a streamed answer."""

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        remember(self.api_key.get_secret_value() if self.api_key else None)
        remember_url(self.base_url)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        if self.api_key:
            refuse_pickle(self)
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return without_known(super().__repr__())
