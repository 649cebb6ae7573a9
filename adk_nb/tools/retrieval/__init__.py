"""Tools that find passages in documents, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "BaseRetrievalTool": "adk_nb.tools.retrieval.base_retrieval_tool",
        "FilesRetrieval": "adk_nb.tools.retrieval.files_retrieval",
        "LlamaIndexRetrieval": "adk_nb.tools.retrieval.llama_index_retrieval",
        "VertexAiRagRetrieval": "adk_nb.tools.retrieval.vertex_ai_rag_retrieval",
    },
)
