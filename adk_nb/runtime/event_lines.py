"""Contents and events in plain words, for a console."""

from collections.abc import Iterator

from adk_nb import types
from adk_nb.events.event import Event


def lines_of(event: Event, *, verbose: bool = False) -> Iterator[str]:
    """`author > words` for what an event says; nothing for a streamed piece.

    Args:
        event: The event to tell of.
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
        if verbose and (told := _told(part)):
            yield f"{event.author} > [{told}]"
    if text:
        yield f"{event.author} > {text}"
    if event.error_code:
        yield f"{event.author} > [failed {event.error_code}: {event.error_message or ''}]"


def words_of(content: types.Content | None) -> str:
    """What a content says, in one line: its text, and in brackets what else is in it. Thoughts are left out."""
    parts = (content.parts if content else None) or []
    said = (part.text if part.text is not None else f"[{_told(part) or 'data'}]" for part in parts if not part.thought)
    return " ".join(" ".join(said).split())


def _told(part: types.Part) -> str | None:
    if call := part.function_call:
        return f"calls {call.name}({_cut(str(call.args or {}), 50)})"
    if response := part.function_response:
        return f"{response.name} answers {_cut(str(response.response), 100)}"
    return _code(part) or _data(part)


def _code(part: types.Part) -> str | None:
    if part.executable_code:
        return f"runs {(part.executable_code.language or types.Language.PYTHON).value.lower()} code"
    if part.code_execution_result:
        return f"code answers {_cut(str(part.code_execution_result.output or ''), 100)}"
    return None


def _data(part: types.Part) -> str | None:
    if part.inline_data:
        return f"data {part.inline_data.mime_type or ''}".strip()
    return f"file {part.file_data.file_uri}" if part.file_data else None


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}..."
