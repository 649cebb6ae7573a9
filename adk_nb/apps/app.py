"""Apps: a root agent with a name and the settings of its runs, and the configuration of event compaction."""

import re
from collections.abc import Sequence
from typing import Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adk_nb import apps
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.apps.base_events_summarizer import BaseEventsSummarizer
from adk_nb.errors import ConfigurationError
from adk_nb.flow import history
from adk_nb.models.cache_metadata import ContextCacheConfig
from adk_nb.plugins.base_plugin import BasePlugin
from adk_nb.runtime.invocation_context import RunnableAgent
from adk_nb.runtime.run_config import ResumabilityConfig
from adk_nb.wire import SettingsModel, field_errors

_PAIRS = (("compaction_interval", "overlap_size"), ("token_threshold", "event_retention_size"))


class EventsCompactionConfig(SettingsModel):
    """Keeps long conversations short: EventsCompactionConfig(compaction_interval=5, overlap_size=1).

    A summary replaces the older events in requests to models; the session keeps the events. Set one pair of numbers, or
    both; the token threshold is then checked first.

    Raises:
        ConfigurationError: A field is unknown or invalid, or one of a pair is missing.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    summarizer: BaseEventsSummarizer | None = None
    """None: use the model of the app's root agent."""
    compaction_interval: int | None = Field(default=None, gt=0)
    """Number of new invocations (a user's message with all answers) to summarize at a time, after a run."""
    overlap_size: int | None = Field(default=None, ge=0)
    """Number of earlier invocations to include in a summary again, for continuity."""
    token_threshold: int | None = Field(default=None, gt=0)
    """Number of prompt tokens that triggers a compaction, checked after a run and before each model call."""
    event_retention_size: int | None = Field(default=None, ge=0)
    """Number of newest events to keep then; more if a call would be separated from its response."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        missing = [pair for pair in _PAIRS if (getattr(self, pair[0]) is None) != (getattr(self, pair[1]) is None)]
        if missing:
            raise ConfigurationError(f"{missing[0][0]!r} and {missing[0][1]!r} belong together; give both")
        if self.compaction_interval is None and self.token_threshold is None:
            raise ConfigurationError(
                "EventsCompactionConfig needs a time to summarize; give compaction_interval and overlap_size, "
                "or token_threshold and event_retention_size"
            )


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


class App(BaseModel):
    """The app of a runner: `Runner(app=App(name="shop", root_agent=agent, plugins=[...]), session_service=...)`.

    Raises:
        ConfigurationError: A field is unknown, missing or invalid.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    name: str
    """A letter, then letters, digits, `_` and `-`; not `user`. Sessions and artifacts are stored under it."""
    root_agent: BaseAgent
    """The agent that receives messages."""
    plugins: list[BasePlugin] = Field(default_factory=list[BasePlugin])
    """Plugins in order; they run before the agents' own callbacks."""
    events_compaction_config: EventsCompactionConfig | None = None
    """Compaction of long conversations. None: no compaction."""
    context_cache_config: ContextCacheConfig | None = None
    """Prompt caching by the models' services. None: not requested."""

    resumability_config: ResumabilityConfig | None = None
    """Resumption of interrupted runs. None: only interrupts can be answered."""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            errors = field_errors(error, type(self).model_fields)
            raise ConfigurationError(f"app {fields.get('name')!r}: {errors}") from error
        _check_name(self.name)
        # Now, not at the first summary hours later.
        config = self.events_compaction_config
        if config and config.summarizer is None and not isinstance(self.root_agent, LlmAgent):
            raise ConfigurationError(
                f"app {self.name!r}: summaries need a model, and the root agent {self.root_agent.name!r} "
                f"has none; pass EventsCompactionConfig(summarizer=LlmEventSummarizer(llm=...))"
            )

    def __repr__(self) -> str:
        plugins = f", plugins={[plugin.name for plugin in self.plugins]}" if self.plugins else ""
        return f"App(name={self.name!r}, root_agent={self.root_agent.name!r}{plugins})"

    __str__ = __repr__  # pydantic's prints all fields

    @property
    def is_resumable(self) -> bool:
        """True if runs can be resumed by their invocation id."""
        return self.resumability_config is not None and self.resumability_config.is_resumable

    def compaction(self) -> "history.Compaction | None":
        """The compaction of this app's conversations. None: not configured."""
        config = self.events_compaction_config
        return config and history.Compaction(
            summarizer=self._summarizer,
            interval=config.compaction_interval,
            overlap=config.overlap_size or 0,
            threshold=config.token_threshold,
            retention=config.event_retention_size or 0,
        )

    def _summarizer(self) -> BaseEventsSummarizer:
        summarizer = self.events_compaction_config and self.events_compaction_config.summarizer
        return summarizer or apps.LlmEventSummarizer(cast(LlmAgent, self.root_agent).canonical_model)


def _check_name(name: str) -> None:
    if name == "user":
        raise ConfigurationError("an app cannot be named 'user': that is the author of the user's own messages")
    if not _NAME.fullmatch(name):
        suggestion = re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_-")
        suggestion = suggestion if _NAME.fullmatch(suggestion) else f"app_{suggestion}".rstrip("_")
        raise ConfigurationError(
            f"an app's name is a letter, then letters, digits, '_' and '-', and {name!r} is not; try {suggestion!r}"
        )


def resolve_runner_arguments(
    app: App | None, app_name: str | None, agent: RunnableAgent | None, plugins: Sequence[BasePlugin] | None
) -> tuple[str, RunnableAgent, Sequence[BasePlugin]]:
    """The app's name, the root agent and the plugins of a runner, from its arguments.

    Raises:
        ConfigurationError: The arguments are contradictory or incomplete.
    """
    if app is not None:
        if agent is not None or plugins is not None:
            argument = "agent" if agent is not None else "plugins"
            raise ConfigurationError(
                f"a runner takes its {argument} from app={app.name!r}; "
                f"pass {'one of app and agent' if argument == 'agent' else 'them to App(plugins=[...])'}"
            )
        # The runner's `app_name` wins: an app may use the sessions of another app.
        return app_name or app.name, app.root_agent, app.plugins
    if agent is None:
        raise ConfigurationError(
            "a runner needs something to run; write Runner(app=...), Runner(agent=...) or Runner(node=...)"
        )
    if not app_name:
        raise ConfigurationError("a runner needs the name of its app; write Runner(app_name='my_app', ...)")
    return app_name, agent, plugins or ()
