"""Storage for users' credentials, under ADK's import paths."""

from adk_nb.lazy import face

__getattr__, __dir__ = face(
    __name__,
    {
        "BaseCredentialService": "adk_nb.auth.credential_service.base_credential_service",
        "FileCredentialService": "adk_nb.auth.credential_service.file_credential_service",
        "InMemoryCredentialService": "adk_nb.auth.credential_service.in_memory_credential_service",
        "KeyringCredentialService": "adk_nb.auth.credential_service.keyring_credential_service",
    },
)
