"""Sessions and session services, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "BaseSessionService": "adk_nb.sessions.base_session_service",
        "DatabaseSessionService": "adk_nb.sessions.database_session_service",
        "GetSessionConfig": "adk_nb.sessions.base_session_service",
        "InMemorySessionService": "adk_nb.sessions.in_memory_session_service",
        "ListSessionsResponse": "adk_nb.sessions.session",
        "Session": "adk_nb.sessions.session",
        "SqliteSessionService": "adk_nb.sessions.sqlite_session_service",
        "State": "adk_nb.sessions.state",
        "StateSchemaError": "adk_nb.errors",
    },
    cloud={
        "VertexAiSessionService": 'SqliteSessionService("nb.db"), or DatabaseSessionService("postgresql://...")',
    },
)
