"""Access to a folder's entries relative to its open handle, so that no symbolic link leads out of it, even one created
meanwhile.

Source: openat(2), https://man7.org/linux/man-pages/man2/openat.2.html. Where the system lacks these calls (Windows),
each name is checked before use, which leaves a race between the two.
"""

import errno
import os
import re
import shutil
import stat
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from adk_nb.errors import InputError, StorageError
from adk_nb.wire import replace_surrogates

HAS_OPENAT = os.open in os.supports_dir_fd and os.listdir in os.supports_fd
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_READ = (
    os.O_RDONLY | _NO_LINK | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
)  # opening a pipe must not block
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
        # Checked before opening: opening a pipe or a device may block or have effects.
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


VERSIONS = "versions"
METADATA = "metadata.json"
_MAX_NAME_BYTES = 255  # of UTF-8: the limit of ext4, the strictest; NTFS counts UTF-16 units
_MAX_PATH_BYTES = 1_024
MAX_SEGMENTS = 16
"""Limit of path segments in a name."""
# Source: https://learn.microsoft.com/windows/win32/fileio/naming-a-file
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:")
_NOT_ON_WINDOWS = frozenset('<>:"|?*') if os.name == "nt" else frozenset[str]()
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories: control, format (with direction marks), surrogate, line and paragraph separators."""


def name_folders(name: str) -> list[str]:
    """Split an artifact's name (NFC) into folder names: `a/b.txt` gives two.

    Raises:
        InputError: The name is absolute, leads upwards, has invisible characters, is too long, or is reserved.
    """
    if name.startswith("/") or "\\" in name or _DRIVE.match(name):
        raise _name_error(name, "is an absolute path, or one of Windows; write 'folder/name'")
    if len(os.fsencode(replace_surrogates(name))) > _MAX_PATH_BYTES:
        raise _name_error(name, f"is longer than {_MAX_PATH_BYTES} bytes; shorten it")
    segments = name.split("/")
    if len(segments) > MAX_SEGMENTS:
        raise _name_error(name, f"has more than {MAX_SEGMENTS} parts; leave some out")
    for segment in segments:
        _check(name, segment)
    if segments[-1].casefold() == METADATA:  # the disk may ignore case
        raise _name_error(name, "is reserved for metadata; choose another")
    return segments


def id_folder(value: str, field: str) -> str:
    """Check that an id can be a folder name. `field`: the name of the id, for the error.

    Raises:
        InputError: It cannot.
    """
    if "/" in value or "\\" in value:
        raise InputError(f"{field} {value!r:.80} cannot be the name of a folder: it has a slash; choose another")
    try:
        _check(value, value)
    except InputError as error:
        raise InputError(f"{field} {value!r:.80} cannot be the name of a folder; choose another") from error
    return value


def _check(name: str, segment: str) -> None:
    if segment in ("", ".", ".."):
        raise _name_error(name, "has a part that is empty or leads elsewhere; write 'folder/name'")
    if invalid := [char for char in segment if unicodedata.category(char) in _INVISIBLE or char in _NOT_ON_WINDOWS]:
        raise _name_error(name, f"has the character {invalid[0]!a}, which is invisible, or not allowed in a file name")
    if segment[-1] in " ." or segment[0] == " " or _DEVICE.fullmatch(segment):
        raise _name_error(name, "is another name on Windows: a device, or one with a dot or a blank at its end")
    if len(segment.encode()) > _MAX_NAME_BYTES:
        raise _name_error(name, f"has a part longer than {_MAX_NAME_BYTES} bytes; shorten it")
    if segment.casefold() == VERSIONS:
        raise _name_error(name, f"has a part {VERSIONS!r}, which is reserved; choose another")


def _name_error(name: str, reason: str) -> InputError:
    return InputError(f"the artifact name {replace_surrogates(name)!r:.200} {reason}")
