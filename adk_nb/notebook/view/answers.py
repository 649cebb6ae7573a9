"""The answer of a turn: its text and author, the outcome of the turn, and the sources that the answer cites."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, TypeVar
from urllib.parse import urlsplit

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.notebook.view.document import Block, Item, Items, Link, Page, Text, in_html
from adk_nb.notebook.view.event_text import author_of
from adk_nb.notebook.view.plain_text import is_safe_link, json_text, one_line
from adk_nb.runtime.branches import calls_to
from adk_nb.tools.finish_task_tool import NAME as FINISH_TASK

Status = Literal["done", "pending", "cancelled", "error"]
T = TypeVar("T")


def turn_outcome(events: Sequence[Event], status: Status, error: str | None) -> tuple[Status, str | None]:
    """Return status and error of a turn; a run that ended without an exception may end with an event of an error."""
    last = events[-1] if events else None
    if status == "done" and last and last.error_code and last.author != "user":
        return "error", f"{last.error_code}: {last.error_message or ''}".rstrip(": ")
    return status, error


def answer_in(events: Sequence[Event]) -> tuple[str, str]:
    """The text of the last answer in `events`, with text that its agent's callbacks appended, and its author.

    Both are empty if there is no answer, as at a pause.
    """
    answers: list[Event] = []
    continues = False
    asking: dict[str, Event] = {}
    """Isolation scope -> the last text of a called agent whose call is open, with which it asks the user."""
    ended_graph = ""
    for event in events:
        graph = event.node_info.path.partition("/")[0]
        if _is_output_of(graph, event):
            ended_graph = graph
        elif graph and graph == ended_graph:
            continue  # nothing of a graph counts after its output
        for response in event.get_function_responses():
            asking.pop(response.id or "", None)
        if calls_to(event.branch, event.node_info.path):
            if event.is_answer() and not event.error_code:
                asking[event.isolation_scope or ""] = event
            continue  # an answer to a call does not answer the user
        if _is_outcome(event):
            answers, continues = [event], False
        elif event.author != "user" and event.is_answer():
            # A model's answer stands alone, unlike a callback's: each pass of a loop has an answer of its own.
            is_of_a_model = event.finish_reason or event.turn_complete or event.model_version
            is_continuation = continues and answers[-1].author == event.author and not is_of_a_model
            answers = [*answers, event] if is_continuation else [event]
            continues = True
        elif event.content:
            continues = False
    requests: dict[str, Event] = {}
    for event in events:
        for response in event.get_function_responses():
            requests.pop(response.id or "", None)
        requests |= dict.fromkeys(event.long_running_tool_ids or (), event)
    if requests:  # at a pause, only the text beside the request is the answer: other agents' texts are not
        pausing = {(event.author, event.node_info.path) for event in requests.values()}
        answers = [answer for answer in answers if answer.text and (answer.author, answer.node_info.path) in pausing]
    answer = answers or list(asking.values())
    return "\n\n".join(text_of(event) for event in answer), author_of(answer[-1]) if answer else ""


def streamed_text(streaming: Iterable[Sequence[Event]]) -> tuple[str, str] | None:
    """The text of answers that were stopped while they streamed, and the author of the last; None if none had begun.

    Args:
        streaming: The partial events of each answer.
    """
    texts = [
        (text, author_of(pieces[-1]))
        for pieces in streaming
        if (text := "".join(piece.text for piece in pieces if not calls_to(piece.branch, piece.node_info.path)))
    ]
    return ("\n\n".join(text for text, _ in texts), texts[-1][1]) if texts else None


def _is_output_of(graph: str, event: Event) -> bool:
    return graph != "" and graph in (event.node_info.output_for or ())


def _is_outcome(event: Event) -> bool:
    """True for an answer without text: the output of the run's graph or of a node of it, or the result of a task."""
    path = event.node_info.path
    if event.output is None or event.text:
        return False
    if path.count("/") > 1:
        return _is_output_of(path.partition("/")[0], event)
    return path != "" or _finishes_task(event)


def _finishes_task(event: Event) -> bool:
    return any(response.name == FINISH_TASK for response in event.get_function_responses())


def text_of(event: Event) -> str:
    """The text of an answer, or its output if it has no text."""
    if event.text:
        return event.text
    value = event.output
    if _finishes_task(event) and value.keys() == {"result"}:  # the one argument of a task that has no output schema
        value = value["result"]
    return value if isinstance(value, str) else json_text(value)


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
    """Empty if it is not a link that is safe to follow."""
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
        """Add queries, sources and suggestions that are not there yet, up to 100 of each."""
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
    """The sources by index, as `grounding_chunk_indices` names them; None for one without a title."""
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
    host = ""
    with suppress(ValueError):
        host = (urlsplit(uri).hostname or "").removeprefix("www.")
    domain = one_line(str(getattr(details, "domain", None) or host), 100)
    return Source(title, uri, "" if domain in title else domain) if title else None


def _extend(items: list[T], new_items: Iterable[T]) -> None:
    for item in new_items:
        if item and item not in items and len(items) < _MOST:
            items.append(item)


def source_blocks(grounding: Grounding) -> list[Block]:
    """The searches, the sources, and the pages of suggestions, each in a frame of its own."""
    pages = [in_html(Page(page, "Search suggestions", 76)) for page in grounding.suggestions]
    return [*source_lines(grounding), *pages]


def source_lines(grounding: Grounding) -> list[Block]:
    """`source_blocks` without the suggestions."""
    queries = "; ".join(grounding.queries)
    searches: list[Block] = [Text(f"Searched for: {queries}", small=True)] if queries else []
    items = [
        Item((Link(source.title, source.uri), f" ({source.domain})" if source.domain else ""))
        for source in grounding.sources
    ]
    return [*searches, Items(items, "[1]")] if items else searches


def cited(text: str, events: Iterable[Event], grounding: Grounding, brackets: tuple[str, str]) -> str:
    """`text` with the numbers of its sources.

    Args:
        text: The answer, as `answer_in` returns it.
        events: The events that it is made of.
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
    """`text` with marks inserted: byte offset -> mark; one within a character is left out."""
    # Google's Segment.end_index counts bytes, not characters.
    data, out, last = text.encode("utf-8", "surrogatepass"), list[bytes](), 0
    for place in sorted(marks):
        if last < place <= len(data) and (place == len(data) or data[place] & 0xC0 != 0x80):
            out += [data[last:place], marks[place].encode()]
            last = place
    return b"".join([*out, data[last:]]).decode("utf-8", "surrogatepass")
