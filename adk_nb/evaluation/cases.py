"""Cases: messages to an agent and expectations, read from tables, files, frames and eval sets."""

import csv
import hashlib
import io
import json
import mimetypes
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, cast

from adk_nb import types
from adk_nb.errors import InputError, closest, yaml_reason
from adk_nb.evaluation.eval_case import EvalCase, Invocation, content_text
from adk_nb.evaluation.eval_set import EvalSet, read_eval_set
from adk_nb.evaluation.frames import is_frame, is_missing, rows_of_frame
from adk_nb.lazy import require

INPUTS = ("id", "message", "conversation", "initial_state", "files", "stubs")
"""Columns of the input. Every other column is an expectation, or a field of the message."""
FIELD = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_SEPARATOR = re.compile(r"\|?(?:\s*:?-+:?\s*\|)*\s*:?-+:?\s*\|?")
"""The second line of a markdown table."""
_FORMS = "write a table, | message | answer | with | --- | --- | below it, or a list, - message: ..."


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """The messages of one conversation, and the expectations of its result."""

    id: str
    messages: tuple[str | types.Content, ...]
    """The user's messages, each sent after the answer to the one before."""
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """State in which the session begins."""
    files: tuple[str, ...] = ()
    """Paths of files that go with the first message."""
    stubs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Tool -> its result where it is stubbed."""
    expected: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Metric -> what it expects."""
    reference: tuple[Invocation, ...] = ()
    """Expected turns of an eval set of google-adk."""
    rubrics: tuple[str, ...] = ()
    copy: int = 0
    """0, 1, ... among the cases of an evaluation that send the same: each has runs of its own."""

    @property
    def fingerprint(self) -> str:
        """Hash of the input without the expectations: a changed expectation runs nothing again."""
        messages = [
            message if isinstance(message, str) else message.model_dump(mode="json") for message in self.messages
        ]
        files = [_file_identity(path) for path in self.files]
        number = [self.copy] if self.copy else []
        identity = json.dumps([messages, dict(self.state), files, *number], default=repr)
        return hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()

    @property
    def question(self) -> str:
        """The first message as text."""
        first = self.messages[0]
        return first if isinstance(first, str) else content_text(first)

    def contents(self) -> Iterator[types.Content]:
        """The messages as they are sent, with the files.

        Raises:
            InputError: A file cannot be read.
        """
        for number, message in enumerate(self.messages):
            content = (
                types.Content(role="user", parts=[types.Part(text=message)]) if isinstance(message, str) else message
            )
            if self.files and number == 0:
                parts = [*(content.parts or ()), *(_file_part(path) for path in self.files)]
                content = types.Content(role="user", parts=parts)
            yield content


def read_cases(source: Any) -> list[Case]:
    """Read cases.

    Args:
        source: A markdown table or YAML as text; the path of a CSV, YAML, JSON or evalset file; a frame; an EvalSet;
            a list of dicts, of cases or of messages.

    Raises:
        InputError: There is none, an id is there twice, or a row has no message; the message says which.
    """
    return check_ids(iter_cases(source))


def check_ids(cases: Iterable[Case]) -> list[Case]:
    """The cases as a list, in which those that send the same are told apart.

    Raises:
        InputError: There is none, or an id is there twice.
    """
    by_id: dict[str, Case] = {}
    copies = Counter[str]()
    for case in cases:
        if case.id in by_id:
            raise InputError(f"two cases have the id {case.id!r}; give each an id of its own, or leave the column out")
        first = replace(case, copy=0)
        by_id[case.id] = replace(case, copy=copies[first.fingerprint])
        copies[first.fingerprint] += 1
    if not by_id:
        raise InputError("there is no case; write a table with a column 'message' and a row for each case")
    return list(by_id.values())


def iter_cases(source: Any) -> Iterator[Case]:
    """As `read_cases`, one case at a time and without the check of their ids."""
    if isinstance(source, EvalSet):
        yield from map(case_of_eval_case, source.eval_cases)
        return
    numbers = count(1)
    for row in _rows(source):
        if isinstance(row, Case):
            yield row
        elif isinstance(row, EvalCase):
            yield case_of_eval_case(row)
        else:
            number = next(numbers)
            row = {"message": row} if isinstance(row, str) else row
            if not isinstance(row, Mapping):
                raise InputError(f"case {number} is {row!r:.60}; a case is a dict with 'message', or a text")
            named = cast(Mapping[Any, Any], row).items()
            fields: dict[str, Any] = {str(name): value for name, value in named if not is_missing(value)}
            yield Case(
                id=str(fields.get("id", f"case{number}")),
                messages=_messages(fields, number),
                state=_json(fields, "initial_state", '{"budget": 5}', number),
                stubs=_json(fields, "stubs", '{"pay": "paid"}', number),
                files=files_of(fields, f"case {number}"),
                expected={name: value for name, value in fields.items() if name not in INPUTS},
            )


def case_of_eval_case(eval_case: EvalCase) -> Case:
    """The case of an eval case of google-adk.

    Raises:
        InputError: It has a scenario for a simulated user, or no turn.
    """
    if not eval_case.conversation:
        raise InputError(
            f"eval case {eval_case.eval_id!r} has no conversation; write down what the user says: adk_nb simulates none"
        )
    expected: dict[str, Any] = {}
    if eval_case.final_session_state:
        expected["state"] = eval_case.final_session_state
    return Case(
        id=eval_case.eval_id,
        messages=tuple(turn.user_content for turn in eval_case.conversation),
        state=eval_case.session_input.state if eval_case.session_input else {},
        expected=expected,
        reference=tuple(eval_case.conversation),
        rubrics=tuple(rubric.rubric_content.text_property or "" for rubric in eval_case.rubrics or ()),
    )


def _rows(source: Any) -> Iterable[Any]:
    if isinstance(source, Path):
        return rows_of_file(source)
    if isinstance(source, str):
        text = source.strip()
        # By its form: a table, the path of a file, else YAML.
        if text.startswith("|"):
            return _rows_of_table(text)
        return rows_of_file(Path(text)) if "\n" not in text and Path(text).suffix else _rows_of_yaml(text)
    if is_frame(source):
        return rows_of_frame(source)
    if isinstance(source, Iterable) and not isinstance(source, dict):
        return cast(Iterable[Any], source)
    raise InputError(f"cases are a table, a file, a frame or a list of dicts, got {cast(Any, source)!r:.60}")


def rows_of_file(path: Path) -> Iterable[Any]:
    """The rows of a CSV, YAML, JSON-lines or markdown file, or the cases of an eval set.

    Raises:
        InputError: The file is not there, not in UTF-8, or of another kind.
    """
    suffix = path.suffix.lower()
    if suffix == ".json":
        return read_eval_set(path).eval_cases
    try:
        text = path.read_text(encoding="utf-8-sig")  # Excel begins a CSV file with a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"cannot read {str(path)!r}: {reason}") from error
    if suffix == ".csv":
        return csv.DictReader(io.StringIO(text))
    if suffix == ".jsonl":
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    if suffix in (".yaml", ".yml"):
        return _rows_of_yaml(text)
    if suffix == ".md":
        return _rows_of_table(text.strip())
    raise InputError(f"a table is read from .csv, .yaml, .json, .jsonl and .md files, not from {str(path)!r}")


def _rows_of_table(text: str) -> list[dict[str, str]]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) < 2 or not _SEPARATOR.fullmatch(lines[1]):
        raise InputError("the second line of a table is | --- | --- |, with as many columns as the first")
    columns = [name.lower() for name in _cells(lines[0])]
    rows: list[dict[str, str]] = []
    for number, line in enumerate(lines[2:], 1):
        cells = _cells(line)
        if len(cells) != len(columns):
            raise InputError(
                f"row {number} of the table has {len(cells)} cells, and the first line {len(columns)} columns; "
                "write \\| for a bar within a cell"
            )
        rows.append({column: cell for column, cell in zip(columns, cells, strict=True) if cell})
    return rows


def _cells(line: str) -> list[str]:
    inner = line.removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", inner)]


def _rows_of_yaml(text: str) -> Sequence[Any]:
    yaml = require("yaml", package="pyyaml")
    try:
        data: Any = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"the cases are neither a table nor YAML: {yaml_reason(error)}; {_FORMS}") from None
    if isinstance(data, Mapping):
        data = cast(Mapping[str, Any], data).get("cases", [cast(Any, data)])
    if not isinstance(data, list):
        raise InputError(f"the cases are neither a table nor a list in YAML; {_FORMS}")
    return cast(list[Any], data)


def _messages(fields: Mapping[str, Any], number: int) -> tuple[str | types.Content, ...]:
    conversation = fields.get("conversation")
    if conversation:
        turns: list[Any] = (
            cast(list[Any], conversation) if isinstance(conversation, list) else str(conversation).split("\n")
        )
        return tuple(turn if isinstance(turn, types.Content) else str(turn) for turn in turns)
    message = fields.get("message")
    if message is None:
        columns = ", ".join(map(repr, fields)) or "none"
        hint = f"; rename {near!r}" if (near := closest("message", fields)) else ""
        raise InputError(f"case {number} has no 'message'; its columns are: {columns}{hint}")
    return (message if isinstance(message, types.Content) else str(message),)


def fill_template(template: str, fields: Mapping[str, Any], number: int) -> str:
    """Put the fields of a row into `{{column}}`; a missing value is put in as nothing.

    Raises:
        InputError: The row has no such field, or none of its fields has a value.
    """
    missing = [name for name in FIELD.findall(template) if name not in fields]
    if missing:
        columns = ", ".join(map(repr, fields)) or "none"
        raise InputError(f"row {number} has no column {missing[0]!r} for the message; its columns are: {columns}")
    values = {name: "" if is_missing(fields[name]) else str(fields[name]) for name in FIELD.findall(template)}
    if values and not any(values.values()):
        empty = ", ".join(map(repr, values))
        raise InputError(f"row {number} has no value in {empty}, so there is nothing to ask; fill it, or drop the row")
    return FIELD.sub(lambda match: values[match[1]], template)


def files_of(fields: Mapping[str, Any], row: str) -> tuple[str, ...]:
    """The paths in the column `files`: a list, or text with commas.

    Raises:
        InputError: They are something else; the message begins with `row`.
    """
    files = fields.get("files")
    if is_missing(files):
        return ()
    if isinstance(files, str):
        return tuple(part.strip() for part in files.split(",") if part.strip())
    if isinstance(files, list | tuple):
        return tuple(map(str, cast(list[Any], files)))
    if isinstance(files, Path):
        return (str(files),)
    raise InputError(f"{row}: files are paths, a list or text with commas, got {files!r:.60}")


def _json(fields: Mapping[str, Any], column: str, example: str, number: int) -> Mapping[str, Any]:
    """The dict in a column, or written there as JSON."""
    value: Any = fields.get(column, {})
    parsed = value
    if isinstance(value, str):
        with suppress(ValueError):
            parsed = json.loads(value)
    if not isinstance(parsed, Mapping):
        raise InputError(f"{column!r} of case {number} is JSON such as {example}, got {value!r:.60}")
    return cast(Mapping[str, Any], parsed)


def check_file(path: str) -> None:
    """Refuse a file that cannot be read.

    Raises:
        InputError: It is not there, for instance.
    """
    try:
        with Path(path).open("rb"):
            pass
    except OSError as error:
        raise _unreadable(path, error) from error


def _file_part(path: str) -> types.Part:
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    try:
        return types.Part(inline_data=types.Blob(data=Path(path).read_bytes(), mime_type=kind))
    except OSError as error:
        raise _unreadable(path, error) from error


def _file_identity(path: str) -> str:
    try:
        return hashlib.blake2b(Path(path).read_bytes(), digest_size=8).hexdigest()
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: OSError) -> InputError:
    return InputError(f"cannot read the file {path!r}: {error.strerror}")
