"""Apps, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "App": "adk_nb.apps.app",
        "BaseEventsSummarizer": "adk_nb.apps.base_events_summarizer",
        "EventsCompactionConfig": "adk_nb.apps.app",
        "LlmEventSummarizer": "adk_nb.apps.llm_event_summarizer",
        "ResumabilityConfig": "adk_nb.runtime.run_config",
    },
)
