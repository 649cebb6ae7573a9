"""A graph that was cut while a tool of one of its nodes was at work: that is asked about, or made again and marked."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from adk_nb import clock
from adk_nb.apps import App, ResumabilityConfig
from adk_nb.errors import StorageError
from adk_nb.events import Event, RequestInput
from adk_nb.notebook.view.rows import rows_of
from adk_nb.plugins import BasePlugin
from adk_nb.runners import Runner
from adk_nb.runtime.approvals import IN_DOUBT
from adk_nb.runtime.history import open_interrupts
from adk_nb.runtime.interrupts import INPUTS, Interrupt
from adk_nb.sessions import SqliteSessionService
from adk_nb.sessions.journal import LEASE_SECONDS, Effect
from adk_nb.tools import FunctionTool, ToolContext
from adk_nb.workflow import START, Workflow, node
from tests.runtime.ledger import SESSION_KEY, rows, stored
from tests.support.polling import SECONDS
from tests.workflow.steps import answer, asked

YES, NO = {"confirmed": True}, {"confirmed": False, "reason": "it was paid"}


class Desk:
    """A graph that pays: `first`, then the tool, then `last`; as often as `dies` says the process dies in the tool."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch, *, dies: int = 1) -> None:
        self.path = path
        self.dies = dies
        self.paid: list[int] = []
        self.died = asyncio.Event()
        self.marks = True
        self.service = SqliteSessionService(path)
        self._now = 1000.0
        monkeypatch.setattr(clock, "ticks", lambda: self._now)

    def graph(self, *, effect: Effect = "once", confirm: bool = False, note: str = "", first: Any = None) -> Workflow:
        async def pay(node_input: str, tool_context: ToolContext) -> str:
            """Pays."""
            self.paid.append(tool_context.attempt)
            if self.dies:
                self.dies -= 1
                await self.service.close()
                self.died.set()
            return f"paid {node_input}"

        def last(node_input: Any) -> str:
            return f"{node_input}{note}"

        tool = FunctionTool(pay, effect=effect, require_confirmation=confirm)
        return Workflow(name="wf", edges=[(START, node(first or (lambda: "5"), name="first"), tool, last)])

    async def run(self, graph: Workflow, *plugins: BasePlugin, **said: Any) -> list[Event]:
        """A run, or what there is of it if its process died."""
        marks = ResumabilityConfig(is_resumable=self.marks)
        app = App(name="app", root_agent=graph, plugins=list(plugins), resumability_config=marks)
        runner = Runner(app=app, session_service=self.service, auto_create_session=True)
        seen: list[Event] = []
        try:
            async for event in runner.run_async(**SESSION_KEY, **said):
                seen.append(event)  # noqa: PERF401  # what came before the error
        except StorageError:
            self.service = SqliteSessionService(self.path)
            self._now += LEASE_SECONDS + 1
        return seen

    async def go_on(self, graph: Workflow) -> list[Event]:
        (left,) = await self.service.unfinished(await stored(self.service))
        return await self.run(graph, invocation_id=left.id)

    async def question(self) -> Interrupt:
        (one,) = open_interrupts((await stored(self.service)).events, INPUTS)
        return one


@pytest.fixture
def at_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets a coroutine function work with a Desk."""

    def work(use: Callable[[Desk], Awaitable[None]], **options: Any) -> None:
        async def run() -> None:
            desk = Desk(tmp_path / "nb.db", monkeypatch, **options)
            await use(desk)
            await desk.service.close()

        asyncio.run(run())

    return work


def outcome(events: list[Event]) -> Any:
    return next(event.output for event in reversed(events) if event.output is not None)


@pytest.mark.parametrize("say", [YES, NO])
def test_whether_a_tool_that_may_have_run_is_to_run_again_is_asked(at_desk: Callable[..., None], say: Any) -> None:
    async def use(desk: Desk) -> None:
        await desk.run(desk.graph(), new_message="go")
        went_on = await desk.go_on(desk.graph())
        one = await desk.question()
        assert desk.paid == [1] and asked(went_on) == [one.id] and one.kind == "node_approval"
        assert "pay() started at" in one.prompt and "it may have taken effect. Call it now?" in one.prompt
        assert one.payload == {"tool_name": "pay", "args": {"node_input": "5"}, "in_doubt": True} and one.in_doubt
        assert await desk.service.unfinished(await stored(desk.service)) == []  # it waits

        end = await desk.run(desk.graph(), new_message=answer(one.id, say))
        told = str(outcome(end))
        assert desk.paid == ([1, 2] if say == YES else [1])
        assert (
            told == "paid 5" if say == YES else (IN_DOUBT in told and "it was paid" in told and "not run" not in told)
        )

    at_desk(use)


def test_a_yes_before_the_cut_is_none_after_it_and_is_used_up_with_the_call(at_desk: Callable[..., None]) -> None:
    async def use(desk: Desk) -> None:
        graph = desk.graph(confirm=True)
        await desk.run(graph, new_message="go")
        assert rows(desk.path, "SELECT * FROM consumed") == []
        first = await desk.question()
        await desk.run(graph, new_message=answer(first.id, YES))
        assert len(rows(desk.path, "SELECT * FROM consumed")) == 1

        for known in ([1], [1, 2]):  # it dies at the second attempt, too
            await desk.go_on(desk.graph(confirm=True))
            one = await desk.question()
            assert desk.paid == known and "taken effect" in one.prompt
            end = await desk.run(desk.graph(confirm=True), new_message=answer(one.id, YES))
        assert desk.paid == [1, 2, 3] and outcome(end) == "paid 5"
        assert len(rows(desk.path, "SELECT * FROM consumed")) == 3

    at_desk(use, dies=2)


@pytest.mark.parametrize("effect", ["pure", "idempotent"])
def test_another_tool_is_called_again_unless_the_graph_was_edited(at_desk: Callable[..., None], effect: Effect) -> None:
    async def use(desk: Desk) -> None:
        await desk.run(desk.graph(effect=effect), new_message="go")
        await desk.go_on(desk.graph(effect=effect))
        assert desk.paid == [1, 2] and open_interrupts((await stored(desk.service)).events, INPUTS) == []
        await desk.go_on(desk.graph(effect=effect, note="!"))  # what follows is another
        assert (
            desk.paid == [1, 2] and "were edited after pay() was called. Call it now?" in (await desk.question()).prompt
        )
        end = await desk.run(desk.graph(effect=effect, note="!"), new_message=answer((await desk.question()).id, YES))
        assert desk.paid == [1, 2, 3] and outcome(end) == "paid 5!"
        kept = (await stored(desk.service)).events
        assert [attempt for event in kept if (attempt := (event.custom_metadata or {}).get("repeated"))] == [3]
        assert [row["text"] for row in rows_of(kept) if "attempt 3" in row["text"]]

    at_desk(use, dies=2)


def test_so_is_one_that_was_begun_before_the_mark_of_it_was_stored(at_desk: Callable[..., None]) -> None:
    async def use(desk: Desk) -> None:
        class Slow(BasePlugin):
            async def on_event_callback(self, *, invocation_context: Any, event: Event) -> None:
                stands = (event.actions.agent_state or {"workflow": {"running": []}})["workflow"]["running"]
                if any(one["node"] == "pay" for one in stands):
                    await asyncio.wait_for(desk.died.wait(), SECONDS)

        await desk.run(desk.graph(), Slow(name="slow"), new_message="go")
        await desk.go_on(desk.graph())
        assert desk.paid == [1] and "taken effect" in (await desk.question()).prompt

    at_desk(use)


def test_an_answer_is_not_taken_again_where_no_marks_are_kept(at_desk: Callable[..., None]) -> None:
    async def use(desk: Desk) -> None:
        desk.marks = False
        graph = desk.graph(first=lambda: RequestInput(interrupt_id="i1", message="How much?"))
        await desk.run(graph, new_message="go")
        for _ in range(2):
            await desk.run(graph, new_message=answer("i1", "5"))
        assert desk.paid == [1]

    at_desk(use)


def test_what_was_not_begun_is_not_asked_about_in_an_edited_graph(at_desk: Callable[..., None]) -> None:
    async def use(desk: Desk) -> None:
        async def dies() -> str:
            await desk.service.close()
            return "4"

        await desk.run(desk.graph(first=dies), new_message="go")
        assert outcome(await desk.go_on(desk.graph())) == "paid 5" and desk.paid == [1]

    at_desk(use, dies=0)
