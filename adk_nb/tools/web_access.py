"""The one way out to the web for tools: public addresses only, few redirects, no cookies, limits on size and time."""

import asyncio
import functools
import ipaddress
import os
import re
import socket
import ssl
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode

import httpx2

from adk_nb import redaction
from adk_nb.models.connections import PerLoop

CONNECT_SECONDS = 10.0
READ_SECONDS = 600.0
"""For a whole answer with its redirects, and for the wait between two pieces of it. Source: google-adk 2.13 (its read
timeout)."""
MAX_BYTES = 8 * 1024 * 1024
"""Of an answer's body, unpacked; the rest is not read."""
REDIRECTS = 5
"""Followed for one request that only reads."""
Verify = bool | str | ssl.SSLContext
ClientFactory = Callable[[], Any]
"""`() -> httpx2.AsyncClient`, or one of httpx: a fresh one for each request, which is closed after it."""
_READS = ("GET", "HEAD")
_MOVED = (301, 302, 303, 307, 308)
_FOR_ANYONE = ("accept", "accept-language", "user-agent")
"""Headers that another host may see too; any other may be a credential."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_IN_A_HEADER = re.compile(r"[^\t\x20-\x7e]")
_INSIDE = re.compile(r"(?:.*\.)?(?:localhost|local|internal)\.?", re.IGNORECASE)
"""Names that are no public host's. Source: RFC 6761, 6.3; RFC 6762, 3; ICANN's resolution 2024.07.29.06."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")
_COMPATIBLE = ipaddress.ip_network("::/96")
"""IPv6 addresses that end in one of IPv4, with nothing before it."""


_AZURE = ipaddress.ip_address("168.63.129.16")
"""Where Azure's virtual machines are told of themselves. Source: Azure, "What is IP address 168.63.129.16?"."""
_PROTOCOLS = ipaddress.ip_network("192.0.0.0/24")
"""Not of the open internet (RFC 6890), which older versions of Python do not know; 192.0.0.192 is such a service of
Oracle's cloud.
"""


class Refused(httpx2.RequestError):
    """A request that tools do not send. Its words hold no secrets."""


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool
    """True: there was more than `MAX_BYTES`."""

    @property
    def moved_to(self) -> str | None:
        """Where it sends on to. None: nowhere."""
        return self.headers.get("location") if self.status in _MOVED else None


class WebAccess:
    """Sends requests, each to the address that was checked for it.

    Args:
        allow_private_network_access: Also reach this machine and its private networks.
        verify: How servers' certificates are checked: as the machine does, by the certificates in a file, by a context
            of your own, or not at all.
        client_factory: Makes the clients that send, such as one with a proxy: no proxy is used otherwise. What goes
            through a proxy is checked by its name here, and looked up by the proxy.
    """

    def __init__(
        self,
        *,
        allow_private_network_access: bool = False,
        verify: Verify = True,
        client_factory: ClientFactory | None = None,
    ) -> None:
        self._private = allow_private_network_access
        self._verify = verify
        self._factory = client_factory
        self._clients: PerLoop[httpx2.AsyncClient] = PerLoop()

    def verifying(self, verify: Verify) -> "WebAccess":
        """The same, where certificates are checked in another way."""
        return WebAccess(allow_private_network_access=self._private, verify=verify, client_factory=self._factory)

    async def ask(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        files: Sequence[tuple[str, Any]] = (),
        secrets: Collection[str] = (),
        follow: bool = True,
    ) -> Answer:
        """Send a request, and read what is answered, whatever its status.

        A GET or a HEAD goes where it is sent on to, `REDIRECTS` times. Each address is checked anew; another host gets
        no header that may be a credential, and https does not lead to http.

        Args:
            method: Upper case.
            url: With its query.
            headers: Sent beside those of the client.
            content: The body.
            files: Instead, the parts of a multipart body: name, and what httpx2 takes for it.
            secrets: What no other host may see, wherever it stands, beside what this process knows as a secret.
            follow: False: an answer that sends on is the answer.

        Raises:
            httpx2.HTTPError: No answer came; `Refused`, if the request was not sent.
            httpx2.InvalidURL: `url` is none.
            TimeoutError: The answer took too long.
        """
        place, sent = self._place(url), _headers(headers or {})
        body: dict[str, Any] = {"files": list(files)} if files else {"content": content}
        async with asyncio.timeout(READ_SECONDS):
            for _ in range(REDIRECTS + 1):
                answer = await self._once(method, place, sent, body)
                if not follow or method not in _READS or answer.moved_to is None:
                    return answer
                further = self._place(place.join(answer.moved_to))
                if _origin(further) != _origin(place):
                    sent = {name: value for name, value in sent.items() if name.lower() in _FOR_ANYONE}
                    further = _for_another_host(place, further, [*secrets, *redaction.known()])
                place = further
        raise httpx2.TooManyRedirects(f"it was sent on more than {REDIRECTS} times")

    def forget(self) -> None:
        """Let go of the connections; the next request opens new ones."""
        self._clients = PerLoop()

    def _place(self, url: httpx2.URL | str) -> httpx2.URL:
        place = httpx2.URL(url)
        if place.scheme not in ("http", "https") or not place.raw_host:
            raise Refused(f"an address starts with https:// or http:// and a host, not with {place.scheme[:20]!r}:")
        if place.userinfo:
            raise Refused("an address with a name or a password before its host is not reached; leave them out")
        return place

    async def _once(
        self, method: str, place: httpx2.URL, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> Answer:
        if self._factory is not None:
            try:
                return await self._by_factory(self._factory, method, place, headers, body)
            except (httpx2.HTTPError, TimeoutError):
                raise
            except Exception as error:  # of a client whose errors are not known here
                raise httpx2.RequestError(f"{type(error).__name__}: {error}") from error
        client = await self._clients.get(None, self._client)
        async with client.stream(method, place, headers=headers, **body) as response:
            return await _read(response)

    async def _by_factory(
        self,
        factory: ClientFactory,
        method: str,
        place: httpx2.URL,
        headers: Mapping[str, str],
        body: Mapping[str, Any],
    ) -> Answer:
        async with factory() as client:
            more, url = dict[str, Any](body), str(place)
            if not self._private:
                straight = _goes_straight(client, url)
                [address, *_] = await _public_addresses(place, known=straight)
                if straight:
                    headers = {**headers, "Host": place.netloc.decode()}
                    more["extensions"] = {"sni_hostname": place.raw_host.decode()}
                    url = str(place.copy_with(host=address))
            async with client.stream(method, url, headers=headers, follow_redirects=False, **more) as response:
                return await _read(response)

    def _client(self) -> httpx2.AsyncClient:
        certificates = _certificates(self._verify)
        transport = (
            httpx2.AsyncHTTPTransport(verify=certificates, trust_env=False) if self._private else _Checked(certificates)
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

    def __init__(self, certificates: ssl.SSLContext) -> None:
        self._certificates = certificates
        # One for each host: a connection to an address is not lent to another host that has the same address.
        self._transports: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.raw_host.decode()
        addresses = await _public_addresses(request.url)
        if host not in self._transports:
            self._transports[host] = httpx2.AsyncHTTPTransport(verify=self._certificates, trust_env=False)
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


def _certificates(verify: Verify) -> ssl.SSLContext:
    if isinstance(verify, str):
        if os.path.isdir(verify):
            return ssl.create_default_context(capath=verify)
        return ssl.create_default_context(cafile=verify)
    return _certificates_of_the_machine() if verify is True else httpx2.create_ssl_context(verify, trust_env=False)


@functools.cache
def _certificates_of_the_machine() -> ssl.SSLContext:
    """Read once: that takes longer than a request."""
    return httpx2.create_ssl_context(trust_env=False)


async def _read(response: Any) -> Answer:
    if "," in response.headers.get("content-encoding", ""):
        raise httpx2.DecodingError("the answer is packed more than once, and is not unpacked")
    pieces, room = list[bytes](), MAX_BYTES
    async for piece in response.aiter_bytes():
        pieces.append(piece[:room])
        room -= len(piece)
        if room < 0:
            break
    return Answer(response.status_code, response.headers, b"".join(pieces), room < 0)


def _headers(given: Mapping[str, str]) -> dict[str, str]:
    for name, value in given.items():
        if not _HEADER_NAME.fullmatch(name) or _NOT_IN_A_HEADER.search(value):
            raise Refused(f"header {name!r:.80} has a character that a header cannot have, such as a line break")
    return dict(given)


def _origin(url: httpx2.URL) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port


def _for_another_host(place: httpx2.URL, further: httpx2.URL, secrets: Collection[str]) -> httpx2.URL:
    if place.scheme == "https" and further.scheme == "http":
        raise Refused("it was sent on from https to http, where anyone on the way can read and change it")
    pairs = parse_qsl(further.query.decode(), keep_blank_values=True)
    public = [pair for pair in pairs if not any(one in pair[1] for one in secrets)]
    if public != pairs:
        further = further.copy_with(query=urlencode(public).encode())
    if any(one in unquote_plus(str(further)) for one in secrets):
        raise Refused("it was sent on to another host, with a secret in the address")
    return further


def _goes_straight(client: Any, url: str) -> bool:
    """Whether a client connects by itself, and not through a proxy. Source: google-adk 2.13, which asks httpx so."""
    transport_of: Any = getattr(client, "_transport_for_url", None)
    return transport_of is not None and transport_of(type(client.base_url)(url)) is getattr(client, "_transport", None)


async def _public_addresses(url: httpx2.URL, *, known: bool = True) -> list[str]:
    """The addresses of a host. `known`: it must have some here, and not only for a proxy."""
    host = url.raw_host.decode()
    if _INSIDE.fullmatch(host):
        raise _private(host)
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, url.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        if not known:
            return [host]
        raise httpx2.ConnectError(f"{host!r} has no address: {error}") from error
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    if not all(is_public(one) for one in addresses):
        raise _private(host)
    return addresses


def _private(host: str) -> Refused:
    return Refused(
        f"{host!r} is an address of this machine or of a private network, which are not reached unless the author "
        "of the tool says allow_private_network_access=True"
    )


def is_public(address: str) -> bool:
    """Whether an IP address is one of the open internet; one that wraps another is judged by that."""
    ip = ipaddress.ip_address(address.split("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64 or ip in _COMPATIBLE:
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
        if inner := ip.ipv4_mapped or ip.sixtofour or (ip.teredo and ip.teredo[1]):
            return is_public(str(inner))
        if ip in _LOCAL_NAT64 or ip.is_site_local:
            return False
    elif ip == _AZURE or ip in _PROTOCOLS:
        return False
    return ip.is_global and not ip.is_multicast
