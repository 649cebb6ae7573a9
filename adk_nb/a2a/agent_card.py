"""The agent card: what a served agent says about itself, and reading the cards of others."""

import json
import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from pydantic import TypeAdapter, ValidationError

from adk_nb.a2a.http_client import translated_errors
from adk_nb.a2a.protocol import BINDINGS, CARD_PATH, EXTRA, JSONRPC, OLD_CARD_PATH, VERSIONS, a2a_types
from adk_nb.agents.tree import version_of
from adk_nb.errors import A2AClientError, A2AConnectionError, AgentCardResolutionError, ConfigurationError
from adk_nb.lazy import require
from adk_nb.models.http_address import is_loopback, public_url
from adk_nb.redaction import without_known
from adk_nb.tools.base_toolset import BaseToolset

BEARER = "bearer"
"""Name of the card's security scheme."""
logger = logging.getLogger(__name__)
_SECURITY = TypeAdapter(list[dict[str, list[str]]])


def build_card(
    agent: Any,
    url: str,
    *,
    has_token: bool = False,
    sends_news: bool = False,
    security_schemes: Mapping[str, Any] | None = None,
    default_skill_security: list[dict[str, list[str]]] | None = None,
) -> Any:
    """The card of an agent: name, description, a skill for itself, for each of its tools, and for those under it.

    Args:
        agent: An agent or a graph. Its instruction is left out, as a card is public.
        url: Address of the JSON-RPC endpoint.
        has_token: Calls need a bearer token.
        sends_news: News of a task is sent to an address that a client names.
        security_schemes: More of them, by name.
        default_skill_security: Which of the schemes, with which scopes, the skills need: any one of these. A tool says
            so for itself in `custom_metadata["security"]`.

    Raises:
        ConfigurationError: A security scheme is none of a2a-sdk's, or `default_skill_security` names one that is not
            in the card.
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
    card.skills.extend(
        _skills(agent, "", _requirements(default_skill_security or [], card, "default_skill_security"), card)
    )
    return card


def _skills(agent: Any, prefix: str, security: list[Any], card: Any) -> Iterator[Any]:
    a2a = a2a_types()
    own = a2a.AgentSkill(
        id=f"{prefix}{agent.name}",
        name=agent.name,
        description=without_known(agent.description or f"The agent {agent.name}"),
        tags=["agent"],
        security_requirements=security,
    )
    yield own
    for tool in getattr(agent, "tools", None) or ():
        name = getattr(tool, "name", None) or getattr(tool, "__name__", None)
        # The tools of a toolset are not listed, as that may need a connection.
        if isinstance(tool, BaseToolset) or not name:
            continue
        text = getattr(tool, "description", None) or getattr(tool, "__doc__", None) or ""
        description = without_known(text.strip().partition("\n\n")[0] or name)
        needs, metadata = security, cast(dict[str, Any], getattr(tool, "custom_metadata", None) or {})
        if "security" in metadata:
            try:
                needs = _requirements(metadata["security"], card, f"custom_metadata['security'] of the tool {name!r}")
            except ConfigurationError as error:
                logger.warning("%s. In the card it needs what all skills need.", error)
        yield a2a.AgentSkill(
            id=f"{own.id}.{name}", name=name, description=description, tags=["tool"], security_requirements=needs
        )
    for member in getattr(agent, "sub_agents", ()):
        yield from _skills(member, f"{own.id}.", security, card)


def _requirements(security: Any, card: Any, where: str) -> list[Any]:
    """What is needed, as the card has it.

    Raises:
        ConfigurationError: It has another shape, or names a scheme that the card does not have.
    """
    try:
        needs = _SECURITY.validate_python(security, strict=True)
    except ValidationError:
        raise ConfigurationError(
            f"{where} is {security!r}; write a list of schemes with their scopes: [{{'oauth2': ['agent.read']}}]"
        ) from None
    if unknown := sorted({name for need in needs for name in need} - {*card.security_schemes}):
        raise ConfigurationError(
            f"{where} names {unknown[0]!r}, which the card does not have; add security_schemes="
            f"{{{unknown[0]!r}: SecurityScheme(...)}}"
        )
    a2a = a2a_types()
    return [
        a2a.SecurityRequirement(schemes={name: a2a.StringList(list=scopes) for name, scopes in need.items()})
        for need in needs
    ]


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


# ---- the card of a remote agent


def is_url(source: Any) -> bool:
    """True for the address of an agent or of its card."""
    return isinstance(source, str) and source.startswith(("http://", "https://"))


async def resolve_card(source: Any, http: Any, seconds: float) -> Any:
    """The card of a remote agent, with only the interfaces that can be called.

    Args:
        source: A card, the path of its JSON, its address, or the address of the agent.
        http: The httpx client.
        seconds: Its timeout, for errors.

    Raises:
        AgentCardResolutionError: There is no card, or nothing in it that can be called.
        A2AConnectionError: The server was not reached.
        ConfigurationError: The file is not an agent card.
    """
    if not is_url(source):
        return _checked(load_card(source), None)
    failures: list[str] = []
    for url in _candidates(source):
        try:
            with translated_errors(url, seconds):
                response = await http.get(url, headers={"Accept": "application/json"})
                response.raise_for_status()
            try:
                card = parse_card(response.json())
            except ValueError as error:
                raise ValueError(f"{public_url(url)!r} did not return an agent card: {error}") from error
            return _checked(card, url)
        except A2AConnectionError:
            raise  # no other path of that server would answer
        except (A2AClientError, ValueError) as error:
            if isinstance(error, AgentCardResolutionError):
                raise
            failures.append(str(error))
    raise AgentCardResolutionError(f"there is no agent card at {public_url(source)!r}: {'; '.join(failures)}")


def _candidates(source: str) -> Iterator[str]:
    """Addresses to try, in order."""
    parts = urlsplit(source)
    path = "/" + parts.path.lstrip("/")  # f"http://host:port/{AGENT_CARD_WELL_KNOWN_PATH}" has two slashes
    if path.endswith(".json"):
        yield parts._replace(path=path, fragment="").geturl()
        return
    for card_path in (CARD_PATH, OLD_CARD_PATH):
        yield parts._replace(path=path.rstrip("/") + card_path, fragment="").geturl()


def _checked(card: Any, url: str | None) -> Any:
    """`card` with only the interfaces that can be called. `url`: of the card; None: it is the author's file."""
    interfaces = list(card.supported_interfaces)
    spoken = tuple(f"{version}." for version in VERSIONS)  # `1.0` and `1.0.3`
    usable = [
        interface
        for interface in interfaces
        if interface.protocol_binding in BINDINGS and f"{interface.protocol_version or VERSIONS[0]}.".startswith(spoken)
    ]
    if not usable:
        offered = [f"{each.protocol_binding} {each.protocol_version}".strip() for each in interfaces]
        raise AgentCardResolutionError(
            f"the agent {card.name!r} cannot be called: its card offers {', '.join(offered)}, and adk_nb speaks "
            f"here is {' and '.join(BINDINGS)} of A2A {' and '.join(VERSIONS)}"
        )
    # A fetched card must send neither the token to another server nor a request into a private network.
    same_origin = [interface for interface in usable if url is None or _origin(interface.url) == _origin(url)]
    if not same_origin:
        raise AgentCardResolutionError(
            f"the card at {public_url(url or '')!r} sends calls to another server, {public_url(usable[0].url)!r}; "
            "if that is right, pass the card as a file: RemoteA2aAgent(agent_card='card.json')"
        )
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(same_origin)
    return card


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    try:
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        raise ConfigurationError(f"{public_url(url)!r} is not a URL: its port is not a number") from None
    return parts.scheme, "localhost" if is_loopback(url) else (parts.hostname or "").lower(), port
