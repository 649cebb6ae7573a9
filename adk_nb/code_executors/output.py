"""What code says while it runs, gathered up to a limit."""

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any

from adk_nb.runtime.code import CodeExecutionResult, File

MAX_CHARACTERS = 50_000
"""Of each of stdout and stderr; what is more is counted and dropped."""
MAX_FILES = 20
_IMAGES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/svg+xml": "svg"}
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class _Text:
    """The beginning of a text that may have no end."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._room = MAX_CHARACTERS
        self.dropped = 0

    def add(self, text: str) -> None:
        if self._room:
            self._kept.append(text[: self._room])
        self.dropped += max(0, len(text) - self._room)
        self._room = max(0, self._room - len(text))

    def __str__(self) -> str:
        said = "".join(self._kept)
        return f"{said}\n[{self.dropped:,} more characters were dropped]" if self.dropped else said


class Output:
    """The words and pictures of one run, in the order in which they came."""

    def __init__(self, image_name: Callable[[str], str]) -> None:
        """`image_name(extension)`: a name for one more picture."""
        self._image_name = image_name
        self._stdout, self._stderr = _Text(), _Text()
        self.files: list[File] = []

    def say(self, text: str) -> None:
        """Words for stdout."""
        self._stdout.add(text)

    def complain(self, text: str) -> None:
        """Words for stderr."""
        self._stderr.add(_COLOURS.sub("", text))

    def show(self, bundle: Mapping[str, Any]) -> None:
        """Something shown: its picture if it has one, else its text. Mime type -> data, binary ones as base64."""
        for mime_type, extension in _IMAGES.items():
            if (data := bundle.get(mime_type)) and len(self.files) < MAX_FILES:
                name = self._image_name(extension)
                content = data.encode() if extension == "svg" and isinstance(data, str) else _bytes(data)
                self.files.append(File(name=name, content=content, mime_type=mime_type))
                return
        if text := bundle.get("text/plain"):
            self.say(_COLOURS.sub("", f"{text}\n"))

    @property
    def dropped(self) -> int:
        """Characters that nobody will read."""
        return self._stdout.dropped + self._stderr.dropped

    def result(self, exit_code: int) -> CodeExecutionResult:
        """All of it."""
        return CodeExecutionResult(
            stdout=str(self._stdout), stderr=str(self._stderr), output_files=self.files, exit_code=exit_code
        )


def _bytes(data: str | bytes) -> bytes:
    return base64.b64decode(data) if isinstance(data, str) else data
