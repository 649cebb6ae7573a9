"""Code execution: the code that a model wrote, its files, and the result of running it."""

import base64
from dataclasses import dataclass, field


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
