"""Access to a folder's entries relative to its open handle, so that no symbolic link leads out of it, even one created
meanwhile.

Source: openat(2), https://man7.org/linux/man-pages/man2/openat.2.html. Where the system lacks these calls (Windows),
each name is checked before use, which leaves a race between the two.
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
    """An open folder, closed by `with`. Names are single path segments; the caller ensures that."""

    def __init__(self, path: Path, handle: int | None) -> None:
        self.path = path
        self._handle = handle
        """None: the system lacks openat."""

    @classmethod
    def open(cls, root: Path, names: Iterable[str] = (), *, make: bool = False) -> "Folder":
        """Open the folder at `names` below `root`; only the root may be a link.

        Raises:
            FileNotFoundError: It does not exist; with `make` it is created instead.
            StorageError: An entry on the way is a link or a file.
        """
        if make:
            root.mkdir(parents=True, exist_ok=True)
        folder = cls(root, os.open(root, _FOLDER) if HAS_OPENAT else None)
        for name in names:
            with folder:
                folder = folder.child(name, make=make)
        return folder

    def child(self, name: str, *, make: bool = False) -> "Folder":
        """Open the folder `name` in this one. Raises as `open`."""
        path = self.path / name
        if make:
            self._make(name)
        if self._handle is None:
            if not stat.S_ISDIR(self._mode(name)):
                raise _unexpected_entry(path)
            return Folder(path, None)
        try:
            return Folder(path, os.open(name, _FOLDER | _NO_LINK, dir_fd=self._handle))
        except OSError as error:
            if error.errno in (errno.ENOTDIR, errno.ELOOP):  # a link gives either, depending on the system
                raise _unexpected_entry(path) from error
            raise

    def names(self) -> list[str]:
        """Names of the entries."""
        return os.listdir(self.path if self._handle is None else self._handle)

    def has_folder(self, name: str) -> bool:
        """True if `name` is a folder in this one, not a link to one."""
        try:
            return stat.S_ISDIR(self._mode(name))
        except FileNotFoundError:
            return False

    def read(self, name: str) -> bytes:
        """Read the file `name`.

        Raises:
            FileNotFoundError: It does not exist.
            StorageError: It is a link, or not a regular file.
        """
        # Asked before opening: opening a pipe or a device may block or have effects.
        if not stat.S_ISREG(self._mode(name)):
            raise _unexpected_entry(self.path / name)
        with os.fdopen(self._open(name, _READ), "rb") as file:
            return file.read()

    def write(self, name: str, data: bytes) -> None:
        """Write a new file and flush it to the disk.

        Raises:
            FileExistsError: The name exists, as a file or a link.
        """
        with os.fdopen(self._open(name, _WRITE), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def rename(self, name: str, new: str) -> None:
        """Rename a folder in this one, atomically.

        Raises:
            OSError: The new name exists and is not an empty folder.
        """
        if self._handle is None:
            os.rename(self.path / name, self.path / new)
            return
        os.rename(name, new, src_dir_fd=self._handle, dst_dir_fd=self._handle)
        os.fsync(self._handle)  # makes the rename durable

    def remove(self, name: str) -> None:
        """Remove a folder recursively. Links in it are removed, not followed."""
        shutil.rmtree(self._entry(name), dir_fd=self._handle)

    def __enter__(self) -> "Folder":
        return self

    def __exit__(self, *error: object) -> None:
        if self._handle is not None:
            os.close(self._handle)

    def _make(self, name: str) -> None:
        try:
            os.mkdir(self._entry(name), dir_fd=self._handle)
        except FileExistsError:
            return

    def _open(self, name: str, flags: int) -> int:
        return os.open(self._entry(name), flags, 0o666, dir_fd=self._handle)  # reduced by the umask

    def _mode(self, name: str) -> int:
        return os.stat(self._entry(name), dir_fd=self._handle, follow_symlinks=False).st_mode

    def _entry(self, name: str) -> Any:
        return self.path / name if self._handle is None else name


def _unexpected_entry(path: Path) -> StorageError:
    return StorageError(f"{str(path)!r} is a link or an unexpected kind of file; move it away")
