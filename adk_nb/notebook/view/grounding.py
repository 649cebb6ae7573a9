"""Searches and sources of a model's service, and the suggestions that it wants shown beside the answer."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.notebook.view.document import Block, Item, Items, Link, Page, Text, in_html
from adk_nb.notebook.view.plain_text import is_safe_link, one_line

T = TypeVar("T")
PLAIN = ("[", "]")
MARKDOWN = ("\\[", "\\]")
"""The brackets around the number of a source, in plain text and in markdown."""
_MOST = 100
"""Searches, and sources, that are shown."""
_LONGEST_PAGE = 200_000
"""Characters of suggestions; longer ones are left out."""


@dataclass(frozen=True)
class Source:
    """The source of an answer."""

    title: str
    uri: str
    """Empty if it is no link that a reader could follow."""
    domain: str
    """Its site; empty if the title names it."""


@dataclass
class Grounding:
    """Searches, sources and suggestions of one answer or several, each once."""

    queries: list[str] = field(default_factory=list[str])
    sources: list[Source] = field(default_factory=list[Source])
    suggestions: list[str] = field(default_factory=list[str])
    """Pages of the search service, as it wrote them: hostile until isolated."""

    def __bool__(self) -> bool:
        return bool(self.queries or self.sources or self.suggestions)

    def number(self, source: Source) -> int | None:
        """The source's place, 1 for the first."""
        return self.sources.index(source) + 1 if source in self.sources else None

    def add(self, metadata: types.GroundingMetadata) -> None:
        queries = [*(metadata.web_search_queries or ()), *(metadata.retrieval_queries or ())]
        _extend(self.queries, map(one_line, queries))
        _extend(self.sources, filter(None, sources_of(metadata)))
        page = metadata.search_entry_point and metadata.search_entry_point.rendered_content
        if page and len(page) <= _LONGEST_PAGE:
            _extend(self.suggestions, [page])


def grounding_of(events: Iterable[Event]) -> Grounding:
    """The grounding of all answers in `events`."""
    grounding = Grounding()
    for event in events:
        if event.grounding_metadata and not event.partial:
            grounding.add(event.grounding_metadata)
    return grounding


def sources_of(metadata: types.GroundingMetadata) -> Iterator[Source | None]:
    """The sources in the order that citations count them by; None for one without a title."""
    for chunk in metadata.grounding_chunks or ():
        details = chunk.web or chunk.retrieved_context or chunk.maps or chunk.image
        yield _source(details) if details else None


def _source(
    details: types.GroundingChunkWeb
    | types.GroundingChunkRetrievedContext
    | types.GroundingChunkMaps
    | types.GroundingChunkImage,
) -> Source | None:
    uri = str(getattr(details, "uri", None) or getattr(details, "source_uri", None) or "")
    uri = uri if is_safe_link(uri) and len(uri) <= 4_000 else ""
    title = one_line(details.title or uri or getattr(details, "document_name", None) or "")
    domain = one_line(str(getattr(details, "domain", None) or _host(uri)), 100)
    return Source(title, uri, "" if domain in title else domain) if title else None


def _host(uri: str) -> str:
    try:
        return (urlsplit(uri).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def _extend(items: list[T], new_items: Iterable[T]) -> None:
    for item in new_items:
        if item and item not in items and len(items) < _MOST:
            items.append(item)


def blocks(grounding: Grounding) -> list[Block]:
    """The searches, the sources, and the suggestions, each page of them in a frame of its own."""
    pages = [in_html(Page(page, "Search suggestions", 76)) for page in grounding.suggestions]
    return [*lines(grounding), *pages]


def lines(grounding: Grounding) -> list[Block]:
    """`blocks` without the suggestions."""
    queries = "; ".join(grounding.queries)
    searches: list[Block] = [Text(f"Searched for: {queries}", small=True)] if queries else []
    items = [
        Item((Link(source.title, source.uri), f" ({source.domain})" if source.domain else ""))
        for source in grounding.sources
    ]
    return [*searches, Items(items, "[1]")] if items else searches


def cited(text: str, events: Iterable[Event], grounding: Grounding, brackets: tuple[str, str]) -> str:
    """`text`, which is made of the events' words, with the numbers of its sources.

    Args:
        text: As `answer_in` has it.
        events: Those of which `text` is made.
        grounding: Numbers the sources.
        brackets: `PLAIN` or `MARKDOWN`.
    """
    for event in events:
        if event.grounding_metadata and event.text and event.text in text:
            text = text.replace(event.text, _with_numbers(event, event.grounding_metadata, grounding, brackets), 1)
    return text


def cited_in(event: Event, text: str) -> str:
    """The text of one event, as markdown, with the numbers of its own sources."""
    return cited(text, [event], grounding_of([event]), MARKDOWN)


def _with_numbers(
    event: Event, metadata: types.GroundingMetadata, grounding: Grounding, brackets: tuple[str, str]
) -> str:
    sources = list(sources_of(metadata))
    marks: dict[int, dict[int, str]] = {}
    for support in metadata.grounding_supports or ():
        segment = support.segment
        if segment and segment.end_index:
            part = marks.setdefault(segment.part_index or 0, {})
            indices = [index for index in support.grounding_chunk_indices or () if 0 <= index < len(sources)]
            numbers = [grounding.number(source) for index in indices if (source := sources[index])]
            citation = "".join(str(number).join(brackets) for number in numbers if number)
            part[segment.end_index] = part.get(segment.end_index, "") + citation
    parts = [
        _marked(part.text, marks.get(index, {})) if part.text and not part.thought else ""
        for index, part in enumerate(event.parts)
    ]
    return "".join(parts)


def _marked(text: str, marks: dict[int, str]) -> str:
    """`text` with each mark after so many bytes of it; one that stands in the middle of a character is left out."""
    data, out, last = text.encode("utf-8", "surrogatepass"), list[bytes](), 0
    for place in sorted(marks):
        if last < place <= len(data) and (place == len(data) or data[place] & 0xC0 != 0x80):
            out += [data[last:place], marks[place].encode()]
            last = place
    return b"".join([*out, data[last:]]).decode("utf-8", "surrogatepass")
