"""Versioned files of sessions and users, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "ArtifactVersion": "adk_nb.artifacts.base_artifact_service",
        "BaseArtifactService": "adk_nb.artifacts.base_artifact_service",
        "FileArtifactService": "adk_nb.artifacts.file_artifact_service",
        "InMemoryArtifactService": "adk_nb.artifacts.in_memory_artifact_service",
    },
    cloud={
        "GcsArtifactService": 'FileArtifactService("files")',
    },
)
