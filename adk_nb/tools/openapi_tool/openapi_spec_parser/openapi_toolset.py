"""The operations of a web service that an OpenAPI document describes, as tools."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from adk_nb.auth.auth_schemes import AuthScheme
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset, ToolPredicate
from adk_nb.tools.conditions import Decides, as_condition
from adk_nb.tools.openapi_tool.openapi_spec_parser.document import read
from adk_nb.tools.openapi_tool.openapi_spec_parser.openapi_spec_parser import EXTRA, operations_of
from adk_nb.tools.openapi_tool.rest_api_tool import HeaderProvider, RestApiTool
from adk_nb.tools.openapi_tool.ways_in import Credentials, WaysIn
from adk_nb.tools.web_access import ClientFactory, Verify, WebAccess


class OpenAPIToolset(BaseToolset):
    """Each operation of an OpenAPI 3 document as a tool, called what its `operationId` says, in snake_case.

    Args:
        spec_dict: The document.
        spec_str: Instead, its text.
        spec_str_type: What the text is.
        auth_scheme: How the service wants to be shown a credential, by all of these tools. None: as the document says
            for each operation, in `security` and `securitySchemes`.
        auth_credential: The credential, or the client that gets one; where a document has several schemes, it may be a
            dict of them by the schemes' names. None: a person is asked, unless `header_provider` or
            `httpx_client_factory` is there to show one and no `auth_scheme` is given.
        credential_key: The name under which a user's credential is kept; with the scheme's name after it, if the
            document has several.
        ssl_verify: How servers' certificates are checked: as the machine does, by the certificates in a file, by a
            context of your own, or not at all.
        header_provider: Gives headers for each request, such as a key; the model never sees them.
        httpx_client_factory: Makes the client of each request, for a proxy or a transport of your own: one of httpx2 or
            of httpx, which is closed afterwards. `ssl_verify` is then the client's affair.
        preserve_property_names: Arguments are called what the document calls them, not in snake_case.
        allow_private_network_access: Also reach this machine and its private networks.
        require_confirmation: Ask a person before a request is sent: True, or a condition on the arguments, as for
            FunctionTool. Before an operation that has not all that an expression names, a person is always asked.

    Raises:
        ConfigurationError: It is no OpenAPI 3 document, or one that refers to what is not in it or names no server.
        MissingExtraError: What reads such documents is not installed.
    """

    def __init__(
        self,
        *,
        spec_dict: Mapping[str, Any] | None = None,
        spec_str: str | None = None,
        spec_str_type: Literal["json", "yaml"] = "json",
        auth_scheme: AuthScheme | None = None,
        auth_credential: Credentials | None = None,
        credential_key: str | None = None,
        tool_filter: ToolPredicate | Sequence[str] | None = None,
        tool_name_prefix: str | None = None,
        ssl_verify: Verify | None = None,
        header_provider: HeaderProvider | None = None,
        httpx_client_factory: ClientFactory | None = None,
        preserve_property_names: bool = False,
        allow_private_network_access: bool = False,
        require_confirmation: Decides = False,
    ) -> None:
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        document = _document(spec_dict, spec_str, spec_str_type)
        try:
            operations = operations_of(document, preserve_property_names=preserve_property_names)
        except RecursionError:
            raise ConfigurationError(
                "the OpenAPI document has schemas that are nested too deep, or hold themselves; give those that are "
                "used in each other a place in components/schemas, and refer to them with $ref"
            ) from None
        known = {argument.name for one in operations for argument in one.arguments}
        self.require_confirmation = as_condition(require_confirmation, type(self).__name__, known)
        self._web = WebAccess(
            allow_private_network_access=allow_private_network_access,
            verify=True if ssl_verify is None else ssl_verify,
            client_factory=httpx_client_factory,
        )
        shown = header_provider is not None or httpx_client_factory is not None
        every = _for_all(auth_scheme, auth_credential, credential_key)
        ways = WaysIn(operations, auth_credential, credential_key, shown=shown) if every is None else None
        self._tools = [
            RestApiTool(
                one,
                self._web,
                auth_configs=ways.of(one) if ways else [every] if every else (),
                require_confirmation=self.require_confirmation,
                header_provider=header_provider,
            )
            for one in operations
        ]

    def configure_ssl_verify_all(self, ssl_verify: Verify | None = None) -> None:
        """Check servers' certificates in this way, for all tools. None: as the machine does. ADK's name."""
        for tool in self._tools:
            tool.configure_ssl_verify(ssl_verify)

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        return [tool for tool in self._tools if self._is_tool_selected(tool, readonly_context)]

    def get_tool(self, tool_name: str) -> RestApiTool | None:
        """The tool of that name, whatever the filter says, without a prefix."""
        return next((tool for tool in self._tools if tool.name == tool_name), None)

    async def close(self) -> None:
        self._web.forget()


def _document(
    spec_dict: Mapping[str, Any] | None, spec_str: str | None, spec_str_type: Literal["json", "yaml"]
) -> Mapping[str, Any]:
    if (spec_dict is None) == (spec_str is None):
        raise ConfigurationError("an OpenAPIToolset takes one document; write spec_dict=... or spec_str=...")
    if not isinstance(cast(Any, spec_dict), Mapping | None):
        raise ConfigurationError(
            f"spec_dict is the document as a dict, and not {type(spec_dict).__name__}; for its text write "
            "spec_str=..., spec_str_type='json' or 'yaml'"
        )
    return spec_dict if spec_dict is not None else read(spec_str or "", spec_str_type, EXTRA)


def _for_all(scheme: AuthScheme | None, credential: Credentials | None, key: str | None) -> AuthConfig | None:
    """What all tools are let in with, if their author says so."""
    if scheme is None:
        return None
    if isinstance(credential, Mapping):
        raise ConfigurationError(
            "auth_credential is one credential where auth_scheme=... is given; leave one of them out"
        )
    return AuthConfig(auth_scheme=scheme, raw_auth_credential=credential, credential_key=key or "")
