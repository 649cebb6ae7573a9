"""A temporary folder for model-written code, and the files that go in and come out.

The code may put anything in the place of a file, at any moment: a link, a pipe, a folder, or nothing. So the folder is
opened once, before code runs, and all work in it is relative to that descriptor.
"""

import hashlib
import mimetypes
import os
import secrets
import shutil
import stat
import sys
import time
import weakref
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp

from adk_nb.code_executors.output import MAX_BYTES, MAX_FILES
from adk_nb.runtime.code_execution import File

MAX_ENTRIES = 10_000
"""Names in the folder that are looked at."""
_Mark = tuple[int, int, int]


class WorkFolder:
    """A temporary folder with a subfolder for the code, which is all that the code gets to write in a sandbox."""

    def __init__(self) -> None:
        folder = mkdtemp(prefix="adk_nb_code_")
        self.private = Path(folder)
        """The parent folder, for files that the code should not list."""
        self.path = Path(folder, "work")
        self.path.mkdir()
        self._descriptor: int | None = None
        """None: this system opens no folders."""
        if sys.platform != "win32":
            self._descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        self._marks: dict[str, _Mark] = {}
        """Name -> inode, size and modification time, of the files that the caller has."""
        self._digests: dict[str, bytes] = {}
        # Runs at the exit of the interpreter, too.
        self._finalizer = weakref.finalize(self, _delete, folder, self._descriptor)

    def put(self, files: Iterable[File]) -> list[str]:
        """Write the files, except those that were written before: the code may have changed them since.

        Returns:
            For each file that could not be written: its name and the reason.
        """
        problems: list[str] = []
        for file in files:
            name = Path(file.name).name  # no folders: the name must not lead out
            try:
                data = file.data
                digest = hashlib.sha256(data).digest()
                if name and self._digests.get(name) != digest:
                    self._write(name, data)
                    self._digests[name] = digest
            except (OSError, ValueError) as error:
                problems.append(f"{_shown(name)} ({_reason(error)})")
        return problems

    def take_changed(self, seconds: float) -> tuple[list[File], list[str]]:
        """Regular files that are new or changed since the last call, by name; and the names of others, with reasons.

        Subfolders are ignored, and so are the files in them. Limits: 20 files, 20 MB each.

        Raises:
            TimeoutError: It took longer.
        """
        deadline = time.monotonic() + seconds
        files: list[File] = []
        skipped: list[str] = []
        for name in self._changed(deadline, skipped):
            if time.monotonic() > deadline:
                raise TimeoutError
            if len(files) == MAX_FILES:
                skipped.append(f"{_shown(name)} (more than {MAX_FILES} files)")
                continue
            try:
                content = self._read(name)
            except (OSError, ValueError) as error:
                skipped.append(f"{_shown(name)} ({_reason(error)})")
                continue
            files.append(File(name, content, mimetypes.guess_type(name)[0] or "application/octet-stream"))
        return files, skipped

    def close(self) -> None:
        """Delete the folder."""
        self._finalizer()

    def _changed(self, deadline: float, skipped: list[str]) -> list[str]:
        names: list[str] = []
        with os.scandir(self.path if self._descriptor is None else self._descriptor) as entries:
            for count, entry in enumerate(entries):
                if time.monotonic() > deadline:
                    raise TimeoutError
                if count == MAX_ENTRIES:
                    skipped.append(f"what is beyond {MAX_ENTRIES:,} names in the folder")
                    break
                with suppress(OSError):  # it may be gone
                    entry_stat = entry.stat(follow_symlinks=False)
                    mark = _mark(entry_stat)
                    if not stat.S_ISDIR(entry_stat.st_mode) and self._marks.get(entry.name) != mark:
                        self._marks[entry.name] = mark
                        names.append(entry.name)
        return sorted(names)

    def _read(self, name: str) -> bytes:
        """The content of a regular file.

        Raises:
            OSError: It cannot be read.
            ValueError: It is something else, or too large.
        """
        if not name.isprintable():
            raise ValueError("its name has characters that cannot be shown")
        descriptor = self._open(name, os.O_RDONLY)
        try:
            # Of what was opened: the name may lead to something else by now.
            file_stat = os.fstat(descriptor)
            if not stat.S_ISREG(file_stat.st_mode):
                raise ValueError("not a regular file")
            # Without a sandbox, another of its names may be that of any file of the user.
            if file_stat.st_nlink > 1:
                raise ValueError("a hard link")
            with open(descriptor, "rb", closefd=False) as file:
                content = file.read(MAX_BYTES + 1) if file_stat.st_size <= MAX_BYTES else None
            if content is None or len(content) > MAX_BYTES:
                raise ValueError(f"larger than {MAX_BYTES // 1024**2} MB")
            return content
        finally:
            os.close(descriptor)

    def _write(self, name: str, data: bytes) -> None:
        """Write a new file and give it the name: what had it before, a link or another name of a file, is not opened.

        Raises:
            OSError: It cannot be written.
            ValueError: It is no name of a file.
        """
        new = f".{secrets.token_hex(8)}"
        descriptor = self._open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            try:
                with open(descriptor, "wb", closefd=False) as file:
                    file.write(data)
                if self._descriptor is None:
                    os.replace(self.path / new, self.path / name)
                else:
                    os.rename(new, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
            except BaseException:
                with suppress(OSError):
                    os.unlink(self.path / new if self._descriptor is None else new, dir_fd=self._descriptor)
                raise
            self._marks[name] = _mark(os.fstat(descriptor))
        finally:
            os.close(descriptor)

    def _open(self, name: str, flags: int) -> int:
        if sys.platform == "win32" or self._descriptor is None:
            return os.open(self.path / name, flags | getattr(os, "O_BINARY", 0), 0o644)
        # Without O_NONBLOCK the opening of a pipe waits for its other end.
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644, dir_fd=self._descriptor)


def _mark(file_stat: os.stat_result) -> _Mark:
    return file_stat.st_ino, file_stat.st_size, file_stat.st_mtime_ns


def _shown(name: str) -> str:
    return name if name.isprintable() else ascii(name)


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


def _delete(folder: str, work: int | None) -> None:
    """Delete the folder with all that is in it, follow no link, and leave what cannot be deleted.

    Not by shutil.rmtree, which fails for folders in folders a thousand times, and leaves those without permissions.
    """
    if sys.platform == "win32" or work is None:
        shutil.rmtree(folder, ignore_errors=True)
        return
    os.close(work)
    unique = secrets.token_hex(8)
    with suppress(OSError):
        top = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            pending = _clear(top)
            for number, name in enumerate(pending):  # which grows
                with suppress(OSError):
                    child = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
                    try:
                        for position, inner in enumerate(_clear(child)):
                            moved = f"{unique}-{number}-{position}"
                            os.rename(inner, moved, src_dir_fd=child, dst_dir_fd=top)
                            pending.append(moved)
                    finally:
                        os.close(child)
                    os.rmdir(name, dir_fd=top)
        finally:
            os.close(top)
        os.rmdir(folder)


def _clear(folder: int) -> list[str]:
    """Delete all that is not a folder; return the names of the folders, which their owner may now change."""
    names: list[str] = []
    with os.scandir(folder) as entries:
        listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listed:
        with suppress(OSError):
            if not is_folder:
                os.unlink(name, dir_fd=folder)
                continue
            names.append(name)
            if sys.platform == "linux":  # where chmod itself would follow a link
                descriptor = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
                try:
                    os.chmod(f"/proc/self/fd/{descriptor}", 0o700)
                finally:
                    os.close(descriptor)
    return names
