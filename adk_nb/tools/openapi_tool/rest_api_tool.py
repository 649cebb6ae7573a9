"""An operation of a web service as a tool."""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import httpx2

from adk_nb import types
from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_schemes import AuthScheme
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.redaction import hidden, remember_named
from adk_nb.runtime.context import ReadonlyContext, ToolContext
from adk_nb.runtime.credentials import placeholder
from adk_nb.tools.auth.exchange import credential_for, renewed
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.conditions import Decides, is_asked, with_defaults
from adk_nb.tools.effects import effect_of_method
from adk_nb.tools.json_arguments import JsonArguments
from adk_nb.tools.openapi_tool.auth.auth_helpers import dict_to_auth_scheme
from adk_nb.tools.openapi_tool.credential import with_credential
from adk_nb.tools.openapi_tool.openapi_spec_parser.openapi_spec_parser import EXTRA
from adk_nb.tools.openapi_tool.operation import Operation, is_json
from adk_nb.tools.web_access import Answer, Verify, WebAccess

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
        auth_configs: Sequence[AuthConfig] = (),
        require_confirmation: Decides = False,
        header_provider: HeaderProvider | None = None,
    ) -> None:
        """`web`: shared, and not this tool's own. `auth_configs`: all are needed."""
        super().__init__(name=operation.name, description=operation.description)
        self.operation = operation
        self.bound_to = f"{operation.method} {operation.url}"
        self.effect = effect_of_method(operation.method)
        self.auth_scheme: AuthScheme | None = None
        self.auth_credential: AuthCredential | None = None
        self.credential_key: str | None = None
        self._let_in_by(auth_configs)
        self.require_confirmation = require_confirmation
        self.header_provider = header_provider
        self._headers: dict[str, str] = {}
        self._web = web
        self._arguments = JsonArguments(operation.schema, EXTRA)

    def __repr__(self) -> str:
        return f"RestApiTool({self.name}: {self.bound_to})"

    def configure_auth_scheme(self, auth_scheme: AuthScheme | Mapping[str, Any]) -> None:
        """Show the credential in this way, whatever the document says. ADK's name, as of the next four."""
        is_written = isinstance(auth_scheme, Mapping)
        self.auth_scheme = dict_to_auth_scheme(auth_scheme) if is_written else auth_scheme
        self._configure()

    def configure_auth_credential(self, auth_credential: AuthCredential | str | None = None) -> None:
        """Show this credential; a text is its JSON. None: a person is asked."""
        is_written = isinstance(auth_credential, str)
        self.auth_credential = AuthCredential.model_validate_json(auth_credential) if is_written else auth_credential
        self._configure()

    def configure_credential_key(self, credential_key: str | None = None) -> None:
        """Keep a user's credential under this name."""
        self.credential_key = credential_key
        self._configure()

    def configure_ssl_verify(self, ssl_verify: Verify | None = None) -> None:
        """Check servers' certificates in this way. None: as the machine does."""
        self._web = self._web.verifying(True if ssl_verify is None else ssl_verify)

    def set_default_headers(self, headers: Mapping[str, str]) -> None:
        """Send these with each request, where nothing else sets them."""
        remember_named(headers)
        self._headers = dict(headers)

    def _configure(self) -> None:
        if self.auth_scheme is not None:
            config = AuthConfig(
                auth_scheme=self.auth_scheme,
                raw_auth_credential=self.auth_credential,
                credential_key=self.credential_key or "",
            )
            self._let_in_by([config, *self.auth_configs[1:]])

    def _let_in_by(self, configs: Sequence[AuthConfig]) -> None:
        self.auth_configs = tuple(configs)
        self.auth_config = configs[0] if configs else None
        if self.auth_config:
            self.auth_scheme = self.auth_config.auth_scheme
            self.auth_credential = self.auth_config.raw_auth_credential

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        schema = self.operation.schema if self.operation.arguments else None
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    def check(self, args: dict[str, Any]) -> str | None:
        if wrong := self._arguments.wrong(self.operation.given(args)):
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
            request = self.operation.request(self.operation.given(args))
        except ValueError as error:
            return {"error": f"{self.name}() was not called: {error}"}
        request["headers"] = self._headers | request["headers"]
        if self.header_provider:
            given = self.header_provider(tool_context)
            given = await given if inspect.isawaitable(given) else given
            remember_named(given)
            request["headers"] |= given
        try:
            answer = await self._answer(request, tool_context)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            told = hidden(str(error)) or "no answer in time"
            return {"error": f"{self.name}: {type(error).__name__}: {told:.{_MAX_ERROR}}"}
        return self._result(answer) if answer else placeholder()

    async def call(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """ADK's other name for `run_async`."""
        return await self.run_async(args=args, tool_context=tool_context)

    async def _answer(self, request: dict[str, Any], context: ToolContext) -> Answer | None:
        """What the service answers, to other credentials if it rejects the first; None if a person is to be asked."""
        shown: list[AuthCredential] = []
        for config in self.auth_configs:
            first = context.auth_credential if config is self.auth_config else None
            if (credential := first or await credential_for(config, context)) is None:
                context.request_credential(config)
                return None
            shown.append(credential)
        answer = await self._web.ask(**self._with(request, shown))
        if answer.status != 401:
            return answer
        for position, config in enumerate(self.auth_configs):
            if (rejected := shown[position]) == config.raw_auth_credential:
                continue  # the author's own: there is no other
            if (credential := await renewed(config, rejected, context)) is None:
                context.request_credential(config)
                return None
            shown[position] = credential
            context.auth_credential = shown[0]
        given = [config.raw_auth_credential for config in self.auth_configs]
        return answer if shown == given else await self._web.ask(**self._with(request, shown))

    def _with(self, request: dict[str, Any], shown: Sequence[AuthCredential]) -> dict[str, Any]:
        for config, credential in zip(self.auth_configs, shown, strict=True):
            request = with_credential(request, config.auth_scheme, credential)
        return request

    def _result(self, answer: Answer) -> dict[str, Any]:
        if answer.status >= 300:
            place = (
                f" to {answer.moved_to}, which is not followed for {self.operation.method}" if answer.moved_to else ""
            )
            body = hidden(answer.body[: 8 * _MAX_ERROR].decode("utf-8", "replace"))[:_MAX_ERROR]
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
