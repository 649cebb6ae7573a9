"""Models in gguf files on this machine, each served by a process that ends with this one."""

import asyncio
import atexit
import contextlib
import json
import logging
import mmap
import os
import re
import secrets
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from adk_nb import sync
from adk_nb.errors import ConfigurationError, ModelError
from adk_nb.lazy import require_installed
from adk_nb.models.adaptation import MissingCapability
from adk_nb.models.llm_request import LlmRequest
from adk_nb.models.llm_response import LlmResponse, on_progress
from adk_nb.models.openai_llm import OpenAILlm
from adk_nb.redaction import remember

logger = logging.getLogger(__name__)

_MAX_CONTEXT = 16_384
"""Tokens of all answers of a server together. A model may have been trained for more, which needs more memory."""
_LOG_TAIL = 20_000
_REASON = re.compile(r"^[\d.]+ E .*?((?:error loading model|failed to allocate|unable to allocate).*)$", re.MULTILINE)
_NO_MEMORY = re.compile(r"alloc|out of memory|bad_alloc", re.IGNORECASE)
_SMALLER = "close other programs, or take a smaller file of the model, such as one with Q4_K_M in its name"


# ---- what a file says of its model before it is loaded
# Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

_MAGIC = b"GGUF"
_OLDEST = 2
"""The version since which lengths have 64 bits."""
_NUMBERS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
"""Type of a value -> its code in `struct`."""
_STRING, _ARRAY = 8, 9
_SOME = 4
"""Neighbours of a missing file that its error names."""


@dataclass(frozen=True, kw_only=True)
class GgufFile:
    """A file with a model that converses."""

    path: Path
    size: int
    """Bytes."""
    context_length: int
    """Tokens that the model was trained for; 0 if the file does not say."""
    templates: tuple[str, ...]
    """Its chat templates: one, or one more for tools."""

    @property
    def has_tools(self) -> bool:
        """False if no template has a place for tools."""
        return any("tool" in template for template in self.templates)


def read_gguf(path: Path) -> GgufFile:
    """Read the head of a file.

    Raises:
        ConfigurationError: It is missing, no gguf file, cut off, or a base model's.
    """
    size = 0
    try:
        with path.open("rb") as file:
            start, size = file.read(len(_MAGIC)), path.stat().st_size
            if start != _MAGIC:
                raise ConfigurationError(
                    f"{path} is no gguf file: it begins with {start!r}, not {_MAGIC!r}; name a file of llama.cpp's "
                    "format, as -m gguf:model.gguf"
                )
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                facts = _facts(data, path)
    except FileNotFoundError:
        raise ConfigurationError(f"there is no file {path}; {_neighbours(path)}") from None
    except IsADirectoryError:
        raise ConfigurationError(f"{path} is a folder; {_neighbours(path / 'x')}") from None
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}; check the file's permissions") from None
    except (struct.error, UnicodeDecodeError, KeyError, OverflowError):
        raise ConfigurationError(
            f"{path} is damaged, or its download was cut off at {size:,} bytes; download it again"
        ) from None
    templates = tuple(str(facts[name]) for name in facts if name.startswith("tokenizer.chat_template"))
    if not templates:
        raise ConfigurationError(
            f"{path} has no chat template: it is a base model, which continues a text and does not converse; "
            "take the same model's file with Instruct, Chat or it in its name"
        )
    length = facts.get(f"{facts.get('general.architecture')}.context_length", 0)
    return GgufFile(path=path, size=size, context_length=int(length), templates=templates)


def _facts(data: mmap.mmap, path: Path) -> dict[str, Any]:
    """The numbers and texts of the head; of arrays, which are vocabularies, only the ends are found."""
    version, _, count = struct.unpack_from("<IQQ", data, len(_MAGIC))
    if not _OLDEST <= version < 1 << 16:
        raise ConfigurationError(
            f"{path} is a gguf file of version {version}, older than {_OLDEST}, or for other processors; "
            "download a newer one of the same model"
        )
    position, facts = len(_MAGIC) + struct.calcsize("<IQQ"), dict[str, Any]()

    def text() -> str:
        nonlocal position
        (length,) = struct.unpack_from("<Q", data, position)
        (content,) = struct.unpack_from(f"<{length}s", data, position + 8)
        position += 8 + length
        return content.decode()

    def number(code: str) -> Any:
        nonlocal position
        (value,) = struct.unpack_from(f"<{code}", data, position)
        position += struct.calcsize(f"<{code}")
        return value

    for _ in range(count):
        name, kind = text(), number("I")
        if kind == _STRING:
            facts[name] = text()
        elif kind != _ARRAY:
            facts[name] = number(_NUMBERS[kind])
        else:
            kind, length = number("I"), number("Q")
            if kind != _STRING:
                position += struct.calcsize(f"<{_NUMBERS[kind]}") * length
            else:
                for _ in range(length):
                    position += 8 + struct.unpack_from("<Q", data, position)[0]
    return facts


def _neighbours(path: Path) -> str:
    folder = path.parent
    found = sorted(file.name for file in folder.glob("*.gguf")) if os.access(folder, os.R_OK) else []
    if not found:
        return "check the path; -m takes gguf:/path/model.gguf"
    return f"{folder} has {', '.join(found[:_SOME])}{', ...' if len(found) > _SOME else ''}"


# ---- its model


class LocalLlm(OpenAILlm):
    """A model in a file on this machine: `model="gguf:/path/model.gguf"`.

    The first request starts llama.cpp's server, of the package xllamacpp, on a port of this machine with a key that
    only this process has. Models with the same file share it; it ends with this process.
    """

    model: str = "model.gguf"
    """Path of the file."""
    lacks: frozenset[MissingCapability] = frozenset({"images"})

    KEY_VARIABLES: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def supported_models(cls) -> list[str]:
        """None: the prefix `gguf:` selects this class."""
        return []

    def model_post_init(self, context: Any, /) -> None:
        """Report a missing package here, as of other models."""
        super().model_post_init(context)
        require_installed("xllamacpp", package="adk-nb[local]")

    @property
    def path(self) -> Path:
        """The file."""
        return Path(self.model).expanduser().absolute()

    @property
    def _running(self) -> "_Server":
        with _lock:
            return _servers.setdefault(os.path.realpath(self.path), _Server())

    def address(self) -> str:
        """Of the server; before it runs, of this machine."""
        return f"{self._running.url or 'http://127.0.0.1'}/v1"

    def _key(self) -> str | None:
        return self._running.key

    @property
    def _server(self) -> str:
        return f"gguf:{self.path}"  # its port changes with each start

    @property
    def connection_hint(self) -> str:
        """The next step if the server has ended."""
        return f"its server has ended, maybe for want of memory; ask again, and it is started anew, or {_SMALLER}"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer, after the server has been started if it does not run.

        Raises:
            ConfigurationError: The file is missing, no gguf file, a base model's, or larger than the memory.
            ModelError: The server could not load it.
        """
        loop, listener = asyncio.get_running_loop(), on_progress.get()

        def tell(text: str) -> None:
            logger.info(text)
            if listener:
                loop.call_soon_threadsafe(listener, text)

        await sync.blocking(lambda: self._running.start(self.path, tell), thread=True)
        async with aclosing(super().generate_content_async(llm_request, stream)) as responses:
            async for response in responses:
                yield response

    async def tells_of_tools(self) -> bool | None:
        """As the server says; before it runs, False if the file's template has no place for tools."""
        if self._running.is_alive:
            return await super().tells_of_tools()
        with contextlib.suppress(ConfigurationError):  # told when it is asked
            return None if read_gguf(self.path).has_tools else False
        return None

    def without_tools(self, model: str) -> str:
        """What to tell the user of a file whose template leaves tools out."""
        return (
            f"{self.path.name} does not tell its model of any tool: its chat template has no place for them, so the "
            "model can only invent. Take the file of a model whose template has tools, such as Qwen's Instruct models"
        )


class _Server:
    """The process that serves one file."""

    def __init__(self) -> None:
        self.url = ""
        self.key: str | None = None
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    @property
    def is_alive(self) -> bool:
        return bool(self.url) and self._process is not None and self._process.poll() is None

    def start(self, path: Path, tell: Callable[[str], None]) -> None:
        """Start it if it does not run; callers that come meanwhile wait."""
        with self._lock:
            if self.is_alive:
                return
            self.stop()
            file, free = read_gguf(path), _free_memory()
            if free is not None and file.size > free:
                raise ConfigurationError(
                    f"{path.name} needs {file.size / 1e9:,.1f} GB of memory and more, and {free / 1e9:,.1f} GB are "
                    f"free; {_SMALLER}"
                )
            tell(f"starting llama.cpp's server with {path.name}, {file.size / 1e9:.1f} GB")
            with tempfile.TemporaryFile() as log:
                self._process = process = subprocess.Popen(
                    [sys.executable, "-P", "-m", "adk_nb.models.gguf_server"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    text=True,
                    encoding="utf-8",
                    # Packages are found where this process finds them.
                    env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
                )
                key = secrets.token_urlsafe(24)
                remember(key)
                context = min(file.context_length or _MAX_CONTEXT, _MAX_CONTEXT)
                settings = {"path": str(path), "name": path.stem, "context": context, "key": key}
                assert process.stdin and process.stdout
                with contextlib.suppress(BrokenPipeError):  # its log says why
                    process.stdin.write(json.dumps(settings) + "\n")  # not an argument, which others could read
                    process.stdin.flush()
                for line in process.stdout:
                    facts: dict[str, Any] = json.loads(line)
                    if url := facts.get("url"):
                        self.url, self.key = url, key
                        return
                    tell(f"{path.name}: {facts['progress']}")
                code = process.wait()
                log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_TAIL))
                written = log.read().decode("utf-8", "replace")
            self.stop()
            raise ModelError(_failure(file, code, written))

    def stop(self) -> None:
        """End the process: it ends when its input does, or is killed."""
        process, self._process, self.url, self.key = self._process, None, "", None
        if not process:
            return
        with contextlib.suppress(BrokenPipeError):
            if process.stdin:
                process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()  # it is loading, and does not hear
            process.wait()
        if process.stdout:
            process.stdout.close()


_END_SECONDS = 2.0
_lock = threading.Lock()
_servers: dict[str, _Server] = {}
"""By the file's real path."""


@atexit.register
def stop_servers() -> None:
    """End all servers of this process."""
    for server in tuple(_servers.values()):
        server.stop()


def _free_memory() -> int | None:
    """Bytes; None where the system does not say so in a file."""
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError, AttributeError):
        told = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        found += [int(told[1]) * 1024] if told else []
    with contextlib.suppress(OSError, ValueError):  # of a container; without a limit it says `max`
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return min(found, default=None)


def _failure(file: GgufFile, code: int, log: str) -> str:
    """Why the server did not start."""
    last = log.strip().splitlines()[-1:] or ["it wrote no reason"]
    reasons = [found[1] for found in _REASON.finditer(log)] or last
    reason = re.sub(r"^[\d.]+ E ", "", reasons[0])[:300]
    if code < 0 or _NO_MEMORY.search(reason):
        ended = f"signal {-code}" if code < 0 else reason
        return f"llama.cpp's server with {file.path.name} has ended for want of memory, it seems ({ended}); {_SMALLER}"
    return (
        f"llama.cpp cannot load {file.path.name}: {reason}; download the file again, or, if its model is new, type: "
        "%pip install -U xllamacpp"
    )
