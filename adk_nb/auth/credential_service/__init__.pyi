from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService as BaseCredentialService
from adk_nb.auth.credential_service.file_credential_service import FileCredentialService as FileCredentialService
from adk_nb.auth.credential_service.in_memory_credential_service import (
    InMemoryCredentialService as InMemoryCredentialService,
)
from adk_nb.auth.credential_service.keyring_credential_service import (
    KeyringCredentialService as KeyringCredentialService,
)
