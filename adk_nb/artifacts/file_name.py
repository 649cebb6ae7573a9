"""Artifact names and ids as names on a disk: what cannot be one is refused, whatever the system would make of it."""

import os
import re
import unicodedata

from adk_nb.errors import InputError

VERSIONS = "versions"
METADATA = "metadata.json"
_LONGEST = 255  # bytes; what ext4, APFS and NTFS allow for one name
_LONGEST_PATH = 1_024
DEEPEST = 16
"""Parts of a name."""
_DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)
_DRIVE = re.compile(r"[A-Za-z]:")
_NOT_ON_WINDOWS = frozenset('<>:"|?*') if os.name == "nt" else frozenset[str]()
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories: control, format (all that turns the direction of text is there), surrogate, line separators."""


def folders_of(name: str) -> list[str]:
    """An artifact's name, NFC, as the folders that lead to it: `a/b.txt` is two.

    Raises:
        InputError: The name is absolute, leads up, has unseen characters, is too long, or is one that we use.
    """
    if name.startswith("/") or "\\" in name or _DRIVE.match(name):
        raise _refused(name, "is an absolute path, or one of Windows; write 'folder/name'")
    if len(os.fsencode(_readable(name))) > _LONGEST_PATH:
        raise _refused(name, f"is longer than {_LONGEST_PATH} bytes; shorten it")
    segments = name.split("/")
    if len(segments) > DEEPEST:
        raise _refused(name, f"has more than {DEEPEST} parts; leave some out")
    for segment in segments:
        _check(name, segment)
    if segments[-1].casefold() == METADATA:
        raise _refused(name, "is where what is known of an artifact is kept; choose another")
    return segments


def folder_of(given: str, what: str) -> str:
    """An id as one folder. `what`: whose id it is, for the error.

    Raises:
        InputError: It cannot be one.
    """
    if "/" in given or "\\" in given:
        raise InputError(f"{what} {given!r:.80} cannot be the name of a folder: it has a slash; choose another")
    try:
        _check(given, given)
    except InputError as error:
        raise InputError(f"{what} {given!r:.80} cannot be the name of a folder; choose another") from error
    return given


def _check(name: str, segment: str) -> None:
    if segment in ("", ".", ".."):
        raise _refused(name, "has a part that is empty or leads elsewhere; write 'folder/name'")
    if odd := [one for one in segment if unicodedata.category(one) in _UNSEEN or one in _NOT_ON_WINDOWS]:
        raise _refused(name, f"has the character {odd[0]!a}, which a file's name cannot have or nobody would see")
    if segment[-1] in " ." or segment[0] == " " or _DEVICE.fullmatch(segment):
        raise _refused(name, "would be another name on Windows: it is a device, or a part starts or ends so")
    if len(segment.encode()) > _LONGEST:
        raise _refused(name, f"has a part longer than {_LONGEST} bytes; shorten it")
    if segment.casefold() == VERSIONS:
        raise _refused(name, f"has a part {VERSIONS!r}, where versions are kept; choose another")


def _readable(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _refused(name: str, why: str) -> InputError:
    return InputError(f"the artifact name {_readable(name)!r:.200} {why}")
