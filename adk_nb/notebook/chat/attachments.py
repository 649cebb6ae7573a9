"""Attachments of a message: files, pictures, tables and errors, as parts that a model can read."""

import base64
import binascii
import mimetypes
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from adk_nb import types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.errors import InputError, did_you_mean
from adk_nb.models.base_llm import BaseLlm
from adk_nb.notebook.last_error import describe
from adk_nb.notebook.variables import is_secret, is_table, user_variables, whole_table, whole_text
from adk_nb.notebook.view.plain_text import one_line
from adk_nb.tools.base_tool import BaseTool
from adk_nb.tools.base_toolset import BaseToolset
from adk_nb.tools.media import Media, media_in

MAX_BYTES = 20_000_000
"""Of all attachments of a message. Source: https://ai.google.dev/gemini-api/docs/files (size of a whole request)."""
_KINDS = {".csv": "text/csv", ".md": "text/markdown", ".webp": "image/webp", ".svg": "text/plain"}
"""Suffix -> media type, where the system's table may lack it, or where models read the file as text."""
_MAX_NAME = 120
"""Characters of a page's name of a file."""


@dataclass(frozen=True, kw_only=True)
class SentFile:
    """A file of the reader's own disk, which the kernel may not reach."""

    name: str
    data: bytes | None
    """None: it did not arrive."""


class Uploads:
    """The files of pages, by the ids that they gave them, `MAX_BYTES` at most. Untrusted: any script can send pieces.

    A piece is base64 in a JSON message, because not every front end passes binary buffers on, and short, because a
    Jupyter server closes a connection that sends ten megabytes at once.
    """

    def __init__(self) -> None:
        self._files: dict[str, bytearray | None] = {}
        """None: lost."""

    def add(self, file_id: str, data: str) -> None:
        """Take the next piece of a file; one that is no base64 loses the file, and too much the other ones first."""
        file = self._files.setdefault(file_id, bytearray())
        if file is None:
            return
        try:
            file += base64.b64decode(data, validate=True)
        except binascii.Error:
            self._files[file_id] = None
        if sum(len(each) for each in self._files.values() if each) > MAX_BYTES:
            self._files = dict.fromkeys(self._files)
            self._files[file_id] = file if len(file) <= MAX_BYTES else None

    def take(self, attached: Sequence[Any]) -> list[str | SentFile]:
        """What goes with a message: names as they are, and `{"name", "file"}` as the file of that id.

        These files are forgotten; others may be on their way from another page.
        """
        taken: list[str | SentFile] = []
        for each in attached:
            if not isinstance(each, dict):
                taken.append(str(each))
                continue
            item = cast(dict[str, Any], each)
            name = one_line(str(item.get("name") or "file"), 2 * _MAX_NAME)[-_MAX_NAME:]  # the suffix says the kind
            data = self._files.pop(str(item.get("file")), None)
            taken.append(SentFile(name=name, data=None if data is None else bytes(data)))
        return taken


def parts_of(*values: Any, name: str = "") -> list[types.Part]:
    """The parts of attachments, each after a part with its name; a part of google-genai stays as it is.

    Args:
        values: Paths of files (str or PathLike), images or PDFs as bytes or as objects with such a representation,
            matplotlib figures, DataFrames, exceptions, parts or blobs of google-genai, or other values as text.
        name: The name of a single value. Empty: the file's name, or the type of the value.

    Raises:
        InputError: A file does not exist, is of a kind that models do not read, is too large, or holds a secret.
    """
    attachments: list[types.Part] = []
    for value in values:
        if isinstance(value, types.Part):
            attachments.append(value)
            continue
        label, part = _part(value, name)
        # The name as text: only some services pass a file's name to the model.
        attachments += [types.Part(text=f"[attached: {label}]"), part]
    size = sum(len(part.inline_data.data or b"") for part in attachments if part.inline_data)
    if size > MAX_BYTES:
        raise _too_large("the attachment", size)
    return attachments


def text_part(name: str, text: str) -> list[types.Part]:
    """Text as a file of that name."""
    return [types.Part(text=f"[attached: {name}]"), _text(name, text, "text/plain")]


def parts_of_name(name: str | SentFile, variables: Mapping[str, Any]) -> list[types.Part]:
    """The parts for a variable, or else for a file, of that name; or for a file of a page.

    Raises:
        InputError: There is none, or it cannot be attached.
    """
    if isinstance(name, SentFile):
        if name.data is None:
            raise InputError(f"{name.name!r} did not arrive; attach it again (at most {MAX_BYTES:,} bytes a message)")
        return [types.Part(text=f"[attached: {name.name}]"), _content(name.name, name.data)]
    if name in variables:
        value = variables[name]
        if isinstance(value, str) and not (len(value) < 1_000 and Path(value).is_file()):
            return text_part(name, value)
        return parts_of(value, name=name)
    path = Path(os.path.expanduser(name))
    if os.path.exists(path):
        return parts_of(name)
    files = [str(path.with_name(file.name)) for file in path.parent.glob("*")] if os.path.isdir(path.parent) else []
    hint = did_you_mean(name, [*user_variables(variables), *files], f"the folder is {Path.cwd()}")
    raise InputError(f"no variable or file {name!r}; {hint}")


def attachables(variables: Mapping[str, Any]) -> list[dict[str, str]]:
    """`{"name", "kind"}` of the variables that can be attached, and of the files of the current folder."""
    hidden = (ModuleType, type, BaseAgent, BaseTool, BaseToolset, BaseLlm)
    listed = [
        {"name": name, "kind": type(variables[name]).__name__}
        for name in user_variables(variables)
        if not isinstance(variables[name], hidden) and not callable(variables[name])
    ]
    files = sorted(file.name for file in Path().iterdir() if file.is_file() and file.name[0] != ".")
    return [*listed, *({"name": name, "kind": "file"} for name in files)]


def parts_of_attachment(attachment: Any) -> list[types.Part]:
    """The parts of a value, or of the values in a list or tuple."""
    values = cast(Iterable[Any], attachment) if isinstance(attachment, list | tuple) else [attachment]
    return parts_of(*values)


def _part(value: Any, name: str) -> tuple[str, types.Part]:
    if isinstance(value, str | os.PathLike):  # text is a path, never the content
        return _file(os.path.expanduser(cast(Any, value)))
    label = name or type(value).__name__
    if isinstance(value, bytes | bytearray):
        return label, _bytes(bytes(value), label)
    if isinstance(value, BaseException):
        return label, _text(label, describe(value), "text/plain")
    if media := media_in(value):
        return label, _media(media)
    if is_table(value):
        return label, _text(label, whole_table(value), "text/csv")
    return label, _text(label, whole_text(value), "text/plain")


def _file(name: str) -> tuple[str, types.Part]:
    path = Path(name)
    if os.path.exists(name) and not (os.path.isfile(name) or os.path.isdir(name)):
        raise InputError(f"{name!r} cannot be attached: it is not a regular file (a pipe or a device has no end)")
    try:
        if path.stat().st_size > MAX_BYTES:  # before reading: a file may be larger than the memory
            raise _too_large(path.name, path.stat().st_size)
        data = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = f"{path} is a folder" if path.is_dir() else getattr(error, "strerror", None) or str(error)
        raise InputError(f"{str(path)!r} cannot be attached: {reason}") from error
    return path.name, _content(path.name, data)


def _content(name: str, data: bytes) -> types.Part:
    """What is in a file, by its name."""
    kind = _KINDS.get(Path(name).suffix.lower()) or mimetypes.guess_type(name)[0] or ""
    if kind.startswith(("audio/", "image/", "video/")) or kind == "application/pdf":
        return types.Part(inline_data=types.Blob(data=data, mime_type=kind))
    return _bytes(data, name, kind)


def _bytes(data: bytes, label: str, kind: str = "") -> types.Part:
    if media := media_in(data):
        return _media(media)
    try:
        content = data.decode()
    except UnicodeDecodeError:
        content = "\0"
    # A NUL decodes as UTF-8, and no text file has one.
    if "\0" in content:
        raise InputError(
            f"{label!r} cannot be attached: it is not text, an image, sound, video or a PDF; read it in a cell and "
            "attach its content, or a types.Blob with its media type"
        )
    return _text(label, content, kind)


def _text(label: str, content: str, kind: str) -> types.Part:
    if is_secret(content):
        raise InputError(f"{label!r} was not attached: it seems to contain a secret")
    kind = kind if kind.startswith("text/") else "text/plain"  # all models read text/plain
    return types.Part(inline_data=types.Blob(data=content.encode("utf-8", "replace"), mime_type=kind))


def _media(media: Media) -> types.Part:
    if media.uri is not None:
        return types.Part(file_data=types.FileData(file_uri=media.uri, mime_type=media.mime_type))
    return types.Part(inline_data=types.Blob(data=media.data, mime_type=media.mime_type))


def _too_large(subject: str, size: int) -> InputError:
    return InputError(
        f"{subject} is too large for a message: {size:,} bytes, the limit is {MAX_BYTES:,}; attach less, or give the "
        "agent a tool that reads it"
    )
