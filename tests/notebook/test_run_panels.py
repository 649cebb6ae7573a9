"""What the panels of a live view are told of a run, when they ask."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import comm
import pytest
from wire import Wire

from adk_nb import Chat, clock, sync, types
from adk_nb.agents import Agent
from adk_nb.errors import InputError
from adk_nb.events.event import Event
from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.chat.chat import turn_runner
from adk_nb.notebook.chat.conversation import typed_change
from adk_nb.notebook.chat.reply import view_of_reply
from adk_nb.notebook.view.display import LiveRun
from adk_nb.notebook.view.panels import RunPanels, listed
from adk_nb.notebook.view.run_view import Clicks, TurnInfo
from adk_nb.notebook.view.widget import VIEW_MIME, set_page, views_stay, with_view
from adk_nb.panels import Fold, Follower, Panel, PanelRun, Table, register, unregister
from tests.support.each import each
from tests.support.hostile_texts import PAYLOADS, assert_nothing_unseen


def weather(city: str, tool_context: Any) -> dict[str, int]:
    """The weather."""
    tool_context.state["asked"] = city
    return {"temp_c": 9}


def agent() -> Agent:
    model = ScriptedLlm(call("weather", city="Oslo"), "It is **9** degrees.")
    return Agent(name="clerk", model=model, tools=[weather], instruction="Answer {user:name}.")


class Seen:
    """A run that was shown live, and what a page that asks is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Agent) -> None:
        monkeypatch.setattr(comm, "create_comm", Wire)
        chat = Chat(root, show="off")
        chat.state["user:name"] = "Ada"
        self.reply = chat.ask("How warm?")
        self.wrote: list[Any] = []
        self.reruns: list[str] = []
        clicks = Clicks(
            stop=lambda: None,
            answered=lambda key, value, *, as_asked=False: None,
            write=lambda key, text: self.wrote.append((key, text)),
            rerun=self.reruns.append,
        )
        self.run = LiveRun(root, "How warm?", None, lambda request: None)
        self.run.trace = self.reply.trace
        sync.run(self._ran(clicks))
        self.wire: Any = self.run._view.comm  # pyright: ignore[reportPrivateUsage]

    async def _ran(self, clicks: Clicks) -> None:
        self.run.begin(None, clicks, TurnInfo())
        for event in self.reply.events:
            self.run.event(event)
        self.run.end(view_of_reply(self.reply))

    @property
    def snapshot(self) -> dict[str, Any]:
        return self.run._view.snapshot  # pyright: ignore[reportPrivateUsage]

    def told(self, what: str, id: str = "") -> Any:
        self.wire.says(kind="need", what=what, id=id)
        self.run._view.flush()  # pyright: ignore[reportPrivateUsage]
        ops = [op for batch in self.wire.batches for op in batch["ops"] if op["op"] == "panel"]
        return next((op["data"] for op in reversed(ops) if (op["name"], op["id"]) == (what, id)), None)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch, agent())


def test_a_row_opens_into_the_events_that_it_tells_of(seen: Seen):
    row = next(row for row in seen.snapshot["rows"] if row["kind"] == "call")

    asked_line, answered_line = seen.told("event", row["id"])

    assert asked_line["content"]["parts"][0]["functionCall"]["args"] == {"city": "Oslo"}
    assert answered_line["content"]["parts"][0]["functionResponse"]["response"] == {"temp_c": 9}
    assert answered_line["actions"]["stateDelta"] == {"asked": "Oslo"}


def test_each_of_several_calls_at_once_has_the_time_of_its_own_tool(monkeypatch: pytest.MonkeyPatch):
    now = [1000.0]
    monkeypatch.setattr(clock, "now", lambda: now[0])

    async def glance() -> str:
        """Glances."""
        return "grey"

    async def look() -> str:
        """Looks, and looks on when the other has ended."""
        await asyncio.sleep(0)
        now[0] += 2
        return "rain"

    model = ScriptedLlm([call("look"), call("glance")], "It rains.")
    rows = Seen(monkeypatch, Agent(name="clerk", model=model, tools=[look, glance])).snapshot["rows"]

    assert [(row["tool"], row["ms"]) for row in rows if row["kind"] == "call"] == [("look", 2000), ("glance", 0)]


def test_a_snapshot_has_no_details_and_no_panels(seen: Seen):
    seen.told("prompt", "0")

    assert {row["detail"] for row in seen.snapshot["rows"]} == {None}
    assert not {"panels", "prompt", "waterfall"} & seen.snapshot.keys()


def test_the_waterfall_has_a_bar_for_agent_model_and_tool(seen: Seen):
    bars = [(bar["kind"], bar["name"]) for bar in seen.told("waterfall")]

    assert bars == [("agent", "clerk"), ("model", "scripted"), ("tool", "weather"), ("model", "scripted")]


def test_a_prompt_is_told_one_at_a_time_with_what_was_put_in(seen: Seen):
    assert [(line["agent"], line["model"]) for line in seen.told("prompts")] == [("clerk", "scripted")] * 2

    prompt = seen.told("prompt", "1")

    assert {"text": "Ada", "source": "{user:name}"} in prompt["system"]
    assert [tool["name"] for tool in prompt["tools"]] == ["weather"]
    assert [text["kind"] for text in prompt["history"]] == ["text", "call", "result"]


@pytest.mark.parametrize(("kind", "id"), [("prompt", "9"), ("prompt", "-1"), ("event", "no"), ("secrets", "")])
def test_what_is_not_there_is_not_answered(seen: Seen, kind: str, id: str):
    assert seen.told(kind, id) is None


def test_the_log_is_every_event_on_a_line(seen: Seen):
    lines = [json.loads(line) for line in seen.told("log").split("\n")]

    assert [line["id"] for line in lines] == [event.id for event in seen.reply.events]


def test_a_run_that_is_over_shows_question_and_answer(seen: Seen):
    answer = seen.snapshot["answer"]

    assert (answer["question"], answer["who"]) == ("How warm?", "clerk")
    assert "<strong>9</strong>" in answer["html"]


def test_clicks_on_panels_are_handed_on(seen: Seen):
    seen.wire.says(kind="state", key="asked", text="[1]")
    seen.wire.says(kind="state", key="asked", text=None)
    seen.wire.says(kind="rerun", event="e1")
    for odd in ({"kind": "state", "key": 1, "text": "x"}, {"kind": "rerun"}, {"kind": "need", "what": None}):
        seen.wire.says(**odd)

    assert (seen.wrote, seen.reruns) == ([("asked", "[1]"), ("asked", None)], ["e1"])


def test_a_value_that_was_written_is_a_row_and_a_refused_one_is_told(seen: Seen):
    seen.run.state_written("asked", Event(author="user", actions={"state_delta": {"asked": "Rome"}}))
    seen.run.state_written("temp:x", None, "leave temp: out")

    assert {"key": "asked", "value": '"Rome"'}.items() <= seen.snapshot["state"][0].items()
    assert {"key": "asked", "json": '"Rome"'} in seen.told("state")
    refused = [op for batch in seen.wire.batches for op in batch["ops"] if op.get("name") == "refused"]
    assert [(op["id"], op["data"]) for op in refused] == [("asked", ""), ("temp:x", "leave temp: out")]


def test_a_long_history_and_long_words_are_told_in_part():
    panels = RunPanels(PanelRun())
    part = types.Part(text="x" * 50_000)
    event = Event(id="e", author="clerk", content=types.Content(role="model", parts=[part]))
    panels.run.feed(event, [{"op": "append", "row": {"id": "e/text"}}])

    events = panels.answer("event", "e/text")

    assert events and len(events["data"][0]["content"]["parts"][0]["text"]) == 2_000


@each("payload", PAYLOADS)
def test_events_are_told_without_keys_and_without_what_is_not_seen(payload: str):
    panels = RunPanels(PanelRun())
    call = types.FunctionCall(id="c", name="pay", args={"api_key": "hunter2hunter2", payload: payload})
    event = Event(id="e", author="clerk", content=types.Content(role="model", parts=[types.Part(function_call=call)]))
    panels.run.feed(event, [{"op": "append", "row": {"id": "e/call0"}}])

    events = panels.answer("event", "e/call0")

    assert events and "hunter2" not in repr(events) and "hunter2" not in repr(panels.answer("log", ""))
    [args] = [part["functionCall"]["args"] for part in events["data"][0]["content"]["parts"]]
    for text in (*args, *args.values()):
        assert_nothing_unseen(text)


def test_what_is_in_an_artifact_is_told_when_it_is_looked_at():
    panels = RunPanels(PanelRun())
    table = types.Part.from_bytes(data=b"a,b\n1,2\n", mime_type="text/csv")
    assert "'artifact'" not in repr(panels.offers())

    [pushed] = panels.follow(lambda follower: follower.saved("a.csv", 0, table))

    assert pushed["artifact"].keys() == {"id", "name", "version", "mime", "size"}
    events = panels.answer("artifact", pushed["artifact"]["id"])
    assert events and events["data"]["data"] and "<table" in events["data"]["html"]
    assert "'artifact'" in repr(panels.offers())


# -- a panel from outside the package

MODULE = "export default { render(root, data) { root.textContent = JSON.stringify(data); } };"


@dataclass
class Count:
    author: str
    words: int


def counted(run: PanelRun, id: str) -> Any:
    if id == "broken":
        raise ZeroDivisionError("no words")
    return [Count(event.author, len((event.text or "").split())) for event in run.events if event.text]


@pytest.fixture
def words() -> Iterator[Panel]:
    panel = Panel(name="words", title="Words", data=counted, exists=lambda run: "asked" in run.state, module=MODULE)
    register(panel)
    yield panel
    unregister("words")


@pytest.mark.usefixtures("words")
def test_a_panel_of_ones_own_has_a_tab_and_its_data(monkeypatch: pytest.MonkeyPatch):
    visible = Seen(monkeypatch, agent())

    tabs = visible.run._view.panels  # pyright: ignore[reportPrivateUsage]
    assert [panel["title"] for panel in tabs[:-1]] == ["Events", "Waterfall", "State", "Graph", "Prompt", "Artifacts"]
    assert tabs[-1] == {"name": "words", "title": "Words", "module": MODULE}
    assert "words" in visible.snapshot["offers"]
    assert visible.told("words") == [{"author": "user", "words": 2}, {"author": "clerk", "words": 4}]
    visible.told("words", "broken")
    [notice] = [op["text"] for batch in visible.wire.batches for op in batch["ops"] if op["op"] == "notice"]
    assert "Words" in notice and "ZeroDivisionError: no words" in notice


def test_a_panel_sees_the_status_of_its_run_and_the_state_after_its_events(
    words: Panel, monkeypatch: pytest.MonkeyPatch
):
    register(replace(words, data=lambda run, id: [run.status, run.state], exists=lambda run: run.status == "running"))

    visible = Seen(monkeypatch, agent())

    assert visible.told("words") == ["done", {"asked": "Oslo"}]
    visible.run.state_written("asked", Event(author="user", actions={"state_delta": {"asked": "Rome"}}))
    assert visible.told("words") == ["done", {"asked": "Rome"}]


def test_a_panel_has_its_tab_as_soon_as_it_exists(words: Panel):
    panels = RunPanels(PanelRun())
    assert "words" not in repr(panels.offers())

    panels.run.feed(Event(author="user", actions={"state_delta": {"asked": "Oslo"}}), [])

    assert "words" in repr(panels.offers()) and panels.offers() == []


@pytest.mark.parametrize(
    "fields", [{"name": "Words!"}, {"name": "events"}, {"name": "log"}, {"module": ""}, {"data": None}]
)
def test_a_panel_that_cannot_be_shown_is_refused(words: Panel, fields: dict[str, Any]):
    with pytest.raises(InputError):
        register(replace(words, **fields))


def test_a_panel_is_replaced_under_its_name(words: Panel):
    register(replace(words, title="Count"))

    assert [panel["title"] for panel in listed() if panel["name"] == "words"] == ["Count"]


def test_a_saved_reply_keeps_what_a_panel_makes_of_it(words: Panel):
    def saved(run: PanelRun) -> tuple[Fold]:
        return (Fold("words <b>", (Table(["who", "words"], [[run.events[0].author, str(len(run.events))]]),)),)

    register(replace(words, saved=saved, exists=lambda run: True))
    chat = Chat(agent(), show="off")
    chat.state["user:name"] = "Ada"
    reply = chat.ask("How warm?")

    html = reply._repr_mimebundle_()["text/html"]
    assert "<summary>words &lt;b&gt;<" in html
    assert f">{len(reply.events)}</td>" in html
    register(replace(words, saved=lambda run: 1 / 0))
    assert "words &lt;b&gt;" not in reply._repr_mimebundle_()["text/html"]


def test_a_follower_that_fails_does_not_stop_the_run(words: Panel, monkeypatch: pytest.MonkeyPatch):
    class Broken(Follower):
        def event(self, event: Event) -> list[dict[str, Any]]:
            raise ValueError("odd")

    register(replace(words, follow=lambda run: Broken()))

    assert Seen(monkeypatch, agent()).snapshot["status"]["status"] == "done"


# -- the page and the file


@pytest.fixture
def no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adk_nb.notebook.view.widget._page.keeps_out", None)


@pytest.mark.usefixtures("no_word")
@pytest.mark.parametrize(("session", "stays"), [("", False), ("a/trip.ipynb", True), ("a/trip-jvsc-1234.ipynb", False)])
def test_a_view_stays_where_a_page_keeps_it_out_of_the_file(monkeypatch: pytest.MonkeyPatch, session: str, stays: bool):
    monkeypatch.setenv("JPY_SESSION_NAME", session)

    assert views_stay() is stays
    set_page(keeps_out=not stays)
    assert views_stay() is not stays


def test_a_view_stands_beside_what_the_file_keeps():
    assert with_view({"text/plain": "x"}, "") == {"text/plain": "x"}
    data, metadata = with_view({"text/plain": "x"}, "m")
    assert data["text/plain"] == "x" and data[VIEW_MIME]["model_id"] == "m"
    assert metadata == {VIEW_MIME: {"adk_nb": "page"}}


# -- typed values, and asking again


@pytest.mark.parametrize(
    ("text", "value"), [("400", 400), ("[1, 2]", [1, 2]), ("Oslo", "Oslo"), ('"4"', "4"), ("NaN", "NaN"), ("", "")]
)
def test_a_typed_value_is_json_or_else_text(text: str, value: Any):
    assert typed_change("user:place", text) == {"user:place": value}


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("temp:x", "1", "leave temp: out"),
        ("a b", "1", "be a key"),
        ("", "1", "be a key"),
        ("places", '["Oslo"', "begins like JSON"),
        ("places", "[" * 100_000, "begins like JSON"),
    ],
)
def test_a_typed_value_that_cannot_be_is_refused(key: str, text: str, reason: str):
    with pytest.raises(InputError, match=reason):
        typed_change(key, text)


def test_asking_again_from_an_event_keeps_the_conversation_as_it_was():
    chat = Chat(Agent(name="clerk", model=ScriptedLlm("One.", "Two.", "Three.")), show="off")
    chat.ask("First?")
    second = chat.ask("Second?")
    earlier_ids = [event.id for event in chat.events]

    repeated_fork = sync.run(turn_runner(chat).rerun_in_fork(second.events[-1].id))

    assert (repeated_fork.question, repeated_fork.text) == ("Second?", "Three.")
    assert "main-2" in (view_of_reply(repeated_fork).notice or "")
    assert [event.id for event in chat.events] == earlier_ids


def test_what_cannot_be_asked_again_leaves_no_copy_behind():
    chat = Chat(Agent(name="clerk", model=ScriptedLlm("One.", "Two.")), show="off")
    first = chat.ask("First?")
    chat.rewind()
    chat.ask("Second?")

    for event_id in ("nothing", first.events[0].id):
        with pytest.raises(InputError):
            sync.run(turn_runner(chat).rerun_in_fork(event_id))

    assert chat.fork().session_id == "main-2"
