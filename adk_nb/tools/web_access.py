"""Web access for tools: public addresses only, few redirects, no cookies, limits on size and time."""

import asyncio
import ipaddress
import os
import re
import socket
import ssl
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote_plus, urlencode

import httpx2

from adk_nb import redaction
from adk_nb.concurrency.threads import IN_A_BROWSER
from adk_nb.models.connections import HEADER_NAME, HEADER_VALUE, PageFetch, PerLoop, isolated_client, own_tls

CONNECT_SECONDS = 10.0
READ_SECONDS = 600.0
"""Limit of a whole response with its redirects, and of the wait between two chunks. Source: google-adk 2.13's read
timeout of RestApiTool."""
MAX_BYTES = 8 * 1024 * 1024
"""Limit of a decompressed response body; the rest is not read."""
REDIRECTS = 5
"""Limit of redirects for one GET or HEAD."""
Verify = bool | str | ssl.SSLContext
ClientFactory = Callable[[], Any]
"""`() -> httpx2.AsyncClient` or `httpx.AsyncClient`: a new client for each request, which is closed after it."""
_READS = ("GET", "HEAD")
_REDIRECT_STATUSES = (301, 302, 303, 307, 308)
_PUBLIC_HEADERS = ("accept", "accept-language", "user-agent")
"""Headers that are sent to another host after a redirect; any other may be a credential."""
_PRIVATE_NAMES = re.compile(r"(?:.*\.)?(?:localhost|local|internal)\.?", re.IGNORECASE)
"""Host names that are never public. Source: RFC 6761, 6.3; RFC 6762, 3; ICANN's resolution 2024.07.29.06."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.ip_network("64:ff9b:1::/48")
_COMPATIBLE = ipaddress.ip_network("::/96")
"""IPv4-compatible IPv6 addresses: zeros and an IPv4 address."""
_AZURE = ipaddress.ip_address("168.63.129.16")
"""Azure's platform services for virtual machines, at a public address. Source: Azure, "What is IP address
168.63.129.16?"."""
_PROTOCOLS = ipaddress.ip_network("192.0.0.0/24")
"""Not globally reachable (RFC 6890), which older versions of Python do not know; 192.0.0.192 is the metadata service of
Oracle's cloud.
"""


class Refused(httpx2.RequestError):
    """A request that is refused by policy. The message contains no secrets."""


@dataclass(frozen=True)
class WebResponse:
    """A response."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    cut: bool
    """True: the body was cut at `MAX_BYTES`."""

    @property
    def redirect_target(self) -> str | None:
        """Target of a redirect. None: it is not one."""
        return self.headers.get("location") if self.status in _REDIRECT_STATUSES else None


class WebAccess:
    """Sends requests, each to an address that was checked for it.

    Args:
        allow_private_network_access: Allow this machine and private networks, too.
        verify: Verification of server certificates: by the system's store, by a file or folder of certificates, by a
            context of your own, or none.
        client_factory: Creates the clients, for example with a proxy; by default no proxy is used. A host behind a
            proxy is checked by name, and resolved by the proxy.
    """

    def __init__(
        self,
        *,
        allow_private_network_access: bool = False,
        verify: Verify = True,
        client_factory: ClientFactory | None = None,
    ) -> None:
        self._allow_private = allow_private_network_access
        self._verify = verify
        self._factory = client_factory
        self._clients: PerLoop[httpx2.AsyncClient] = PerLoop()  # connections belong to an event loop

    def with_verification(self, verify: Verify) -> "WebAccess":
        """A copy with another verification of certificates."""
        return WebAccess(allow_private_network_access=self._allow_private, verify=verify, client_factory=self._factory)

    async def send(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        files: Sequence[tuple[str, Any]] = (),
        secrets: Collection[str] = (),
        follow: bool = True,
    ) -> WebResponse:
        """Send a request and read the response, whatever its status.

        GET and HEAD follow `REDIRECTS` redirects. Each address is checked anew; another host gets no header that may be
        a credential, and https is not redirected to http.

        Args:
            method: Upper case.
            url: URL with query.
            headers: Sent in addition to the client's.
            content: The body.
            files: The parts of a multipart body instead: name, and a value that httpx2 accepts.
            secrets: Values that no other host may get, in addition to the secrets known to this process.
            follow: False: return a redirect as the response.

        Raises:
            httpx2.HTTPError: No response; `Refused` if the request was not sent.
            httpx2.InvalidURL: `url` is invalid.
            TimeoutError: The response took too long.
        """
        location, sent_headers = self._parse_url(url), dict(headers or {})
        for name, value in sent_headers.items():
            if not (HEADER_NAME.fullmatch(name) and HEADER_VALUE.fullmatch(value)):
                raise Refused(f"header {name!r:.80} has a character that a header cannot have, such as a line break")
        body: dict[str, Any] = {"files": list(files)} if files else {"content": content}
        async with asyncio.timeout(READ_SECONDS):
            for _ in range(REDIRECTS + 1):
                response = await self._send(method, location, sent_headers, body)
                if not follow or method not in _READS or response.redirect_target is None:
                    return response
                target = self._parse_url(location.join(response.redirect_target))
                if _origin(target) != _origin(location):
                    # RFC 9110, 15.4, advises clients to remove credentials from a redirected request.
                    sent_headers = {k: value for k, value in sent_headers.items() if k.lower() in _PUBLIC_HEADERS}
                    target = _without_secrets(location, target, [*secrets, *redaction.known_secrets()])
                location = target
        raise httpx2.TooManyRedirects(f"it redirected more than {REDIRECTS} times")

    def drop_connections(self) -> None:
        """Drop the connections; the next request opens new ones."""
        self._clients = PerLoop()

    def _parse_url(self, url: httpx2.URL | str) -> httpx2.URL:
        # Parsed once: if the check and the connection read a URL differently, the check can be evaded.
        parsed = httpx2.URL(url)
        if parsed.scheme not in ("http", "https") or not parsed.raw_host:
            raise Refused(f"an address starts with https:// or http:// and a host, not with {parsed.scheme[:20]!r}:")
        # `https://good.example@evil.example` looks like the first host.
        if parsed.userinfo:
            raise Refused("an address with a name or a password before its host is not reached; leave them out")
        return parsed

    async def _send(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> WebResponse:
        if self._factory is None:
            client = await self._clients.get(None, self._new_client)
            async with client.stream(method, url, headers=headers, **body) as response:
                return await _read(response)
        try:
            async with self._factory() as client:
                options, request_url = dict[str, Any](body), str(url)
                if not self._allow_private:
                    direct = _is_direct(client, request_url)
                    [address, *_] = await _public_addresses(url, must_resolve=direct)
                    if direct:
                        # Connected to the checked address itself: a second resolution may give another (DNS rebinding).
                        headers = {**headers, "Host": url.netloc.decode()}
                        # The certificate is for the host name, not for the address.
                        options["extensions"] = {"sni_hostname": url.raw_host.decode()}
                        request_url = str(url.copy_with(host=address))
                async with client.stream(
                    method, request_url, headers=headers, follow_redirects=False, **options
                ) as response:
                    return await _read(response)
        except (httpx2.HTTPError, TimeoutError):
            raise
        except Exception as error:  # the errors of a foreign client are unknown
            raise httpx2.RequestError(f"{type(error).__name__}: {error}") from error

    def _new_client(self) -> httpx2.AsyncClient:
        if IN_A_BROWSER:
            transport = PageFetch() if self._allow_private else _CheckedPageFetch()
        elif self._allow_private:
            transport = httpx2.AsyncHTTPTransport(verify=_certificates(self._verify), trust_env=False)
        else:
            transport = _CheckedTransport(_certificates(self._verify))
        # Isolated: a proxy of the environment would resolve the host itself, unchecked.
        return isolated_client(transport, httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS))


class _CheckedPageFetch(PageFetch):
    """Refuses hosts that are not public by their names: the page resolves them itself."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to a host that may be public."""
        host = request.url.raw_host.decode()
        if _PRIVATE_NAMES.fullmatch(host) or (_is_address(host) and not is_public(host)):
            raise _private_address_error(host)
        return await super().handle_async_request(request)


class _CheckedTransport(httpx2.AsyncBaseTransport):
    """Resolves a host once, refuses non-public addresses, and connects to an address that it checked."""

    def __init__(self, certificates: ssl.SSLContext) -> None:
        self._certificates = certificates
        # One transport per host: a pooled connection to an address must not serve another host with the same address.
        self._transports: dict[str, httpx2.AsyncHTTPTransport] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to a checked address of its host."""
        host = request.url.raw_host.decode()
        addresses = await _public_addresses(request.url)
        if host not in self._transports:
            self._transports[host] = httpx2.AsyncHTTPTransport(verify=self._certificates, trust_env=False)
        for remaining, address in enumerate(addresses, 1 - len(addresses)):  # 0 at the last address
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
                if remaining == 0:
                    raise
        raise httpx2.ConnectError(f"{host!r} has no address", request=request)

    async def aclose(self) -> None:
        """Close the connections."""
        for transport in self._transports.values():
            await transport.aclose()


def _certificates(verify: Verify) -> ssl.SSLContext:
    if isinstance(verify, str):
        if os.path.isdir(verify):
            return ssl.create_default_context(capath=verify)
        return ssl.create_default_context(cafile=verify)
    return own_tls() if verify is True else httpx2.create_ssl_context(verify, trust_env=False)


async def _read(response: Any) -> WebResponse:
    # Nested compression expands exponentially before MAX_BYTES takes effect.
    if "," in response.headers.get("content-encoding", ""):
        raise httpx2.DecodingError("the answer is packed more than once, and is not unpacked")
    chunks, remaining = list[bytes](), MAX_BYTES
    async for chunk in response.aiter_bytes():
        chunks.append(chunk[:remaining])
        remaining -= len(chunk)
        if remaining < 0:
            break
    return WebResponse(response.status_code, response.headers, b"".join(chunks), remaining < 0)


def _origin(url: httpx2.URL) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port


def _without_secrets(source: httpx2.URL, target: httpx2.URL, secrets: Collection[str]) -> httpx2.URL:
    if source.scheme == "https" and target.scheme == "http":
        raise Refused("it redirected from https to http, where anyone on the way can read and change it")
    pairs = parse_qsl(target.query.decode(), keep_blank_values=True)
    public = [pair for pair in pairs if not any(secret in pair[1] for secret in secrets)]
    if public != pairs:
        target = target.copy_with(query=urlencode(public).encode())
    if any(secret in unquote_plus(str(target)) for secret in secrets):
        raise Refused("it redirected to another host, with a secret in the URL")
    return target


def _is_direct(client: Any, url: str) -> bool:
    """True if a client connects directly, not through a proxy. Source: google-adk 2.13, which does the same."""
    transport_of: Any = getattr(client, "_transport_for_url", None)
    return transport_of is not None and transport_of(type(client.base_url)(url)) is getattr(client, "_transport", None)


async def _public_addresses(url: httpx2.URL, *, must_resolve: bool = True) -> list[str]:
    """The addresses of a host. `must_resolve`: False if only a proxy has to resolve it."""
    host = url.raw_host.decode()
    if _PRIVATE_NAMES.fullmatch(host):
        raise _private_address_error(host)
    loop = asyncio.get_running_loop()
    try:
        infos = await loop.getaddrinfo(host, url.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        if not must_resolve:
            return [host]
        raise httpx2.ConnectError(f"{host!r} has no address: {error}") from error
    addresses = list(dict.fromkeys(str(info[4][0]) for info in infos))
    if not all(is_public(address) for address in addresses):
        raise _private_address_error(host)
    return addresses


def _private_address_error(host: str) -> Refused:
    return Refused(
        f"{host!r} is an address of this machine or of a private network; only the author of the tool can allow it, "
        "with allow_private_network_access=True"
    )


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_public(address: str) -> bool:
    """True if an IP address is globally reachable; an address that embeds another one is judged by that."""
    ip = ipaddress.ip_address(address.split("%")[0])  # without the IPv6 zone
    if isinstance(ip, ipaddress.IPv6Address):
        if ip in _NAT64 or ip in _COMPATIBLE:
            return is_public(str(ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)))
        # IPv4 inside of IPv6: RFC 4291, 2.5.5.2; 6to4, RFC 3056; Teredo, RFC 4380.
        if inner := ip.ipv4_mapped or ip.sixtofour or (ip.teredo and ip.teredo[1]):
            return is_public(str(inner))
        if ip in _LOCAL_NAT64 or ip.is_site_local:
            return False
    elif ip == _AZURE or ip in _PROTOCOLS:
        return False
    return ip.is_global and not ip.is_multicast
