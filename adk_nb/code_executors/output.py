"""Collects the output of code up to a limit."""

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from adk_nb.runtime.code_execution import CodeExecutionResult, File

MAX_CHARACTERS = 50_000
"""Limit for each of stdout and stderr; further characters are counted and dropped."""
MAX_FILES = 20
MAX_BYTES = 20 * 1024 * 1024
"""Size limit of a file or a displayed picture."""
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
            # Half a surrogate pair can be neither sent nor stored.
            self._chunks.append(text[: self._remaining].encode(errors="replace").decode())
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
        self._failed = False
        self._skipped: list[str] = []
        self.files: list[File] = []

    def write_stdout(self, text: str) -> None:
        """Append to stdout."""
        self._stdout.add(text)

    def write_stderr(self, text: str) -> None:
        """Append to stderr, without ANSI codes."""
        self._stderr.add(_ANSI_CODES.sub("", text))

    def fail(self, reason: str) -> None:
        """Append a line to stderr, and make this the output of code that failed."""
        self._failed = True
        self.write_stderr(f"{reason}\n")

    def skip(self, *names: str) -> None:
        """Tell that files are not returned."""
        self._skipped += names

    def add_display(self, bundle: Any) -> None:
        """Add a display bundle (media type -> data, binary data as base64): its image, or else its text.

        Anything else counts as a failure of the code, which displayed it.
        """
        if not isinstance(bundle, Mapping):
            self.fail(f"what was displayed is no bundle of media types: {bundle!r:.200}")
            return
        bundle = cast(Mapping[str, Any], bundle)
        for mime_type, extension in _IMAGES.items():  # the richest form first
            if data := bundle.get(mime_type):
                self._add_image(data, mime_type, extension)
                return
        if text := bundle.get("text/plain"):
            self.write_stdout(_ANSI_CODES.sub("", f"{text}\n"))

    @property
    def dropped(self) -> int:
        """Number of dropped characters."""
        return self._stdout.dropped + self._stderr.dropped

    def result(self, exit_code: int) -> CodeExecutionResult:
        """The collected output as a result."""
        if self._skipped:
            rest = len(self._skipped) - MAX_FILES
            names = ", ".join(self._skipped[:MAX_FILES]) + (f" and {rest:,} more" if rest > 0 else "")
            self.write_stdout(f"\n[not returned: {names}]\n")
        return CodeExecutionResult(
            stdout=str(self._stdout),
            stderr=str(self._stderr),
            output_files=self.files,
            exit_code=exit_code or int(self._failed),
        )

    def _add_image(self, data: Any, mime_type: str, extension: str) -> None:
        if len(self.files) >= MAX_FILES:
            self.skip(f"a picture (more than {MAX_FILES} files)")
            return
        if not isinstance(data, str | bytes):
            self.fail(f"a displayed picture ({mime_type}) is {type(data).__name__}, and not base64 text")
            return
        is_base64 = isinstance(data, str) and extension != "svg"
        # Before it is decoded: four characters of base64 are three bytes, and lines end in a character more.
        if len(data) > MAX_BYTES * (1.5 if is_base64 else 1):
            content = None
        else:
            try:
                content = base64.b64decode(data) if is_base64 else data if isinstance(data, bytes) else data.encode()
            except ValueError as error:
                self.fail(f"a displayed picture ({mime_type}) cannot be decoded: {error}")
                return
        if content is None or len(content) > MAX_BYTES:
            self.skip(f"a picture (larger than {MAX_BYTES // 1024**2} MB)")
            return
        self.files.append(File(name=self._image_name(extension), content=content, mime_type=mime_type))
