"""`RestApiTool`: an operation of a web service as a tool."""

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
from adk_nb.tools.auth.exchange import find_credential, renew_credential
from adk_nb.tools.base_tool import effect_of_method
from adk_nb.tools.conditions import Condition
from adk_nb.tools.openapi_tool.auth.auth_helpers import dict_to_auth_scheme
from adk_nb.tools.openapi_tool.credential import with_credential
from adk_nb.tools.openapi_tool.openapi_spec_parser.openapi_spec_parser import EXTRA
from adk_nb.tools.openapi_tool.operation import Operation, is_json, with_headers
from adk_nb.tools.remote_tool import RemoteTool
from adk_nb.tools.web_access import Verify, WebAccess, WebResponse

HeaderProvider = Callable[[ReadonlyContext], Any]
"""`(context) -> dict[str, str]`, sync or async: headers of each request, which the model never sees."""
_MAX_ERROR = 2_000
"""Characters of an error response that the model gets."""


class RestApiTool(RemoteTool):
    """Sends the model's arguments as an HTTP request and returns the response.

    The result is the response's JSON, else its text as `{"text": ...}`, else its bytes as `{"content": ...}`. HTTP 300
    and above, and a missing response, are `{"error": ...}`.
    """

    extra = EXTRA

    def __init__(
        self,
        operation: Operation,
        web: WebAccess,
        *,
        auth_configs: Sequence[AuthConfig] = (),
        require_confirmation: Condition = False,
        header_provider: HeaderProvider | None = None,
    ) -> None:
        """`web`: shared, so not closed here. `auth_configs`: all of them are needed."""
        super().__init__(name=operation.name, description=operation.description)
        self.operation = operation
        self.bound_to = f"{operation.method} {operation.url}"
        self.effect = effect_of_method(operation.method)
        self.auth_scheme: AuthScheme | None = None
        self.auth_credential: AuthCredential | None = None
        self.credential_key: str | None = None
        self.set_schema(operation.schema)
        self._set_auth_configs(auth_configs)
        self.require_confirmation = require_confirmation
        self.header_provider = header_provider
        self._headers: dict[str, str] = {}
        self._web = web
        # Given for all operations of a document: they go to another host only if the author gives them to this tool.
        self._shared_credential = any(config.raw_auth_credential for config in self.auth_configs)
        self._shared_provider = header_provider

    def __repr__(self) -> str:
        return f"RestApiTool({self.name}: {self.bound_to})"

    def configure_auth_scheme(self, auth_scheme: AuthScheme | Mapping[str, Any]) -> None:
        """Override the document's security scheme. An ADK name, as the other `configure_...` and
        `set_default_headers`.
        """
        is_dict = isinstance(auth_scheme, Mapping)
        self.auth_scheme = dict_to_auth_scheme(auth_scheme) if is_dict else auth_scheme
        self._configure()

    def configure_auth_credential(self, auth_credential: AuthCredential | str | None = None) -> None:
        """Use this credential; a text is parsed as JSON. None: ask the user."""
        is_json_text = isinstance(auth_credential, str)
        self.auth_credential = AuthCredential.model_validate_json(auth_credential) if is_json_text else auth_credential
        self._shared_credential = False
        self._configure()

    def configure_credential_key(self, credential_key: str | None = None) -> None:
        """Store a user's credential under this key."""
        self.credential_key = credential_key
        self._configure()

    def configure_ssl_verify(self, ssl_verify: Verify | None = None) -> None:
        """Set the verification of server certificates. None: the system's store."""
        self._web = self._web.with_verification(True if ssl_verify is None else ssl_verify)

    def set_default_headers(self, headers: Mapping[str, str]) -> None:
        """Send these headers with each request, unless it sets them itself."""
        remember_named(headers)
        self._headers = dict(headers)

    def _configure(self) -> None:
        if self.auth_scheme is not None:
            config = AuthConfig(
                auth_scheme=self.auth_scheme,
                raw_auth_credential=self.auth_credential,
                credential_key=self.credential_key or "",
            )
            self._set_auth_configs([config, *self.auth_configs[1:]])

    def _set_auth_configs(self, configs: Sequence[AuthConfig]) -> None:
        self.auth_configs = tuple(configs)
        self.auth_config = configs[0] if configs else None
        operation = self.operation.without_keys(*(config.auth_scheme for config in configs))
        if operation is not self.operation:
            self.operation = operation
            self.set_schema(operation.schema)
            self._declaration_cache = ()
        if self.auth_config:
            self.auth_scheme = self.auth_config.auth_scheme
            self.auth_credential = self.auth_config.raw_auth_credential

    def _get_declaration(self) -> types.FunctionDeclaration | None:
        schema = self.operation.schema if self.operation.arguments else None
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=schema)

    def sent_args(self, args: dict[str, Any]) -> dict[str, Any]:
        """`args` without the nulls that stand for a missing value."""
        return self.operation.without_nulls(args)

    def comparable_args(self, args: dict[str, Any]) -> dict[str, Any]:
        """What is sent of `args`, with the defaults of the schema."""
        sent = super().comparable_args(args)
        return {argument.name: sent[argument.name] for argument in self.operation.arguments if argument.name in sent}

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Send the request; failures become `{"error": ...}`."""
        if message := self.check(args):
            return {"error": message}
        try:
            request = self.operation.build_request(self.sent_args(args))
        except ValueError as error:
            return {"error": f"{self.name}() was not called: {error}"}
        if self.operation.foreign_to:
            # What the author gave for the document's server goes to another host only if given to this tool.
            tool, ways = f"toolset.get_tool({self.operation.name!r})", list[str]()
            if self._shared_credential:
                ways.append(f"{tool}.configure_auth_credential(...)")
            if self._shared_provider and self.header_provider is self._shared_provider:
                ways.append(f"{tool}.header_provider = ...")
            if ways:
                return {
                    "error": f"{self.name}() was not called: its own server is {self.operation.url}, and the "
                    f"credentials are for {self.operation.foreign_to}; the author may allow it: {' and '.join(ways)}"
                }
        request["headers"] = with_headers(self._headers, request["headers"])
        if self.header_provider:
            headers = self.header_provider(tool_context)
            headers = await headers if inspect.isawaitable(headers) else headers
            remember_named(headers)
            request["headers"] = with_headers(request["headers"], headers)
        try:
            response = await self._send(request, tool_context)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            reason = hidden(str(error)) or "no answer in time"
            return {"error": f"{self.name}: {type(error).__name__}: {reason:.{_MAX_ERROR}}"}
        return self._result(response) if response else placeholder()

    async def call(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """Alias of `run_async` in ADK."""
        return await self.run_async(args=args, tool_context=tool_context)

    async def _send(self, request: dict[str, Any], context: ToolContext) -> WebResponse | None:
        """Send the request, again with renewed credentials after HTTP 401. None: the user has to be asked for one."""
        credentials: list[AuthCredential] = []
        for config in self.auth_configs:
            known_credential = context.auth_credential if config is self.auth_config else None
            if (credential := known_credential or await find_credential(config, context)) is None:
                context.request_credential(config)
                return None
            credentials.append(credential)
        response = await self._web.send(**self._add_credentials(request, credentials))
        if response.status != 401:  # 403: valid, but not sufficient, so a new one would not help
            return response
        for position, config in enumerate(self.auth_configs):
            if (rejected := credentials[position]) == config.raw_auth_credential:
                continue  # the author's own credential cannot be renewed
            if (credential := await renew_credential(config, rejected, context)) is None:
                context.request_credential(config)
                return None
            credentials[position] = credential
            context.auth_credential = credentials[0]
        if credentials == [config.raw_auth_credential for config in self.auth_configs]:
            return response
        return await self._web.send(**self._add_credentials(request, credentials))

    def _add_credentials(self, request: dict[str, Any], credentials: Sequence[AuthCredential]) -> dict[str, Any]:
        for config, credential in zip(self.auth_configs, credentials, strict=True):
            request = with_credential(request, config.auth_scheme, credential)
        return request

    def _result(self, response: WebResponse) -> dict[str, Any]:
        if response.status >= 300:
            redirect = (
                f" to {response.redirect_target}, which is not followed for {self.operation.method}"
                if response.redirect_target
                else ""
            )
            body = hidden(response.body[: 8 * _MAX_ERROR].decode("utf-8", "replace"))[:_MAX_ERROR]
            return {"error": f"{self.name}: HTTP {response.status}{redirect}: {body}".rstrip(": ")}
        note = {"note": f"the answer was cut after {len(response.body)} bytes"} if response.cut else {}
        media_type = response.headers.get("content-type", "")
        try:
            text = response.body.decode()
        except UnicodeDecodeError:
            return {"content": response.body, "media_type": media_type, **note}
        if (value := _parse_json(text, media_type)) is None:
            return {"text": text, **note}
        return cast(dict[str, Any], value) if isinstance(value, dict) else {"result": value}


def _parse_json(text: str, media_type: str) -> Any:
    """The response's JSON; None if it is not JSON, or is JSON null."""
    if not is_json(media_type) and text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
