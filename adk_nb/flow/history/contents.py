"""The session's events become the history that one agent may see: an ordered, well-paired list of contents."""

from collections.abc import Collection, Iterator
from itertools import chain, islice

from adk_nb import types
from adk_nb.events.event import Event
from adk_nb.events.requests import INPUT_REQUEST, REQUESTS
from adk_nb.flow.history.compacted import Standing, standing
from adk_nb.flow.history.narration import narrated
from adk_nb.flow.history.pairing import Pairing, says_something
from adk_nb.flow.live.recording import is_recording
from adk_nb.runtime.branches import calls_to
from adk_nb.runtime.rewind import newest_first
from adk_nb.sessions.session import Session
from adk_nb.slices import run_in_slices
from adk_nb.tools.content_blocks import for_model

_FRAMEWORK = "adk_framework"
_REQUESTS = frozenset({*REQUESTS, _FRAMEWORK})
"""Names of calls that ask a person, and of the responses that answer: no model's business."""
_OF_A_GRAPH = "interruptId"
"""An argument of what a graph asks, which is not a model's business either. Source: google-adk 2.13."""
_TRANSFER = "transfer_to_agent"
_Told = dict[tuple[int, bool], tuple[Event, types.Content | None]]
"""Which event, with its thoughts or without -> the event, which so keeps its number, and what others are told of it."""
_FEW = 16
"""Events that are taken in without a look at the clock: most requests come after one or two new ones."""
_NO_CALL = "@"
"""A step of a branch that no agent has."""
_MOST_VIEWS = 256
"""Kept for one session: an agent that is run as a tool has another branch, and so another view, at each call."""


def contents_for(
    session: Session,
    agent: str,
    branch: str | None,
    scope: str | None = None,
    *,
    this_turn: bool = False,
    thoughts: bool = False,
) -> list[types.Content]:
    """What `agent` sees of the session, oldest first.

    The list is the caller's own; the contents in it are the session's. Only events that came since the last call
    are looked at.

    Args:
        session: The conversation.
        agent: Whose history it is; what others did is told to it in quotes.
        branch: Where it works; it sees what leads there.
        scope: It sees what has the same isolation scope.
        this_turn: Leave out what came before the newest message, the user's or another agent's.
        thoughts: Tell what other agents thought, too.
    """
    view = _view(session, agent, branch, scope, this_turn=this_turn, thoughts=thoughts)
    for _ in view.look(session):
        pass
    return view.said.contents()


async def read_contents(
    session: Session,
    agent: str,
    branch: str | None,
    scope: str | None = None,
    *,
    this_turn: bool = False,
    thoughts: bool = False,
) -> list[types.Content]:
    """As `contents_for`; the event loop goes on meanwhile, so that a long history holds nobody up."""
    view = _view(session, agent, branch, scope, this_turn=this_turn, thoughts=thoughts)
    steps = view.look(session)
    if len(list(islice(steps, _FEW))) == _FEW:
        await run_in_slices(steps)
    return view.said.contents()


def _view(
    session: Session, agent: str, branch: str | None, scope: str | None, *, this_turn: bool, thoughts: bool
) -> "_View":
    views: dict[object, _View] = session.views.setdefault("contents", {})
    key = (agent, branch, scope, this_turn, thoughts)
    view = views.get(key)
    if view is None or view.seen > len(session.events):
        if len(views) >= _MOST_VIEWS:
            del views[next(iter(views))]
        view = views[key] = _View(agent, branch, scope, this_turn, thoughts, session.views.setdefault("told", {}))
    return view


def contents_before(
    session: Session, count: int, agent: str, branch: str | None, scope: str | None, *, thoughts: bool = False
) -> list[types.Content]:
    """As `contents_for`, of the first `count` events alone."""
    branch = _as_of_any_call(session, count, branch)
    views: dict[object, Session] = session.views.setdefault("before", {})
    key = (agent, branch, scope, thoughts)
    before = views.get(key)
    if before is None or len(before.events) > count:
        if len(views) >= _MOST_VIEWS:
            del views[next(iter(views))]
        before = views[key] = Session.model_construct(id=session.id, events=[])
    before.events.extend(session.events[len(before.events) : count])
    return contents_for(before, agent, branch, scope, thoughts=thoughts)


def _as_of_any_call(session: Session, count: int, branch: str | None) -> str | None:
    """`branch`, or, if it begins with a call in the last of `count` events, the branch of no call beside it.

    All that comes before them is the same for both, so that one view serves all calls that are made one by one.
    """
    outer, _, step = (branch or "").rpartition(".")
    made = session.events[count - 1].get_function_calls() if 0 < count <= len(session.events) else ()
    keys = [key for _, key in calls_to(step)]
    return f"{outer}.{_NO_CALL}" if any(call.id in keys for call in made) else branch


class _View:
    """One agent's history, kept up to date as events are appended."""

    def __init__(
        self, agent: str, branch: str | None, scope: str | None, this_turn: bool, thoughts: bool, told: _Told
    ) -> None:
        self._agent = agent
        self._branch = branch
        self._scope = scope
        self._this_turn = this_turn
        self._thoughts = thoughts
        self._told = told
        self.seen = 0
        self._events: list[Event] = []
        self._next = self._end = 0
        """Which of `_events` are still to be taken in."""
        self._standing: Standing | None = None
        """What summaries cover, if there are any."""
        self._begin()

    def _begin(self) -> None:
        self.said = Pairing()
        self._elsewhere: set[str] = set()
        """Ids of calls that other agents made."""
        self._speaking: tuple[str, str] | None = None
        """Author and role of the newest content, if it was heard: what is heard next may go on with it."""
        self._spoken = ""
        """What that speaker was heard to say so far."""

    def look(self, session: Session) -> Iterator[None]:
        """Take in the events that came since the last look, one a step; all that count, if some do not any more.

        Several may look at once: what one of them takes in, the others do not.
        """
        while self._next < self._end or self.seen < len(session.events):
            if self._next == self._end:
                self._events, self._next = session.events, self.seen or self._first(session.events)
                self._end = self.seen = len(session.events)
            event = self._events[self._next]
            is_stored = self._events is session.events
            if is_stored and (event.actions.compaction or event.actions.rewind_before_invocation_id):
                self._begin()
                self._standing = standing(session)
                self._events, self._next = list(self._standing.events), 0
                self._end, self.seen = len(self._events), len(session.events)
                continue
            self._next += 1
            if self._scope and any(call.id == self._scope for call in event.get_function_calls()):
                self._begin()  # some services number calls anew: what was done for the last of that number is over
            if self._this_turn:
                self._turn(self._events, self._next - 1)
            self._take(event)
            yield

    def _first(self, events: list[Event]) -> int:
        """Where a new view begins: at the call that its scope is of, since all before that is left out."""
        for at in range(len(events) - 1, -1, -1) if self._scope else ():
            if any(call.id == self._scope for call in events[at].get_function_calls()):
                return at
        return 0

    def _take(self, event: Event) -> None:
        content = self._visible(event)
        if content is None:
            return
        if event.content is None and not event.actions.compaction:
            self._hear(event, content)
        else:
            self._speaking = None
            self._add(event, content)

    def _visible(self, event: Event) -> types.Content | None:
        """What the agent is to see of an event. None: nothing."""
        if event.partial or event.isolation_scope != self._scope or (event.branch and self._hides(event.branch)):
            return self._outcomes(event) if self._scope and event.author == "user" else None
        content = event.content
        if content is None:
            return event.actions.compaction.compacted_content if event.actions.compaction else _heard(event)
        content = for_model(content)
        parts = content.parts or []
        if vars(event.actions).get("artifact_delta") and is_recording(parts):
            return None
        if event.author == "user" or event.long_running_tool_ids:
            parts = _without_requests(event, parts)
        author = event.author
        if author != self._agent and author != "user":
            return self._told_of(event, parts) if author != _FRAMEWORK else None
        for part in parts:
            if (part.text and not part.thought) or says_something(part):
                return content if parts is content.parts else types.Content(role=content.role, parts=parts)
        return None

    def _told_of(self, event: Event, parts: list[types.Part]) -> types.Content | None:
        """What others are told of an event: the same for all, so it is put into words once."""
        key = (id(event), self._thoughts)
        if key not in self._told:
            self._told[key] = (event, narrated(event.author, parts, thoughts=self._thoughts))
        return self._told[key][1]

    def _outcomes(self, event: Event) -> types.Content | None:
        """What a user, who is in no scope, answers to calls that were made in this one."""
        parts = [one for one in event.parts if (said := one.function_response) and self.said.knows(said.id or "")]
        return types.Content(role="user", parts=parts) if parts else None

    def _hides(self, branch: str) -> bool:
        """True for a sister's branch, and for a tool's, of which only the result is to be seen."""
        mine = self._branch
        if mine:
            return mine != branch and not mine.startswith(f"{branch}.")
        return any(name != self._agent and self._is_call(key) for name, key in calls_to(branch))

    def _is_call(self, key: str) -> bool:
        return key in self._elsewhere or self.said.knows(key)

    def _add(self, event: Event, content: types.Content) -> None:
        if event.author != self._agent and event.author != "user":
            self._elsewhere.update(call.id or "" for call in event.get_function_calls())
            self.said.say(content)
            return
        for part in content.parts or ():
            if part.function_response:
                if self._standing:
                    self._recall(self._standing, event)
                self.said.answer(self._own_answers(event.author, content) if self._elsewhere else content)
                return
        if self._elsewhere:
            self._elsewhere.difference_update(call.id or "" for call in event.get_function_calls())
        self.said.say(content, event.long_running_tool_ids)

    def _recall(self, standing: Standing, event: Event) -> None:
        """Say the calls again that `event` answers and a summary covers, with what their fellows were answered."""
        for response in event.get_function_responses():
            key = response.id or ""
            calls = None if self.said.knows(key) else standing.call(key)
            if calls and calls.content and calls.author == self._agent:
                self.said.say(calls.content, calls.long_running_tool_ids)
                if beside := standing.responses_beside(key, calls):
                    self.said.answer(for_model(types.Content(role="user", parts=beside)))

    def _own_answers(self, author: str, content: types.Content) -> types.Content:
        """What of `content` answers the agent's own calls; answers to others' calls are told."""
        parts = content.parts or []
        others = [one for one in parts if one.function_response and one.function_response.id in self._elsewhere]
        if others and (told := narrated(author, others)):
            self.said.say(told)
            content = types.Content(role=content.role, parts=[one for one in parts if one not in others])
        return content

    def _hear(self, event: Event, content: types.Content) -> None:
        """What is heard comes in pieces: those of one speaker are one content."""
        goes_on = self._goes_on(event)
        self._spoken = (self._spoken if goes_on else "") + "".join(part.text or "" for part in content.parts or ())
        self._speaking = (event.author, content.role or "")
        whole = [types.Part(text=self._spoken)]
        told = None if event.author in ("user", self._agent) else narrated(event.author, whole)
        told = told or types.Content(role=content.role, parts=whole)
        if goes_on:
            self.said.say_instead(told)
        else:
            self.said.say(told)

    def _turn(self, events: list[Event], at: int) -> None:
        """Begin anew where `events[at]` begins a turn; go back for the call that it answers, if that is gone."""
        event = events[at]
        if self._begins_turn(event):
            self._begin()
        elif event.author in ("user", self._agent):
            keys = {one.id for one in event.get_function_responses() if one.id and not self.said.knows(one.id)}
            if keys:
                self._reach_back(newest_first(events, at), keys)

    def _begins_turn(self, event: Event) -> bool:
        """True for a message of the user or of another agent, but not for a tool's result or a transfer.

        Source: google-adk 2.13, `include_contents='none'`.
        """
        if event.author == self._agent or event.actions.compaction or self._goes_on(event):
            return False
        if self._visible(event) is None:
            return False
        if event.author == "user":
            return not event.get_function_responses()
        calls = event.get_function_calls()
        return not event.actions.transfer_to_agent and all(call.name != _TRANSFER for call in calls)

    def _reach_back(self, earlier: Iterator[Event], keys: set[str]) -> None:
        """Begin anew with the turn in which the oldest of some calls was made. `earlier`: events, newest first."""
        read: list[Event] = []
        calls_end = 0
        for event in earlier:
            read.append(event)
            if made := keys.intersection(call.id or "" for call in event.get_function_calls()):
                keys, calls_end = keys - made, len(read)
            if not keys:
                break
        if not calls_end:
            return
        self._begin()
        turn = read[:calls_end]
        before = chain(read[calls_end:], earlier)
        while not self._begins_turn(turn[-1]) and (event := next(before, None)):
            turn.append(event)
        for event in reversed(turn):
            self._take(event)

    def _goes_on(self, event: Event) -> bool:
        """True if `event` is the next piece of what was heard last."""
        content = _heard(event) if self._speaking and event.content is None else None
        return content is not None and self._speaking == (event.author, content.role)


def _heard(event: Event) -> types.Content | None:
    """What someone was heard to say, as if it had been written."""
    said, role = event.input_transcription, "user"
    if not said:
        said, role = event.output_transcription, "model"
    return types.Content(role=role, parts=[types.Part(text=said.text)]) if said and said.text else None


def _without_requests(event: Event, parts: list[types.Part]) -> list[types.Part]:
    """`parts` without what asks a person, and without the answers; `parts` itself if there is none.

    Only the runtime's own: a model may write such a call too, and is told that it cannot.
    """
    ours = event.long_running_tool_ids or ()
    for part in parts:
        if _is_request(part, ours):
            return [one for one in parts if not _is_request(one, ours)]
    return parts


def _is_request(part: types.Part, ours: Collection[str]) -> bool:
    if call := part.function_call:
        of_a_graph = call.name == INPUT_REQUEST and _OF_A_GRAPH in (call.args or {})
        return call.id in ours and (of_a_graph or call.name in _REQUESTS)
    return bool(part.function_response and part.function_response.name in _REQUESTS)
