"""A service as a tool of a workflow's agents."""

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

import httpx2

from adk_nb import types
from adk_nb.errors import MissingExtraError, ServiceRefused
from adk_nb.graph_compose.configs import ActivityConfig, HttpToolConfig
from adk_nb.models.http_messages import state_for
from adk_nb.models.http_template import Filling, check_template
from adk_nb.models.retrying import retry, seconds_of
from adk_nb.redaction import hidden, in_result, remember_named, remember_url
from adk_nb.runtime.context import ToolContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.effects import effect_of_method
from adk_nb.tools.json_arguments import JsonArguments
from adk_nb.tools.web_access import WebAccess, WebResponse
from adk_nb.wire import json_problem

_PASSING = (httpx2.NetworkError, httpx2.RemoteProtocolError, httpx2.TimeoutException, TimeoutError)
_Result = tuple[dict[str, Any], bool]
"""What the agent is told, and whether it is what the service answered."""
_MAX_ERROR = 2_000
"""Characters of what a service says of an error."""


class HttpTool(BaseTool):
    """Sends `tool_name`, `arguments`, `session_state` and `context` as JSON; with GET the arguments as a query.

    The result is the answer's JSON object; other JSON, or text, as `{"result": ...}`. What failed in the end is
    `{"error": ..., "status_code": ...}`, which the agent is told, and which is not kept under `output_key`.
    """

    def __init__(
        self,
        config: HttpToolConfig,
        web: WebAccess,
        secrets: Mapping[str, str],
        workflow: str,
        ids: Mapping[str, str],
    ) -> None:
        """`web`: shared. `workflow`: its name, which the service is told. `ids`: of its agents, by their names."""
        super().__init__(name=config.id, description=config.description or config.id)
        http = config.http_config
        check_template([http.url, http.headers, http.body], f"tool {config.id!r}")
        remember_named(http.headers)
        self.bound_to = f"{http.method} {http.url}"
        self.effect = effect_of_method(http.method)
        self._config = config
        self._activity = config.activity_config or ActivityConfig()
        self._web = web
        self._secrets = secrets
        self._workflow = workflow
        self._ids = ids
        self._arguments = _checker(config.parameters) if config.parameters else None

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._config.parameters
        )

    def check(self, args: dict[str, Any]) -> str | None:
        if self._arguments and (wrong := self._arguments.error_message(args)):
            return f"{self.name}() was not called: wrong arguments: {wrong}. Call it again with arguments that fit."
        return None

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if wrong := self.check(args):
            return {"error": wrong}
        given, worked = await self._result(self._asked(args, tool_context))
        result = in_result(given)
        if self._config.output_key and worked:
            tool_context.state[self._config.output_key] = result
        return result

    def _asked(self, args: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        http, state = self._config.http_config, context.state.to_dict()
        filling = Filling(state, self._secrets)
        headers = {name: filling.text(value) for name, value in http.headers.items()}
        remember_named(headers)
        url = filling.url(http.url)
        remember_url(url)
        if http.method == "GET":
            query = {name: value if isinstance(value, str) else json.dumps(value) for name, value in args.items()}
            return {"method": "GET", "url": str(httpx2.URL(url).copy_merge_params(query)), "headers": headers}
        agent = self._ids.get(context.agent_name, context.agent_name)
        where = {"workflow_id": self._workflow, "agent_id": agent, "call_id": context.function_call_id}
        said = {"tool_name": self.name, "arguments": args, "session_state": state_for(state), "context": where}
        return {
            "method": http.method,
            "url": url,
            "headers": {"Content-Type": "application/json"} | headers,
            "content": json.dumps(filling.json(http.body) | said, ensure_ascii=False).encode("utf-8", "replace"),
        }

    async def _result(self, asked: dict[str, Any]) -> _Result:
        within = self._activity.total_timeout
        try:
            async with asyncio.timeout(within):
                answer = await retry(
                    partial(self._ask, asked),
                    self._activity.retry_policy.options(),
                    model=self.name,
                    within=within,
                    passes=_passes,
                    asked_to_wait=lambda error: error.retry_after if isinstance(error, ServiceRefused) else None,
                    what="tool",
                )
        except ServiceRefused as error:
            return self._failed(f"HTTP {error.status}: {error.body}".rstrip(": "), error.status)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            late = isinstance(error, TimeoutError | httpx2.TimeoutException)
            told = hidden(str(error))[:_MAX_ERROR] or ("no answer in time" if late else "the connection broke")
            return self._failed(f"{type(error).__name__}: {told}", None)
        return self._read(answer)

    async def _ask(self, asked: dict[str, Any]) -> WebResponse:
        async with asyncio.timeout(self._activity.start_to_close_timeout):
            answer = await self._web.send(**asked, follow=False)
        if not 200 <= answer.status < 300:
            body = hidden(answer.body[: 8 * _MAX_ERROR].decode("utf-8", "replace"))[:_MAX_ERROR]
            refused = ServiceRefused(answer.status, body, self.name)
            refused.retry_after = seconds_of(answer.headers.get("retry-after", ""))
            raise refused
        return answer

    def _failed(self, why: str, status: int | None) -> _Result:
        told: dict[str, Any] = {"body": None, "headers": {}} if self._config.raw else {}
        return told | {"error": f"{self.name}: {why}", "status_code": status}, False

    def _read(self, answer: WebResponse) -> _Result:
        if answer.cut:
            return self._failed(f"the answer has more than {len(answer.body):,} bytes", answer.status)
        text = answer.body.decode("utf-8", "replace")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = text
        if wrong := json_problem(value):
            return self._failed(f"the answer cannot be kept as JSON: {wrong}", answer.status)
        if self._config.raw:
            whole = {"status_code": answer.status, "body": value, "headers": dict(answer.headers), "error": None}
            return whole, True
        return (cast(dict[str, Any], value) if isinstance(value, dict) else {"result": value}), True


def _checker(schema: dict[str, Any]) -> JsonArguments | None:
    try:
        return JsonArguments(schema, "'adk-nb[openapi]'")
    except MissingExtraError:  # the service checks for itself
        return None


def _passes(error: BaseException) -> bool:
    if isinstance(error, ServiceRefused):
        return error.status in (408, 425, 429) or error.status >= 500
    return isinstance(error, _PASSING)
