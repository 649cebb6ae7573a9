"""Collects the output of code up to a limit."""

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any

from adk_nb.runtime.code_execution import CodeExecutionResult, File

MAX_CHARACTERS = 50_000
"""Limit for each of stdout and stderr; further characters are counted and dropped."""
MAX_FILES = 20
_IMAGES = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/svg+xml": "svg"}
_ANSI_CODES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class _BoundedText:
    """The beginning of a possibly endless text."""

    def __init__(self) -> None:
        self._chunks: list[str] = []
        self._remaining = MAX_CHARACTERS
        self.dropped = 0

    def add(self, text: str) -> None:
        """Append text up to the limit."""
        if self._remaining:
            self._chunks.append(text[: self._remaining])
        self.dropped += max(0, len(text) - self._remaining)
        self._remaining = max(0, self._remaining - len(text))

    def __str__(self) -> str:
        text = "".join(self._chunks)
        return f"{text}\n[{self.dropped:,} more characters were dropped]" if self.dropped else text


class Output:
    """Text and images of one run, in order of arrival."""

    def __init__(self, image_name: Callable[[str], str]) -> None:
        """`image_name(extension)`: returns the name of the next image."""
        self._image_name = image_name
        self._stdout, self._stderr = _BoundedText(), _BoundedText()
        self.files: list[File] = []

    def write_stdout(self, text: str) -> None:
        """Append to stdout."""
        self._stdout.add(text)

    def write_stderr(self, text: str) -> None:
        """Append to stderr, without ANSI codes."""
        self._stderr.add(_ANSI_CODES.sub("", text))

    def add_display(self, bundle: Mapping[str, Any]) -> None:
        """Add a display bundle (media type -> data, binary data as base64): its image, or else its text."""
        for mime_type, extension in _IMAGES.items():
            if (data := bundle.get(mime_type)) and len(self.files) < MAX_FILES:  # the richest form first
                name = self._image_name(extension)
                content = data.encode() if extension == "svg" and isinstance(data, str) else _bytes(data)
                self.files.append(File(name=name, content=content, mime_type=mime_type))
                return
        if text := bundle.get("text/plain"):
            self.write_stdout(_ANSI_CODES.sub("", f"{text}\n"))

    @property
    def dropped(self) -> int:
        """Number of dropped characters."""
        return self._stdout.dropped + self._stderr.dropped

    def result(self, exit_code: int) -> CodeExecutionResult:
        """The collected output as a result."""
        return CodeExecutionResult(
            stdout=str(self._stdout), stderr=str(self._stderr), output_files=self.files, exit_code=exit_code
        )


def _bytes(data: str | bytes) -> bytes:
    return base64.b64decode(data) if isinstance(data, str) else data
