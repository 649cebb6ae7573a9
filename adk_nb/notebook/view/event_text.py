"""Events as text: answers, actions, errors, results, and changes of the state."""

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, cast

from adk_nb import mcp_results, types
from adk_nb.events.event import Event
from adk_nb.events.event_actions import DELETED, ESCALATED
from adk_nb.events.requests import LOAD_SKILL
from adk_nb.flow.budget import MAX_COST
from adk_nb.flow.loop import MAX_ITERATIONS
from adk_nb.flow.model_call import NO_CONTENT
from adk_nb.models.llm_response import MODEL_NOTE, WRITTEN_AS_TEXT
from adk_nb.notebook.view.plain_text import (
    LONG,
    cleaned,
    json_text,
    one_line,
    shortened,
)
from adk_nb.notebook.view.view_state import Json
from adk_nb.redaction import redacted
from adk_nb.runtime.approvals import fate_of
from adk_nb.runtime.calls import SAME_CALL
from adk_nb.runtime.cancellation import INTERRUPTED, INVOCATION_ABORTED
from adk_nb.runtime.history import RESTORED, SENT_BY
from adk_nb.runtime.interrupts import input_of
from adk_nb.sessions.state import State
from adk_nb.tools.media import with_references

WAITS = "waiting for you"

_TICKS = re.compile("`{3,}")
_SENDER = 60
"""Characters of the name of a client."""
_ATTACHED = re.compile(r"\[attached: (.*)\]")
"""What `notebook.attachments` writes before a file."""
_TITLES = {
    MAX_COST: "the limit of cost is reached",
    MAX_ITERATIONS: "too many steps",
    NO_CONTENT: "no answer",
    "SAFETY": "the model refused for safety",
    "PROHIBITED_CONTENT": "the model refused this content",
    "BLOCKLIST": "the model refused a blocked word",
    "RECITATION": "the model stopped before repeating its sources",
    "MAX_TOKENS": "the answer was cut off at the limit of tokens",
    "MALFORMED_FUNCTION_CALL": "the model wrote a call that cannot be read",
}


def message_text(event: Event, *, thoughts: bool = False) -> str:
    """The event's text as markdown: text and code; other data is named in brackets.

    Args:
        event: Whole or partial.
        thoughts: The model's thoughts instead of its answer.
    """
    return "".join(_part(part) for part in event.parts if bool(part.thought) is thoughts)


def _part(part: types.Part) -> str:
    if part.text is not None:
        return f"\n{part.text}" if _ATTACHED.fullmatch(part.text) else part.text
    if media := _media(part):
        return f"\n{media}\n"
    if part.executable_code:
        return _fenced(part.executable_code.code or "")
    if result := part.code_execution_result:
        failed = result.outcome in (types.Outcome.OUTCOME_FAILED, types.Outcome.OUTCOME_DEADLINE_EXCEEDED)
        return ("\nThe code failed:\n" if failed else "") + _fenced(result.output or "")
    return ""


def _media(part: types.Part | types.FunctionResponsePart) -> str:
    """Media type and size of a part, in brackets; empty for other parts."""
    if part.inline_data:
        return f"[{part.inline_data.mime_type or 'data'}, {len(part.inline_data.data or b''):,} bytes]"
    return f"[file {part.file_data.file_uri}]" if part.file_data else ""


def question_text(question: str | None, events: Sequence[Event]) -> str:
    """The question of a turn with the names of its attachments."""
    if not question or not events:
        return question or ""
    names = ", ".join(_attachments(events[0]))
    return f"{question}\n[attached: {names}]" if names else question


def _attachments(event: Event) -> list[str]:
    """The names of files in a message; for a file without a name its media type and size."""
    names: list[str] = []
    for label, part in pairwise([types.Part(text=""), *event.parts]):
        if media := _media(part):
            label_match = _ATTACHED.fullmatch(label.text or "")
            names.append(label_match[1] if label_match else media.strip("[]"))
    return names


def _fenced(code: str) -> str:
    """A code block whose fence is longer than any in `code`."""
    code = code.strip("\n")
    fence = "`" * max([3, *(len(run) + 1 for run in _TICKS.findall(code))])
    return f"\n{fence}\n{code}\n{fence}\n"


def author_of(event: Event) -> str:
    """The event's author: of a message, its sender; for a graph's function, its node.

    Events of such a function have the graph as author. What a client wrote in the name of an agent says so.
    """
    if event.author == "user":
        return sender_of(event) or "user"
    metadata = event.custom_metadata or {}
    if metadata.get(RESTORED) is True:
        return f"{event.author} (by {one_line(metadata.get(SENT_BY) or 'client', _SENDER)})"
    graphs = [step.partition("@")[0] for step in event.node_info.path.split("/")[:-1]]
    return event.node_info.name if event.author in graphs else event.author


def sender_of(event: Event) -> str:
    """The client that sent a message; empty for what the user typed."""
    sender = (event.custom_metadata or {}).get(SENT_BY)
    return one_line(sender, _SENDER) if isinstance(sender, str) and event.author == "user" else ""


def failure_text(event: Event) -> str:
    """The event's error as one sentence; empty if it has none."""
    if not event.error_code:
        return ""
    code = one_line(event.error_code, 100)
    if code == INVOCATION_ABORTED:  # a note, not a failure: the user stopped the run
        return cleaned(event.error_message or "the run was stopped")
    title = _TITLES.get(code, code)
    return (f"{title}: {cleaned(event.error_message)}" if event.error_message else title) + failure_place(event)


def error_text(error: str) -> str:
    """The error of a reply; a known code at its beginning is replaced by text."""
    code, colon, reason = error.partition(":")
    return f"{_TITLES.get(code, code)}{colon}{reason}"


def failure_place(event: Event, call: str | None = None) -> str:
    """Cell and line of the event's error, or of the error of one call, in brackets; empty if unknown."""
    places: Any = (event.custom_metadata or {}).get("failed_at")
    place: Any = cast(Any, places).get(call) if isinstance(places, dict) else places
    return f" ({one_line(place, 100)})" if isinstance(place, str) else ""


def repetition_note(event: Event, call: str | None = None) -> str:
    """A note on a call or node that ran again after an interrupted run, or was repeated in its turn; else empty."""
    attempts: Any = (event.custom_metadata or {}).get("repeated")
    attempt: Any = cast(Any, attempts).get(call) if isinstance(attempts, dict) else attempts
    if isinstance(attempt, int):
        return f" (attempt {attempt}; an earlier one may have taken effect)"
    same_calls: Any = (event.custom_metadata or {}).get(SAME_CALL)
    record: Any = cast(Any, same_calls).get(call) if isinstance(same_calls, dict) else None
    if not isinstance(record, dict):
        return ""
    count: Any = cast(dict[str, Any], record).get("count")
    if isinstance(count, int):
        return f" (the same call and result, {count} times in this turn)"
    is_refused = cast(dict[str, Any], record).get("refused") is True
    return " (not made again: the same call was made before)" if is_refused else " (again, in the same turn)"


def call_note(event: Event) -> str:
    """A note on the calls of a model that wrote them as text; empty for any other."""
    return " (call written as text)" if (event.custom_metadata or {}).get(WRITTEN_AS_TEXT) is True else ""


def model_notes(events: Iterable[Event]) -> list[str]:
    """The remarks about the models that answered."""
    notes = [(event.custom_metadata or {}).get(MODEL_NOTE) for event in events]
    return [note for note in notes if isinstance(note, str)]


def action_texts(event: Event, *, with_transfer: bool = True) -> list[str]:
    """The event's actions, a line each: transfers, saved files, compactions, rewinds, changed definitions, the end."""
    actions = event.actions
    done: list[str] = []
    metadata = event.custom_metadata or {}
    if changed := metadata.get("definition_changed"):
        done.append(one_line(str(changed)))
    if why := metadata.get(INTERRUPTED):
        at = time.strftime("%H:%M:%S", time.localtime(event.timestamp))
        done.append(f"interrupted {one_line(str(why), 100)} at {at}")
    if actions.transfer_to_agent and with_transfer:
        done.append(transfer_text(actions.transfer_to_agent))
    done += [f"saved {one_line(name, 100)}, version {version}" for name, version in actions.artifact_delta.items()]
    tools = ", ".join(dict.fromkeys(one_line(str(response.name), 100) for response in event.get_function_responses()))
    for widget in actions.render_ui_widgets or ():
        source = one_line(str(widget.payload.get("resource_uri") or widget.id), 100)
        by = f", from {tools}()" if tools else ""
        done.append(f"shows the {one_line(widget.provider, 40)} widget {source}{by}, which this view does not draw")
    if actions.compaction:
        summary = " ".join(part.text or "" for part in actions.compaction.compacted_content.parts or ())
        done.append(f"summary of the earlier conversation: {one_line(summary)}")
    if actions.rewind_before_invocation_id:
        done.append("undoes a turn and everything after it")
    if actions.escalate:
        is_end = bool(event.custom_metadata and event.custom_metadata.get(ESCALATED))
        done.append("ends the agent and the sequence around it" if is_end else "leaves the loop")
    return done


def transfer_text(agent: str) -> str:
    """The marker of a transfer."""
    return f"→ transfer to {one_line(agent, 100)}"


def loaded_skill(response: types.FunctionResponse) -> str:
    """The marker of a skill that was loaded; empty for any other result."""
    result = response.response or {}
    is_skill = (
        str(response.name).endswith(LOAD_SKILL) and {"skill_name", "instructions", "frontmatter"} <= result.keys()
    )
    return f"skill {one_line(str(result['skill_name']), 100)} loaded" if is_skill else ""


def failed_attempts(event: Event) -> list[str]:
    """The failed attempts before an answer, a line for each model.

    If all models failed, the event's error has the number of attempts of the last one.
    """
    lines: list[str] = []
    for model, group in groupby(event.attempts or (), key=lambda attempt: attempt.model):
        attempts = list(group)
        last = attempts[-1]
        if event.error_code and not last.next_model:
            continue
        often = f", tried {len(attempts)} times" if len(attempts) > 1 else ""
        then = f"{one_line(last.next_model, 100)} instead" if last.next_model else "again"
        lines.append(f"{one_line(model, 100)} gave no answer ({one_line(last.error, 100)}{often}); asked {then}")
    return lines


def result_text(tool_response: types.FunctionResponse) -> tuple[str, bool | None]:
    """A tool's response on one line, its media in brackets, and True if the tool succeeded; None: it was rejected."""
    response = with_references(tool_response).response or {}
    error = response.get("error")
    if isinstance(error, str) and fate_of(tool_response) == "rejected":
        return one_line(error), None
    if error:
        return (one_line(error) if isinstance(error, str) else shortened(json_text(error))), False
    media = one_line(" ".join(_media(part) for part in tool_response.parts or ()))
    if media and "media" in response:  # the result consists of media only
        return media, True
    if {"media", "repr"} <= response.keys():  # shown to the user; the model got only its repr
        return one_line(f"[{response['media']}] {response['repr']}"), True
    value: Any = response["result"] if response.keys() == {"result"} else mcp_results.value_of(response)
    text = shortened(json_text(value))
    return f"{media} {text}".strip(), True


def is_question(event: Event, call: types.FunctionCall) -> bool:
    """True if a call asks the user a question."""
    return call.id in (event.long_running_tool_ids or ()) and input_of(call, event).is_question


def pending_outcome(event: Event, call: types.FunctionCall) -> str:
    """The text of a call whose outcome comes from outside; empty for any other."""
    return "waiting for its outcome" if call.id in (event.long_running_tool_ids or ()) else ""


class StateTexts:
    """Every key with its value as text, kept up to date delta by delta."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._texts = {key: _text(key, value) for key, value in state.items()}
        self._masked = {key for key, value in state.items() if _is_masked(key, value)}

    def change(self, delta: Mapping[str, Any]) -> list[Json]:
        """Take `delta` in.

        Returns:
            `{"key", "kind", "old", "new"}` for each changed key; kind `+` added, `~` changed, `-` removed; values as
            shortened text, None for no value.
        """
        changes: list[Json] = []
        for key, value in delta.items():
            old = self._texts.get(key)
            new = None if value == DELETED else _text(key, value)
            if new == old:
                continue
            self._masked.discard(key)
            if new is None:
                del self._texts[key]
            else:
                self._texts[key] = new
                self._masked |= {key} if _is_masked(key, value) else set()
            kind = "+" if old is None else "-" if new is None else "~"
            changes.append({"key": one_line(key, 100), "kind": kind, "old": _bounded(old), "new": _bounded(new)})
        return changes

    def entries(self) -> list[Json]:
        """`{"key", "value"}` for every key, in the order of insertion."""
        return [{"key": one_line(key, 100), "value": shortened(text)} for key, text in self._texts.items()]

    def editable_entries(self) -> list[Json]:
        """`{"key", "json"}` for every key that can be edited as text: its value is neither masked nor too long."""
        editable = {key: text for key, text in self._texts.items() if key not in self._masked and len(text) <= LONG}
        return [{"key": one_line(key, 100), "json": text} for key, text in editable.items()]

    def end_turn(self) -> None:
        """Forget the keys that last for one turn only."""
        for key in [key for key in self._texts if key.startswith(State.TEMP_PREFIX)]:
            del self._texts[key]


def change_text(change: Json) -> str:
    """A change in words: `city = "Oslo"`, `calls: 1 → 2`, `draft removed`."""
    key, old, new = change["key"], change["old"], change["new"]
    if change["kind"] == "-":
        return f"{key} removed"
    return f"{key} = {new}" if change["kind"] == "+" else f"{key}: {old} → {new}"


def _text(key: str, value: Any) -> str:
    return json_text(value, name=key.rpartition(":")[2])


def _is_masked(key: str, value: Any) -> bool:
    return redacted(value, key.rpartition(":")[2]) != value


def _bounded(text: str | None) -> str | None:
    return None if text is None else shortened(text)
