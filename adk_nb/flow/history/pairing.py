"""Contents in the order they were said, and every answer right behind its call, however late it came."""

from collections.abc import Iterable

from adk_nb import types

_NAMELESS = "\0"


class Pairing:
    """A history that every model's service accepts, kept up to date as it grows.

    An answer that does not follow its call is put where it belongs, or takes the place of an earlier answer to the
    same call. While it is the newest of all, what was said between the two is not shown.
    """

    def __init__(self) -> None:
        self._contents: list[types.Content] = []
        self._answers: dict[str, int] = {}
        """Call id -> index in `_contents` of the content with its response."""
        self._open: dict[str, int] = {}
        """Call id -> index of the content with the call that has no response yet."""
        self._may_stay: set[str] = set()
        """Ids of calls that may stay open: answered from outside, or without an id of their own."""
        self._emptied = False
        """True: there may be contents without parts in `_contents`; they are not shown."""
        self._late: tuple[int, int] | None = None
        """When the newest content answers an old call: the slice between the two, hidden until something is said."""

    def contents(self) -> list[types.Content]:
        """Oldest first, in a list of the caller's own, without calls that nothing answers."""
        shown = list(self._contents)
        dangling = self._open.keys() - self._may_stay if self._open else ()
        for key in dangling:
            shown[self._open[key]] = _without_call(shown[self._open[key]], key)
        if self._late:
            del shown[self._late[0] : self._late[1]]
        return [content for content in shown if content.parts] if dangling or self._emptied else shown

    def knows(self, key: str) -> bool:
        """True if a call of that id is here."""
        return key in self._open or key in self._answers

    def say(self, content: types.Content, long_running: Iterable[str] | None = None) -> None:
        """Add words and calls; those in `long_running`, by their ids, may stay without an answer."""
        self._late = None
        here = len(self._contents)
        for part in content.parts or ():
            if call := part.function_call:
                key = call.id or _nameless(call)
                before = self._open.get(key, here)
                if before != here and call.id:  # used again: nothing answers the old call
                    self._contents[before] = _without_call(self._contents[before], key)
                    self._emptied = True
                self._open[key] = here
                if not call.id:
                    self._may_stay.add(key)
        if long_running:
            self._may_stay.update(long_running)
        self._contents.append(content)

    def say_instead(self, content: types.Content) -> None:
        """Put `content` in the place of the newest one, which has no calls."""
        self._contents[-1] = content

    def answer(self, content: types.Content) -> None:
        """Add the answers in `content`, if any. Those to calls that are not here are dropped."""
        last = len(self._contents) - 1
        parts = content.parts or []
        keys = [one.id or _nameless(one) for part in parts if (one := part.function_response)]
        for key in keys:
            if self._open.get(key) != last or (len(keys) > 1 and _twice(keys)):
                self._answer_late(parts)
                return
        if not keys:
            return
        for key in keys:
            self._answers[key] = last + 1
            self._open.pop(key, None)
        self._contents.append(content)

    def _answer_late(self, parts: list[types.Part]) -> None:
        placed = [key for part in parts if (key := self._place(part))]
        if not placed:
            return
        newest = max(self._answers[key] for key in placed)
        if beside := [part for part in parts if not part.function_response]:
            self._contents[newest] = _of_user([*(self._contents[newest].parts or []), *beside])
        self._late = (newest + 1, len(self._contents))

    def _place(self, part: types.Part) -> str | None:
        """Put one answer where it belongs. Returns the id of its call; None if there is no such call, and no answer."""
        if not (response := part.function_response):
            return None
        key = response.id or _nameless(response)
        if (asked := self._open.pop(key, None)) is not None:
            self._put_behind(asked, key, part)
        elif (at := self._answers.get(key)) is not None:
            parts = self._contents[at].parts or []
            self._contents[at] = _of_user([part if _answers(one, key) else one for one in parts])
        else:
            return None
        return key

    def _put_behind(self, asked: int, key: str, part: types.Part) -> None:
        at = asked + 1
        following = self._contents[at].parts or [] if at < len(self._contents) else []
        if any(one.function_response for one in following):
            before = _place_among(following, key, self._contents[asked])
            self._contents[at] = _of_user([*following[:before], part, *following[before:]])
        else:
            self._insert(at, _of_user([part]))
        self._answers[key] = at

    def _insert(self, at: int, content: types.Content) -> None:
        self._contents.insert(at, content)
        for places in (self._answers, self._open):
            for key, place in places.items():
                if place >= at:
                    places[key] = place + 1


def _place_among(answers: list[types.Part], key: str, asked: types.Content) -> int:
    """Where the answer to `key` stands: in the order of the calls, since some services tell them apart by that."""
    calls = [call.id or _nameless(call) for part in asked.parts or () if (call := part.function_call)]
    later = calls[calls.index(key) + 1 :]
    return next((at for at, one in enumerate(answers) if any(_answers(one, other) for other in later)), len(answers))


def says_something(part: types.Part) -> bool:
    """True if a model has use for `part`: a thought alone is none, unless it is signed or comes with a call."""
    if part.function_call or part.function_response or part.thought_signature or part.tool_call or part.tool_response:
        return True
    carries = part.inline_data or part.file_data or part.executable_code or part.code_execution_result
    return bool((part.text or carries) and not part.thought)


def _of_user(parts: list[types.Part]) -> types.Content:
    return types.Content(role="user", parts=parts)


def _nameless(one: types.FunctionCall | types.FunctionResponse) -> str:
    """What stands for the id of a call without one, and of its answer."""
    return f"{_NAMELESS}{one.name}"


def _twice(keys: list[str]) -> bool:
    named = [key for key in keys if not key.startswith(_NAMELESS)]
    return len(set(named)) < len(named)


def _answers(part: types.Part, key: str) -> bool:
    response = part.function_response
    return response is not None and (response.id or _nameless(response)) == key


def _without_call(content: types.Content, key: str) -> types.Content:
    """`content` without a call that nothing answers: services refuse it."""
    parts = [one for one in content.parts or [] if not (one.function_call and one.function_call.id == key)]
    return types.Content(role=content.role, parts=parts if any(map(says_something, parts)) else [])
