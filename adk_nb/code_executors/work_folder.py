"""The working folder of code: input files are written to it, changed files are read from it."""

import hashlib
import mimetypes
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from adk_nb.code_executors.output import MAX_FILES
from adk_nb.runtime.code_execution import File

MAX_BYTES = 20 * 1024 * 1024
"""Size limit of a file."""


class WorkFolder:
    """A temporary folder with a subfolder for the code."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="adk_nb_code_", ignore_cleanup_errors=True)
        self.path = Path(self._folder.name, "work")
        self.path.mkdir()
        self._marks: dict[str, tuple[int, int]] = {}
        """Name -> size and modification time of files that are known to the caller."""
        self._digests: dict[str, bytes] = {}

    @property
    def private(self) -> Path:
        """The parent folder, for files that the code should not list."""
        return Path(self._folder.name)

    def put(self, files: Iterable[File]) -> None:
        """Write the files, except those that were written before: the code may have changed them since."""
        for file in files:
            name, data = Path(file.name).name, file.data  # no folders: the name must not lead out
            if name and self._digests.get(name) != (digest := hashlib.sha256(data).digest()):
                self._digests[name] = digest
                path = self.path / name
                path.write_bytes(data)
                self._marks[name] = _mark(path.lstat())

    def take_changed(self) -> tuple[list[File], list[str]]:
        """Regular files that are new or changed since the last call, by name; and the names of those over the limits.

        Files in subfolders are ignored. Limits: 20 files, 20 MB each.
        """
        files: list[File] = []
        skipped: list[str] = []
        for entry in sorted(os.scandir(self.path), key=lambda entry: entry.name):
            mark = _mark(entry_stat := entry.stat(follow_symlinks=False))
            # A symbolic link could lead to any file of the user.
            if not stat.S_ISREG(entry_stat.st_mode) or self._marks.get(entry.name) == mark:
                continue
            self._marks[entry.name] = mark
            if entry_stat.st_size > MAX_BYTES or len(files) == MAX_FILES:
                skipped.append(entry.name)
                continue
            mime_type = mimetypes.guess_type(entry.name)[0] or "application/octet-stream"
            files.append(File(name=entry.name, content=Path(entry.path).read_bytes(), mime_type=mime_type))
        return files, skipped

    def close(self) -> None:
        """Delete the folder."""
        self._folder.cleanup()


def _mark(file_stat: os.stat_result) -> tuple[int, int]:
    return file_stat.st_size, file_stat.st_mtime_ns
