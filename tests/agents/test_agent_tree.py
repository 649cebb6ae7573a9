"""Agents stand in a tree: each has one parent, is found by name, and can be copied for another place."""

import warnings
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from pydantic import BaseModel, Field
from support.messages import mentions

from adk_nb import types
from adk_nb.agents import BaseAgent, InvocationContext, LlmAgent
from adk_nb.errors import ConfigurationError, ModelNotFoundError, StateSchemaError
from adk_nb.events import Event, EventActions
from adk_nb.models import ScriptedLlm, call
from adk_nb.runtime.context import Context
from adk_nb.runtime.history import open_interrupts
from adk_nb.tools import FunctionTool
from adk_nb.tools.base_toolset import BaseToolset
from tests.support.talk import Talk, guide, look, summaries


def agent(name: str, *sub_agents: BaseAgent, **fields: Any) -> LlmAgent:
    return LlmAgent(name=name, sub_agents=list(sub_agents), **fields)


def test_agents_know_their_place():
    leaf = agent("leaf")
    branch = agent("branch", leaf)
    other_agent = agent("other")
    root = agent("root", branch, other_agent)

    assert (leaf.parent_agent, branch.parent_agent, root.parent_agent) == (branch, root, None)
    assert leaf.root_agent is branch.root_agent is root.root_agent is root
    assert root.find_agent("root") is root and root.find_sub_agent("root") is None
    assert root.find_agent("leaf") is root.find_sub_agent("leaf") is leaf
    assert branch.find_agent("other") is None


def test_an_agent_is_equal_to_itself_alone():
    sub_agent, other_agent = agent("a"), agent("a")

    assert sub_agent == sub_agent and sub_agent != other_agent and len({sub_agent, other_agent, sub_agent}) == 2


def test_an_agent_has_one_parent():
    leaf, other_agent = agent("leaf"), agent("other")
    agent("first", leaf)

    with pytest.raises(
        ConfigurationError,
        match=r"agent 'leaf' cannot be under 'second': it is under 'first' already; pass leaf.clone\(\) to one",
    ):
        agent("second", other_agent, leaf)

    assert other_agent.parent_agent is None  # nothing was half done
    assert agent("second", other_agent, leaf.clone()).find_agent("leaf") is not leaf
    with pytest.raises(ConfigurationError, match=r"'twin' is twice .* 'root'; .*'name': "):
        agent("root", *[agent("twin")] * 2)


def test_a_parent_defined_anew_takes_its_agents_over_and_the_old_one_keeps_copies():
    leaf = agent("leaf", agent("under"))
    old = agent("root", leaf)

    new = agent("root", leaf, description="better")

    assert new.sub_agents == [leaf] and leaf.parent_agent is new and leaf.root_agent is new
    stored_agent = old.sub_agents[0]
    assert stored_agent is not leaf and stored_agent.parent_agent is old and stored_agent.name == "leaf"
    assert stored_agent.sub_agents[0] is not leaf.sub_agents[0] and stored_agent.sub_agents[0].root_agent is old


@pytest.mark.parametrize(
    ("make", "twice"),
    [
        (lambda: agent("root", agent("a"), agent("a")), "'a'"),
        (lambda: agent("root", agent("b", agent("a")), agent("c", agent("a"))), "'a'"),
        (lambda: agent("root", agent("b", agent("root"))), "'root'"),
    ],
)
def test_equal_names_in_a_tree_are_reported(make: Any, twice: str):
    text = f"two agents under 'root' are named {twice}; find_agent and transfers take"
    with pytest.warns(UserWarning, match=text) as warned:
        root = make()
    assert {item.filename for item in warned} == {__file__}  # where it was written, and not where it was noticed

    first = root.sub_agents[0]
    assert root.find_sub_agent(twice.strip("'")) in (first, *first.sub_agents)


def test_agents_that_are_set_later_have_their_place_and_those_before_lose_it():
    earlier_agent, later_agent = LlmAgent(name="before"), LlmAgent(name="after", model=ScriptedLlm("B"))
    root = guide(call("transfer_to_agent", agent_name="after"), sub_agents=[earlier_agent])

    root.sub_agents = [later_agent]

    assert (earlier_agent.parent_agent, later_agent.parent_agent) == (None, root)
    Talk(root).say()
    assert isinstance(later_agent.model, ScriptedLlm)
    assert "transfer_to_agent" in later_agent.model.requests[0].tools_dict  # back to the root
    with pytest.raises(ConfigurationError, match=r"'after' .*'other'.*'guide'"):
        LlmAgent(name="other").sub_agents = [later_agent]
    assert root.sub_agents == [later_agent]


def test_equal_names_are_reported_once():
    with pytest.warns(UserWarning, match="under 'b'"):
        branch = agent("b", agent("a"), agent("a"))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent("root", branch)


class Counts(BaseAgent):
    """Counts its runs, by a callback of its own."""

    runs: int = 0
    notes: list[str] = Field(default_factory=list)

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        yield Event(author=self.name, message=f"{self.name} ran {self.runs} times")

    def count(self, callback_context: Context) -> None:
        self.runs += 1


def test_a_clone_is_the_same_in_another_place():
    leaf = agent("leaf", tools=[look], generate_content_config=types.GenerateContentConfig(temperature=0.1))
    branch = agent("branch", leaf, description="thinks")
    agent("root", branch)

    copy = branch.clone()

    assert type(copy) is LlmAgent and (copy.name, copy.description, copy.parent_agent) == ("branch", "thinks", None)
    assert copy.root_agent is copy and branch.parent_agent is not None and leaf.parent_agent is branch
    [under] = copy.sub_agents
    assert isinstance(under, LlmAgent) and under is not leaf and under.parent_agent is copy
    assert under.tools == leaf.tools and under.tools is not leaf.tools
    assert under.generate_content_config is leaf.generate_content_config
    assert copy.model_fields_set == branch.model_fields_set


def test_a_clone_can_be_other_than_what_it_was_copied_from():
    branch = agent("branch", agent("leaf"), instruction="a", tools=[look], output_schema=int)
    child = agent("child")

    copy = branch.clone(update={"name": "copy", "sub_agents": [child], "tools": [], "output_schema": None})

    assert (copy.name, copy.instruction, copy.sub_agents, copy.tools_now()) == ("copy", "a", [child], [])
    assert child.parent_agent is copy and copy.output_shape is None
    assert (branch.name, [agent.name for agent in branch.sub_agents], len(branch.tools_now())) == (
        "branch",
        ["leaf"],
        1,
    )
    assert branch.clone({"sub_agents": []}).sub_agents == []


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({"parent_agent": None}, "clone\\(\\) .* parent_agent; .* sub_agents"),
        ({"instructions": "x"}, "'a': .* 'instructions'; did you mean 'instruction'"),
        ({"temperature": 1}, "agent 'a': 'temperature' belongs in generate_content_config"),
        ({"name": "a b"}, "identifier, got 'a b'; try 'a_b'"),
    ],
)
def test_a_clone_that_cannot_be_is_refused(update: dict[str, Any], message: str):
    original = agent("a", agent("b"))

    with pytest.raises(ConfigurationError, match=message):
        original.clone(update=update)
    assert original.name == "a" and original.sub_agents[0].parent_agent is original


def test_callbacks_that_are_methods_act_on_the_clone():
    original = Counts(name="original")
    original.before_agent_callback = original.count
    original.after_agent_callback = [original.count, look_away]

    copy = original.clone({"name": "copy"})
    events = Talk(copy).say()

    assert summaries(events) == [("copy", "copy ran 1 times .")]
    assert (original.runs, copy.runs) == (0, 2)
    assert copy.notes == [] and copy.notes is not original.notes


def look_away(callback_context: Context) -> None:
    pass


def test_an_agent_without_a_model_asks_the_nearest_above_it_that_has_one(monkeypatch: pytest.MonkeyPatch):
    own_model, other_model = ScriptedLlm(), ScriptedLlm()
    leaf = agent("leaf")
    root = agent("root", Counts(name="between", sub_agents=[agent("branch", leaf)]), model=own_model)

    assert leaf.canonical_model is own_model
    root.model = "offline"
    assert leaf.canonical_model.model == "offline" and leaf.canonical_model is leaf.canonical_model

    monkeypatch.setattr("adk_nb.models.default_model._of_code", [])
    root.model = ""
    assert leaf.canonical_model.model == "offline"
    LlmAgent.set_default_model(other_model)
    assert leaf.canonical_model is other_model
    LlmAgent.set_default_model("scripted-nobody-knows")
    with pytest.raises(ModelNotFoundError):
        assert leaf.canonical_model


@pytest.mark.parametrize(("odd", "error"), [(5, TypeError), (None, TypeError), ("", ConfigurationError)])
def test_a_default_model_is_a_model_or_the_name_of_one(odd: Any, error: type[Exception]):
    with pytest.raises(error, match="default model"):
        LlmAgent.set_default_model(odd)


def test_two_tools_of_one_name_are_told_and_the_later_is_used():
    def other() -> str:
        """Looks elsewhere."""
        return "elsewhere"

    other.__name__ = "look"

    with pytest.warns(UserWarning, match=r"'guide' .*'look'.* later"):
        agent = guide(call("look"), "Done.", tools=[look, other])

    assert [item.description for item in agent.tools_now()] == ["Looks elsewhere."]
    assert summaries(Talk(agent).say())[1] == ("guide", "answers {'result': 'elsewhere'}")


class Foreign(BaseToolset):
    """The tools of a server."""

    external_names = True

    def __init__(self, answer: str, *, asks: bool = False) -> None:
        super().__init__()
        self._answer, self._asks = answer, asks
        self.is_down = False

    async def get_tools(self, readonly_context: Any = None) -> list[Any]:
        if self.is_down:
            raise ConnectionError("nobody listens")

        def pay() -> str:
            """Pay."""
            return self._answer

        return [FunctionTool(pay, require_confirmation=self._asks)]


def test_of_two_servers_with_a_tool_of_one_name_the_first_keeps_it(caplog: pytest.LogCaptureFixture):
    open_first = guide(call("pay"), "Done.", tools=[Foreign("first"), Foreign("second", asks=True)])
    gated_first = guide(call("pay"), tools=[Foreign("first", asks=True), Foreign("second")])

    assert summaries(Talk(open_first).say())[1] == ("guide", "answers {'result': 'first'}")
    talk = Talk(gated_first)
    assert [interrupt.names for interrupt in open_interrupts(talk.say())] == [["pay"]], "it still asks"
    assert "tool_name_prefix" in caplog.text


def test_a_server_that_is_down_keeps_the_names_of_its_tools():
    first, second = Foreign("first", asks=True), Foreign("second")
    payer = guide("Hello.", call("pay"), "No.", call("pay"), tools=[first, second])
    talk = Talk(payer)
    talk.say()

    first.is_down = True
    assert "second" not in str(summaries(talk.say())), "it is called for what the first one has"
    first.is_down = False
    assert [interrupt.names for interrupt in open_interrupts(talk.say())] == [["pay"]]

    late = guide(call("pay"), "Done.", call("pay"), tools=[first, second])
    first.is_down = True
    assert "second" in str(summaries(Talk(late).say())), "no other tool of that name is known"
    first.is_down = False
    assert [interrupt.names for interrupt in open_interrupts(Talk(late).say())] == [["pay"]]


def test_an_agent_is_no_tool():
    with pytest.raises(ConfigurationError, match=r"'a'.*'b'.*AgentTool\(agent=b\)"):
        agent("a", tools=[agent("b")])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sub_agents": BaseAgent(name="b")}, "agent 'a': write sub_agents=[b], in brackets"),
        ({"tools": BaseAgent(name="b")}, "agent 'a': write sub_agents=[b], in brackets"),
        (
            {"sub_agents": [{"name": "b"}]},
            "instance of BaseAgent (got {'name': 'b'})",
        ),
        ({"sub_agents": [LlmAgent]}, "'sub_agents.0': … instance of BaseAgent (got <class"),
        ({"sub_agents": None}, "'sub_agents': … valid list (got None)"),
        ({"state_schema": dict}, "'state_schema': … subclass of BaseModel (got <class 'dict'>)"),
        ({"parent_agent": None}, "'a': … no field 'parent_agent'"),
    ],
)
def test_an_invalid_tree_is_reported_in_one_line(fields: dict[str, Any], message: str):
    with pytest.raises(ConfigurationError) as refused:
        LlmAgent(**{"name": "a"} | fields)
    assert mentions(refused.value, message)
    assert "\n" not in str(refused.value)


class Trip(BaseModel):
    city: str = ""
    days: int = 1


def test_a_tool_that_writes_what_the_schema_does_not_allow_hears_why():
    def plan(days: Any, tool_context: Context) -> str:
        """Plans."""
        tool_context.state["days"] = days
        return "planned"

    talk = Talk(guide(call("plan", days="many"), call("plan", days=2), "Done.", tools=[plan], state_schema=Trip))
    events = talk.say()

    refused = events[1].get_function_responses()[0].response or {}
    assert mentions(refused["error"], "state['days'] … str 'many' … Trip … int")
    assert talk.error is None and talk.stored().state == {"days": 2}


def test_an_output_key_and_an_event_are_held_to_the_schema_too():
    for built in (
        guide("Oslo", output_key="town", state_schema=Trip),
        guide("Oslo", state_schema=Trip, before_agent_callback=lambda callback_context: write(callback_context)),
        Writes(name="guide", state_schema=Trip),
    ):
        talk = Talk(built)
        events = talk.say()
        assert isinstance(talk.error, StateSchemaError)
        assert "state['town']" in str(talk.error) and "state_schema Trip" in str(talk.error)
        assert events[-1].error_code == "StateSchemaError" and talk.stored().state == {}


def write(context: Context) -> None:
    context.state["town"] = "Oslo"


class Writes(BaseAgent):
    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        yield Event(author=self.name, actions=EventActions(state_delta={"town": "Oslo"}))


class Runs(BaseAgent):
    """Runs the agents under it, one after the other."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        for sub_agent in self.sub_agents:
            async for event in sub_agent.run_async(ctx):
                yield event


class Other(BaseModel):
    town: str = ""


def test_an_agent_has_the_schema_of_its_parent_unless_it_has_its_own():
    writes = Writes(name="own", state_schema=Other)
    heir = Writes(name="heir")
    talk = Talk(Runs(name="root", sub_agents=[writes, heir], state_schema=Trip))

    events = talk.say()

    assert summaries(events)[0] == ("own", "=> {'town': 'Oslo'}")
    assert "state['town']" in str(talk.error) and "state_schema Trip" in str(talk.error)
    assert talk.stored().state == {"town": "Oslo"}


def test_agents_of_a_tree_run_in_the_same_invocation_under_their_own_names():
    log: list[tuple[str, str, str | None]] = []

    def note(callback_context: Context) -> None:
        log.append((callback_context.agent_name, callback_context.invocation_id, callback_context.state.get("temp:t")))
        callback_context.state["temp:t"] = callback_context.agent_name

    root = Runs(
        name="root",
        sub_agents=[guide("One."), Counts(name="two", before_agent_callback=note)],
        before_agent_callback=note,
    )
    events = Talk(root).say()

    assert [event.author for event in events if event.content] == ["guide", "two"]
    assert {event.invocation_id for event in events} == {log[0][1]}
    assert [(name, previous) for name, _, previous in log] == [("root", None), ("two", "root")]


def test_a_subclass_that_reads_a_field_before_it_is_made_is_told_which() -> None:
    class Early(LlmAgent):
        def __init__(self, **fields: Any) -> None:
            self.seen = self.name
            super().__init__(**fields)

    with pytest.raises(AttributeError, match="no attribute 'name'"):
        Early(name="early")
