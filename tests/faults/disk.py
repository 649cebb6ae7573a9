"""A disk that does what a test wants: it notes what is written, is full, breaks, is held by another, or loses power.

It stands between SQLite and the real files, as a VFS that takes a few of the operating system's methods for its own.
Source: https://www.sqlite.org/c3ref/vfs.html, https://www.sqlite.org/c3ref/io_methods.html.
"""

import _sqlite3
import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BUSY, FULL, READONLY = 5, 13, 8
CANTOPEN, READ, WRITE, SYNC, TRUNCATE, DELETE = 14, 10 | 1 << 8, 10 | 3 << 8, 10 | 4 << 8, 10 | 6 << 8, 10 | 10 << 8
"""Result codes. Source: https://www.sqlite.org/rescode.html."""
_LOCK_FOR_WRITING = (0, 2 | 8)
"""Of the WAL's locks the first, taken for oneself. Source: sqlite3.c, WAL_WRITE_LOCK and SQLITE_SHM_LOCK."""

_pointer, _int, _long = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64


class _Vfs(ctypes.Structure):
    _fields_ = [
        *[("version", _int), ("file_size", _int), ("longest_path", _int), ("next", _pointer)],
        *[("name", ctypes.c_char_p), ("data", _pointer), ("open", _pointer), ("delete", _pointer)],
        *[
            (name, _pointer)
            for name in ["access", "full_path", "dl_open", "dl_error", "dl_sym", "dl_close", "randomness", "sleep"]
        ],
        *[(name, _pointer) for name in ["time", "last_error", "time64", "set_call", "get_call", "next_call"]],
    ]


class _Methods(ctypes.Structure):
    _fields_ = [
        ("version", _int),
        *[
            (name, _pointer)
            for name in [
                "close",
                "read",
                "write",
                "truncate",
                "sync",
                "size",
                "lock",
                "unlock",
                "check",
                "control",
                "sector",
            ]
        ],
        *[
            (name, _pointer)
            for name in ["characteristics", "shm_map", "shm_lock", "shm_barrier", "shm_unmap", "fetch", "unfetch"]
        ],
    ]


class _File(ctypes.Structure):
    _fields_ = [("methods", _pointer)]


_TYPES = {
    "open": ctypes.CFUNCTYPE(_int, _pointer, _pointer, _pointer, _int, _pointer),
    "delete": ctypes.CFUNCTYPE(_int, _pointer, _pointer, _int),
    "read": ctypes.CFUNCTYPE(_int, _pointer, _pointer, _int, _long),
    "write": ctypes.CFUNCTYPE(_int, _pointer, _pointer, _int, _long),
    "truncate": ctypes.CFUNCTYPE(_int, _pointer, _long),
    "sync": ctypes.CFUNCTYPE(_int, _pointer, _int),
    "shm_lock": ctypes.CFUNCTYPE(_int, _pointer, _int, _int, _int),
}
Operation = tuple[str, str, int, bytes]
"""What is done, to which file (its name, without the folder), where or how long, and what is written."""


class Disk:
    """What SQLite writes to in this process, as long as it is `inserted`."""

    def __init__(self) -> None:
        self.refuses: Callable[[str, str], int] = lambda operation, name: 0
        """Asked before each operation, with the file's name; what it gives is what SQLite is told, if it is not 0."""
        self.log: list[Operation] | None = None
        """A list: what is done is noted in it."""
        self._names: dict[int, str] = {}
        self._methods: dict[int, tuple[_Methods, Any]] = {}
        self._real: dict[int, int] = {}
        self._vfs: Any = None
        self._kept: list[Any] = []

    def full(self) -> None:
        """From now on there is no room for more."""
        self.refuses = lambda operation, name: FULL if operation == "write" else 0

    def locked(self) -> None:
        """From now on another program is about to write, and does not come to its end."""
        self.refuses = lambda operation, name: BUSY if operation == "lock" else 0

    def well(self) -> None:
        """From now on it works."""
        self.refuses = lambda operation, name: 0

    def breaks_at(self, number: int, codes: dict[str, int]) -> "Broken":
        """From the `number`-th operation on that `codes` knows, they fail as that says, until it is `well`."""
        broken = Broken(number, codes)
        self.refuses = broken
        return broken

    @contextmanager
    def inserted(self) -> Generator["Disk", None, None]:
        """It is this process's disk for SQLite. All connections are to be closed at the end."""
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
        real = library.sqlite3_vfs_find(None)
        self._vfs = vfs = _Vfs.from_buffer_copy(real.contents)
        vfs.name = b"adk_nb_test_disk"
        open_file, delete = _TYPES["open"](vfs.open), _TYPES["delete"](vfs.delete)

        def opened(_: int, name: int | None, file: int, flags: int, out: int) -> int:
            last = _last(name)
            if code := self.refuses("open", last):
                _File.from_address(file).methods = None
                return code
            code = open_file(ctypes.addressof(vfs), name, file, flags, out)
            if code == 0:
                self._names[file] = last
                self._take(file)
            return code

        def deleted(_: int, name: int, sync: int) -> int:
            last = _last(name)
            if code := self.refuses("delete", last):
                return code
            if self.log is not None:
                self.log.append(("delete", last, 0, b""))
            return delete(ctypes.addressof(vfs), name, sync)

        ours = [_TYPES["open"](opened), _TYPES["delete"](deleted)]
        vfs.open, vfs.delete = (ctypes.cast(item, _pointer).value for item in ours)
        self._kept += ours
        library.sqlite3_vfs_register(ctypes.byref(vfs), 1)
        try:
            yield self
        finally:
            library.sqlite3_vfs_unregister(ctypes.byref(vfs))
            library.sqlite3_vfs_register(real, 1)

    def _take(self, file: int) -> None:
        """Put our methods in the place of the file's own."""
        head = _File.from_address(file)
        if head.methods not in self._methods:
            methods = _Methods.from_address(head.methods)
            ours = _Methods.from_buffer_copy(methods)
            self._methods[head.methods] = (ours, self._override(methods, ours))
        head.methods = ctypes.addressof(self._methods[head.methods][0])

    def _override(self, real: _Methods, ours: _Methods) -> list[Any]:
        calls = {name: _TYPES[name](getattr(real, name)) for name in _TYPES if getattr(real, name, None)}

        def read(file: int, data: int, size: int, number: int) -> int:
            return self.refuses("read", self._names[file]) or calls["read"](file, data, size, number)

        def write(file: int, data: int, size: int, number: int) -> int:
            return self._noted("write", file, number, data, size) or calls["write"](file, data, size, number)

        def truncate(file: int, size: int) -> int:
            return self._noted("truncate", file, size) or calls["truncate"](file, size)

        def sync(file: int, flags: int) -> int:
            return self._noted("sync", file, 0) or calls["sync"](file, flags)

        def shm_lock(file: int, number: int, count: int, flags: int) -> int:
            writes = (number, flags) == _LOCK_FOR_WRITING
            return (writes and self.refuses("lock", self._names[file])) or calls["shm_lock"](file, number, count, flags)

        stored = [_TYPES[item.__name__](item) for item in (read, write, truncate, sync, shm_lock)]
        for name, item in zip(("read", "write", "truncate", "sync", "shm_lock"), stored, strict=True):
            if getattr(real, name):
                setattr(ours, name, ctypes.cast(item, _pointer).value)
        return [*stored, *calls.values()]

    def _noted(self, operation: str, file: int, number: int, data: int = 0, size: int = 0) -> int:
        name = self._names[file]
        code = self.refuses(operation, name)
        if code == 0 and self.log is not None:
            self.log.append((operation, name, number, ctypes.string_at(data, size) if size else b""))
        return code


def _last(name: int | None) -> str:
    """Of a path that SQLite owns, and has others keep: the pointer itself is what is handed on."""
    return Path(ctypes.string_at(name).decode()).name if name else ""


class Broken:
    """Counts operations, and refuses them from one on."""

    def __init__(self, number: int, codes: dict[str, int]) -> None:
        self.seen = 0
        self._number = number
        self._codes = codes

    def __call__(self, operation: str, name: str) -> int:
        code = self._codes.get(operation, 0)
        self.seen += bool(code)
        return code if self.seen >= self._number else 0
