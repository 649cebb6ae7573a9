"""What tools may reach on the web, and what they take from there: each known way to misuse them, tried.

The servers are on this machine; where a test needs one that counts as public, a name of it does.
"""

import gzip
import importlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import httpx2
import pytest

from adk_nb.agents import LlmAgent
from adk_nb.auth import APIKey, APIKeyIn, AuthCredential, AuthCredentialTypes, HttpAuth, HTTPBase, HttpCredentials
from adk_nb.errors import ConfigurationError
from adk_nb.models import ScriptedLlm, call
from adk_nb.tools import web_access
from adk_nb.tools.load_web_page import load_web_page
from adk_nb.tools.openapi_tool import OpenAPIToolset
from adk_nb.tools.web_access import WebAccess
from tests.support.talk import Talk

LOOK_UP = socket.getaddrinfo
IS_PUBLIC = web_access.is_public
ZEROS = gzip.compress(bytes(4 * 1024 * 1024))
"""4 MiB in 4 KiB."""


class World(BaseHTTPRequestHandler):
    """A server that sends on, never ends, or packs more than it seems."""

    seen: list[tuple[str, str, dict[str, str]]]
    """Method, path, headers (lower case) of each request."""
    written: list[int]
    """Bytes of bodies without end."""
    over: threading.Event
    """The test is: let go of what still runs."""

    def answer(self) -> None:
        type(self).seen.append((self.command, self.path, {key.lower(): header for key, header in self.headers.items()}))
        url = urlsplit(self.path)
        text = {key: value[-1] for key, value in parse_qs(url.query).items()}
        if url.path == "/to":
            self.begin(int(text.get("status", 302)), Location=text["url"])
        elif url.path == "/endless":
            self.begin(200, length=100 * 1024**3, **{"Content-Type": "text/plain"})
            self.go_on(lambda: b"x" * 65_536)
        elif url.path == "/bomb":
            self.begin(200, length=100 * 1024**3, **{"Content-Type": "text/plain", "Content-Encoding": "gzip"})
            packer = gzip.GzipFile(fileobj=self.wfile, mode="wb")
            try:
                self.go_on(lambda: b"", lambda: packer.write(bytes(1024 * 1024)))
            finally:
                packer.fileobj = None  # else it would write its end when it is collected, to who has gone
        elif url.path == "/twice":
            self.begin(200, len(gzip.compress(ZEROS)), **{"Content-Encoding": "gzip, gzip"})
            self.wfile.write(gzip.compress(ZEROS))
        elif url.path == "/drip":
            self.begin(200, length=1_000_000, **{"Content-Type": "text/plain"})
            self.go_on(lambda: b"x", lambda: type(self).over.wait(0.01))
        else:
            body = json.dumps({"path": self.path, "saw": self.seen[-1][2], "method": self.command}).encode()
            self.begin(200, len(body), **{"Content-Type": "application/json"})
            self.wfile.write(body)

    def begin(self, status: int, length: int = 0, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def go_on(self, piece: Callable[[], bytes], between: Callable[[], Any] = lambda: None) -> None:
        try:
            while not type(self).over.is_set():
                between()
                text = piece()
                self.wfile.write(text)
                type(self).written.append(len(text))
        except OSError:  # the client has had enough
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def world() -> Iterator[int]:
    """The port of a server on this machine."""
    World.seen, World.written, World.over = [], [], threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), World) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server.server_address[1]
        World.over.set()
        server.shutdown()
        thread.join(30)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that were looked up. Those that end in `.example` are this machine's, and count as public."""
    looked_up: list[str] = []

    def look_up(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        looked_up.append(str(host))
        if str(host).endswith(".example"):
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
        if str(host).isalpha():
            raise socket.gaierror("no such name")
        return LOOK_UP(host, port, *args, **kwargs)

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    # A checked address is looked up once more, as such, when it is connected to.
    monkeypatch.setattr(
        web_access,
        "is_public",
        lambda item: "".join(looked_up[-1:]).endswith(".example") or IS_PUBLIC(item),
    )
    return looked_up


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    web = WebAccess()
    monkeypatch.setattr(importlib.import_module("adk_nb.tools.load_web_page"), "web", web)
    yield
    web.drop_connections()


def ask(tool: Any, name: str, /, **args: Any) -> Any:
    """What the model gets when it calls a tool."""
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm(call(name, **args), "done"), tools=[tool]))
    events = talk.say()
    assert talk.error is None
    return [response.response for event in events for response in event.get_function_responses()][-1]


def service(server: str, path: str = "/echo", method: str = "get", **options: Any) -> OpenAPIToolset:
    operation: dict[str, Any] = {"operationId": "f", "parameters": options.pop("parameters", [])}
    document = {"openapi": "3.0.3", "servers": [{"url": server}], "paths": {path: {method: operation}}}
    return OpenAPIToolset(spec_dict=document, **options)


INSIDE = "allow_private_network_access=True"
SCHEME = "starts with https:// or http://"
USERINFO = "before its host is not reached"
ADDRESSES = [
    ("http://127.0.0.1:{port}/", INSIDE),
    ("http://127.1:{port}/", INSIDE),
    ("http://2130706433:{port}/", INSIDE),
    ("http://0x7f.1:{port}/", INSIDE),
    ("http://0177.0.0.1:{port}/", "was not "),
    ("http://0:{port}/", INSIDE),
    ("http://[::1]:{port}/", INSIDE),
    ("http://[::]:{port}/", INSIDE),
    ("http://[::ffff:127.0.0.1]:{port}/", INSIDE),
    ("http://[::127.0.0.1]:{port}/", INSIDE),
    ("http://[64:ff9b::127.0.0.1]:{port}/", INSIDE),
    ("http://[2002:7f00:1::]:{port}/", INSIDE),
    ("http://[fe80::1]:{port}/", INSIDE),
    ("http://[fd00::1]:{port}/", INSIDE),
    ("http://169.254.169.254/latest/meta-data/", INSIDE),
    ("http://100.100.100.200/", INSIDE),
    ("http://192.0.0.192/opc/v2/instance/", INSIDE),
    ("http://168.63.129.16/machine?comp=goalstate", INSIDE),
    ("http://[::ffff:168.63.129.16]/", INSIDE),
    ("http://[fec0::1]/", INSIDE),
    ("http://10.0.0.1/", INSIDE),
    ("http://192.168.1.1/", INSIDE),
    ("http://172.16.0.1/", INSIDE),
    ("http://224.0.0.1/", INSIDE),
    ("http://metadata.google.internal/computeMetadata/v1/", INSIDE),
    ("http://METADATA.google.internal./", INSIDE),
    ("http://localhost:{port}/", INSIDE),
    ("http://localhost.:{port}/", INSIDE),
    ("http://a.localhost:{port}/", INSIDE),
    ("http://printer.local:{port}/", INSIDE),
    ("http://user@127.0.0.1:{port}/", USERINFO),
    ("http://user:word@shop.example:{port}/", USERINFO),
    ("http://shop.example\\@127.0.0.1:{port}/", USERINFO),
    ("http://ok#@127.0.0.1:{port}/", "'ok' has no address"),
    ("http://ok?@127.0.0.1:{port}/", "'ok' has no address"),
    ("http://ok/@127.0.0.1:{port}/", "'ok' has no address"),
    ("http://①②⑦.⓪.⓪.①:{port}/", "was not "),
    ("http://127.0.0.1%00.shop.example/", "was not "),
    ("file:///etc/passwd", SCHEME),
    ("gopher://127.0.0.1:{port}/_GET", SCHEME),
    ("unix:///var/run/docker.sock", SCHEME),
    ("ftp://shop.example/", SCHEME),
    ("dict://127.0.0.1:{port}/", SCHEME),
    ("//127.0.0.1:{port}/", SCHEME),
    ("http:///etc/passwd", SCHEME),
    ("data:text/plain,hi", SCHEME),
    ("http://shop.example:{port}/\r\nX-More: 1", "Invalid non-printable"),
    ("http://shop.example:{port}/a\tb", "Invalid non-printable"),
    ("http://shop.example:{port}\r\n/", "was not "),
]


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize(("address", "reason"), ADDRESSES)
def test_an_address_that_a_model_makes_up_does_not_reach_inside(world: int, address: str, reason: str):
    reply = ask(load_web_page, "load_web_page", url=address.replace("{port}", str(world)))

    assert reason in reply["error"] and World.seen == []


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize(
    ("address", "reason"),
    [address for address in ADDRESSES if address[0].startswith("http://") and address[1] in (INSIDE, "was not ")],
)
def test_a_document_does_not_lead_inside(world: int, address: str, reason: str):
    address = address.replace("{port}", str(world)).rstrip("/")

    try:
        reply = ask(service(address), "f")
    except ConfigurationError:  # it is no address at all
        reply = {"error": f"f was not {INSIDE}"}

    assert reply["error"].startswith("f") and World.seen == []
    assert reason == "was not " or INSIDE in reply["error"]


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize(
    ("status", "address"),
    [(302, address[0]) for address in ADDRESSES if "///etc" not in address[0] and "\r" not in address[0]]
    + [(status, ADDRESSES[0][0]) for status in (301, 303, 307, 308)],
)
def test_a_server_does_not_send_on_to_inside(world: int, address: str, status: int):
    address = address.replace("{port}", str(world))
    reply = ask(load_web_page, "load_web_page", url=f"http://a.example:{world}/to?status={status}&url={quote(address)}")

    assert "was not read" in reply["error"] and len(World.seen) == 1


def test_a_name_that_is_looked_up_again_is_judged_again(world: int, monkeypatch: pytest.MonkeyPatch):
    """The first answer is public, the second is not: the one that was checked is the one that is connected to."""
    answers = [["127.0.0.1"], ["10.0.0.1"]]

    def look_up(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if host != "two.example":
            return LOOK_UP(host, port, *args, **kwargs)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (item, port)) for item in answers.pop(0)]

    monkeypatch.setattr("socket.getaddrinfo", look_up)
    monkeypatch.setattr(web_access, "is_public", lambda item: item == "127.0.0.1")

    reply = ask(load_web_page, "load_web_page", url=f"http://two.example:{world}/to?url=/page")

    assert "'two.example'" in reply["error"]
    assert [path for _, path, _ in World.seen] == ["/to?url=/page"] and answers == []


SECRET = "a-long-secret"
BEARER = AuthCredential(
    auth_type=AuthCredentialTypes.HTTP, http=HttpAuth(scheme="bearer", credentials=HttpCredentials(token=SECRET))
)
KEY = AuthCredential(auth_type=AuthCredentialTypes.API_KEY, api_key=SECRET)


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize(
    ("scheme", "credential"),
    [
        (HTTPBase(scheme="bearer"), BEARER),
        (APIKey(in_=APIKeyIn.header, name="X-Key"), KEY),
        (APIKey(in_=APIKeyIn.cookie, name="key"), KEY),
        (APIKey(in_=APIKeyIn.query, name="key"), KEY),
    ],
)
@pytest.mark.parametrize(
    ("place", "stored"),
    [("/page?a=1", True), ("http://a.example:{port}/page?a=1", True), ("http://b.example:{port}/page?a=1", False)],
)
def test_another_host_is_not_shown_the_credential(
    world: int, scheme: Any, credential: AuthCredential, place: str, stored: bool
):
    echoed = f"&key={SECRET}" if getattr(scheme, "in_", None) is APIKeyIn.query else ""
    url = f"/to?url={quote(place.replace('{port}', str(world)) + echoed, safe='')}"
    tools = service(
        f"http://a.example:{world}",
        url,
        auth_scheme=scheme,
        auth_credential=credential,
        header_provider=lambda context: {"X-More": SECRET},
    )

    reply = ask(tools, "f")

    assert "error" not in reply and [path.split("?")[0] for _, path, _ in World.seen] == ["/to", "/page"]
    first, last = (f"{path} {headers}" for _, path, headers in World.seen)
    assert first.count(SECRET) >= 2 and (SECRET in last) is stored and "a=1" in last


@pytest.mark.usefixtures("names")
def test_a_secret_in_the_path_to_another_host_is_not_sent(world: int):
    url = f"/to?url={quote(f'http://b.example:{world}/{SECRET}/x', safe='')}"

    reply = ask(
        service(f"http://a.example:{world}", url, auth_scheme=HTTPBase(scheme="bearer"), auth_credential=BEARER), "f"
    )

    assert "a secret" in reply["error"] and len(World.seen) == 1


@pytest.mark.usefixtures("names")
def test_a_secret_of_a_header_is_not_sent_to_another_host_in_the_address(world: int):
    url = f"/to?url={quote(f'http://b.example:{world}/page?x=1&y={SECRET}', safe='')}"
    tools = service(f"http://a.example:{world}", url, header_provider=lambda context: {"X-Api-Key": SECRET})

    assert ask(tools, "f")["path"] == "/page?x=1" and SECRET not in f"{World.seen[-1]}"


@pytest.mark.usefixtures("names")
def test_what_changes_something_is_not_sent_on(world: int):
    for method in ("post", "put", "delete"):
        reply = ask(service(f"http://a.example:{world}", "/to?url=/page", method), "f")

        assert reply == {"error": f"f: HTTP 302 to /page, which is not followed for {method.upper()}"}
    assert [path for _, path, _ in World.seen] == ["/to?url=/page"] * 3


@pytest.mark.usefixtures("names")
def test_being_sent_on_has_an_end(world: int):
    place = "/page"
    for _ in range(6):
        place = f"/to?url={quote(place, safe='')}"
    reply = ask(load_web_page, "load_web_page", url=f"http://a.example:{world}{place}")

    assert "5 times" in reply["error"] and len(World.seen) == 6


def test_https_does_not_lead_to_http():
    def answers(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(302, headers={"Location": "http://b.example/page"})

    built = lambda: httpx2.AsyncClient(transport=httpx2.MockTransport(answers))  # noqa: E731
    tools = service("https://a.example", allow_private_network_access=True, httpx_client_factory=built)

    assert "https to http" in ask(tools, "f")["error"]


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("path", ["/endless", "/bomb"])
def test_an_endless_body_is_truncated(world: int, path: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(web_access, "MAX_BYTES", 1_000)

    reply = ask(service(f"http://a.example:{world}", path), "f")

    assert len(reply["text"]) == 1_000 and "cut after 1000 bytes" in reply["note"]
    assert sum(World.written) < 100 * 1024**2  # it was told to stop


@pytest.mark.usefixtures("names")
def test_a_body_that_is_packed_twice_is_not_unpacked(world: int):
    assert "more than once" in ask(service(f"http://a.example:{world}", "/twice"), "f")["error"]


@pytest.mark.usefixtures("names")
def test_a_body_that_drips_does_not_take_forever(world: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(web_access, "READ_SECONDS", 0.3)  # between two drops it is never so long

    reply = ask(service(f"http://a.example:{world}", "/drip"), "f")

    assert reply == {"error": "f: TimeoutError: no answer in time"} and len(World.written) > 1


HEADER = [{"name": "X-A", "in": "header", "schema": {"type": "string"}}]
PATH = [{"name": "a", "in": "path", "required": True, "schema": {"type": "string"}}]


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("value", ["a\r\nX-Admin: 1", "a\nb", "a\x00", "\r", "ü"])
def test_a_header_cannot_hold_another(world: int, value: str):
    reply = ask(service(f"http://a.example:{world}", parameters=HEADER), "f", x_a=value)

    assert "header 'X-A'" in reply["error"] and World.seen == []


@pytest.mark.usefixtures("names")
def test_the_value_of_a_header_that_cannot_be_is_not_told(world: int):
    tools = service(f"http://a.example:{world}", header_provider=lambda context: {"X-Key": f"{SECRET}\n"})

    error = ask(tools, "f")["error"]

    assert "'X-Key'" in error and SECRET not in error and World.seen == []


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("value", ["../../admin", "..\\..\\admin", "..", ".", "", "a/../b", "a\r\nb"])
def test_an_argument_does_not_lead_to_another_path(world: int, value: str):
    reply = ask(service(f"http://a.example:{world}", "/users/{a}", parameters=PATH), "f", a=value)

    assert "URL path" in reply["error"] and World.seen == []


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("value", ["%2e%2e%2fadmin", "a/b", "a?b=c#d", "a;b", "//other.example/"])
def test_an_argument_is_one_step_of_the_path(world: int, value: str):
    ask(service(f"http://a.example:{world}", "/users/{a}", parameters=PATH), "f", a=value)

    assert [path for _, path, _ in World.seen] == [f"/users/{quote(value, safe='')}"]


@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:1/x", "file:///etc/passwd", "other.yaml#/Pet", "//shop.example/x", "/etc/passwd"]
)
def test_a_document_does_not_make_others_be_read(reference: str):
    body = {"content": {"application/json": {"schema": {"$ref": reference}}}}
    document = {
        "openapi": "3.1.0",
        "servers": [{"url": "https://shop.example"}],
        "paths": {"/a": {"post": {"requestBody": body}}},
    }

    with pytest.raises(ValueError, match="not in it"):
        OpenAPIToolset(spec_dict=document)


@pytest.mark.usefixtures("names")
def test_a_proxy_of_the_environment_is_not_used(world: int, monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    assert ask(service(f"http://a.example:{world}"), "f")["path"] == "/echo"


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_client_of_the_authors_connects_to_the_address_that_was_checked(library: Any):
    log: list[tuple[str, str, Any]] = []

    def answers(request: Any) -> Any:
        log.append((str(request.url), request.headers["host"], request.extensions.get("sni_hostname")))
        return library.Response(200, json={"a": 1})

    built = lambda: library.AsyncClient(transport=library.MockTransport(answers), trust_env=False)  # noqa: E731

    assert ask(service("https://a.example", httpx_client_factory=built), "f") == {"a": 1}
    assert INSIDE in ask(service("https://10.0.0.1", httpx_client_factory=built), "f")["error"]
    assert log == [("https://127.0.0.1/echo", "a.example", "a.example")]


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_an_error_of_the_authors_client_is_told_to_the_model(library: Any):
    def answers(request: Any) -> Any:
        raise library.ReadTimeout("too slow", request=request)

    built = lambda: library.AsyncClient(transport=library.MockTransport(answers))  # noqa: E731
    tools = service("https://a.example", httpx_client_factory=built, allow_private_network_access=True)

    assert "too slow" in ask(tools, "f")["error"]


@pytest.mark.parametrize("library", [httpx, httpx2])
def test_a_proxy_of_the_authors_is_asked_for_names_that_only_it_knows_and_for_none_inside(
    world: int, names: list[str], library: Any
):
    built = lambda: library.AsyncClient(proxy=f"http://127.0.0.1:{world}", trust_env=False)  # noqa: E731

    for host, reached in (("intranet", True), ("a.example", True), ("localhost", False), ("10.0.0.1", False)):
        World.seen.clear()
        reply = ask(service(f"http://{host}/x", httpx_client_factory=built), "f")
        assert [path for _, path, _ in World.seen] == [f"http://{host}/x/echo"] * reached
        assert reached or INSIDE in reply["error"]
    assert "intranet" in names
