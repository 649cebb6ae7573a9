"""Memory across sessions, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "BaseMemoryService": "adk_nb.memory.base_memory_service",
        "InMemoryMemoryService": "adk_nb.memory.in_memory_memory_service",
        "MemoryEntry": "adk_nb.memory.memory_entry",
        "SearchMemoryResponse": "adk_nb.memory.base_memory_service",
        "SqliteMemoryService": "adk_nb.memory.sqlite_memory_service",
        "VertexAiRagMemoryService": "adk_nb.memory.vertex_ai_rag_memory_service",
    },
    cloud={
        "VertexAiMemoryBankService": 'SqliteMemoryService("memory.db")',
    },
)
