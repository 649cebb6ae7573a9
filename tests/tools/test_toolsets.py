"""Toolsets: tools that come from one place, filtered, renamed, and closed with the runner."""

import asyncio
import logging
from typing import Any

import pytest

from adk_nb import sync, types
from adk_nb.agents import LlmAgent
from adk_nb.errors import ConfigurationError
from adk_nb.models import LlmRequest, ScriptedLlm, call
from adk_nb.runners import Runner
from adk_nb.sessions import InMemorySessionService
from adk_nb.tools import AgentTool, BaseTool, BaseToolset, StaticToolset
from adk_nb.workflow import START, Workflow
from tests.support.talk import Talk, summaries


def look(city: str) -> str:
    """Looks out of the window."""
    return f"sunny in {city}"


def go(city: str) -> str:
    """Goes there."""
    return f"in {city}"


class Place(BaseToolset):
    """Counts how often it is asked and closed."""

    def __init__(self, *tools: Any, error: Exception | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.held = StaticToolset(tools)
        self.error = error
        self.asked = self.closed = 0

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        self.asked += 1
        if self.error:
            raise self.error
        return await self.held.get_tools(readonly_context)

    async def close(self) -> None:
        self.closed += 1
        if self.error:
            raise self.error


class Telling(Place):
    async def process_llm_request(self, *, tool_context: Any, llm_request: LlmRequest) -> None:
        llm_request.append_instructions(["Mind the rain."])


def offered(request: LlmRequest) -> list[str | None]:
    return [
        one.name
        for tool in request.config.tools or []
        if isinstance(tool, types.Tool)
        for one in tool.function_declarations or []
    ]


def talk_with(*tools: Any, answers: tuple[Any, ...] = ("fine",)) -> tuple[Talk, ScriptedLlm]:
    model = ScriptedLlm(*answers)
    return Talk(LlmAgent(name="a", model=model, tools=list(tools))), model


def test_the_tools_of_a_toolset_stand_in_its_place_and_are_called():
    def wait() -> str:
        """Waits."""
        return "done"

    talk, model = talk_with(StaticToolset([look, go]), wait, answers=(call("go", city="Oslo"), "There."))

    events = talk.say()

    assert offered(model.requests[0]) == ["look", "go", "wait"]
    assert summaries(events)[1] == ("a", "answers {'result': 'in Oslo'}")


def test_a_prefix_is_part_of_the_name_that_the_model_says():
    weather = StaticToolset([look, go], tool_filter=["look"], tool_name_prefix="weather")
    talk, model = talk_with(weather, look, answers=(call("weather_look", city="Oslo"), call("look", city="Rome"), "."))

    events = talk.say()

    assert offered(model.requests[0]) == ["weather_look", "look"]
    assert [summaries(events)[number][1] for number in (1, 3)] == [
        "answers {'result': 'sunny in Oslo'}",
        "answers {'result': 'sunny in Rome'}",
    ]


def test_a_prefix_cannot_make_names_that_are_reserved():
    with pytest.raises(ConfigurationError, match="'adk_' are reserved"):
        StaticToolset([look], tool_name_prefix="adk_request")


def test_a_predicate_chooses_by_tool_and_context():
    seen: list[Any] = []

    def chooses(tool: BaseTool, ctx: Any) -> bool:
        seen.append(ctx.agent_name)
        return tool.name == ctx.state["wanted"]

    model = ScriptedLlm("one", "two")
    place = StaticToolset([look, go], tool_filter=chooses)
    talk = Talk(LlmAgent(name="a", model=model, tools=[place]), state={"wanted": "go"})
    talk.say()
    talk.say(state_delta={"wanted": "look"})

    assert [offered(request) for request in model.requests] == [["go"], ["look"]]
    assert set(seen) == {"a"}


def test_a_filter_that_matches_no_tool_is_reported_once(caplog: pytest.LogCaptureFixture):
    place = Place(look, tool_filter=["lok"])
    talk, model = talk_with(place, answers=("one", "two"))
    talk.say()
    talk.say()

    assert [offered(request) for request in model.requests] == [[], []]
    assert [record.message for record in caplog.records] == [
        "Place has no tool 'lok', which its tool_filter names; did you mean 'look'?"
    ]


def test_a_filter_that_names_no_tool_of_those_at_hand_says_what_is_meant(caplog: pytest.LogCaptureFixture):
    talk, model = talk_with(StaticToolset([look, go], tool_filter=["lok", "go"]), answers=("one", "two"))
    talk.say()
    talk.say()

    assert [offered(request) for request in model.requests] == [["go"], ["go"]]
    assert [record.message for record in caplog.records] == [
        "StaticToolset has no tool 'lok', which its tool_filter names; did you mean 'look'?"
    ]


def test_filters_prefixes_and_other_tools_go_together():
    """The filter knows the names without the prefix; two toolsets may have tools of one name behind two prefixes."""
    here = StaticToolset([look, go], tool_filter=["look"], tool_name_prefix="here")
    there = StaticToolset([look, go], tool_filter=lambda tool, ctx: tool.name == "look", tool_name_prefix="there")
    talk, model = talk_with(
        here, there, answers=([call("here_look", city="Oslo"), call("there_look", city="Rome")], ".")
    )

    events = talk.say()

    assert offered(model.requests[0]) == ["here_look", "there_look"]
    assert summaries(events)[1][1] == "answers {'result': 'sunny in Oslo'}; answers {'result': 'sunny in Rome'}"


def test_a_name_without_its_prefix_is_no_tool():
    talk, _ = talk_with(StaticToolset([look], tool_name_prefix="here"), answers=(call("look", city="Oslo"), "."))

    assert "you mean here_look()?" in summaries(talk.say())[1][1]


def test_a_predicate_that_raises_leaves_its_toolset_out(caplog: pytest.LogCaptureFixture):
    talk, model = talk_with(StaticToolset([look], tool_filter=lambda tool, ctx: 1 / 0 > 0), go)

    assert summaries(talk.say()) == [("a", "fine .")]
    assert offered(model.requests[0]) == ["go"]
    assert "tools of StaticToolset: ZeroDivisionError: division" in caplog.text


def test_a_toolset_is_listed_once_per_invocation():
    place = Place(look)
    talk, _ = talk_with(place, answers=(call("look", city="Oslo"), "one", "two"))
    child = LlmAgent(name="child", model="offline", tools=[place])
    talk.say()
    talk.say()

    assert place.asked == 2
    assert sync.run(child.canonical_tools()) and place.asked == 3


def test_a_toolset_that_fails_is_left_out_and_the_log_says_so(caplog: pytest.LogCaptureFixture):
    talk, model = talk_with(Place(error=OSError("no such server")), look)

    assert summaries(talk.say()) == [("a", "fine .")]
    assert talk.error is None
    assert offered(model.requests[0]) == ["look"]
    assert "agent 'a' goes" in caplog.text


def test_a_toolset_that_is_put_together_wrongly_ends_the_run():
    talk, _ = talk_with(Place(error=ConfigurationError("no address")))
    talk.say()

    assert isinstance(talk.error, ConfigurationError)


def test_of_two_tools_with_one_name_the_later_is_used(caplog: pytest.LogCaptureFixture):
    def here(city: str) -> str:
        """Looks here."""
        return "rain"

    here.__name__ = "look"
    talk, model = talk_with(look, StaticToolset([here]), answers=(call("look", city="Oslo"), "."))

    assert summaries(talk.say())[1] == ("a", "answers {'result': 'rain'}")
    assert offered(model.requests[0]) == ["look"]
    assert "two tools named 'look'" in caplog.text


def test_a_toolset_can_prepare_requests():
    talk, model = talk_with(Telling(look))
    talk.say()

    assert "Mind the rain." in str(model.requests[0].config.system_instruction)
    assert offered(model.requests[0]) == ["look"]


def test_what_an_agent_is_known_to_have_is_what_its_toolsets_had_last():
    agent = LlmAgent(name="a", model=ScriptedLlm("fine"), tools=[StaticToolset([look]), go])
    assert [tool.name for tool in agent.tools_now()] == ["go"]

    Talk(agent).say()

    assert [tool.name for tool in agent.tools_now()] == ["look", "go"]
    agent.tools.append(look)
    assert [tool.name for tool in agent.tools_now()] == ["go", "look"]


def test_the_runner_closes_each_toolset_of_the_tree_once(caplog: pytest.LogCaptureFixture):
    root, shared, called = Place(look), Place(go, error=OSError("gone")), Place(look)
    helper = LlmAgent(name="helper", model="offline", tools=[called, shared])
    child = LlmAgent(name="child", model="offline", tools=[shared])
    agent = LlmAgent(name="a", model="offline", tools=[root, AgentTool(helper)], sub_agents=[child])
    runner = Talk(agent).runner

    async def close_twice() -> None:
        async with runner:
            pass
        await runner.close()

    sync.run(close_twice())

    assert (root.closed, shared.closed, called.closed) == (1, 1, 1)
    assert caplog.record_tuples == [
        ("adk_nb.agents.tree", logging.WARNING, "toolset Place did not close: gone"),
    ]


def test_the_runner_closes_the_toolsets_of_a_graph():
    place = Place(look)
    drafts = LlmAgent(name="drafts", model="offline", tools=[place])
    runner = Talk(Workflow(name="wf", edges=[(START, drafts)])).runner

    sync.run(runner.close())

    assert place.closed == 1


def test_a_tool_may_keep_something_else_as_its_agent():
    class Client:
        def tools(self) -> list[str]:
            return []

    class Remote(BaseTool):
        agent = Client()

    place = Place(look)
    tools = [Remote(name="remote", description="Asks a service."), place]
    runner = Talk(LlmAgent(name="a", model="offline", tools=tools)).runner

    sync.run(runner.close())

    assert place.closed == 1


def test_each_toolset_has_its_own_time_to_close(caplog: pytest.LogCaptureFixture):
    class Stuck(Place):
        async def close(self) -> None:
            await super().close()
            await asyncio.Event().wait()

    first, second, last = Stuck(look), Stuck(go), Place(look)
    agent = LlmAgent(name="a", model="offline", tools=[first, second, last])
    service = InMemorySessionService()
    runner = Runner(agent=agent, app_name="app", session_service=service, plugin_close_timeout=0.05)

    sync.run(runner.close())

    assert (first.closed, second.closed, last.closed) == (1, 1, 1)
    assert [record.message for record in caplog.records] == ["toolset Stuck did not close: TimeoutError"] * 2


def test_an_agent_without_toolsets_asks_for_its_tools_without_waiting():
    agent = LlmAgent(name="a", model="offline", tools=[look])

    assert sync.run(agent.canonical_tools()) is agent.tools_now()


def test_a_toolset_that_filters_itself_still_says_what_a_misspelled_name_means(caplog: pytest.LogCaptureFixture):
    class Choosy(Place):
        async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
            found = await super().get_tools(readonly_context)
            return [one for one in found if self._is_tool_selected(one, readonly_context)]

    talk, _ = talk_with(Choosy(look, go, tool_filter=["lok", "go"]), answers=("one",))
    talk.say()

    assert [record.message for record in caplog.records] == [
        "Choosy has no tool 'lok', which its tool_filter names; did you mean 'look'?"
    ]


def test_outside_a_run_the_renamed_tools_are_the_same_each_time_and_new_tools_are_new():
    toolset = Place(look, tool_name_prefix="far")

    [first] = sync.run(toolset.get_tools_with_prefix())
    [again] = sync.run(toolset.get_tools_with_prefix())
    toolset.held = StaticToolset([look, go])
    renewed = sync.run(toolset.get_tools_with_prefix())

    assert again is first and first.name == "far_look"
    assert [tool.name for tool in renewed] == ["far_look", "far_go"]
    assert sync.run(toolset.get_tools())[0].name == "look"
    toolset.tool_name_prefix = "near"
    assert [tool.name for tool in sync.run(toolset.get_tools_with_prefix())] == ["near_look", "near_go"]


class Declared(BaseTool):
    """A tool with an attribute of the name `declaration`."""

    def __init__(self, declaration: Any) -> None:
        super().__init__(name="look", description="Looks.")
        self.declaration = declaration

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(name=self.name, description="Looks out.")

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
        return "sunny"


@pytest.mark.parametrize("own", [types.FunctionDeclaration(name="other"), {"name": "other"}, None])
@pytest.mark.parametrize("prefix", ["", "far_"])
def test_a_tool_may_have_an_attribute_of_its_own_named_declaration(own: Any, prefix: str):
    tool = Declared(own)
    offer = [StaticToolset([tool], tool_name_prefix="far")] if prefix else [tool]
    model = ScriptedLlm(call(f"{prefix}look"), "ok")
    talk = Talk(LlmAgent(name="a", model=model, tools=offer))

    events = talk.say()

    assert tool.declaration is own
    assert offered(model.requests[0]) == [f"{prefix}look"]
    assert summaries(events)[1] == ("a", "answers {'result': 'sunny'}")
