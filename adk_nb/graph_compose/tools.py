"""The tools of a workflow: HTTP services, other agents, Python functions, and requests to the user."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, cast

import httpx2

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import MissingExtraError, ServiceRefused
from adk_nb.graph_compose.activities import run_activity
from adk_nb.graph_compose.configs import ActivityConfig, AgentToolConfig, FunctionToolConfig, HttpToolConfig
from adk_nb.models.http_messages import ASK_A_PERSON, TemplateValues, check_template, sent_state
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.retrying import seconds_of
from adk_nb.redaction import hidden, in_result, remember_named, remember_url
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.agent_tool import AgentTool
from adk_nb.tools.base_tool import BaseTool, effect_of_method
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.json_arguments import JsonArguments
from adk_nb.tools.web_access import WebAccess, WebResponse
from adk_nb.wire import json_or_text, json_problem

_TRANSIENT_ERRORS = (httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.TimeoutException, TimeoutError)
_Result = tuple[dict[str, Any], bool]
"""The tool's result, and True if it is a success."""
_MAX_ERROR_CHARS = 2_000
"""Limit of characters of a service's error message."""


class HttpTool(BaseTool):
    """Sends `tool_name`, `arguments`, `session_state` and `context` as JSON; with GET the arguments as a query.

    The result is the response's JSON object; other JSON, or text, as `{"result": ...}`. After a failure it is
    `{"error": ..., "status_code": ...}`, which does not go to `output_key`.
    """

    def __init__(
        self,
        config: HttpToolConfig,
        web: WebAccess,
        secrets: Mapping[str, str],
        workflow: str,
        ids: Mapping[str, str],
    ) -> None:
        """`web`: shared. `workflow`: the name sent to the service. `ids`: agent name -> id."""
        super().__init__(name=config.id, description=config.description or config.id)
        http = config.http_config
        check_template([http.url, http.headers, http.body], f"tool {config.id!r}")
        remember_named(http.headers)
        self.bound_to = f"{http.method} {http.url}"
        # POST is how every tool is asked unless somebody says otherwise: see `BaseTool.asks_to_repeat`.
        if "method" in http.model_fields_set:
            self.effect = effect_of_method(http.method)
        self._config = config
        self._activity = config.activity_config or ActivityConfig()
        self._web = web
        self._secrets = secrets
        self._workflow = workflow
        self._ids = ids
        self._validator: JsonArguments | None = None
        if config.parameters:
            with suppress(MissingExtraError):  # the service validates its arguments
                self._validator = JsonArguments(config.parameters, "adk-nb[openapi]")

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._config.parameters
        )

    def check(self, args: dict[str, Any]) -> str | None:
        if self._validator and (problem := self._validator.error_message(args)):
            return f"{self.name}() was not called: wrong arguments: {problem}. Call it again with valid arguments."
        return None

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if problem := self.check(args):
            return {"error": problem}
        response, is_success = await self._send_with_retries(self._build_request(args, tool_context))
        result = in_result(response)
        if self._config.output_key and is_success:
            tool_context.state[self._config.output_key] = result
        return result

    def _build_request(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        http, state = self._config.http_config, context.state.to_dict()
        values = TemplateValues(state, self._secrets)
        headers = {name: values.text(value) for name, value in http.headers.items()}
        remember_named(headers)
        url = values.url(http.url)
        remember_url(url)
        if http.method == "GET":
            query = {name: value if isinstance(value, str) else json.dumps(value) for name, value in args.items()}
            return {"method": "GET", "url": str(httpx2.URL(url).copy_merge_params(query)), "headers": headers}
        agent = self._ids.get(context.agent_name, context.agent_name)
        call_context = {"workflow_id": self._workflow, "agent_id": agent, "call_id": context.function_call_id}
        payload = {
            # Source of the fields: Graph Compose's contract for tools.
            "tool_name": self.name,
            "arguments": args,
            "session_state": sent_state(state),
            "context": call_context,
        }
        return {
            "method": http.method,
            "url": url,
            "headers": {"Content-Type": "application/json"} | headers,
            # The contract's fields win over fields of the same name in `body`.
            "content": json.dumps(values.json(http.body) | payload, ensure_ascii=False).encode("utf-8", "replace"),
        }

    async def _send_with_retries(self, request: dict[str, Any]) -> _Result:
        try:
            response = await run_activity(
                partial(self._send, request), self._activity, self.name, "tool", is_temporary=_is_transient
            )
        except ServiceRefused as error:
            return self._error_result(f"HTTP {error.status}: {error.body}".rstrip(": "), error.status)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            is_timeout = isinstance(error, TimeoutError | httpx2.TimeoutException)
            message = hidden(str(error))[:_MAX_ERROR_CHARS] or (
                "no answer in time" if is_timeout else "the connection broke"
            )
            return self._error_result(f"{type(error).__name__}: {message}", None)
        if response.cut:
            return self._error_result(f"the response has more than {len(response.body):,} bytes", response.status)
        value = json_or_text(response.body.decode("utf-8", "replace"))
        if problem := json_problem(value):
            return self._error_result(f"the response cannot be stored as JSON: {problem}", response.status)
        if self._config.raw:
            fields = {"status_code": response.status, "body": value, "headers": dict(response.headers), "error": None}
            return fields, True
        return (cast(dict[str, Any], value) if isinstance(value, dict) else {"result": value}), True

    async def _send(self, request: dict[str, Any]) -> WebResponse:
        async with asyncio.timeout(self._activity.start_to_close_timeout):
            # No redirects: the headers may contain secrets for the first host.
            response = await self._web.send(**request, follow=False)
        if not 200 <= response.status < 300:
            body = hidden(response.body[: 8 * _MAX_ERROR_CHARS].decode("utf-8", "replace"))[:_MAX_ERROR_CHARS]
            error = ServiceRefused(response.status, body, self.name)
            error.retry_after = seconds_of(response.headers.get("retry-after", ""))
            raise error
        return response

    def _error_result(self, message: str, status: int | None) -> _Result:
        fields: dict[str, Any] = {"body": None, "headers": {}} if self._config.raw else {}
        return fields | {"error": f"{self.name}: {message}", "status_code": status}, False


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, ServiceRefused):
        return error.status in (408, 425, 429) or error.status >= 500
    return isinstance(error, _TRANSIENT_ERRORS)


class AskUserTool(BaseTool):
    """The call behind a service's `hitlRequest`: waits for the user's answer. Not declared to models."""

    effect = "pure"

    def __init__(self) -> None:
        super().__init__(name="ask_a_person", description="Asks a person.", is_long_running=True)
        self.name = ASK_A_PERSON  # one of the reserved names

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return None

    async def process_llm_request(self, *, tool_context: ToolContext, llm_request: LlmRequest) -> None:
        # In `tools_dict`, so that the loop runs the call, but not declared: services ask with `hitlRequest`.
        llm_request.tools_dict[self.name] = self


ask_a_person = AskUserTool()
"""For `LlmAgent(model=HttpLlm(...), tools=[ask_a_person])`; the agents of a workflow have it."""


class WorkflowAgentTool(AgentTool):
    """Another agent of the workflow as a tool; its answer is stored in the state."""

    def __init__(self, agent: BaseAgent, config: AgentToolConfig) -> None:
        super().__init__(agent, config.skip_summarization)
        self._key = config.output_key

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return _store_result(self._key, await super().run_async(args=args, tool_context=tool_context), tool_context)


class WorkflowFunctionTool(FunctionTool):
    """A function with the retries of its activity; its result is stored in the state.

    State changes of failed attempts are kept.
    """

    def __init__(self, config: FunctionToolConfig) -> None:
        self._key = config.output_key
        self._activity = config.activity_config
        super().__init__(
            config.func,
            name=config.id,
            description=config.description or None,
            timeout=self._activity.start_to_close_timeout if self._activity else None,
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        attempt = partial(super().run_async, args=args, tool_context=tool_context)
        result = await (run_activity(attempt, self._activity, self.name, "tool") if self._activity else attempt())
        return _store_result(self._key, result, tool_context)


def _store_result(key: str | None, result: Any, context: ToolContext) -> Any:
    # An error would look like a result to the agent that reads the key.
    is_error = isinstance(result, dict) and "error" in result
    if key and not is_error:
        context.state[key] = result
    return cast(Any, result)
