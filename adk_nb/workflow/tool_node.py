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
from adk_nb.flow.tool_call import call_node_tool, durable_node_call
from adk_nb.runtime import approvals
from adk_nb.runtime.context import Context, call_state
from adk_nb.runtime.durable import DurableCall
from adk_nb.runtime.hooks import first_result
from adk_nb.runtime.open_calls import new_call_id
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.fingerprint import fingerprint
from adk_nb.tools.tool_result import as_response
from adk_nb.workflow.base_node import BaseNode
from adk_nb.workflow.gates import approval_id, credential_id, credential_request_events, question


class ToolNode(BaseNode):
    """Calls `tool` with its input: a dict is the arguments, anything else the only one that the tool takes.

    An approval or a credential that the tool needs is requested first. The output of a long-running tool is its result
    from outside. An error of the tool is the node's. With a timeout, a sync tool runs on a worker thread.
    """

    tool: BaseTool

    def request_args(self, ctx: Context, node_input: Any) -> dict[str, Any]:
        return self._arguments(node_input)

    async def confirmation(self, ctx: Context, node_input: Any) -> ToolConfirmation | None:
        own = await super().confirmation(ctx, node_input) or await self.tool.confirmation(
            self._arguments(node_input), ctx
        )
        durable = await self._durable_call(ctx)
        return durable.confirmation_needed(own) if durable and durable.in_doubt else own

    async def attempts_in_doubt(self, ctx: Context) -> int:
        durable = await self._durable_call(ctx)
        return durable.previous_attempts if durable and durable.in_doubt and durable.confirmation_needed(None) else 0

    async def _durable_call(self, ctx: Context) -> DurableCall | None:
        return await durable_node_call(self.tool, ctx, credential_id(ctx.node_path))

    @property
    def required_credential(self) -> AuthConfig | None:
        return self.auth_config or self.tool.auth_config

    @property
    def has_gate(self) -> bool:
        return True  # the tool decides per call

    def fingerprint(self) -> str:
        return fingerprint(self.tool)

    async def _run_impl(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        args = self._arguments(node_input)
        if ctx.get_invocation_context().plugin_manager.hooks("before_tool"):
            args = copy.deepcopy(args)  # plugins may change the copy, not the approved input
        if problem := self.tool.check(args):
            raise WorkflowDataError(f"node {self.name!r}: {problem}")
        ctx.function_call_id = credential_id(ctx.node_path)
        result = await self._call_with_hooks(ctx, args)
        if confirmation := ctx.actions.requested_tool_confirmations.pop(ctx.function_call_id or "", None):
            yield question(self.tool.name, ctx.node_path, args, confirmation)
            return
        if ctx.actions.requested_auth_configs:
            for event in await credential_request_events(self.tool.name, ctx, args):
                yield event
            return
        if not (self.tool.is_long_running or call_state(ctx).is_long_running):
            yield result
            return
        # The result comes later, from outside; this is its progress so far.
        call = types.FunctionCall(id=new_call_id(), name=self.tool.name, args=args)
        content = types.Content(role="model", parts=[types.Part(function_call=call)])
        yield Event(content=content, long_running_tool_ids={call.id or ""})
        if result:
            part = parts.result(call.id, self.tool.name, as_response(result, self.tool.name))
            if part.function_response:
                part.function_response.will_continue = True
            yield Event(content=parts.content("user", [part]))

    async def _call_with_hooks(self, ctx: Context, args: dict[str, Any]) -> Any:
        """The tool's result, or that of a plugin in its place."""
        hooks = ctx.get_invocation_context().plugin_manager.hooks
        arguments: dict[str, Any] = {"tool": self.tool, "args": args, "tool_context": ctx}
        result = None
        if before := hooks("before_tool"):
            approved_args = copy.deepcopy(args)
            result = await first_result(before, **arguments)
            # The gate passed other arguments: the changed ones need a check of their own.
            if result is None and not approvals.is_same_json(args, approved_args):
                if ctx.tool_confirmation is not None:
                    result = {"error": approvals.CHANGED}
                elif await self.confirmation(ctx, args):
                    result = {"error": approvals.CHANGED_INTO_GATED}
        if result is None:
            try:
                decided = ctx.get_invocation_context().decisions.pop(approval_id(ctx.node_path), None)
                # A sync tool on the event loop would block the timer.
                with sync.in_workers() if self.timeout else nullcontext():
                    result = await call_node_tool(self.tool, args, ctx, decided)
            except Exception as error:
                result = await first_result(hooks("on_tool_error"), **arguments, error=error)
                if result is None:
                    raise
        after = hooks("after_tool")
        if after:
            response = as_response(result, self.tool.name)
            replacement = await first_result(after, **arguments, tool_response=response)
            result = result if replacement is None else replacement
        return result

    def _arguments(self, node_input: Any) -> dict[str, Any]:
        if node_input is None:
            return {}
        if isinstance(node_input, types.Content):
            node_input = "".join(part.text for part in node_input.parts or () if part.text)
        declaration = self.tool.function_declaration
        schema: dict[str, Any] = (declaration and declaration.parameters_json_schema) or {}
        names = list(schema.get("properties", {}))
        # A dict without the only parameter is the value of that parameter.
        if isinstance(node_input, dict) and not (len(names) == 1 and names[0] not in node_input):
            return cast(dict[str, Any], node_input)
        if len(names) != 1:
            raise WorkflowDataError(
                f"node {self.name!r}: the tool takes {', '.join(names) or 'nothing'}, and the input is not a dict with "
                "these keys"
            )
        return {names[0]: node_input}
