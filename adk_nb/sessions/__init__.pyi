from adk_nb.errors import StateSchemaError as StateSchemaError
from adk_nb.sessions.base_session_service import BaseSessionService as BaseSessionService
from adk_nb.sessions.base_session_service import GetSessionConfig as GetSessionConfig
from adk_nb.sessions.in_memory_session_service import InMemorySessionService as InMemorySessionService
from adk_nb.sessions.session import ListSessionsResponse as ListSessionsResponse
from adk_nb.sessions.session import Session as Session
from adk_nb.sessions.sqlite_session_service import SqliteSessionService as SqliteSessionService
from adk_nb.sessions.state import State as State
