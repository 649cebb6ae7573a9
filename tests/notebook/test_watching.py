"""Who begins and ends to work is told to the run that is on show, and to no other."""

from adk_nb.agents import ParallelAgent
from adk_nb.events.event import Event
from adk_nb.notebook.view.run_view import RunView, watch
from adk_nb.runners import InMemoryRunner
from adk_nb.workflow import Workflow
from tests.notebook.test_drawing import agent


class Watched(RunView):
    """Keeps what it is told, in its order."""

    def __init__(self, *, is_live: bool) -> None:
        super().__init__("root", None, None)
        self.is_live = is_live
        self.told: list[str] = []

    def agent_begins(self, name: str, branch: str | None, path: str) -> None:
        self.told.append(f"{name} begins on {branch or path}")

    def agent_ends(self, name: str, branch: str | None, path: str) -> None:
        self.told.append(f"{name} ends on {branch or path}")

    def event(self, event: Event) -> None:
        self.told.append(f"{event.author}: {event.text}")


def turn(runner: InMemoryRunner, shown: Watched) -> list[str]:
    watch(runner.plugin_manager, shown)
    for event in runner.run(user_id="u", session_id="s", new_message="Go."):
        shown.event(event)
    return shown.told


def runner_of(root: object) -> InMemoryRunner:
    runner = InMemoryRunner(root)  # type: ignore[arg-type]
    runner.session_service.create_session(app_name=runner.app_name, user_id="u", session_id="s")
    return runner


def test_an_agent_begins_before_its_first_word_and_ends_after_its_last() -> None:
    told = turn(runner_of(ParallelAgent(name="all", sub_agents=[agent("a")])), Watched(is_live=True))

    assert told == ["all begins on ", "a begins on all.a", "a: done", "a ends on all.a", "all ends on "]


def test_an_agent_of_a_graph_is_told_of_by_the_name_of_its_node() -> None:
    told = turn(runner_of(Workflow(name="flow", edges=[("START", agent("a"))])), Watched(is_live=True))

    assert "a begins on flow@1/a@1" in told


def test_each_turn_tells_its_own_show_and_one_that_is_not_live_brings_no_plugin() -> None:
    runner = runner_of(agent("a", "one", "two", "three"))

    assert turn(runner, Watched(is_live=False)) == ["a: one"]
    assert runner.plugin_manager.plugins == []
    first, second = Watched(is_live=True), Watched(is_live=True)
    assert turn(runner, first) == ["a begins on ", "a: two", "a ends on "]
    assert turn(runner, second) == [*first.told[:1], "a: three", "a ends on "]
    assert len(runner.plugin_manager.plugins) == 1
