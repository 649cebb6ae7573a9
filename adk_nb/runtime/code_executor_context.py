"""The code execution state of a session: input files, execution id and error counts."""

import base64
import copy
from collections.abc import Iterable, Mapping
from typing import Any

from adk_nb.runtime.code_execution import File

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
