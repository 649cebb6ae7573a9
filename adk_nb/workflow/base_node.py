"""Nodes of graphs: the base class, and a node that waits for all nodes before it."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, ValidationError
from pydantic_core import to_jsonable_python

from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime.context import Context
from adk_nb.runtime.run_config import RetryConfig
from adk_nb.tools.conditions import condition_holds, parse_condition
from adk_nb.tools.fingerprint import code_fingerprint
from adk_nb.wire import fast_private_attributes, field_errors

_PATH_SEPARATORS = "/@."


def is_step(name: str) -> bool:
    """True if a path can have a step of that name."""
    return bool(name) and not any(sign in name for sign in _PATH_SEPARATORS)


@fast_private_attributes
class BaseNode(BaseModel):
    """A node. Subclass it and override `_run_impl` to write one in code."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    name: str
    """Unique in its graph."""
    description: str = ""
    rerun_on_resume: bool = False
    """After an answer it runs again, with the answer in `ctx.resume_inputs`. False: the answer is its output."""
    wait_for_output: bool = False
    """The nodes after it run only if it has an output."""
    retry_config: RetryConfig | None = None
    """None: its first error ends the run."""
    timeout: float | None = Field(default=None, gt=0)
    """Seconds for one attempt. None: no limit."""
    input_schema: Any = None
    """Type to which pydantic converts the input. None: any input. A JSON Schema only documents it."""
    output_schema: Any = None
    """Type to which pydantic converts the output. None: any output. A JSON Schema only documents it."""
    state_schema: type[BaseModel] | None = None
    """The state keys that it may write, and their types. None: those of its workflow."""
    require_confirmation: Any = False
    """Request an approval before it runs: True; a callable that gets its arguments; or an expression on them, such as
    `"amount > 100"`. The output of a rejected node is `{"error": ...}`."""
    auth_config: InstanceOf[AuthConfig] | None = None
    """The credential that it needs, to be requested before it runs; it is in `ctx.auth_credential`."""

    def __init__(self, **options: Any) -> None:
        try:
            super().__init__(**options)
        except ValidationError as error:
            problems = field_errors(error, type(self).model_fields)
            raise ConfigurationError(f"node {options.get('name', '')!r}: {problems}") from error

    def model_post_init(self, context: Any, /) -> None:
        self.require_confirmation = parse_condition(self.require_confirmation, f"node {self.name!r}", None)
        if not is_step(self.name):
            raise ConfigurationError(
                f"{self.name!r} is not a valid node name: it is empty, or has {' or '.join(_PATH_SEPARATORS)} in it; "
                "write node(..., name='...')"
            )

    # By identity: two nodes with equal settings are two steps of a graph.
    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def with_options(self, options: Mapping[str, Any]) -> Self:
        """A copy with other settings.

        Raises:
            ConfigurationError: A setting is unknown or invalid.
        """
        # Only fields that were set: defaults are inferred anew, as the function or the name may differ.
        options_set = {field: getattr(self, field) for field in self.model_fields_set}
        return type(self)(**{**options_set, **options})

    def request_args(self, ctx: Context, node_input: Any) -> dict[str, Any]:
        """Its arguments as JSON, for the approval request."""
        return {"node_input": to_jsonable_python(node_input, fallback=str)}

    async def confirmation(self, ctx: Context, node_input: Any) -> ToolConfirmation | None:
        """The approval that it needs before it runs. None: it needs none."""
        if not self.require_confirmation:
            return None
        is_needed = await condition_holds(self.require_confirmation, self.request_args(ctx, node_input), ctx)
        return ToolConfirmation() if is_needed else None

    async def attempts_in_doubt(self, ctx: Context) -> int:
        """Number of interrupted runs that had started its work, for the approver to know."""
        return 0

    @property
    def required_credential(self) -> AuthConfig | None:
        """The credential that it needs."""
        return self.auth_config

    @property
    def has_gate(self) -> bool:
        """True if it may need an approval or a credential before it runs."""
        return bool(self.require_confirmation or self.auth_config)

    def fingerprint(self) -> str:
        """Fingerprint of its code: an approval is for this code only."""
        return code_fingerprint(type(self)._run_impl)

    def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        """The work. Override it with an async generator.

        Yields:
            Events, which are stored; a `RequestInput`, which pauses it until the answer; None, which is ignored; any
            other value, which is its output: at most one.
        """
        raise NotImplementedError(f"{type(self).__name__} does nothing; override _run_impl with an async generator")


Node = BaseNode


class JoinNode(BaseNode):
    """Runs once all nodes before it have ended. Its output is theirs, by name, in the order of the edges."""

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        yield node_input
