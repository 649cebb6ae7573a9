"""Sessions and session services, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    cloud={
        "VertexAiSessionService": 'SqliteSessionService("nb.db"), or DatabaseSessionService("postgresql://...")',
    },
)
