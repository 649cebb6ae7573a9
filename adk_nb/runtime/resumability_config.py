"""Whether an app's runs can be gone on with."""

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from adk_nb.errors import ConfigurationError
from adk_nb.wire import wrong_fields


class ResumabilityConfig(BaseModel):
    """An app that is resumable marks in the session where its agents stand: App(resumability_config=...).

    A run that was left in its middle - by an error, by a stop, by the end of the process - goes on with
    `Runner.run_async(invocation_id=...)`: agents that had done their work do not work again, and a call without a
    result is made once more. What answers something it asked goes on under the same invocation id.
    """

    model_config = ConfigDict(extra="forbid")

    is_resumable: bool = False

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise ConfigurationError(f"ResumabilityConfig: {wrong_fields(error, type(self).model_fields)}") from error
