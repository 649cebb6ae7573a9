"""What every agent has: a name, hooks around its work, and one method that turns a message into events."""

import keyword
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from adk_nb import types
from adk_nb.errors import ConfigurationError, closest
from adk_nb.events.event import Event, as_content
from adk_nb.runtime.context import CallbackContext
from adk_nb.runtime.hooks import Hook, Hooks, as_list, first_answer, tell
from adk_nb.runtime.invocation_context import InvocationContext

_Work = Callable[[InvocationContext], AsyncGenerator[Event, None]]


class BaseAgent(BaseModel):
    """An agent. Subclass it and override `_run_async_impl` to write one in code."""

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    name: str
    """A Python identifier, not `user`: events carry it as their author."""
    description: str = ""
    """What it is good at, in a sentence for other agents."""
    before_agent_callback: Hooks = None
    """`(callback_context) -> Content | None`: a content is the answer, and the agent does not run."""
    after_agent_callback: Hooks = None
    """`(callback_context) -> Content | None`: a content is said after the agent's own answer."""

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            raise _own(error) or ConfigurationError(self._in_one_line(given, error)) from error

    def model_post_init(self, context: Any, /) -> None:
        _check_name(self.name)

    @property
    def root_agent(self) -> "BaseAgent":
        return self

    def hooks(self, name: str, /) -> Sequence[Hook]:
        """The callbacks of the field `<name>_callback`, in order."""
        return as_list(getattr(self, f"{name}_callback"))

    def run_async(self, parent_context: InvocationContext, /) -> AsyncGenerator[Event, None]:
        """Do the work of one activation, between the before and after hooks.

        Yields:
            Events as they happen. The caller appends each to the session before it asks for the next.
        """
        return self._run(parent_context, self._run_async_impl)

    def run_live(self, parent_context: InvocationContext, /) -> AsyncGenerator[Event, None]:
        """`run_async` as a live conversation, in which the user may speak at any time."""
        return self._run(parent_context, self._run_live_impl)

    async def _run(self, parent_context: InvocationContext, work: _Work) -> AsyncGenerator[Event, None]:
        ctx = replace(parent_context, agent=self) if parent_context.agent is not self else parent_context
        try:
            if before := [*ctx.plugins.hooks("before_agent"), *self.hooks("before_agent")]:
                event = await self._hooked(ctx, before)
                for one in self._settled(ctx, event) if event else ():
                    yield one
                if (event and event.content) or ctx.end_invocation:
                    return
            async with aclosing(work(ctx)) as events:
                async for event in events:
                    yield event
            after = [*ctx.plugins.hooks("after_agent"), *self.hooks("after_agent")]
            if after and not ctx.end_invocation and (event := await self._hooked(ctx, after)):
                yield event
        except Exception as error:
            ctx.note_failure(error)
            await tell(ctx.plugins.hooks("on_agent_error"), callback_context=CallbackContext(ctx), error=error)
            raise

    def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        """The work itself. Override it with an async generator of events."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it does; override _run_async_impl")

    def _run_live_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        """The work of a live conversation. Override it with an async generator of events."""
        raise NotImplementedError(
            f"{type(self).__name__} holds no live conversations; run it with run_async, or override _run_live_impl"
        )

    def unfit(self, message: types.Content, /) -> str | None:
        """What is wrong with a message to this agent, in words. None: nothing, it takes what comes."""
        return None

    def _settled(self, ctx: InvocationContext, event: Event) -> Iterable[Event]:
        """What a callback said in the agent's place, and what follows from it."""
        return [event]

    async def _hooked(self, ctx: InvocationContext, hooks: Sequence[Hook]) -> Event | None:
        """What the hooks answered, or what they wrote to the state, as an event; None if they did neither."""
        context = CallbackContext(ctx)
        answer = await first_answer(hooks, callback_context=context)
        content = None if answer is None else as_content(answer, role="model")
        if content is None and not (context.state.has_delta() or context.actions.artifact_delta):
            return None
        return Event(
            author=self.name,
            invocation_id=ctx.invocation_id,
            branch=ctx.branch,
            content=content,
            actions=context.actions,
        )

    def _in_one_line(self, given: dict[str, Any], error: ValidationError) -> str:
        who = f"agent {given.get('name')!r}"
        told: list[str] = []
        for wrong in error.errors(include_url=False, include_context=False):
            field = ".".join(str(step) for step in wrong["loc"])
            if wrong["type"] == "extra_forbidden":
                told.append(self._unknown_field(field))
            elif wrong["type"] == "missing":
                told.append(f"{field!r} is missing")
            else:
                told.append(f"{field!r}: {wrong['msg']} (got {shown(wrong['input'])})")
        return f"{who}: {'; '.join(told)}"

    def _unknown_field(self, field: str) -> str:
        near = closest(field, type(self).model_fields)
        return f"there is no field {field!r}" + (f"; did you mean {near!r}?" if near else "")


def shown(value: Any) -> str:
    """`value` for an error: on one line, and not long."""
    return f"{' '.join(repr(value).split()):.80}"


def _own(error: ValidationError) -> ConfigurationError | None:
    """The error of ours that pydantic wrapped: one raised after the fields were read."""
    causes = [wrong.get("ctx", {}).get("error") for wrong in error.errors(include_url=False)]
    return next((cause for cause in causes if isinstance(cause, ConfigurationError)), None)


def _check_name(name: str) -> None:
    if name == "user":
        raise ConfigurationError("an agent cannot be named 'user': that is the author of the user's own messages")
    if not name.isidentifier():
        better = re.sub(r"\W+", "_", name).strip("_") or "agent"
        better = f"agent_{better}" if not better.isidentifier() or keyword.iskeyword(better) else better
        raise ConfigurationError(f"an agent's name is a Python identifier, and {name!r} is none; try {better!r}")
