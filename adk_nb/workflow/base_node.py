"""What every node of a graph has: a name, and one method that turns an input into an output."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, InstanceOf, ValidationError
from pydantic_core import to_jsonable_python

from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime.context import Context
from adk_nb.runtime.retry_config import RetryConfig
from adk_nb.tools.conditions import condition_holds, parse_condition
from adk_nb.tools.fingerprint import code_fingerprint
from adk_nb.wire import fast_private_attributes, field_errors, unknown_field

_OF_PATHS = "/@."


def is_step(name: str) -> bool:
    """True if a path can have a step of that name."""
    return bool(name) and not any(sign in name for sign in _OF_PATHS)


@fast_private_attributes
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
    """A type that its input is made into, as pydantic does. None: it takes what comes. A JSON Schema is for readers."""
    output_schema: Any = None
    """A type that its output is made into. None: it gives what it has. A JSON Schema is for readers."""
    state_schema: type[BaseModel] | None = None
    """The keys that it may write to the state, and their types. None: what its workflow may."""
    require_confirmation: Any = False
    """Ask a person before it runs: True; a callable that is given its arguments; or an expression on them, as
    `"amount > 100"`. A no is its output, `{"error": ...}`."""
    auth_config: InstanceOf[AuthConfig] | None = None
    """What it has to be let in with; it then finds that in `ctx.auth_credential`."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            fields = type(self).model_fields
            told = field_errors(error, fields, lambda field: unknown_field(field, fields))
            raise ConfigurationError(f"node {given.get('name', '')!r}: {told}") from error

    def model_post_init(self, context: Any, /) -> None:
        self.require_confirmation = parse_condition(self.require_confirmation, f"node {self.name!r}", None)
        if not is_step(self.name):
            raise ConfigurationError(
                f"{self.name!r} is no name of a node: it is empty, or has one of {' '.join(_OF_PATHS)} in it; "
                "write node(..., name='...')"
            )

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def changed(self, options: Mapping[str, Any]) -> Self:
        """A copy with other settings.

        Raises:
            ConfigurationError: There is no such setting, or it cannot be so.
        """
        said = {field: getattr(self, field) for field in self.model_fields_set}
        return type(self)(**{**said, **options})

    def shown(self, ctx: Context, node_input: Any) -> dict[str, Any]:
        """What a person is shown who lets it run: its arguments, as JSON."""
        return {"node_input": to_jsonable_python(node_input, fallback=str)}

    async def confirmation(self, ctx: Context, node_input: Any) -> ToolConfirmation | None:
        """What a person is asked before it may run. None: it may run."""
        if not self.require_confirmation:
            return None
        asked = await condition_holds(self.require_confirmation, self.shown(ctx, node_input), ctx)
        return ToolConfirmation() if asked else None

    async def begun(self, ctx: Context) -> int:
        """How often its work was begun by runs that were cut in its midst, if a person is to know of that. 0: never."""
        return 0

    @property
    def lets_in(self) -> AuthConfig | None:
        """What it has to be let in with."""
        return self.auth_config

    @property
    def is_held(self) -> bool:
        """True if it may need a person's word before it runs."""
        return bool(self.require_confirmation or self.auth_config)

    def fingerprint(self) -> str:
        """Of what it runs: a person's yes is for that only."""
        return code_fingerprint(type(self)._run_impl)

    def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        """The work. Override it with an async generator.

        Yields:
            Events, which are told; a `RequestInput`, which ends it until that is answered; None, which means nothing;
            any other value, which is its output: one at most.
        """
        raise NotImplementedError(f"{type(self).__name__} does not say what it does; override _run_impl")


Node = BaseNode
