"""`VertexAiRagMemoryService`: a name of ADK's for a client of Google Cloud, so that modules that name it load."""

from typing import Any

from adk_nb.errors import CloudServiceError
from adk_nb.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from adk_nb.sessions.session import Session

_REFUSAL = (
    'VertexAiRagMemoryService is a client of Google Cloud, which adk_nb lacks; use SqliteMemoryService("memory.db")'
)


class VertexAiRagMemoryService(BaseMemoryService):
    """Takes what ADK's takes. Its use says what to use instead."""

    def __init__(self, rag_corpus: str | None = None, *args: Any, **options: Any) -> None:
        """The arguments are ADK's."""
        self.rag_corpus = rag_corpus

    async def add_session_to_memory(self, session: Session) -> None:
        """Refuse: there is no service to ask.

        Raises:
            CloudServiceError: Always.
        """
        raise CloudServiceError(_REFUSAL)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Refuse, as for a session.

        Raises:
            CloudServiceError: Always.
        """
        raise CloudServiceError(_REFUSAL)
