"""The operations of a web service that an OpenAPI document describes, as tools."""

import json
import ssl
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_schemes import AuthScheme
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require
from adk_nb.runtime.context import ReadonlyContext
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset, ToolPredicate
from adk_nb.tools.function_tool import Decides
from adk_nb.tools.openapi_tool.openapi_spec_parser.openapi_spec_parser import EXTRA, operations_of
from adk_nb.tools.openapi_tool.rest_api_tool import HeaderProvider, RestApiTool
from adk_nb.tools.web_access import WebAccess


class OpenAPIToolset(BaseToolset):
    """Each operation of an OpenAPI 3 document as a tool, called what its `operationId` says, in snake_case.

    Args:
        spec_dict: The document.
        spec_str: Instead, its text.
        spec_str_type: What the text is.
        auth_scheme: How the service wants to be shown a credential, by all of these tools.
        auth_credential: The credential, or the client that gets one. None: a person is asked.
        credential_key: The name under which a user's credential is kept.
        ssl_verify: How servers' certificates are checked: as the machine does, by the certificates in a file, by a
            context of your own, or not at all.
        header_provider: Gives headers for each request, such as a key; the model never sees them.
        preserve_property_names: Arguments are called what the document calls them, not in snake_case.
        allow_private_network_access: Also reach this machine and its private networks.
        require_confirmation: Ask a person before a request is sent; True, or a callable that is given the arguments.

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
        auth_credential: AuthCredential | None = None,
        credential_key: str | None = None,
        tool_filter: ToolPredicate | Sequence[str] | None = None,
        tool_name_prefix: str | None = None,
        ssl_verify: bool | str | ssl.SSLContext = True,
        header_provider: HeaderProvider | None = None,
        preserve_property_names: bool = False,
        allow_private_network_access: bool = False,
        require_confirmation: Decides = False,
    ) -> None:
        super().__init__(tool_filter=tool_filter, tool_name_prefix=tool_name_prefix)
        if (spec_dict is None) == (spec_str is None):
            raise ConfigurationError("an OpenAPIToolset takes one document; write spec_dict=... or spec_str=...")
        document = spec_dict if spec_dict is not None else _read(spec_str or "", spec_str_type)
        self.require_confirmation = require_confirmation
        self._web = WebAccess(allow_private_network_access=allow_private_network_access, verify=ssl_verify)
        config = _auth_config(auth_scheme, auth_credential, credential_key)
        self._tools = [
            RestApiTool(
                one,
                self._web,
                auth_config=config,
                require_confirmation=require_confirmation,
                header_provider=header_provider,
            )
            for one in operations_of(document, preserve_property_names=preserve_property_names)
        ]

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        return [tool for tool in self._tools if self._is_tool_selected(tool, readonly_context)]

    def get_tool(self, tool_name: str) -> RestApiTool | None:
        """The tool of that name, whatever the filter says, without a prefix."""
        return next((tool for tool in self._tools if tool.name == tool_name), None)

    async def close(self) -> None:
        self._web.forget()


def _auth_config(scheme: AuthScheme | None, credential: AuthCredential | None, key: str | None) -> AuthConfig | None:
    if scheme is None:
        if credential is not None:
            raise ConfigurationError("auth_credential says what to show, and not where; write auth_scheme=... too")
        return None
    return AuthConfig(auth_scheme=scheme, raw_auth_credential=credential, credential_key=key or "")


def _read(text: str, kind: str) -> Mapping[str, Any]:
    if kind not in ("json", "yaml"):
        raise ConfigurationError(f"spec_str_type is 'json' or 'yaml', and not {kind!r}")
    yaml: Any = require("yaml", package=EXTRA) if kind == "yaml" else None
    try:
        # Through JSON: YAML has dates, and numbers as keys.
        read: Any = json.loads(json.dumps(yaml.safe_load(text), default=str)) if yaml else json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"the OpenAPI document is no {kind.upper()}: {error}") from error
    except Exception as error:
        if yaml and isinstance(error, yaml.YAMLError):
            raise ConfigurationError(f"the OpenAPI document is no YAML: {error}") from error
        raise
    if not isinstance(read, dict):
        raise ConfigurationError(f"the OpenAPI document is {type(read).__name__}, and not an object")
    return cast(Mapping[str, Any], read)
