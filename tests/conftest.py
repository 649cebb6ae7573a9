"""What every test shares: no connection leaves the machine, and time and ids stand still when asked."""

import gc
import ipaddress
import itertools
import os
import signal
import socket
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings  # early: as it is imported, it asks who refers to trio's numbers; no answer once frozen

from adk_nb import clock, redaction
from adk_nb.models.default_model import USUAL_PORTS
from adk_nb.tools.json_arguments import JsonArguments
from tests.support.tiers import (
    pytest_collection_modifyitems,
    pytest_ignore_collect,
    pytest_runtest_setup,
    pytest_terminal_summary,
    pytest_xdist_auto_num_workers,
    pytest_xdist_make_scheduler,
)
from tests.support.warm import pytest_configure

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_configure",
    "pytest_ignore_collect",
    "pytest_runtest_setup",
    "pytest_terminal_summary",
    "pytest_xdist_auto_num_workers",
    "pytest_xdist_make_scheduler",
]

for key in (
    *("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
    *("ADK_NB_REPLAY", "ADK_NB_DEFAULT_MODEL", "OPENAI_BASE_URL"),
):
    os.environ.pop(key, None)
os.environ["ADK_NB_DISPLAY"] = "static"  # what a run leaves in the file is the same in every test
os.environ["OLLAMA_HOST"] = "127.0.0.1:9"  # no Ollama of this machine answers for agents that name no model
USUAL_PORTS.clear()  # nor another server with models
JsonArguments({}, "tests")  # imports jsonschema without its grammar of a format, which nbformat would wait for

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts what runs in its background so
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("short", max_examples=50, deadline=None)
settings.register_profile("long", max_examples=2_000, deadline=None)  # make test-long
settings.load_profile("short")


@pytest.fixture(autouse=True, scope="module")
def freeze_loaded_modules() -> None:
    """Exempt loaded modules from garbage collection: a collection in a test looks at the objects of its file only."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def forget_secrets() -> None:
    """Start without the secrets that an earlier test registered."""
    redaction.forget()


def _stays_here(address: str | bytes | tuple[Any, ...]) -> bool:
    if not isinstance(address, tuple):  # a path: a Unix socket
        return True
    host = str(address[0]).split("%")[0]
    try:
        return host in ("localhost", "") or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection off loopback, or the look-up of a name, fails at once instead of costing money."""

    def guard(name: str, *, number: int) -> None:
        real = getattr(socket.socket, name)

        def guarded(self: socket.socket, *args: Any) -> Any:
            if not _stays_here(args[number]):
                raise RuntimeError(f"a test tried to reach {args[number]!r}; give the agent a ScriptedLlm")
            return real(self, *args)

        monkeypatch.setattr(socket.socket, name, guarded)

    guard("connect", number=0)
    guard("connect_ex", number=0)
    guard("sendto", number=-1)
    look_up = socket.getaddrinfo

    def guarded_look_up(host: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name is not None and not _stays_here((name,)):
            raise RuntimeError(f"a test tried to look up {name!r}; give the agent a ScriptedLlm")
        return look_up(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", guarded_look_up)


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids count from `id-1` and the clock stands at 1000 s, so whole events can be compared."""
    numbers = itertools.count(1)
    # clock's own door, not its function: defaults such as Field(default_factory=clock.now) hold the function.
    monkeypatch.setattr(clock, "time", SimpleNamespace(time=lambda: 1000.0))
    monkeypatch.setattr(clock, "new_id", lambda: f"id-{next(numbers)}")
