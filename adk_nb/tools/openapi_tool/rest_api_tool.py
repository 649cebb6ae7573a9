"""An operation of a web service as a tool."""

import inspect
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import httpx2

from adk_nb import types
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.runtime.context import ReadonlyContext, ToolContext
from adk_nb.runtime.credentials import placeholder
from adk_nb.tools.auth.exchange import renewed
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.conditions import Decides, is_asked, with_defaults
from adk_nb.tools.json_arguments import JsonArguments
from adk_nb.tools.openapi_tool.credential import with_credential
from adk_nb.tools.openapi_tool.openapi_spec_parser.openapi_spec_parser import EXTRA
from adk_nb.tools.openapi_tool.operation import Operation, is_json
from adk_nb.tools.web_access import Answer, WebAccess

HeaderProvider = Callable[[ReadonlyContext], Any]
"""`(context) -> dict[str, str]`, sync or async: headers of each request, which the model never sees."""
_MAX_ERROR = 2_000
"""Characters of what a server says of an error."""


class RestApiTool(BaseTool):
    """Sends the model's arguments as one HTTP request, and hands back what is answered.

    The result is the answer's JSON, else its text as `{"text": ...}`, else its bytes as `{"content": ...}`. A refusal
    (HTTP 300 and above) and an answer that never came are `{"error": ...}`.
    """

    def __init__(
        self,
        operation: Operation,
        web: WebAccess,
        *,
        auth_config: AuthConfig | None = None,
        require_confirmation: Decides = False,
        header_provider: HeaderProvider | None = None,
    ) -> None:
        """`web`: shared, and not this tool's own."""
        super().__init__(name=operation.name, description=operation.description)
        self.operation = operation
        self.bound_to = f"{operation.method} {operation.url}"
        self.auth_config = auth_config
        self.require_confirmation = require_confirmation
        self.header_provider = header_provider
        self._web = web
        self._arguments = JsonArguments(operation.schema, EXTRA)

    def __repr__(self) -> str:
        return f"RestApiTool({self.name}: {self.bound_to})"

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        schema = self.operation.schema if self.operation.arguments else None
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    def check(self, args: dict[str, Any]) -> str | None:
        if wrong := self._arguments.wrong(_without_none(args)):
            return f"{self.name}() was not called: wrong arguments: {wrong}. Call it again with arguments that fit."
        return None

    async def check_require_confirmation(self, args: dict[str, Any], tool_context: ToolContext) -> bool:
        if not self.require_confirmation or self.check(args):
            return False  # wrong arguments go back to the model; nothing will run
        return await is_asked(self.require_confirmation, with_defaults(self.operation.schema, args), tool_context)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        if wrong := self.check(args):
            return {"error": wrong}
        try:
            request = self.operation.request(_without_none(args))
        except ValueError as error:
            return {"error": f"{self.name}() was not called: {error}"}
        if self.header_provider:
            given = self.header_provider(tool_context)
            request["headers"] |= await given if inspect.isawaitable(given) else given
        try:
            answer = await self._answer(request, tool_context)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            told = str(error) or "no answer in time"
            return {"error": f"{self.name}: {type(error).__name__}: {told:.{_MAX_ERROR}}"}
        return self._result(answer) if answer else placeholder()

    async def _answer(self, request: dict[str, Any], tool_context: ToolContext) -> Answer | None:
        """What the service answers, to another credential if it rejects the first; None if a person is to be asked."""
        config, shown = self.auth_config, tool_context.auth_credential
        if config is None or shown is None:
            return await self._web.ask(**request)
        answer = await self._web.ask(**with_credential(request, config.auth_scheme, shown))
        if answer.status != 401 or shown == config.raw_auth_credential:
            return answer
        tool_context.auth_credential = await renewed(config, shown, tool_context)
        if tool_context.auth_credential is None:
            tool_context.request_credential(config)
            return None
        return await self._web.ask(**with_credential(request, config.auth_scheme, tool_context.auth_credential))

    def _result(self, answer: Answer) -> dict[str, Any]:
        if answer.status >= 300:
            place = f" to {answer.headers['location']}, which is not followed" if "location" in answer.headers else ""
            body = answer.body[: 4 * _MAX_ERROR].decode("utf-8", "replace")[:_MAX_ERROR]
            return {"error": f"{self.name}: HTTP {answer.status}{place}: {body}".rstrip(": ")}
        cut = {"note": f"the answer was cut after {len(answer.body)} bytes"} if answer.cut else {}
        media_type = answer.headers.get("content-type", "")
        try:
            text = answer.body.decode()
        except UnicodeDecodeError:
            return {"content": answer.body, "media_type": media_type, **cut}
        if (value := _parsed(text, media_type)) is None:
            return {"text": text, **cut}
        return cast(dict[str, Any], value) if isinstance(value, dict) else {"result": value}


def _parsed(text: str, media_type: str) -> Any:
    """The JSON that an answer is; None if it is none, or is the JSON null."""
    if not is_json(media_type) and text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _without_none(args: Mapping[str, Any]) -> dict[str, Any]:
    """Some models send null for what they leave out."""
    return {key: one for key, one in args.items() if one is not None}
