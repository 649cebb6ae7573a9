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
        for key in keys:
            if self._open.get(key) != last_index or (len(keys) > 1 and _has_duplicates(keys)):
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
        placed = [key for part in parts if (key := self._place_response(part))]
        if not placed:
            return
        newest_index = max(self._answers[key] for key in placed)
        if other_parts := [part for part in parts if not part.function_response]:
            self._contents[newest_index] = _user_content([*(self._contents[newest_index].parts or []), *other_parts])
        self._hidden = (newest_index + 1, len(self._contents))

    def _place_response(self, part: types.Part) -> str | None:
        """Move a response behind its call. Returns the call's id; None if there is no such call."""
        if not (response := part.function_response):
            return None
        key = response.id or _id_for_nameless(response)
        if (call_index := self._open.pop(key, None)) is not None:
            self._insert_after_call(call_index, key, part)
        elif (index := self._answers.get(key)) is not None:
            parts = self._contents[index].parts or []
            self._contents[index] = _user_content(
                [part if _is_response_to(other_part, key) else other_part for other_part in parts]
            )
        else:
            return None
        return key

    def _insert_after_call(self, call_index: int, key: str, part: types.Part) -> None:
        index = call_index + 1
        next_parts = self._contents[index].parts or [] if index < len(self._contents) else []
        if any(next_part.function_response for next_part in next_parts):
            position = _position_among(next_parts, key, self._contents[call_index])
            self._contents[index] = _user_content([*next_parts[:position], part, *next_parts[position:]])
        else:
            self._insert(index, _user_content([part]))
        self._answers[key] = index

    def _insert(self, index: int, content: types.Content) -> None:
        self._contents.insert(index, content)
        for indexes in (self._answers, self._open):
            for key, other_index in indexes.items():
                if other_index >= index:
                    indexes[key] = other_index + 1


def _position_among(parts: list[types.Part], key: str, content: types.Content) -> int:
    """Position of the response to `key`: in the order of the calls, as services without call ids need it."""
    calls = [call.id or _id_for_nameless(call) for part in content.parts or () if (call := part.function_call)]
    later_keys = calls[calls.index(key) + 1 :]
    return next(
        (
            index
            for index, part in enumerate(parts)
            if any(_is_response_to(part, later_key) for later_key in later_keys)
        ),
        len(parts),
    )


def is_meaningful(part: types.Part) -> bool:
    """True if `part` is worth sending: not an unsigned thought, nor an empty part."""
    if part.function_call or part.function_response or part.thought_signature or part.tool_call or part.tool_response:
        return True
    has_data = part.inline_data or part.file_data or part.executable_code or part.code_execution_result
    return bool((part.text or has_data) and not part.thought)


def _user_content(parts: list[types.Part]) -> types.Content:
    return types.Content(role="user", parts=parts)


def _id_for_nameless(item: types.FunctionCall | types.FunctionResponse) -> str:
    """The key of a call without an id, and of its response."""
    return f"{_NAMELESS}{item.name}"


def _has_duplicates(keys: list[str]) -> bool:
    identified = [key for key in keys if not key.startswith(_NAMELESS)]
    return len(set(identified)) < len(identified)


def _is_response_to(part: types.Part, key: str) -> bool:
    response = part.function_response
    return response is not None and (response.id or _id_for_nameless(response)) == key


def _without_call(content: types.Content, key: str) -> types.Content:
    """`content` without a call that has no response: services reject it."""
    parts = [part for part in content.parts or [] if not (part.function_call and part.function_call.id == key)]
    return types.Content(role=content.role, parts=parts if any(map(is_meaningful, parts)) else [])
