"""Writers of documents in the three forms of an output. Only they escape text."""

from adk_nb.notebook.view.document import Document
from adk_nb.notebook.view.writers import html, markdown, text

Bundle = dict[str, str]
"""Media type -> text: `text/plain`, `text/markdown`, `text/html`."""


def bundle(document: Document) -> Bundle:
    """All three forms."""
    return {
        "text/plain": text.write(document.blocks),
        "text/markdown": markdown.write(document.blocks),
        "text/html": html.write(document.blocks),
    }


def as_text(document: Document) -> str:
    """The plain text alone."""
    return text.write(document.blocks)
