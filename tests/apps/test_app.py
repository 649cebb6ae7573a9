"""An app: which names it may have, and how a runner takes it."""

import asyncio
from typing import Any

import pytest
from support.messages import mentions

from adk_nb import App, InMemoryRunner, LlmAgent, Runner, sync
from adk_nb.agents import BaseAgent
from adk_nb.apps import EventsCompactionConfig, LlmEventSummarizer, ResumabilityConfig
from adk_nb.errors import ConfigurationError, PluginError
from adk_nb.models import ScriptedLlm
from adk_nb.plugins import BasePlugin
from adk_nb.sessions import InMemorySessionService
from tests.support.each import each


def agent(*answers: str) -> LlmAgent:
    return LlmAgent(name="guide", model=ScriptedLlm(*answers))


class Notes(BasePlugin):
    """Counts the runs that began, and how often it was closed."""

    runs = closed = 0

    async def before_run_callback(self, **kwargs: Any) -> None:
        self.runs += 1

    async def close(self) -> None:
        self.closed += 1


def ask(runner: Runner, session_id: str = "s") -> list[str]:
    return [event.text for event in runner.run(user_id="u", session_id=session_id, new_message="hi")]


@pytest.mark.parametrize("name", ["shop", "my_app", "My-App2"])
def test_a_name_begins_with_a_letter(name: str):
    assert App(name=name, root_agent=agent()).name == name


@pytest.mark.parametrize(
    ("name", "better"),
    [("my app", "my_app"), ("1st", "app_1st"), ("", "app"), ("café", "caf"), ("../etc", "etc"), ("a\n", "a")],
)
def test_a_name_that_cannot_be_comes_with_one_that_can(name: str, better: str):
    with pytest.raises(ConfigurationError, match=f"try {better!r}$"):
        App(name=name, root_agent=agent())

    assert App(name=better, root_agent=agent()).name == better


def test_no_app_is_called_user():
    with pytest.raises(ConfigurationError, match="named 'user'"):
        App(name="user", root_agent=agent())


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "app 'a': 'root_agent' is missing$"),
        ({"root_agent": 1}, r"app 'a': 'root_agent': Input should be .* \(got 1\)$"),
        ({"root_agent": None, "plugin": []}, r"no field 'plugin'; did you mean 'plugins'\?$"),
    ],
)
def test_a_wrong_field_is_named(fields: dict[str, Any], text: str):
    with pytest.raises(ConfigurationError, match=text):
        App(name="a", **fields)


def test_a_runner_runs_an_app_under_its_name_and_with_its_plugins():
    notes, service = Notes("notes"), InMemorySessionService()
    app = App(name="shop", root_agent=agent("hello"), plugins=[notes])
    runner = Runner(app=app, session_service=service, auto_create_session=True)

    assert ask(runner) == ["hello"]

    assert (runner.app, runner.app_name, runner.agent) == (app, "shop", app.root_agent)
    assert notes.runs == 1
    assert service.get_session_sync(app_name="shop", user_id="u", session_id="s") is not None


def test_an_apps_sessions_can_be_kept_under_another_name():
    app = App(name="shop", root_agent=agent())

    assert Runner(app=app, app_name="other", session_service=InMemorySessionService()).app_name == "other"


def test_an_in_memory_runner_takes_an_app_or_an_agent_with_plugins():
    notes = Notes("notes")
    app = App(name="shop", root_agent=agent("hello"))

    with_app = InMemoryRunner(app=app, auto_create_session=True)
    with_agent = InMemoryRunner(agent("hello"), plugins=[notes], auto_create_session=True)

    assert (with_app.app_name, with_agent.app_name) == ("shop", "InMemoryRunner")
    assert ask(with_app) == ask(with_agent) == ["hello"]
    assert notes.runs == 1


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "Runner(app=...), Runner(agent=...) or Runner(node=...)"),
        ({"agent": agent()}, "name of its … Runner(app_name='my_app', ...)"),
        (
            {"app": App(name="shop", root_agent=agent()), "agent": agent()},
            "agent … app='shop'; … app and agent",
        ),
        (
            {"app": App(name="shop", root_agent=agent()), "plugins": [Notes("n")]},
            "plugins … app='shop'; … App(plugins=[...])",
        ),
        (
            {"agent": agent(), "app_name": "a", "plugins": [Notes("n"), Notes("n")]},
            "plugins … 'n'; … another name",
        ),
    ],
)
def test_a_runner_that_cannot_be_says_what_to_write(fields: dict[str, Any], text: str):
    with pytest.raises(ConfigurationError) as raised:
        Runner(session_service=InMemorySessionService(), **fields)

    assert mentions(raised.value, text)


def test_a_runner_closes_its_plugins_at_the_end_of_a_block():
    notes = Notes("notes")

    async def work() -> str:
        async with InMemoryRunner(agent("hello"), plugins=[notes], auto_create_session=True) as runner:
            texts = [event.text async for event in runner.run_async(user_id="u", session_id="s", new_message="hi")]
            assert notes.closed == 0
            return texts[0]

    assert sync.run(work()) == "hello"
    assert notes.closed == 1


def test_a_plugin_that_does_not_close_in_time_is_named():
    class Hangs(BasePlugin):
        async def close(self) -> None:
            await asyncio.Event().wait()

    runner = Runner(
        app=App(name="shop", root_agent=agent(), plugins=[Hangs("slow")]),
        session_service=InMemorySessionService(),
        plugin_close_timeout=0.01,
    )

    with pytest.raises(PluginError, match=r"'slow': TimeoutError: 0\.01 s passed"):
        sync.run(runner.close())


# --- what an app says of its conversations


class Plain(BaseAgent):
    """An agent without a model."""


@each(
    "fields, text",
    [
        ({}, "give compaction_interval and overlap_size, or token_threshold"),
        ({"compaction_interval": 3}, "^'compaction_interval' and 'overlap_size' .*give both$"),
        ({"overlap_size": 3}, "^'compaction_interval' and 'overlap_size' belong together"),
        ({"token_threshold": 3}, "^'token_threshold' and 'event_retention_size' belong together"),
        ({"compaction_interval": 0, "overlap_size": 0}, "'compaction_interval': Input should be greater than 0"),
        ({"compaction_interval": 1, "overlap_size": -1}, "'overlap_size': Input should be greater than or equal to 0"),
        ({"token_threshold": 0, "event_retention_size": 0}, "'token_threshold': Input should be greater than 0"),
        ({"token_threshold": 1, "event_retention_size": -1}, "'event_retention_size': Input should be greater"),
        ({"interval": 1}, "EventsCompactionConfig: .* no field 'interval'"),
    ],
)
def test_a_compaction_that_cannot_be_is_refused(fields: dict[str, Any], text: str):
    with pytest.raises(ConfigurationError, match=text):
        EventsCompactionConfig(**fields)


def test_summaries_need_a_model_or_a_summariser():
    config = EventsCompactionConfig(token_threshold=10, event_retention_size=1)

    with pytest.raises(ConfigurationError, match=r"'plain' .*EventsCompactionConfig\(summarizer="):
        App(name="a", root_agent=Plain(name="plain"), events_compaction_config=config)

    config.summarizer = LlmEventSummarizer(ScriptedLlm())
    assert App(name="a", root_agent=Plain(name="plain"), events_compaction_config=config)


def test_an_app_without_these_settings_has_nothing_that_a_run_would_ask():
    app = App(name="a", root_agent=agent())

    assert (app.compaction(), app.context_cache_config) == (None, None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"resumable": True}, "no field 'resumable'; did you mean 'is_resumable'"),
        ({"is_resumable": 3}, "'is_resumable': Input should be a valid boolean"),
    ],
)
def test_a_wrong_word_on_resuming_is_told_with_the_right_one(fields: dict[str, Any], message: str):
    with pytest.raises(ConfigurationError, match=message):
        ResumabilityConfig(**fields)
