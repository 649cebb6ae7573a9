"""The resumability setting of an app."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from adk_nb.errors import ConfigurationError
from adk_nb.wire import field_errors


class ResumabilityConfig(BaseModel):
    """Make runs resumable: App(resumability_config=ResumabilityConfig(is_resumable=True)). Agents store checkpoints.

    `Runner.run_async(invocation_id=...)` resumes a run that an error, a stop or the end of the process interrupted:
    finished agents do not run again, and a call without a result runs again. Answers continue under the same
    invocation id.
    """

    model_config = ConfigDict(extra="forbid")

    is_resumable: bool = False

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise ConfigurationError(f"ResumabilityConfig: {field_errors(error, type(self).model_fields)}") from error
