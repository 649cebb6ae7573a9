"""The file of recorded model answers: one JSON line per call, appended, with secrets and addresses redacted."""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, Field, ValidationError

from adk_nb.errors import InputError
from adk_nb.redaction import REDACTED, redacted

_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]+@((?:[\w-]+\.)+[a-z]{2,})\b", re.IGNORECASE)
_RESERVED_DOMAINS = re.compile(r"(?:.*\.)?(?:example(?:\.(?:com|net|org))?|test|invalid|localhost)", re.IGNORECASE)
"""Domains reserved for documents and tests. Source: RFC 2606."""


class Redactor:
    """Replaces secrets by `[redacted]`, and e-mail addresses by addresses of example.com.

    Equal addresses get equal replacements, and a replacement is not replaced again: a tool that gets one on replay
    finds it in the recorded request, too.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        """Compile the patterns.

        Args:
            patterns: Regular expressions of other texts to replace by `[redacted]`.

        Raises:
            InputError: A pattern is malformed.
        """
        self.patterns = tuple(patterns)
        try:
            self._patterns = [re.compile(pattern) for pattern in patterns]
        except re.error as error:
            raise InputError(
                f"{error.pattern!r} is not a regular expression: {error.msg}; write one such as r'\\d{{9,}}'"
            ) from None

    def redact(self, value: Any) -> Any:
        """Copy `value` (JSON) without secrets and addresses; the keys of objects stay."""
        return self._walk(redacted(value))

    def _walk(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._walk(item) for key, item in cast(dict[str, Any], value).items()}
        if isinstance(value, list):
            return [self._walk(item) for item in cast(list[Any], value)]
        if not isinstance(value, str):
            return value
        for pattern in self._patterns:
            value = pattern.sub(REDACTED, value)

        def anonymous(address: re.Match[str]) -> str:
            if _RESERVED_DOMAINS.fullmatch(address[1]):
                return address[0]
            # In lower case: addresses that differ only in case are one person's.
            return f"person-{hashlib.sha256(address[0].lower().encode()).hexdigest()[:6]}@example.com"

        return _EMAIL.sub(anonymous, value) if "@" in value else value


VERSION = 1


class Piece(BaseModel):
    """A response of the model: a streamed piece, or the complete answer."""

    after: float = 0.0
    """Seconds since the previous piece; for the first, since the request."""
    response: dict[str, Any]
    """An LlmResponse as JSON."""


class NormalizedRequest(BaseModel):
    """A request without ids and times, created by `recorded_requests.normalize`. Equal requests match."""

    model: str
    instruction: str = ""
    tools: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """Function declarations as JSON, by name."""
    config: dict[str, Any] = Field(default_factory=dict[str, Any])
    contents: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """Messages as JSON, oldest first."""


class Recording(BaseModel):
    """A call of a model: one line of the file."""

    cassette_version: int = VERSION
    model: str
    """The model that answered, as its service names it."""
    notice: str | None = None
    """Notice of that model, if it is a stand-in."""
    capabilities: dict[str, Any] = Field(default_factory=dict[str, Any])
    request: NormalizedRequest
    digest: str = ""
    """Digest of the request with its ids and times, to tell apart requests that are equal without them."""
    responses: list[Piece]
    """In order; the last is the complete answer."""


class Cassette:
    """A file of recordings. Share one object between models that record into, or replay from, the same file."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = False,
        overwrite: bool = False,
        redactor: Redactor | None = None,
        hint: str = "",
        label: str = "",
    ) -> None:
        """Read the file.

        Args:
            path: The file; recordings are appended.
            create: Create the file and its folders if they are missing.
            overwrite: Ignore its recordings; the first new one replaces them.
            redactor: Redacts recordings before they are written, and requests before they are compared.
            hint: Command that records, for errors.
            label: Name of the file in errors; empty: its path.

        Raises:
            InputError: The file is missing, has a malformed line, or was written by a newer version.
        """
        self.path = Path(path)
        self.label = label or str(self.path)
        self.recordings: list[Recording] = []
        """Oldest first."""
        self.redactor = redactor or Redactor()
        self._missing_hint = hint or f"record one with RecordedLlm({self.label!r}, record=model)"
        self.record_hint = hint or (
            f"to record it anew, delete {self.label} and run once with RecordedLlm({self.label!r}, record=model)"
        )
        self._overwrites = overwrite
        self._unused: dict[str, list[Recording]] = {}
        for recording in () if overwrite else self._read(create):
            self._add(recording)
        self.initial_count = len(self.recordings)
        """Number of recordings when the file was opened."""

    def append(self, recording: Recording) -> None:
        """Append `recording`, redacted, as one line, in one unbuffered write: an interrupted run keeps earlier ones."""
        hidden = self.redactor.redact(recording.model_dump(mode="json", exclude_none=True))
        line = json.dumps(hidden, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Emptied only now: a run that records nothing leaves the old file as it is.
        with self.path.open("wb" if self._overwrites else "ab", buffering=0) as file:
            self._overwrites = False
            if file.write(line) != len(line):
                raise OSError(f"the disk took only a part of a recording into {self.label!r}")
        self._add(Recording.model_validate(hidden))

    def count_equal(self, request: NormalizedRequest) -> int:
        """Number of recordings of this request."""
        return sum(recording.request == request for recording in self.recordings)

    def take(self, request: NormalizedRequest, digest: str) -> Recording | None:
        """Take the next unused recording of this request, in recorded order; None if there is none.

        Args:
            request: The request.
            digest: A recording with this digest comes first: its ids and times are equal, too.
        """
        unused = self._unused.get(_key(request), [])
        if not unused:
            return None
        exact = next((n for n, recording in enumerate(unused) if recording.digest == digest), 0)
        return unused.pop(exact)

    def _add(self, recording: Recording) -> None:
        self.recordings.append(recording)
        self._unused.setdefault(_key(recording.request), []).append(recording)

    def _read(self, create: bool) -> Iterable[Recording]:
        try:
            if create:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.open("ab").close()
            data = self.path.read_bytes()
        except FileNotFoundError:
            raise InputError(f"there is no cassette {self.label!r}; {self._missing_hint}") from None
        except OSError as error:
            raise InputError(
                f"the cassette {self.label!r} cannot be opened: {error.strerror}; give the path of a file"
            ) from error
        lines = data.split(b"\n")
        recordings = [
            self._parse(line, n, last=n == len(lines)) for n, line in enumerate(lines, start=1) if line.strip()
        ]
        if create and lines[-1].strip():
            with self.path.open("ab") as file:  # an editor removed the last line break
                file.write(b"\n")
        return recordings

    def _parse(self, line: bytes, number: int, *, last: bool) -> Recording:
        place = f"{self.label} line {number}"
        try:
            data: Any = json.loads(line)
        except ValueError as error:
            problem = "is cut off, as an interrupted recording leaves it" if last else f"is not JSON ({error})"
            raise InputError(f"{place} {problem}; delete that line, or the whole file, and record again") from None
        except RecursionError:
            raise InputError(f"{place} is nested too deep for a recording; delete it and record again") from None
        version = cast(dict[str, Any], data).get("cassette_version") if isinstance(data, dict) else None
        if isinstance(version, int) and version > VERSION:
            raise InputError(
                f"{place} was written as cassette_version {version}, and this adk_nb reads up to {VERSION}; "
                "install a newer adk_nb, or record again"
            )
        try:
            return Recording.model_validate(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(str(step) for step in first["loc"]) or "the line"
            raise InputError(
                f"{place} is not a recording: {field}: {first['msg']}; delete it and record again"
            ) from None


def _key(request: NormalizedRequest) -> str:
    return json.dumps(request.model_dump(), sort_keys=True)
