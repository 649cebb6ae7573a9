"""The text of a Word document."""

import io
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, cast
from xml.etree import ElementTree

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MAX_XML_BYTES = 10_000_000
"""Of the document's main part, unpacked; the rest is not read."""
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_SIGNS = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}


def docx_text(data: bytes) -> str | None:
    """The paragraphs of a Word document that have a text, a line each. None: `data` is no such document."""
    if not data.startswith(b"PK"):
        return None
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open("word/document.xml") as part:
            xml = part.read(MAX_XML_BYTES)
    except (zipfile.BadZipFile, zlib.error, KeyError, OSError, RuntimeError, NotImplementedError, EOFError):
        return None
    if b"<!DOCTYPE" in xml:  # Word writes none; entities within one could grow without end
        return None
    return "\n".join(_paragraphs(xml))


def _paragraphs(xml: bytes) -> Iterator[str]:
    new_parser: Any = ElementTree.XMLPullParser
    parser, text = new_parser(("end",)), ""
    for start in range(0, len(xml), 65536):
        try:
            parser.feed(xml[start : start + 65536])
        except ElementTree.ParseError:
            break
        for _, element in cast(Iterator[tuple[str, ElementTree.Element]], parser.read_events()):
            text += element.text or "" if element.tag == f"{_W}t" else _SIGNS.get(element.tag, "")
            if element.tag == f"{_W}p":
                if text:
                    yield text
                text = ""
            element.clear()  # a large document is not kept in memory
    if text:
        yield text
