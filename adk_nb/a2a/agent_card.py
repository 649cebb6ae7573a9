"""The agent card: what a served agent says about itself, and reading the cards of others."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adk_nb.a2a.protocol import EXTRA, JSONRPC, VERSIONS, a2a_types
from adk_nb.agents.tree import version_of
from adk_nb.errors import ConfigurationError
from adk_nb.lazy import require
from adk_nb.redaction import without_known
from adk_nb.tools.base_toolset import BaseToolset

BEARER = "bearer"
"""Name of the card's security scheme."""


def build_card(
    agent: Any,
    url: str,
    *,
    has_token: bool = False,
    sends_news: bool = False,
    security_schemes: Mapping[str, Any] | None = None,
) -> Any:
    """The card of an agent: name, description, a skill for itself, for each of its tools, and for those under it.

    Args:
        agent: An agent or a graph. Its instruction is left out, as a card is public.
        url: Address of the JSON-RPC endpoint.
        has_token: Calls need a bearer token.
        sends_news: News of a task is sent to an address that a client names.
        security_schemes: More of them, by name.

    Raises:
        ConfigurationError: A security scheme is none of a2a-sdk's.
    """
    a2a = a2a_types()
    card = a2a.AgentCard(
        name=agent.name,
        description=without_known(agent.description or f"The agent {agent.name}"),
        # A fingerprint, so that clients see that the agent was redefined.
        version=version_of(agent)[:8],
        supported_interfaces=[
            a2a.AgentInterface(url=url, protocol_binding=JSONRPC, protocol_version=version) for version in VERSIONS
        ],
        capabilities=a2a.AgentCapabilities(streaming=True, push_notifications=sends_news),
        default_input_modes=["text/plain", "application/json", "*/*"],
        default_output_modes=["text/plain", "application/json", "*/*"],
        skills=list(_skills(agent, "")),
    )
    for name, scheme in (security_schemes or {}).items():
        if not isinstance(scheme, a2a.SecurityScheme):
            raise ConfigurationError(
                f"security_schemes[{name!r}] is a {type(scheme).__name__}; write a SecurityScheme of a2a.types"
            )
        card.security_schemes[name].CopyFrom(scheme)
    if has_token:
        card.security_schemes[BEARER].http_auth_security_scheme.scheme = BEARER
        # protobuf: an empty list of scopes exists only once it is set in its parent.
        card.security_requirements.add().schemes[BEARER].SetInParent()
    return card


def _skills(agent: Any, prefix: str) -> Iterator[Any]:
    own = a2a_types().AgentSkill(
        id=f"{prefix}{agent.name}",
        name=agent.name,
        description=without_known(agent.description or f"The agent {agent.name}"),
        tags=["agent"],
    )
    yield own
    for tool in getattr(agent, "tools", None) or ():
        name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
        # The tools of a toolset are not listed, as that may need a connection.
        if isinstance(tool, BaseToolset) or not name:
            continue
        text = getattr(tool, "description", None) or getattr(tool, "__doc__", None) or ""
        description = without_known(text.strip().partition("\n\n")[0] or name)
        yield a2a_types().AgentSkill(id=f"{own.id}.{name}", name=name, description=description, tags=["tool"])
    for member in getattr(agent, "sub_agents", ()):
        yield from _skills(member, f"{own.id}.")


def load_card(source: Any) -> Any:
    """A card from a card, or from the path of a JSON file.

    Raises:
        ConfigurationError: There is no such file, or it is not an agent card.
    """
    if isinstance(source, a2a_types().AgentCard):
        return source
    path = Path(source).expanduser()
    try:
        return parse_card(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ConfigurationError(f"agent_card: the file {str(path)!r} was not read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigurationError(f"agent_card: the file {str(path)!r} is not an agent card: {error}") from error


def parse_card(value: Any) -> Any:
    """A card from JSON, of protocol 1.0 or 0.3.

    Raises:
        ValueError: It is not a valid card.
    """
    parse = require("a2a.client.card_resolver", package=EXTRA).parse_agent_card
    parse_error = require("google.protobuf.json_format", package=EXTRA).ParseError
    try:
        card = parse(value)
    except parse_error as error:
        raise ValueError(" ".join(str(error).split())) from error
    if not card.name or not card.supported_interfaces:
        raise ValueError("it has no name, or no URL to call")
    return card
