"""The one way out to the web for tools: no private networks, no redirects, no cookies kept, limits on size and time."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx2

from adk_nb.models.per_loop import PerLoop

CONNECT_SECONDS = 10.0
READ_SECONDS = 600.0
"""For a whole answer, and for the wait between two pieces of it. Source: google-adk 2.13 (its read timeout)."""
MAX_BYTES = 8 * 1024 * 1024
"""Of an answer's body, unpacked; the rest is not read."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool
    """True: there was more than `MAX_BYTES`."""


class WebAccess:
    """Sends requests, each to the address that was checked for it.

    Args:
        allow_private_network_access: Also reach this machine and its private networks.
        verify: How servers' certificates are checked: as the machine does, by the certificates in a file, by a context
            of your own, or not at all.
    """

    def __init__(
        self, *, allow_private_network_access: bool = False, verify: bool | str | ssl.SSLContext = True
    ) -> None:
        self._private = allow_private_network_access
        self._verify = verify
        self._clients: PerLoop[httpx2.AsyncClient] = PerLoop()

    async def ask(
        self,
        method: str,
        url: str,
        *,
        params: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        files: Sequence[tuple[str, Any]] = (),
    ) -> Answer:
        """Send a request, and read what is answered, whatever its status.

        Raises:
            httpx2.HTTPError: No answer came, or the address is one that must not be reached.
            httpx2.InvalidURL: `url` is none.
            TimeoutError: The answer took too long.
        """
        client = await self._clients.get(None, self._client)
        more: dict[str, Any] = {"params": list(params)} if params else {}
        more |= {"files": list(files)} if files else {"content": content}
        async with asyncio.timeout(READ_SECONDS), client.stream(method, url, headers=headers, **more) as response:
            pieces, room = list[bytes](), MAX_BYTES
            async for piece in response.aiter_bytes():
                pieces.append(piece[:room])
                room -= len(piece)
                if room < 0:
                    break
            return Answer(response.status_code, response.headers, b"".join(pieces), room < 0)

    def forget(self) -> None:
        """Let go of the connections; the next request opens new ones."""
        self._clients = PerLoop()

    def _client(self) -> httpx2.AsyncClient:
        transport = (
            httpx2.AsyncHTTPTransport(verify=self._verify, trust_env=False) if self._private else _Checked(self._verify)
        )
        return httpx2.AsyncClient(
            transport=transport,
            timeout=httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
            follow_redirects=False,
            trust_env=False,
            # A client sends on what a server has set, and it is shared by all who talk to an agent.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )


class _Checked(httpx2.AsyncBaseTransport):
    """Looks a name up once, refuses what is not public, and connects to the address that it has seen."""

    def __init__(self, verify: bool | str | ssl.SSLContext) -> None:
        self._verify = verify
        # One for each host: a connection to an address is not lent to another host that has the same address.
        self._transports: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.host
        addresses = await _public_addresses(request, host)
        if host not in self._transports:
            self._transports[host] = httpx2.AsyncHTTPTransport(verify=self._verify, trust_env=False)
        for left, address in enumerate(addresses, 1 - len(addresses)):
            pinned = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                return await self._transports[host].handle_async_request(pinned)
            except httpx2.ConnectError:
                if left == 0:
                    raise
        raise httpx2.ConnectError(f"{host!r} has no address", request=request)

    async def aclose(self) -> None:
        for transport in self._transports.values():
            await transport.aclose()


async def _public_addresses(request: httpx2.Request, host: str) -> list[str]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, request.url.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpx2.ConnectError(f"{host!r} has no address: {error}", request=request) from error
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    if not all(is_public(one) for one in addresses):
        raise httpx2.ConnectError(
            f"{host!r} is an address of this machine or of a private network, which are not reached unless the author "
            "of the tool says allow_private_network_access=True",
            request=request,
        )
    return addresses


def is_public(address: str) -> bool:
    """Whether an IP address is one of the open internet; one that wraps another is judged by that."""
    ip = ipaddress.ip_address(address.split("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64:
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
        if inner := ip.ipv4_mapped or ip.sixtofour or (ip.teredo and ip.teredo[1]):
            return is_public(str(inner))
        if ip in _LOCAL_NAT64:
            return False
    return ip.is_global and not ip.is_multicast
