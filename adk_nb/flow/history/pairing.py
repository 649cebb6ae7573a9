"""Order contents so that every response follows its call, however late it came."""

from collections.abc import Iterable

from adk_nb import types

_NAMELESS = "\0"


class PairedHistory:
    """A history that every model service accepts, updated as it grows.

    A late response moves behind its call, or replaces an earlier response to it. While it is the newest content, the
    contents between are hidden: services expect the response last.
    """

    def __init__(self) -> None:
        self._contents: list[types.Content] = []
        self._answers: dict[str, int] = {}
        """Call id -> index in `_contents` of the content with its response."""
        self._open: dict[str, int] = {}
        """Call id -> index of the content with the call that has no response yet."""
        self._unanswerable: set[str] = set()
        """Ids of calls that may stay without a response: long-running, or without an id of their own."""
        self._has_empty = False
        """`_contents` may hold contents without parts, which `contents` leaves out."""
        self._hidden: tuple[int, int] | None = None
        """The slice of contents between an old call and its newest response, hidden until the next content."""

    def contents(self) -> list[types.Content]:
        """A new list, oldest first, without calls that have no response."""
        contents = list(self._contents)
        dangling = self._open.keys() - self._unanswerable if self._open else ()
        for key in dangling:
            contents[self._open[key]] = _without_call(contents[self._open[key]], key)
        if self._hidden:
            del contents[self._hidden[0] : self._hidden[1]]
        return [content for content in contents if content.parts] if dangling or self._has_empty else contents

    def has_call(self, key: str) -> bool:
        """True if the history has a call of that id."""
        return key in self._open or key in self._answers

    def append(self, content: types.Content, long_running: Iterable[str] | None = None) -> None:
        """Add text and calls; the calls with ids in `long_running` may stay without a response."""
        self._hidden = None
        index = len(self._contents)
        for part in content.parts or ():
            if call := part.function_call:
                key = call.id or _id_for_nameless(call)
                earlier_index = self._open.get(key, index)
                if earlier_index != index and call.id:  # the id is reused: the old call will get no response
                    self._contents[earlier_index] = _without_call(self._contents[earlier_index], key)
                    self._has_empty = True
                self._open[key] = index
                if not call.id:
                    self._unanswerable.add(key)
        if long_running:
            self._unanswerable.update(long_running)
        self._contents.append(content)

    def replace_last(self, content: types.Content) -> None:
        """Replace the newest content, which has no calls."""
        self._contents[-1] = content

    def append_responses(self, content: types.Content) -> None:
        """Add the responses in `content`. Those without a call in the history are dropped."""
        last_index = len(self._contents) - 1
        parts = content.parts or []
        keys = [response.id or _id_for_nameless(response) for part in parts if (response := part.function_response)]
        if len(keys) > 1:
            identified = [key for key in keys if not key.startswith(_NAMELESS)]
            if len(set(identified)) < len(identified):  # several responses to one call
                self._place_late_responses(parts)
                return
        for key in keys:
            if self._open.get(key) != last_index:
                self._place_late_responses(parts)
                return
        if not keys:
            return
        for key in keys:
            # The common case: the responses follow their calls.
            self._answers[key] = last_index + 1
            self._open.pop(key, None)
        self._contents.append(content)

    def _place_late_responses(self, parts: list[types.Part]) -> None:
        """Move each response behind its call, or in place of an earlier response to it."""
        contents = self._contents
        for part in parts:
            if not (response := part.function_response):
                continue
            key = response.id or _id_for_nameless(response)
            if (call_index := self._open.pop(key, None)) is not None:
                index = call_index + 1
                siblings = contents[index].parts or [] if index < len(contents) else []
                if any(sibling.function_response for sibling in siblings):
                    # In the order of the calls, as services without call ids need it.
                    calls = [
                        call.id or _id_for_nameless(call)
                        for sibling in contents[call_index].parts or ()
                        if (call := sibling.function_call)
                    ]
                    later = calls[calls.index(key) + 1 :]
                    position = next(
                        (n for n, sibling in enumerate(siblings) if _answered_call(sibling) in later), len(siblings)
                    )
                    placed = [*siblings[:position], part, *siblings[position:]]
                    contents[index] = types.Content(role="user", parts=placed)
                else:
                    self._insert(index, types.Content(role="user", parts=[part]))
                self._answers[key] = index
            elif (earlier_index := self._answers.get(key)) is not None:
                placed = [
                    part if _answered_call(other) == key else other for other in contents[earlier_index].parts or ()
                ]
                contents[earlier_index] = types.Content(role="user", parts=placed)
            else:
                continue  # there is no such call
        keys = [key for part in parts if (key := _answered_call(part)) and key in self._answers]
        if not keys:
            return
        newest_index = max(self._answers[key] for key in keys)
        if other_parts := [part for part in parts if not part.function_response]:
            placed = [*(contents[newest_index].parts or ()), *other_parts]
            contents[newest_index] = types.Content(role="user", parts=placed)
        self._hidden = (newest_index + 1, len(contents))

    def _insert(self, index: int, content: types.Content) -> None:
        self._contents.insert(index, content)
        for indexes in (self._answers, self._open):
            for key, other_index in indexes.items():
                if other_index >= index:
                    indexes[key] = other_index + 1


def is_meaningful(part: types.Part) -> bool:
    """True if `part` is worth sending: not an unsigned thought, nor an empty part."""
    if part.function_call or part.function_response or part.thought_signature or part.tool_call or part.tool_response:
        return True
    has_data = part.inline_data or part.file_data or part.executable_code or part.code_execution_result
    return bool((part.text or has_data) and not part.thought)


def _id_for_nameless(item: types.FunctionCall | types.FunctionResponse) -> str:
    """The key of a call without an id, and of its response."""
    return f"{_NAMELESS}{item.name}"


def _answered_call(part: types.Part) -> str | None:
    """The key of the call that `part` is the response to. None: it is no response."""
    response = part.function_response
    return (response.id or _id_for_nameless(response)) if response else None


def _without_call(content: types.Content, key: str) -> types.Content:
    """`content` without a call that has no response: services reject it."""
    parts = [part for part in content.parts or [] if not (part.function_call and part.function_call.id == key)]
    return types.Content(role=content.role, parts=parts if any(map(is_meaningful, parts)) else [])
