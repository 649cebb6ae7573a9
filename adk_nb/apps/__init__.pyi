from adk_nb.apps.app import App as App
from adk_nb.apps.app import EventsCompactionConfig as EventsCompactionConfig
from adk_nb.apps.base_events_summarizer import BaseEventsSummarizer as BaseEventsSummarizer
from adk_nb.apps.llm_event_summarizer import LlmEventSummarizer as LlmEventSummarizer
from adk_nb.runtime.run_config import ResumabilityConfig as ResumabilityConfig
