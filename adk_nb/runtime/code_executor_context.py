"""What a session remembers of the code that ran in it."""

import base64
import copy
from collections.abc import Iterable, Mapping
from typing import Any

from adk_nb.runtime.code import File

_CONTEXT = "_code_execution_context"
_INPUT_FILES = "_code_executor_input_files"
_ERROR_COUNTS = "_code_executor_error_counts"
_EXECUTION_ID = "execution_session_id"
_PROCESSED = "processed_input_files"


class CodeExecutorContext:
    """Reads a session's state, and gathers what is to be written to it by the event that follows.

    The state's keys are google-adk's.
    """

    def __init__(self, session_state: Mapping[str, Any]) -> None:
        """`session_state` is read and never changed."""
        self._state = session_state
        self._context: dict[str, Any] = copy.deepcopy(session_state.get(_CONTEXT) or {})
        self._changed: dict[str, Any] = {}

    def get_state_delta(self) -> dict[str, Any]:
        """What the session is to keep; the caller's own."""
        return copy.deepcopy({_CONTEXT: self._context} | self._changed)

    def get_execution_id(self) -> str | None:
        """Under which id this session's code runs, once some ran that shares what it defines."""
        return self._context.get(_EXECUTION_ID)

    def set_execution_id(self, session_id: str) -> None:
        """Let this session's code share what it defines, under `session_id`."""
        self._context[_EXECUTION_ID] = session_id

    def get_processed_file_names(self) -> list[str]:
        """The files that the model has been told of."""
        return list(self._context.get(_PROCESSED) or [])

    def add_processed_file_names(self, file_names: Iterable[str]) -> None:
        """Note that the model has been told of these files."""
        self._context[_PROCESSED] = [*self.get_processed_file_names(), *file_names]

    def get_input_files(self) -> list[File]:
        """The files that are given to all code of this session."""
        kept: list[dict[str, str]] = self._now(_INPUT_FILES) or []
        return [File(**one) for one in kept]

    def add_input_files(self, input_files: Iterable[File]) -> None:
        """Give these files, too, to all code of this session."""
        files = [*self.get_input_files(), *input_files]
        self._changed[_INPUT_FILES] = [
            {"name": one.name, "content": base64.b64encode(one.data).decode(), "mime_type": one.mime_type}
            for one in files
        ]

    def clear_input_files(self) -> None:
        """Give no files any more, and forget of which the model has been told."""
        self._changed[_INPUT_FILES] = []
        self._context.pop(_PROCESSED, None)

    def get_error_count(self, invocation_id: str) -> int:
        """How often in a row code of this invocation failed, the last time included."""
        counts: dict[str, int] = self._now(_ERROR_COUNTS) or {}
        return counts.get(invocation_id, 0)

    def increment_error_count(self, invocation_id: str) -> None:
        """Count one more failure. Counts of other invocations are over, and are dropped."""
        self._changed[_ERROR_COUNTS] = {invocation_id: self.get_error_count(invocation_id) + 1}

    def reset_error_count(self, invocation_id: str) -> None:
        """Begin to count anew."""
        if self.get_error_count(invocation_id):
            self._changed[_ERROR_COUNTS] = {}

    def _now(self, key: str) -> Any:
        return self._changed[key] if key in self._changed else self._state.get(key)
