"""OpenTelemetry: a span for each agent, model call and tool call, by its conventions for generative AI."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(__name__)
