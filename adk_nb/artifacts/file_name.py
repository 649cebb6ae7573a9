"""Validation of artifact names and ids as file names, by the same rules on all systems."""

import os
import re
import unicodedata

from adk_nb.errors import InputError

VERSIONS = "versions"
METADATA = "metadata.json"
_MAX_NAME_BYTES = 255  # bytes; what ext4, APFS and NTFS allow for one name
_MAX_PATH_BYTES = 1_024
MAX_SEGMENTS = 16
"""Limit of path segments in a name."""
# Source: https://learn.microsoft.com/windows/win32/fileio/naming-a-file
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:")
_NOT_ON_WINDOWS = frozenset('<>:"|?*') if os.name == "nt" else frozenset[str]()
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories: control, format (including direction marks), surrogate, line separators."""


def name_folders(name: str) -> list[str]:
    """Split an artifact's name (NFC) into folder names: `a/b.txt` gives two.

    Raises:
        InputError: The name is absolute, leads upwards, has invisible characters, is too long, or is reserved.
    """
    if name.startswith("/") or "\\" in name or _DRIVE.match(name):
        raise _name_error(name, "is an absolute path, or one of Windows; write 'folder/name'")
    if len(os.fsencode(_readable(name))) > _MAX_PATH_BYTES:
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
        raise _name_error(
            name, f"has the character {invalid[0]!a}, which a file's name cannot have or nobody would see"
        )
    if segment[-1] in " ." or segment[0] == " " or _DEVICE.fullmatch(segment):
        raise _name_error(name, "would be another name on Windows: it is a device, or a part starts or ends so")
    if len(segment.encode()) > _MAX_NAME_BYTES:
        raise _name_error(name, f"has a part longer than {_MAX_NAME_BYTES} bytes; shorten it")
    if segment.casefold() == VERSIONS:
        raise _name_error(name, f"has a part {VERSIONS!r}, which is reserved; choose another")


def _readable(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _name_error(name: str, reason: str) -> InputError:
    return InputError(f"the artifact name {_readable(name)!r:.200} {reason}")
