"""What a gguf file says of its model before it is loaded.

Source: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import mmap
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adk_nb.errors import ConfigurationError

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
