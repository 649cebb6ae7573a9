"""Code that a model wrote, on its way to whatever runs it, and what comes back."""

import base64
from dataclasses import dataclass, field


@dataclass
class File:
    """A file that goes in or comes out beside the code."""

    name: str
    """With its extension, without folders."""
    content: str | bytes
    """Bytes as they are, or base64 text."""
    mime_type: str = "text/plain"

    @property
    def data(self) -> bytes:
        """The bytes themselves."""
        return base64.b64decode(self.content) if isinstance(self.content, str) else self.content


@dataclass
class CodeExecutionInput:
    """What is to be run."""

    code: str
    """Python."""
    input_files: list[File] = field(default_factory=list[File])
    execution_id: str | None = None
    """Runs with the same id, in the same session, share what they define. None: they share nothing."""


@dataclass
class CodeExecutionResult:
    """What it gave."""

    stdout: str = ""
    stderr: str = ""
    output_files: list[File] = field(default_factory=list[File])
    exit_code: int | None = None
    """0: it ran to its end. None: the executor cannot tell, and whatever is in `stderr` means that it failed."""

    @property
    def failed(self) -> bool:
        """True if it did not run to its end."""
        return bool(self.stderr) if self.exit_code is None else self.exit_code != 0
