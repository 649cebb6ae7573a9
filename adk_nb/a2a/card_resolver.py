"""Find the agent card of a remote agent, and the interface in it to call."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from adk_nb.a2a.agent_card import load_card, parse_card
from adk_nb.a2a.http_client import translated_errors
from adk_nb.a2a.protocol import BINDINGS, CARD_PATH, OLD_CARD_PATH, VERSIONS
from adk_nb.errors import A2AClientError, A2AConnectionError, AgentCardResolutionError, ConfigurationError
from adk_nb.models.http_address import is_loopback, public_url


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
