"""Credentials in a folder that nobody else may read."""

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
from adk_nb.auth.credential_service.base_credential_service import BaseCredentialService, Whose, place_of
from adk_nb.errors import ConfigurationError, StorageError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class FileCredentialService(BaseCredentialService):
    """One file a credential, mode 0600, in a folder of mode 0700; as JSON, not encrypted."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """`folder`: made if it is not there.

        Raises:
            ConfigurationError: It cannot be made, is no folder, or others may look into it.
        """
        self.folder = Path(folder).expanduser()
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            mode = self.folder.stat().st_mode
        except OSError as error:
            raise ConfigurationError(f"credentials cannot be kept in {str(self.folder)!r}: {error.strerror}") from error
        if os.name == "posix" and mode & _OTHERS:
            raise ConfigurationError(
                f"others may look into {str(self.folder)!r}, where credentials are to be kept; "
                f"type: !chmod 700 {self.folder}"
            )

    def __repr__(self) -> str:
        return f"FileCredentialService({str(self.folder)!r})"

    async def load_credential(self, auth_config: AuthConfig, callback_context: Whose) -> AuthCredential | None:
        path = self._path(auth_config, callback_context)
        try:
            return AuthCredential.model_validate_json(await sync.service_call(lambda: _read(path)))
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:  # its words do not repeat what is in the file
            raise StorageError(
                f"the credential in {path.name!r} cannot be read; delete it, and be asked anew"
            ) from error

    async def save_credential(self, auth_config: AuthConfig, callback_context: Whose) -> None:
        path = self._path(auth_config, callback_context)
        credential = auth_config.exchanged_auth_credential
        try:
            if credential is None:
                path.unlink(missing_ok=True)
            else:
                kept = credential.model_dump_json(by_alias=True, exclude_none=True).encode()
                await sync.service_call(lambda: _write(path, kept))
        except OSError as error:
            raise StorageError(f"a credential cannot be kept in {str(self.folder)!r}: {error.strerror}") from error

    def _path(self, auth_config: AuthConfig, callback_context: Whose) -> Path:
        """A name that tells nothing, and that no key or user id can lead out of the folder."""
        place = "\0".join(place_of(auth_config, callback_context))
        return self.folder / f"{hashlib.sha256(place.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}.json"


def _read(path: Path) -> bytes:
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
        return file.read()


def _write(path: Path, data: bytes) -> None:
    """In one step: who reads meanwhile, or after a crash, finds the old one or the new one."""
    fresh = path.with_suffix(f".{secrets.token_hex(8)}")
    try:
        with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            fresh.unlink()
        raise
