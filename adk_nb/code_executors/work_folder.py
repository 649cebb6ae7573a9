"""The folder that code works in: files are put there for it, and what it writes is taken from there."""

import hashlib
import mimetypes
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from adk_nb.code_executors.output import MAX_FILES
from adk_nb.runtime.code import File

MAX_BYTES = 20 * 1024 * 1024
"""Of one file."""


class WorkFolder:
    """A temporary folder, with what is private to its owner beside it."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="adk_nb_code_", ignore_cleanup_errors=True)
        self.path = Path(self._folder.name, "work")
        self.path.mkdir()
        self._known: dict[str, tuple[int, int]] = {}
        """Name -> size and time of change, of what is no news."""
        self._given: dict[str, bytes] = {}

    @property
    def beside(self) -> Path:
        """The folder around it, which the code does not find by listing its own."""
        return Path(self._folder.name)

    def put(self, files: Iterable[File]) -> None:
        """Write each file, unless the same was put there before: the code may have changed it since."""
        for file in files:
            name, data = Path(file.name).name, file.data
            if name and self._given.get(name) != (digest := hashlib.sha256(data).digest()):
                self._given[name] = digest
                path = self.path / name
                path.write_bytes(data)
                self._known[name] = _mark(path.lstat())

    def taken(self) -> tuple[list[File], list[str]]:
        """The files that are new or changed since the last time, by name; and the names of those left where they are.

        Plain files only, not those in folders: at most 20, none over 20 MB.
        """
        found: list[File] = []
        left: list[str] = []
        for entry in sorted(os.scandir(self.path), key=lambda entry: entry.name):
            mark = _mark(about := entry.stat(follow_symlinks=False))
            if not stat.S_ISREG(about.st_mode) or self._known.get(entry.name) == mark:
                continue
            self._known[entry.name] = mark
            if about.st_size > MAX_BYTES or len(found) == MAX_FILES:
                left.append(entry.name)
                continue
            mime_type = mimetypes.guess_type(entry.name)[0] or "application/octet-stream"
            found.append(File(name=entry.name, content=Path(entry.path).read_bytes(), mime_type=mime_type))
        return found, left

    def close(self) -> None:
        """Delete it with all that is in it."""
        self._folder.cleanup()


def _mark(about: os.stat_result) -> tuple[int, int]:
    return about.st_size, about.st_mtime_ns
