"""A local stand-in for the Gemini Live API, so that google-genai's own client talks to it over a real TLS websocket.

Path and messages are those of https://ai.google.dev/api/live: `BidiGenerateContent`, one JSON message a frame, `setup`
first and `setupComplete` for it.
"""

import asyncio
import datetime
import functools
import ipaddress
import json
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.http11 import Request, Response

from tests.support.polling import SECONDS


class Client:
    """The client, as the server sees it: what it sent, and how it is answered."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket

    async def heard(self) -> dict[str, Any]:
        """The next message of the client."""
        async with asyncio.timeout(SECONDS):
            return json.loads(await self._socket.recv())

    async def say(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            await self._socket.send(json.dumps(message).encode())

    async def hang_up(self, code: int = 1000, reason: str = "") -> None:
        await self._socket.close(code, reason)

    async def drop(self) -> None:
        """Break the connection without a word."""
        self._socket.transport.abort()
        await self._socket.wait_closed()


Talk = Callable[[Client], Awaitable[None]]
"""What the server does on one connection, after the set-up. When it ends, the server waits for the client to go."""


class LiveServer:
    """`async with LiveServer(talk, ...) as server`: the first connection is answered by the first, and so on."""

    def __init__(self, *talks: Talk, refuses: int | None = None, redirects_to: "LiveServer | None" = None) -> None:
        self.setups: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self._talks = list(talks)
        self._refuses = refuses
        self._redirects_to = redirects_to
        self._server: Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"https://127.0.0.1:{next(iter(self._server.sockets)).getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await serve(
            self._answer, "127.0.0.1", 0, ssl=server_tls(), process_request=self._opened, close_timeout=SECONDS
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    def _opened(self, socket: ServerConnection, request: Request) -> Response | None:
        self.paths.append(request.path)
        self.headers.append(dict(request.headers.raw_items()))
        if self._redirects_to:
            response = socket.respond(HTTPStatus.TEMPORARY_REDIRECT, "there")
            response.headers["Location"] = self._redirects_to.url.replace("https", "wss") + request.path
            return response
        return socket.respond(HTTPStatus(self._refuses), "not you") if self._refuses else None

    async def _answer(self, socket: ServerConnection) -> None:
        client = Client(socket)
        self.setups.append((await client.heard())["setup"])
        await client.say({"setupComplete": {}})
        await self._talks.pop(0)(client)
        await socket.wait_closed()


def said(*texts: str, **more: Any) -> dict[str, Any]:
    """A `serverContent` with text parts, or without any."""
    turn = {"modelTurn": {"role": "model", "parts": [{"text": text} for text in texts]}} if texts else {}
    return {"serverContent": turn | more}


def client_tls() -> ssl.SSLContext:
    """Trusts the server's certificate and no other."""
    return ssl.create_default_context(cafile=str(certificate_folder() / "cert.pem"))


@functools.cache
def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_folder() / "cert.pem", certificate_folder() / "key.pem")
    return context


@functools.cache
def certificate_folder() -> Path:
    """A folder with a key and a certificate for 127.0.0.1 that vouches for itself; gone with the process."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    _kept.append(folder := tempfile.TemporaryDirectory())
    place = Path(folder.name)
    (place / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    unprotected = serialization.NoEncryption()
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, unprotected)
    (place / "key.pem").write_bytes(pem)
    return place


_kept: list[tempfile.TemporaryDirectory[str]] = []
