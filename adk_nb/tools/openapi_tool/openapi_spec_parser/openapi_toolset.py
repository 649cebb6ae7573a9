"""`OpenAPIToolset`: the operations of an OpenAPI document as tools."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from adk_nb.auth.auth_schemes import AuthScheme
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset, ToolPredicate
from adk_nb.tools.conditions import Condition, parse_condition
from adk_nb.tools.openapi_tool.credential_chooser import CredentialChooser, Credentials
from adk_nb.tools.openapi_tool.openapi_spec_parser.document import parse_document
from adk_nb.tools.openapi_tool.openapi_spec_parser.openapi_spec_parser import EXTRA, operations_of
from adk_nb.tools.openapi_tool.rest_api_tool import HeaderProvider, RestApiTool
from adk_nb.tools.web_access import ClientFactory, Verify, WebAccess


class OpenAPIToolset(BaseToolset):
    """Each operation of an OpenAPI 3 document as a tool, named by its `operationId` in snake_case.

    Args:
        spec_dict: The document.
        spec_str: The text of the document instead.
        spec_str_type: Format of the text.
        auth_scheme: The security scheme of all tools. None: each operation's own, by `security` and `securitySchemes`.
        auth_credential: The credential, or the client to get one with; a dict by scheme names if the document has
            several schemes. None: the user is asked, unless `header_provider` or `httpx_client_factory` may
            authenticate and no `auth_scheme` is given.
        credential_key: The key under which a user's credential is stored; the scheme's name is appended if the document
            has several.
        ssl_verify: Verification of server certificates: the system's store, a file or folder of certificates, a context
            of your own, or none.
        header_provider: Returns headers for each request, such as a key; the model never sees them.
        httpx_client_factory: Creates the client of each request, for a proxy or a transport of your own: of httpx2 or
            httpx, closed after use. `ssl_verify` is then up to the client.
        preserve_property_names: Keep the names of arguments as they are in the document, instead of snake_case.
        allow_private_network_access: Allow this machine and private networks, too.
        require_confirmation: Ask the user before a request is sent: True, or a condition on the arguments, as for
            FunctionTool. For an operation that lacks an argument of an expression the user is always asked.

    Raises:
        ConfigurationError: It is not an OpenAPI 3 document, has a broken reference, or names no server.
        MissingExtraError: The packages of the extra `openapi` are not installed.
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
        require_confirmation: Condition = False,
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
        parameters = {argument.name for operation in operations for argument in operation.arguments}
        self.require_confirmation = parse_condition(require_confirmation, type(self).__name__, parameters)
        self._web = WebAccess(
            allow_private_network_access=allow_private_network_access,
            verify=True if ssl_verify is None else ssl_verify,
            client_factory=httpx_client_factory,
        )
        has_other_credentials = header_provider is not None or httpx_client_factory is not None
        shared_config = _shared_config(auth_scheme, auth_credential, credential_key)
        chooser = None
        if shared_config is None:
            chooser = CredentialChooser(
                operations, auth_credential, credential_key, has_other_credentials=has_other_credentials
            )
        self._tools = [
            RestApiTool(
                operation,
                self._web,
                auth_configs=chooser.configs_for(operation) if chooser else [shared_config] if shared_config else (),
                require_confirmation=self.require_confirmation,
                header_provider=header_provider,
            )
            for operation in operations
        ]

    def configure_ssl_verify_all(self, ssl_verify: Verify | None = None) -> None:
        """Set the verification of server certificates for all tools. None: the system's store. ADK's name."""
        for tool in self._tools:
            tool.configure_ssl_verify(ssl_verify)

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The tools that the filter accepts."""
        return [tool for tool in self._tools if self._is_tool_selected(tool, readonly_context)]

    def get_tool(self, tool_name: str) -> RestApiTool | None:
        """The tool with this name, without filter or prefix."""
        return next((tool for tool in self._tools if tool.name == tool_name), None)

    async def close(self) -> None:
        """Close idle connections."""
        self._web.drop_connections()


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
    return spec_dict if spec_dict is not None else parse_document(spec_str or "", spec_str_type, EXTRA)


def _shared_config(scheme: AuthScheme | None, credential: Credentials | None, key: str | None) -> AuthConfig | None:
    """The configuration for all tools, if the author gives a scheme."""
    if scheme is None:
        return None
    if isinstance(credential, Mapping):
        raise ConfigurationError(
            "auth_credential is one credential where auth_scheme=... is given; leave one of them out"
        )
    return AuthConfig(auth_scheme=scheme, raw_auth_credential=credential, credential_key=key or "")
