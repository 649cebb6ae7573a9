"""What every node of a graph has: a name, and one method that turns an input into an output."""

from collections.abc import AsyncGenerator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import Context
from adk_nb.wire import wrong_fields, no_field


class RetryConfig(BaseModel):
    """How often a node that failed is run again, and when."""

    model_config = ConfigDict(extra="forbid")

    max_attempts: int = Field(default=5, ge=1)
    """With the first one."""
    initial_delay: float = Field(default=1.0, ge=0)
    """Seconds before the second attempt."""
    max_delay: float = Field(default=60.0, ge=0)
    """Seconds, the longest wait."""
    backoff_factor: float = Field(default=2.0, ge=1)
    """Each wait is so many times the last one."""
    jitter: float = Field(default=1.0, ge=0)
    """Up to so many seconds are added to each wait, by chance."""
    exceptions: list[Any] | None = None
    """Classes of errors, or their names. None: every error may pass by itself."""

    def passes(self, error: BaseException) -> bool:
        """Whether a node that raised `error` is run again."""
        if not isinstance(error, Exception):
            return False
        names = {one.__name__ for one in type(error).__mro__}
        return self.exceptions is None or any(
            isinstance(error, one) if isinstance(one, type) else one in names for one in self.exceptions
        )


class BaseNode(BaseModel):
    """A node. Subclass it and override `_run_impl` to write one in code."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    name: str
    """In its graph there is no other of that name."""
    description: str = ""
    rerun_on_resume: bool = False
    """After an answer it runs again and finds that in `ctx.resume_inputs`. False: the answer is its output."""
    wait_for_output: bool = False
    """Those after it are run only when it had an output."""
    retry_config: RetryConfig | None = None
    """None: its first error ends the run."""
    timeout: float | None = Field(default=None, gt=0)
    """Seconds for one attempt. None: as long as it takes."""
    input_schema: Any = None
    """A type that its input is made into, as pydantic does. None: it takes what comes."""
    output_schema: Any = None
    """A type that its output is made into. None: it gives what it has."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            fields = type(self).model_fields
            told = wrong_fields(error, fields, lambda field: no_field(field, fields))
            raise ConfigurationError(f"node {given.get('name', '')!r}: {told}") from error

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        """The work. Override it with an async generator.

        Yields:
            Events, which are told; a `RequestInput`, which ends it until that is answered; None, which means nothing;
            any other value, which is its output: one at most.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what it does; override _run_impl")


Node = BaseNode
