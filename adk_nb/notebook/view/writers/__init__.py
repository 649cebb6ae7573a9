"""Documents in the forms that a notebook keeps; only here is known what each form takes for more than text."""

from collections.abc import Mapping, Sequence
from typing import Any

from adk_nb.notebook.view.document import Block, Document, Lines, Text
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


class Output:
    """A document that shows itself at the end of a cell."""

    def __init__(self, *blocks: Block, forms: Sequence[str] = ("text/plain", "text/markdown", "text/html")) -> None:
        """`forms`: those that are shown."""
        self.document = Document(blocks)
        self._forms = forms

    @property
    def forms(self) -> dict[str, str]:
        """Media type -> one form."""
        return {form: content for form, content in bundle(self.document).items() if form in self._forms}

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Mapping[str, str]:
        return self.forms

    def below(self, *lines: str) -> "Output":
        """The same with lines under it."""
        return Output(*self.document.blocks, *map(Text, lines), forms=self._forms)

    def __str__(self) -> str:
        return text.write(self.document.blocks)

    __repr__ = __str__


def lines(*messages: str) -> Output:
    """Messages, a line each; empty ones are left out. Plain text, unless there is a note among them."""
    block = Lines(tuple(message for message in messages if message))
    return Output(block, forms=("text/plain", "text/html") if block.has_notes else ("text/plain",))
