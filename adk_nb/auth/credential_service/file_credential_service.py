"""Credentials in a private folder."""

import contextlib
import hashlib
import os
import secrets
import stat
from pathlib import Path

from pydantic import ValidationError

from adk_nb import sync
from adk_nb.auth.auth_credential import AuthCredential
from adk_nb.auth.auth_tool import AuthConfig
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService, CredentialOwner, storage_key
from adk_nb.errors import ConfigurationError, StorageError

_GROUP_AND_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class FileCredentialService(BaseCredentialService):
    """One file per credential, mode 0600, in a folder of mode 0700; JSON, not encrypted."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """`folder`: created if missing.

        Raises:
            ConfigurationError: It cannot be created, is not a folder, or is accessible to other users.
        """
        self.folder = Path(folder).expanduser()
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Checked, because mkdir does not change the mode of an existing folder.
            mode = self.folder.stat().st_mode
        except OSError as error:
            raise ConfigurationError(
                f"credentials cannot be stored in {str(self.folder)!r}: {error.strerror}"
            ) from error
        if os.name == "posix" and mode & _GROUP_AND_OTHERS:
            raise ConfigurationError(
                f"folder {str(self.folder)!r} for credentials is open to other users; type: !chmod 700 {self.folder}"
            )

    def __repr__(self) -> str:
        return f"FileCredentialService({str(self.folder)!r})"

    async def load_credential(
        self, auth_config: AuthConfig, callback_context: CredentialOwner
    ) -> AuthCredential | None:
        """Read the credential's file."""
        path = self._path(auth_config, callback_context)
        try:
            return AuthCredential.model_validate_json(await sync.service_call(lambda: _read(path)))
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:  # the message does not quote the file's content
            raise StorageError(
                f"the credential in {path.name!r} cannot be read; delete it and enter the credential again"
            ) from error

    async def save_credential(self, auth_config: AuthConfig, callback_context: CredentialOwner) -> None:
        """Write or delete the credential's file."""
        path = self._path(auth_config, callback_context)
        credential = auth_config.exchanged_auth_credential
        try:
            if credential is None:
                path.unlink(missing_ok=True)
            else:
                data = credential.model_dump_json(by_alias=True, exclude_none=True).encode()
                await sync.service_call(lambda: _write(path, data))
        except OSError as error:
            raise StorageError(f"a credential cannot be stored in {str(self.folder)!r}: {error.strerror}") from error

    def _path(self, auth_config: AuthConfig, callback_context: CredentialOwner) -> Path:
        """A hashed name: it reveals nothing, and no key or user id can escape the folder."""
        key = "\0".join(storage_key(auth_config, callback_context))
        return self.folder / f"{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}.json"


def _read(path: Path) -> bytes:
    # O_NOFOLLOW: a link planted in the folder must not lead elsewhere.
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
        return file.read()


def _write(path: Path, data: bytes) -> None:
    """Write atomically: a concurrent reader, or one after a crash, finds the old or the new content."""
    temporary = path.with_suffix(f".{secrets.token_hex(8)}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # before the rename, so that a crash leaves no partial file
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
