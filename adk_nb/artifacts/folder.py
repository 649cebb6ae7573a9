"""A folder whose entries are reached by name from it: no symbolic link leads out of it, even one put there meanwhile.

Source: openat(2), https://man7.org/linux/man-pages/man2/openat.2.html. Where the system has no such calls (Windows),
each name is looked at before it is used, which leaves a moment between the two.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from adk_nb.errors import StorageError

HAS_OPENAT = os.open in os.supports_dir_fd and os.listdir in os.supports_fd
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY | _NO_LINK | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)  # a pipe must not wait
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | getattr(os, "O_BINARY", 0)


class Folder:
    """One open folder, to be closed by `with`. Names are single ones: whoever makes them keeps separators out."""

    def __init__(self, path: Path, handle: int | None) -> None:
        self.path = path
        self._handle = handle
        """None: the system has no openat."""

    @classmethod
    def open(cls, root: Path, names: Iterable[str] = (), *, make: bool = False) -> "Folder":
        """The folder that `names` lead to from `root`; the root itself may be a link.

        Raises:
            FileNotFoundError: It is not there; with `make`, it is made instead.
            StorageError: A link, or a file, stands where a folder should.
        """
        if make:
            root.mkdir(parents=True, exist_ok=True)
        folder = cls(root, os.open(root, _FOLDER) if HAS_OPENAT else None)
        for name in names:
            with folder:
                folder = folder.inner(name, make=make)
        return folder

    def inner(self, name: str, *, make: bool = False) -> "Folder":
        """The folder `name` in this one. Raises as `open` does."""
        path = self.path / name
        if make:
            self._make(name)
        if self._handle is None:
            if not stat.S_ISDIR(self._mode(name)):
                raise _in_the_way(path)
            return Folder(path, None)
        try:
            return Folder(path, os.open(name, _FOLDER | _NO_LINK, dir_fd=self._handle))
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):
                raise _in_the_way(path) from error
            raise

    def names(self) -> list[str]:
        """What is in it."""
        return os.listdir(self.path if self._handle is None else self._handle)

    def has_folder(self, name: str) -> bool:
        """True if `name` is a folder in this one, and no link to one."""
        try:
            return stat.S_ISDIR(self._mode(name))
        except FileNotFoundError:
            return False

    def read(self, name: str) -> bytes:
        """The bytes of the file `name`.

        Raises:
            FileNotFoundError: It is not there.
            StorageError: It is a link, or no file.
        """
        if not stat.S_ISREG(self._mode(name)):
            raise _in_the_way(self.path / name)
        with os.fdopen(self._open(name, _READ), "rb") as file:
            return file.read()

    def write(self, name: str, data: bytes) -> None:
        """Write a new file, down to the disk.

        Raises:
            FileExistsError: There is one, or a link.
        """
        with os.fdopen(self._open(name, _WRITE), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def rename(self, name: str, new: str) -> None:
        """Give a folder in this one a new name, at one stroke.

        Raises:
            OSError: There is something by the new name that is no empty folder.
        """
        if self._handle is None:
            os.rename(self.path / name, self.path / new)
            return
        os.rename(name, new, src_dir_fd=self._handle, dst_dir_fd=self._handle)
        os.fsync(self._handle)

    def remove(self, name: str) -> None:
        """Remove a folder and all that is in it. Links in it are removed, and not followed."""
        shutil.rmtree(self._place(name), dir_fd=self._handle)

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *error: object) -> None:
        if self._handle is not None:
            os.close(self._handle)

    def _make(self, name: str) -> None:
        try:
            os.mkdir(self._place(name), dir_fd=self._handle)
        except FileExistsError:
            return

    def _open(self, name: str, flags: int) -> int:
        return os.open(self._place(name), flags, 0o666, dir_fd=self._handle)

    def _mode(self, name: str) -> int:
        return os.stat(self._place(name), dir_fd=self._handle, follow_symlinks=False).st_mode

    def _place(self, name: str) -> Any:
        return self.path / name if self._handle is None else name


def _in_the_way(path: Path) -> StorageError:
    return StorageError(f"{str(path)!r} is a link, or not what artifacts keep there; move it away")
