"""The answer among the events of a turn, and the outcome of the turn."""

from collections.abc import Iterable, Iterator, Sequence

from adk_nb.events.event import Event
from adk_nb.notebook.view.event_words import who_said
from adk_nb.notebook.view.plain_text import json_text
from adk_nb.notebook.view.reply_view import Status
from adk_nb.runtime.branches import calls_to
from adk_nb.tools.finish_task_tool import NAME as FINISH_TASK


def outcome(events: Sequence[Event], status: Status, error: str | None) -> tuple[Status, str | None]:
    """Return status and error of a turn; a run that ended without an exception may end with an event of an error."""
    last = events[-1] if events else None
    if status == "done" and last and last.error_code and last.author != "user":
        return "error", f"{last.error_code}: {last.error_message or ''}".rstrip(": ")
    return status, error


def answer_in(events: Sequence[Event]) -> tuple[str, str]:
    """The words of the last answer in `events`, with what its agent's callback added, and who gave it; both empty if
    there is none, as where the run waits for something.
    """
    answers: list[Event] = []
    goes_on = False
    asking: dict[str, Event] = {}
    """Scope -> the last words of an agent that was called, and has not given the call its result: those are for the
    user, as an agent's that talks its task over."""
    for event in _without_asides(events):
        for response in event.get_function_responses():
            asking.pop(response.id or "", None)
        if calls_to(event.branch, event.node_info.path):
            if event.is_answer() and not event.error_code:
                asking[event.isolation_scope or ""] = event
            continue  # what was done for a call is no answer to the user
        if _is_outcome(event):
            answers, goes_on = [event], False
        elif event.author != "user" and event.is_answer():
            beside = goes_on and answers[-1].author == event.author and not _is_of_a_model(event)
            answers = [*answers, event] if beside else [event]
            goes_on = True
        elif event.content:
            goes_on = False
    answer = _not_before_a_pause(answers, events) or list(asking.values())
    return "\n\n".join(text_of(event) for event in answer), who_said(answer[-1]) if answer else ""


def streamed_text(streaming: Iterable[Sequence[Event]]) -> tuple[str, str] | None:
    """The text of answers that were stopped while they streamed, and the author of the last; None if none had begun.

    Args:
        streaming: The partial events of each answer.
    """
    texts = [
        (text, who_said(pieces[-1]))
        for pieces in streaming
        if (text := "".join(piece.text for piece in pieces if not calls_to(piece.branch, piece.node_info.path)))
    ]
    return ("\n\n".join(text for text, _ in texts), texts[-1][1]) if texts else None


def _not_before_a_pause(answers: list[Event], events: Iterable[Event]) -> list[Event]:
    """Where the run waits, what others said meanwhile is no answer; what was said with the question stands above it."""
    waits: dict[str, Event] = {}
    for event in events:
        for response in event.get_function_responses():
            waits.pop(response.id or "", None)
        waits |= dict.fromkeys(event.long_running_tool_ids or (), event)
    if not waits:
        return answers
    requests = waits.values()
    return [answer for answer in answers if answer.text and any(_is_of_one_step(answer, event) for event in requests)]


def _is_of_one_step(first: Event, second: Event) -> bool:
    return (first.author, first.node_info.path) == (second.author, second.node_info.path)


def _without_asides(events: Iterable[Event]) -> Iterator[Event]:
    """All but what is said in a graph after its output."""
    answered = ""
    for event in events:
        graph = event.node_info.path.partition("/")[0]
        if _is_output_of(graph, event):
            answered = graph
        elif graph and graph == answered:
            continue
        yield event


def _is_output_of(graph: str, event: Event) -> bool:
    return graph != "" and graph in (event.node_info.output_for or ())


def _is_of_a_model(event: Event) -> bool:
    """True for what a model has answered, and not a callback: an answer of its own, as in each pass of a loop."""
    return bool(event.finish_reason or event.turn_complete or event.model_version)


def _is_outcome(event: Event) -> bool:
    """True for what came of it without words: given by a node of the run's own graph, by that graph itself after an
    answer, by a node further within whose output it is, or handed back by an agent that talked a task over with the
    user alone.
    """
    path = event.node_info.path
    if event.output is None or event.text:
        return False
    if path.count("/") > 1:
        return _is_output_of(path.partition("/")[0], event)
    return path != "" or _hands_back(event)


def _hands_back(event: Event) -> bool:
    return any(response.name == FINISH_TASK for response in event.get_function_responses())


def text_of(event: Event) -> str:
    """The text of an answer; of one without, its output."""
    if event.text:
        return event.text
    value = event.output
    if _hands_back(event) and value.keys() == {"result"}:  # the one argument of a task that has no output schema
        value = value["result"]
    return value if isinstance(value, str) else json_text(value)
