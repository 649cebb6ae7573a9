"""A tool as a node."""

import copy
from collections.abc import AsyncGenerator
from contextlib import nullcontext
from typing import Any, cast

from adk_nb import parts, sync, types
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import WorkflowDataError
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.flow.tool_call import call_in_a_node, step_in_a_node
from adk_nb.runtime import approvals
from adk_nb.runtime.call_ids import new_call_id
from adk_nb.runtime.context import Context
from adk_nb.runtime.durable import DurableCall
from adk_nb.runtime.hooks import first_result
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.fingerprint import fingerprint
from adk_nb.tools.tool_result import as_response
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.gates import approval_id, asking_for_credentials, credential_id, question


class ToolNode(BaseNode):
    """Calls `tool` with its input: a dict is the arguments, anything else the only one that the tool takes.

    What the tool asks a person for is asked first: a confirmation, a credential. The output of a long-running tool is
    what comes from outside. An error of the tool is the node's. With a timeout, a sync tool runs on a worker thread.
    """

    tool: BaseTool

    def shown(self, ctx: Context, node_input: Any) -> dict[str, Any]:
        return self._arguments(node_input)

    async def confirmation(self, ctx: Context, node_input: Any) -> ToolConfirmation | None:
        own = await super().confirmation(ctx, node_input) or await self.tool.confirmation(
            self._arguments(node_input), ctx
        )
        step = await self._step(ctx)
        return step.confirmation_needed(own) if step and step.in_doubt else own

    async def begun(self, ctx: Context) -> int:
        step = await self._step(ctx)
        return step.previous_attempts if step and step.in_doubt and step.confirmation_needed(None) else 0

    async def _step(self, ctx: Context) -> DurableCall | None:
        return await step_in_a_node(self.tool, ctx, credential_id(ctx.node_path))

    @property
    def lets_in(self) -> AuthConfig | None:
        return self.auth_config or self.tool.auth_config

    @property
    def is_held(self) -> bool:
        return True  # only the tool knows

    def fingerprint(self) -> str:
        return fingerprint(self.tool)

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        args = self._arguments(node_input)
        if ctx.get_invocation_context().plugin_manager.hooks("before_tool"):
            args = copy.deepcopy(args)  # the input stays as it was asked about, whatever plugins do to it
        if wrong := self.tool.check(args):
            raise WorkflowDataError(f"node {self.name!r}: {wrong}")
        ctx.function_call_id = credential_id(ctx.node_path)
        result = await self._outcome(ctx, args)
        if asked := ctx.actions.requested_tool_confirmations.pop(ctx.function_call_id or "", None):
            yield question(self.tool.name, ctx.node_path, args, asked)
            return
        if ctx.actions.requested_auth_configs:
            for event in await asking_for_credentials(self.tool.name, ctx, args):
                yield event
            return
        if self.tool.is_long_running or ctx.long_running:
            for event in self._waiting(args, result):
                yield event
        else:
            yield result

    async def _outcome(self, ctx: Context, args: dict[str, Any]) -> Any:
        """The tool's result, or what plugins say in its place."""
        hooks = ctx.get_invocation_context().plugin_manager.hooks
        said: dict[str, Any] = {"tool": self.tool, "args": args, "tool_context": ctx}
        result = None
        if before := hooks("before_tool"):
            asked_of = copy.deepcopy(args)
            result = await first_result(before, **said)
            if result is None and not approvals.is_same_json(args, asked_of):
                result = await self._refusal(ctx, args)
        if result is None:
            try:
                decided = ctx.get_invocation_context().decisions.pop(approval_id(ctx.node_path), None)
                with sync.in_workers() if self.timeout else nullcontext():
                    result = await call_in_a_node(self.tool, args, ctx, decided)
            except Exception as error:
                result = await first_result(hooks("on_tool_error"), **said, error=error)
                if result is None:
                    raise
        after = hooks("after_tool")
        other = await first_result(after, **said, tool_response=as_response(result, self.tool.name)) if after else None
        return result if other is None else other

    async def _refusal(self, ctx: Context, args: dict[str, Any]) -> dict[str, Any] | None:
        """Why the call is not made with arguments that a plugin has changed. None: nobody was to approve any."""
        if ctx.tool_confirmation is not None:
            return {"error": approvals.CHANGED}
        needs = await self.confirmation(ctx, args)
        return {"error": approvals.CHANGED_INTO_GATED} if needs else None

    def _waiting(self, args: dict[str, Any], news: Any) -> list[Event]:
        """The call, whose result comes later, and what it said so far."""
        call = types.FunctionCall(id=new_call_id(), name=self.tool.name, args=args)
        content = types.Content(role="model", parts=[types.Part(function_call=call)])
        events = [Event(content=content, long_running_tool_ids={call.id or ""})]
        if news:
            part = parts.result(call.id, self.tool.name, as_response(news, self.tool.name))
            if part.function_response:
                part.function_response.will_continue = True
            events.append(Event(content=parts.content("user", [part])))
        return events

    def _arguments(self, node_input: Any) -> dict[str, Any]:
        if node_input is None:
            return {}
        if isinstance(node_input, types.Content):
            node_input = "".join(part.text for part in node_input.parts or () if part.text)
        declared = self.tool.declaration
        schema: dict[str, Any] = (declared and declared.parameters_json_schema) or {}
        names = list(schema.get("properties", {}))
        if isinstance(node_input, dict) and not (len(names) == 1 and names[0] not in node_input):
            return cast(dict[str, Any], node_input)
        if len(names) != 1:
            raise WorkflowDataError(
                f"node {self.name!r}: the tool takes {', '.join(names) or 'nothing'}, and its input is no dict of these"
            )
        return {names[0]: node_input}
