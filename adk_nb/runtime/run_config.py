"""How one run is to be done: streaming, limits."""

import logging
import os
import sys
from enum import Enum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from adk_nb.sessions.base_session_service import GetSessionConfig

logger = logging.getLogger(__name__)


class StreamingMode(Enum):
    """How a model's answer comes."""

    NONE = None
    """Whole."""
    SSE = "sse"
    """In pieces, then whole."""


class ToolThreadPoolConfig(BaseModel):
    """How many worker threads run blocking tools."""

    model_config = ConfigDict(extra="forbid")

    max_workers: int = Field(default=4, ge=1)


class RunConfig(BaseModel):
    """How one run is to be done."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    streaming_mode: StreamingMode = StreamingMode.NONE
    max_llm_calls: int = Field(default_factory=lambda: int(os.environ.get("ADK_MAX_LLM_CALLS", "500")))
    """Model calls in one invocation, all agents together. 0 or less: no limit."""
    custom_metadata: dict[str, Any] | None = None
    """Put on every event of the run, the user's included."""
    get_session_config: GetSessionConfig | None = None
    """How much history to load. None: all."""
    tool_errors: Literal["return", "raise"] | None = None
    """What a raising tool does: its error goes to the model, or ends the run. None: as each agent says."""

    @field_validator("max_llm_calls")
    @classmethod
    def _is_a_limit(cls, value: int) -> int:
        if value >= sys.maxsize:
            raise ValueError(f"max_llm_calls={value} is no limit; write 0 for none")
        if value <= 0:
            logger.warning("max_llm_calls=%d: a run may ask its models without limit", value)
        return value

    @property
    def streams(self) -> bool:
        """True if the model is to answer in pieces."""
        return self.streaming_mode is StreamingMode.SSE
