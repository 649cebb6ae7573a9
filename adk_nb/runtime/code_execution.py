"""Code execution: a model's code with its files, the result, and the state that a session keeps about it."""

import base64
import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class File:
    """An input or output file of a code execution."""

    name: str
    """File name with extension, without folders."""
    content: str | bytes
    """Raw bytes, or base64 text."""
    mime_type: str = "text/plain"

    @property
    def data(self) -> bytes:
        """The raw bytes."""
        return base64.b64decode(self.content) if isinstance(self.content, str) else self.content


@dataclass
class CodeExecutionInput:
    """Code to run, with its input files."""

    code: str
    """Python."""
    input_files: list[File] = field(default_factory=list[File])
    execution_id: str | None = None
    """Executions with the same id in a session share their variables. None: nothing is shared."""


@dataclass
class CodeExecutionResult:
    """The output of a code execution."""

    stdout: str = ""
    stderr: str = ""
    output_files: list[File] = field(default_factory=list[File])
    exit_code: int | None = None
    """0: success. None: the executor does not report it, and any text in `stderr` means failure."""

    @property
    def failed(self) -> bool:
        """True if the code raised or was stopped."""
        return bool(self.stderr) if self.exit_code is None else self.exit_code != 0


_CONTEXT = "_code_execution_context"
_INPUT_FILES = "_code_executor_input_files"
_ERROR_COUNTS = "_code_executor_error_counts"
_EXECUTION_ID = "execution_session_id"
_PROCESSED = "processed_input_files"


class CodeExecutorContext:
    """Reads the code execution keys of a session's state, and collects a state delta for the next event.

    Source of the state keys: google-adk 2.13.
    """

    def __init__(self, session_state: Mapping[str, Any]) -> None:
        """`session_state`: read, never changed."""
        self._state = session_state
        # A copy: a change in place would be in the state before the event that reports it.
        self._context: dict[str, Any] = copy.deepcopy(session_state.get(_CONTEXT) or {})
        self._changed: dict[str, Any] = {}

    def get_state_delta(self) -> dict[str, Any]:
        """The state delta to put on the next event; a copy."""
        return copy.deepcopy({_CONTEXT: self._context} | self._changed)

    def get_execution_id(self) -> str | None:
        """The execution id of this session's code; None before stateful code ran."""
        return self._context.get(_EXECUTION_ID)

    def set_execution_id(self, session_id: str) -> None:
        """Set the execution id under which this session's code shares its variables."""
        self._context[_EXECUTION_ID] = session_id

    def get_processed_file_names(self) -> list[str]:
        """Names of the files that the model has been told about."""
        return list(self._context.get(_PROCESSED) or [])

    def add_processed_file_names(self, file_names: Iterable[str]) -> None:
        """Mark files as known to the model."""
        self._context[_PROCESSED] = [*self.get_processed_file_names(), *file_names]

    def get_input_files(self) -> list[File]:
        """The input files of all code in this session."""
        stored: list[dict[str, str]] = self._current(_INPUT_FILES) or []
        return [File(**fields) for fields in stored]

    def add_input_files(self, input_files: Iterable[File]) -> None:
        """Add input files for all code in this session."""
        files = [*self.get_input_files(), *input_files]
        self._changed[_INPUT_FILES] = [
            {"name": file.name, "content": base64.b64encode(file.data).decode(), "mime_type": file.mime_type}
            for file in files
        ]

    def clear_input_files(self) -> None:
        """Remove all input files, and forget which the model knows."""
        self._changed[_INPUT_FILES] = []
        self._context.pop(_PROCESSED, None)

    def get_error_count(self, invocation_id: str) -> int:
        """Number of consecutive failures of code in this invocation."""
        counts: dict[str, int] = self._current(_ERROR_COUNTS) or {}
        return counts.get(invocation_id, 0)

    def increment_error_count(self, invocation_id: str) -> None:
        """Count a failure; counts of other invocations are dropped."""
        self._changed[_ERROR_COUNTS] = {invocation_id: self.get_error_count(invocation_id) + 1}

    def reset_error_count(self, invocation_id: str) -> None:
        """Set the failure count of this invocation to zero."""
        if self.get_error_count(invocation_id):
            self._changed[_ERROR_COUNTS] = {}

    def _current(self, key: str) -> Any:
        return self._changed[key] if key in self._changed else self._state.get(key)
