"""What a model's service looked up: its searches, its sources, and the suggestions it wants shown beside the answer."""

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
"""What stands around the number of a source, in plain text and where markdown is read."""
_MOST = 100
"""Searches, and sources, that are shown."""
_LONGEST_PAGE = 200_000
"""Characters of suggestions; longer ones are left out."""


@dataclass(frozen=True)
class Source:
    """Where something was found."""

    title: str
    uri: str
    """Empty if it is no link that a reader could follow."""
    domain: str
    """Whose it is; empty if the title says it."""


@dataclass
class Grounding:
    """What was looked up for one answer or several, each thing once."""

    queries: list[str] = field(default_factory=list[str])
    sources: list[Source] = field(default_factory=list[Source])
    suggestions: list[str] = field(default_factory=list[str])
    """Pages of the search service, as it wrote them: hostile until isolated."""

    def __bool__(self) -> bool:
        return bool(self.queries or self.sources or self.suggestions)

    def number(self, source: Source) -> int | None:
        """The source's place, 1 for the first."""
        return self.sources.index(source) + 1 if source in self.sources else None

    def add(self, found: types.GroundingMetadata) -> None:
        queries = [*(found.web_search_queries or ()), *(found.retrieval_queries or ())]
        _extend(self.queries, (one_line(one) for one in queries))
        _extend(self.sources, filter(None, sources_of(found)))
        page = found.search_entry_point and found.search_entry_point.rendered_content
        if page and len(page) <= _LONGEST_PAGE:
            _extend(self.suggestions, [page])


def grounding_of(events: Iterable[Event]) -> Grounding:
    """All that was looked up for `events`."""
    found = Grounding()
    for event in events:
        if event.grounding_metadata and not event.partial:
            found.add(event.grounding_metadata)
    return found


def sources_of(found: types.GroundingMetadata) -> Iterator[Source | None]:
    """The sources in the order that citations count them by; None for one of which nothing is known."""
    for chunk in found.grounding_chunks or ():
        about = chunk.web or chunk.retrieved_context or chunk.maps or chunk.image
        yield _source(about) if about else None


def _source(
    about: types.GroundingChunkWeb
    | types.GroundingChunkRetrievedContext
    | types.GroundingChunkMaps
    | types.GroundingChunkImage,
) -> Source | None:
    uri = str(getattr(about, "uri", None) or getattr(about, "source_uri", None) or "")
    uri = uri if is_safe_link(uri) and len(uri) <= 4_000 else ""
    title = one_line(about.title or uri or getattr(about, "document_name", None) or "")
    domain = one_line(str(getattr(about, "domain", None) or _host(uri)), 100)
    return Source(title, uri, "" if domain in title else domain) if title else None


def _host(uri: str) -> str:
    try:
        return (urlsplit(uri).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def _extend(known: list[T], more: Iterable[T]) -> None:
    for one in more:
        if one and one not in known and len(known) < _MOST:
            known.append(one)


def blocks(found: Grounding) -> list[Block]:
    """The searches, the sources, and the suggestions, each page of them in a frame of its own."""
    pages = [in_html(Page(page, "Search suggestions", 76)) for page in found.suggestions]
    return [*lines(found), *pages]


def lines(found: Grounding) -> list[Block]:
    """`blocks` without the suggestions."""
    shown: list[Block] = [Text(f"Searched for: {'; '.join(found.queries)}", small=True)] if found.queries else []
    items = [
        Item((Link(source.title, source.uri), f" ({source.domain})" if source.domain else ""))
        for source in found.sources
    ]
    return [*shown, Items(items, "[1]")] if items else shown


def cited(text: str, events: Iterable[Event], found: Grounding, brackets: tuple[str, str]) -> str:
    """`text`, which is made of the events' words, with the numbers of its sources.

    Args:
        text: As `answer_in` has it.
        events: Whose words stand in it.
        found: What counts the sources.
        brackets: `PLAIN` or `MARKDOWN`.
    """
    for event in events:
        if event.grounding_metadata and event.text and event.text in text:
            text = text.replace(event.text, _with_numbers(event, event.grounding_metadata, found, brackets), 1)
    return text


def cited_in(event: Event, words: str) -> str:
    """The words of one event, as markdown, with the numbers of its own sources."""
    return cited(words, [event], grounding_of([event]), MARKDOWN)


def _with_numbers(event: Event, about: types.GroundingMetadata, found: Grounding, brackets: tuple[str, str]) -> str:
    known = list(sources_of(about))
    marks: dict[int, dict[int, str]] = {}
    for support in about.grounding_supports or ():
        segment = support.segment
        if segment and segment.end_index:
            part = marks.setdefault(segment.part_index or 0, {})
            numbers = [found.number(one) for at in support.grounding_chunk_indices or () if (one := _at(known, at))]
            said = "".join(str(number).join(brackets) for number in numbers if number)
            part[segment.end_index] = part.get(segment.end_index, "") + said
    parts = [
        _marked(part.text, marks.get(index, {})) if part.text and not part.thought else ""
        for index, part in enumerate(event.parts)
    ]
    return "".join(parts)


def _at(known: list[Source | None], index: int) -> Source | None:
    return known[index] if 0 <= index < len(known) else None


def _marked(text: str, marks: dict[int, str]) -> str:
    """`text` with each mark after so many bytes of it; one that stands in the middle of a character is left out."""
    data, out, last = text.encode("utf-8", "surrogatepass"), list[bytes](), 0
    for place in sorted(marks):
        if last < place <= len(data) and (place == len(data) or data[place] & 0xC0 != 0x80):
            out += [data[last:place], marks[place].encode()]
            last = place
    return b"".join([*out, data[last:]]).decode("utf-8", "surrogatepass")
