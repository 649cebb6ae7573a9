"""`OpenAPIToolset`: the operations of an OpenAPI document as tools."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from adk_nb.auth.auth_schemes import AuthScheme
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset, ToolPredicate
from adk_nb.tools.conditions import Condition, parse_condition
from adk_nb.tools.openapi_tool.credential import CredentialChooser, Credentials
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
            authenticate and no `auth_scheme` is given. An operation whose own server is another host than the
            document's is not called with it, unless `get_tool(name).configure_auth_credential(...)` gives it to it.
        credential_key: The key under which a user's credential is stored; the scheme's name is appended if the document
            has several.
        ssl_verify: Verification of server certificates: the system's store, a file or folder of certificates, a context
            of your own, or none.
        header_provider: Returns headers for each request, such as a key; the model never sees them. For an operation
            on another host: `get_tool(name).header_provider = ...`.
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
                "the OpenAPI document has schemas that are nested too deep, or contain themselves; move "
                "recursive schemas to components/schemas, and refer to them with $ref"
            ) from None
        shared_config = None
        if auth_scheme is not None:
            if isinstance(auth_credential, Mapping):
                raise ConfigurationError(
                    "auth_credential is one credential where auth_scheme=... is given; leave one of them out"
                )
            shared_config = AuthConfig(
                auth_scheme=auth_scheme, raw_auth_credential=auth_credential, credential_key=credential_key or ""
            )
            operations = [operation.without_keys(shared_config.auth_scheme) for operation in operations]
        parameters = {argument.name for operation in operations for argument in operation.arguments}
        self.require_confirmation = parse_condition(require_confirmation, type(self).__name__, parameters)
        self._web = WebAccess(
            allow_private_network_access=allow_private_network_access,
            verify=True if ssl_verify is None else ssl_verify,
            client_factory=httpx_client_factory,
        )
        has_other_credentials = header_provider is not None or httpx_client_factory is not None
        chooser = None
        if shared_config is None:
            chooser = CredentialChooser(
                operations, auth_credential, credential_key, has_other_credentials=has_other_credentials
            )
        self._tools: list[RestApiTool] = []
        for operation in operations:
            configs = chooser.configs_for(operation) if chooser else (shared_config,) if shared_config else ()
            if operation.foreign_to:  # a user's stored credential is not for this host, either
                host = f"@{urlsplit(operation.url).netloc}"
                configs = tuple(
                    config.model_copy(update={"credential_key": config.credential_key.removesuffix(host) + host})
                    for config in configs
                )
            self._tools.append(
                RestApiTool(
                    operation,
                    self._web,
                    auth_configs=configs,
                    require_confirmation=self.require_confirmation,
                    header_provider=header_provider,
                )
            )

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
            f"spec_dict must be the document as a dict, got {type(spec_dict).__name__}; for its text write "
            "spec_str=..., spec_str_type='json' or 'yaml'"
        )
    return spec_dict if spec_dict is not None else parse_document(spec_str or "", spec_str_type, EXTRA)


MAX_VALUES = 2_000_000
"""Limit of values in a document after expansion: a YAML alias counts each time."""
MAX_DEPTH = 200
"""Limit of nesting."""
_NOT_JSON = ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:timestamp")
_TRUE_OR_FALSE = re.compile("(?:true|True|TRUE|false|False|FALSE)$")


def parse_document(text: str, kind: str, package: str) -> Mapping[str, Any]:
    """Parse the text of a document.

    Args:
        text: JSON or YAML.
        kind: `json` or `yaml`.
        package: The extra that installs the YAML parser, for the error if it is missing.

    Raises:
        ConfigurationError: It is invalid, or larger than `MAX_VALUES`.
        MissingExtraError: The YAML parser is not installed.
    """
    if kind not in ("json", "yaml"):
        raise ConfigurationError(f"spec_str_type must be 'json' or 'yaml', got {kind!r}")
    try:
        document: Any = _yaml(text, package) if kind == "yaml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        # A ConfigurationError is a ValueError, too, and says more.
        if isinstance(error, ConfigurationError):
            raise
        raise ConfigurationError(f"the OpenAPI document is not valid {kind.upper()}: {error}") from error
    if not isinstance(document, dict):
        raise ConfigurationError(f"the OpenAPI document must be an object, got {type(document).__name__}")
    return cast(Mapping[str, Any], document)


def _yaml(text: str, package: str) -> Any:
    yaml: Any = require("yaml", package=package)
    loader = _loader(yaml)
    try:
        # The nesting first: the C loader recurses, and would overflow the stack.
        depth = 0
        for event in yaml.parse(text, loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise ConfigurationError(f"the OpenAPI document is nested more than {MAX_DEPTH} levels deep")
        document = yaml.load(text, loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    if _size(document, {}) > MAX_VALUES:
        raise ConfigurationError(f"the OpenAPI document has more than {MAX_VALUES} values, once its aliases are read")
    return json.loads(json.dumps(document, default=str))  # YAML keys may be numbers


def _loader(yaml: Any) -> Any:
    """A safe loader that reads `no` and `2020-01-01` as text. Source: OpenAPI 3.1, Format; YAML 1.2, 10.3."""
    # A class of its own: resolvers are added to the class, and yaml's is shared.
    loader: Any = type("Loader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
    loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag not in _NOT_JSON]
        for first, resolvers in loader.yaml_implicit_resolvers.items()
    }
    loader.add_implicit_resolver(_NOT_JSON[0], _TRUE_OR_FALSE, list("tTfF"))
    return loader


def _size(value: Any, sizes: dict[int, int]) -> int:
    """Number of values in `value` with aliases expanded. Raises ValueError for a recursive alias."""
    if not isinstance(value, dict | list):
        return 1
    key = id(cast(Any, value))
    if key not in sizes:
        sizes[key] = -1
        children: Any = cast(dict[Any, Any], value).values() if isinstance(value, dict) else cast(list[Any], value)
        sizes[key] = 1 + sum(_size(child, sizes) for child in children)
    # Its size is still being counted: the value contains itself.
    if sizes[key] < 0:
        raise ValueError("a recursive alias")
    return sizes[key]
