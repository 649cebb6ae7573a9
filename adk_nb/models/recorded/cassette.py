"""The file that keeps a model's recorded answers: one JSON line a call, written by appending, read whole."""

import itertools
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, Field, ValidationError, field_validator

from adk_nb.errors import InputError
from adk_nb.models.recorded.hiding import Hiding

VERSION = 1


class Piece(BaseModel):
    """One response of the model: a streamed piece, or the whole answer."""

    after: float = 0.0
    """Seconds since the piece before it; for the first, since the question."""
    response: dict[str, Any]
    """An LlmResponse as JSON."""


class Asked(BaseModel):
    """What was asked, ids and times taken out: `recorded_request.asked` makes it, and two equal ones match."""

    model: str
    instruction: str = ""
    tools: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """Function declarations as JSON, by name."""
    config: dict[str, Any] = Field(default_factory=dict[str, Any])
    contents: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    """Messages as JSON, oldest first."""

    @field_validator("contents")
    @classmethod
    def _number_calls(cls, contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """`contents`, its calls numbered: 0.1.0 recorded one number for calls to which a service gave one id."""
        numbers: dict[str, str] = {}
        calls = itertools.count(1)
        for kind, call in _with_ids(contents):
            if kind == "function_call":
                numbers[call["id"]] = f"call-{next(calls)}"
            call["id"] = numbers.get(call["id"], call["id"])
        return contents


class Recording(BaseModel):
    """One call of a model: one line of the file."""

    cassette_version: int = VERSION
    model: str
    """The model that really answered, by its own name for itself."""
    notice: str | None = None
    """What that model says of itself, when it is a stand-in."""
    capabilities: dict[str, Any] = Field(default_factory=dict[str, Any])
    request: Asked
    digest: str = ""
    """Of the request with its ids and times: tells apart two requests that are equal without them."""
    responses: list[Piece]
    """In the order they came; the last is the whole answer."""


class Cassette:
    """A file of recordings. Share one object between models that record into, or replay from, the same file."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        to_record: bool = False,
        overwrite: bool = False,
        hiding: Hiding | None = None,
        hint: str = "",
        label: str = "",
    ) -> None:
        """Read the file.

        Args:
            path: The file. A recording goes to its end.
            to_record: Make the file, and the folders above it, if it is not there.
            overwrite: Ignore its recordings; the first new one replaces them.
            hiding: Secrets and ids that are not written, and are ignored when requests are compared.
            hint: What to type to record, for errors.
            label: The name of the file in errors; empty: its path.

        Raises:
            InputError: There is no such file, a line of it is cut off or no recording, or a newer version wrote it.
        """
        self.path = Path(path)
        self.shown = label or str(self.path)
        self.recordings: list[Recording] = []
        """Oldest first."""
        self.hiding = hiding or Hiding()
        self._missing = hint or f"record one with RecordedLlm({self.shown!r}, record=model)"
        self.how = hint or (
            f"to record it anew, delete {self.shown} and run once with RecordedLlm({self.shown!r}, record=model)"
        )
        self._anew = overwrite
        self._unused: dict[str, list[Recording]] = {}
        for recording in () if overwrite else self._read(to_record):
            self._add(recording)
        self.had = len(self.recordings)
        """How many it held when it was opened."""

    def append(self, recording: Recording) -> None:
        """Write `recording` as one line, what is to be hidden taken out, and reach the disk's cache before returning.

        One unbuffered write at the end of the file: an interrupted run keeps every line it had.
        """
        hidden = self.hiding.hidden(recording.model_dump(mode="json", exclude_none=True))
        line = json.dumps(hidden, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("wb" if self._anew else "ab", buffering=0) as file:
            self._anew = False
            if file.write(line) != len(line):
                raise OSError(f"the disk took only a part of a recording into {self.shown!r}")
        self._add(Recording.model_validate(hidden))

    def alike(self, request: Asked) -> int:
        """How many calls were recorded that asked this."""
        return sum(recording.request == request for recording in self.recordings)

    def take(self, request: Asked, digest: str) -> Recording | None:
        """The next recording of this request, in recorded order, or None. None is given twice.

        Among requests that are equal but for their ids and times, the one with just these comes first.
        """
        unused = self._unused.get(_key(request), [])
        if not unused:
            return None
        exact = next((n for n, recording in enumerate(unused) if recording.digest == digest), 0)
        return unused.pop(exact)

    def _add(self, recording: Recording) -> None:
        self.recordings.append(recording)
        self._unused.setdefault(_key(recording.request), []).append(recording)

    def _read(self, to_record: bool) -> Iterable[Recording]:
        try:
            if to_record:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self.path.open("ab").close()
            data = self.path.read_bytes()
        except FileNotFoundError:
            raise InputError(f"there is no cassette {self.shown!r}; {self._missing}") from None
        except OSError as error:
            raise InputError(
                f"the cassette {self.shown!r} cannot be opened: {error.strerror}; give the path of a file"
            ) from error
        lines = data.split(b"\n")
        recordings = [
            self._parse(line, n, last=n == len(lines)) for n, line in enumerate(lines, start=1) if line.strip()
        ]
        if to_record and lines[-1].strip():
            with self.path.open("ab") as file:  # an editor took the last line's end away
                file.write(b"\n")
        return recordings

    def _parse(self, line: bytes, number: int, *, last: bool) -> Recording:
        place = f"{self.shown} line {number}"
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
                f"{place} was written as cassette_version {version}, and this adk-nb reads up to {VERSION}; "
                "type: %pip install -U adk-nb"
            )
        try:
            return Recording.model_validate(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(str(step) for step in first["loc"]) or "the line"
            raise InputError(
                f"{place} is not a recording: {field}: {first['msg']}; delete it and record again"
            ) from None


def _with_ids(contents: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The calls and results with an id, in order; a file may hold anything."""
    for content in contents:
        parts: Any = content.get("parts")
        for part in cast(list[Any], parts) if isinstance(parts, list) else ():
            for kind in ("function_call", "function_response"):
                call: Any = cast(dict[str, Any], part).get(kind) if isinstance(part, dict) else None
                if isinstance(call, dict) and isinstance(cast(dict[str, Any], call).get("id"), str):
                    yield kind, cast(dict[str, Any], call)


def _key(request: Asked) -> str:
    return json.dumps(request.model_dump(), sort_keys=True)
