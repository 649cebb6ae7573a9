"""Whether an app's runs can be gone on with."""

from pydantic import BaseModel, ConfigDict


class ResumabilityConfig(BaseModel):
    """An app that is resumable marks in the session where its agents stand: App(resumability_config=...).

    A run that was left in its middle - by an error, by a stop, by the end of the process - goes on with
    `Runner.run_async(invocation_id=...)`: agents that had done their work do not work again, and a call without a
    result is made once more. What answers something it asked goes on under the same invocation id.
    """

    model_config = ConfigDict(extra="forbid")

    is_resumable: bool = False
