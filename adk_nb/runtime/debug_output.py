"""Output of `Runner.run_debug`: events as lines of text."""

from collections.abc import Iterator

from adk_nb import types
from adk_nb.events.event import Event


def event_lines(event: Event, *, verbose: bool = False) -> Iterator[str]:
    """Lines `author > text` of an event; none for a partial event.

    Args:
        event: The event to print.
        verbose: Also thoughts, calls (arguments cut at 50 characters), results (at 100), code and files.
    """
    if event.partial:
        return
    text = ""
    for part in event.parts:
        if part.text:
            text += part.text if verbose or not part.thought else ""
            continue
        if text:
            yield f"{event.author} > {text}"
            text = ""
        if verbose and (summary := _part_summary(part)):
            yield f"{event.author} > [{summary}]"
    if text:
        yield f"{event.author} > {text}"
    if event.error_code:
        yield f"{event.author} > [failed {event.error_code}: {event.error_message or ''}]"


def content_line(content: types.Content | None) -> str:
    """A content in one line: its text, other parts in brackets, without thoughts."""
    parts = (content.parts if content else None) or []
    texts = (
        part.text if part.text is not None else f"[{_part_summary(part) or 'data'}]"
        for part in parts
        if not part.thought
    )
    return " ".join(" ".join(texts).split())


def _part_summary(part: types.Part) -> str | None:
    if call := part.function_call:
        return f"calls {call.name}({_truncate(str(call.args or {}), 50)})"
    if response := part.function_response:
        return f"{response.name} answers {_truncate(str(response.response), 100)}"
    if part.executable_code:
        return f"runs {(part.executable_code.language or types.Language.PYTHON).value.lower()} code"
    if part.code_execution_result:
        return f"code answers {_truncate(str(part.code_execution_result.output or ''), 100)}"
    if part.inline_data:
        return f"data {part.inline_data.mime_type or ''}".strip()
    return f"file {part.file_data.file_uri}" if part.file_data else None


def _truncate(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."
