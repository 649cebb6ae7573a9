"""What every credential service promises, and what only one of them does."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends.fail import Keyring as NoKeyring

from adk_nb import sync, types
from adk_nb.auth import APIKey, APIKeyIn, AuthConfig, AuthCredential, AuthCredentialTypes, OAuth2Auth
from adk_nb.auth.credential_service import (
    BaseCredentialService,
    FileCredentialService,
    InMemoryCredentialService,
    KeyringCredentialService,
)
from adk_nb.auth.credential_service.session_state_credential_service import SessionStateCredentialService
from adk_nb.errors import ConfigurationError, StorageError
from adk_nb.models.scripted_llm import call
from adk_nb.runners import Runner
from adk_nb.sessions import InMemorySessionService
from adk_nb.tools import FunctionTool, ToolContext
from tests.support.talk import guide


class Store(KeyringBackend):
    """A store of secrets in memory, in the place of the system's."""

    priority = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


@pytest.fixture
def store() -> Iterator[Store]:
    earlier_keyring, ours = keyring.get_keyring(), Store()
    keyring.set_keyring(ours)
    yield ours
    keyring.set_keyring(earlier_keyring)


@pytest.fixture(params=["memory", "file", "keyring"])
def service(request: pytest.FixtureRequest, tmp_path: Path, store: Store) -> BaseCredentialService:
    if request.param == "file":
        return FileCredentialService(tmp_path / "kept")
    return InMemoryCredentialService() if request.param == "memory" else KeyringCredentialService()


def config(token: str | None = None, key: str = "") -> AuthConfig:
    credential = token and AuthCredential(auth_type=AuthCredentialTypes.OAUTH2, oauth2=OAuth2Auth(access_token=token))
    scheme = APIKey(in_=APIKeyIn.header, name="X")
    return AuthConfig(auth_scheme=scheme, credential_key=key, exchanged_auth_credential=credential or None)


def whose(user: str = "u", app: str = "app") -> Any:
    return SimpleNamespace(user_id=user, session=SimpleNamespace(app_name=app))


def load(service: BaseCredentialService, by: Any = None, key: str = "") -> AuthCredential | None:
    return sync.run(service.load_credential(config(key=key), by or whose()))


def save(service: BaseCredentialService, token: str | None, by: Any = None, key: str = "") -> None:
    sync.run(service.save_credential(config(token, key), by or whose()))


def test_the_newest_is_given_back_and_none_forgets_it(service: BaseCredentialService):
    assert load(service) is None
    save(service, "first")
    save(service, "second")

    assert load(service) == config("second").exchanged_auth_credential

    save(service, None)
    save(service, None)
    assert load(service) is None


def test_what_is_given_back_is_the_callers_copy(service: BaseCredentialService):
    save(service, "first")
    result = load(service)
    assert result and result.oauth2
    result.oauth2.access_token = "changed"

    assert load(service) == config("first").exchanged_auth_credential


@pytest.mark.parametrize("hostile", ["../x", "/etc/passwd", "a\0b", "CON", "\ud800", "x" * 1000, "u/app"])
def test_each_user_app_and_key_has_its_own(service: BaseCredentialService, hostile: str):
    save(service, "mine")
    save(service, "theirs", whose(hostile))
    save(service, "other app", whose(app=hostile))
    save(service, "other key", key=hostile)

    assert load(service) == config("mine").exchanged_auth_credential
    assert load(service, whose(hostile)) == config("theirs").exchanged_auth_credential
    assert load(service, whose(app=hostile)) == config("other app").exchanged_auth_credential
    assert load(service, key=hostile) == config("other key").exchanged_auth_credential


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_files_are_their_owners_alone_and_stay_in_their_folder(tmp_path: Path):
    service = FileCredentialService(tmp_path / "kept")

    save(service, "a-token", whose("../../x"))

    [file] = (tmp_path / "kept").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
def test_a_folder_that_others_may_look_into_is_refused(tmp_path: Path):
    tmp_path.chmod(0o755)

    with pytest.raises(ConfigurationError, match="chmod 700"):
        FileCredentialService(tmp_path)


def test_a_file_that_is_no_credential_is_told_without_its_words(tmp_path: Path):
    service = FileCredentialService(tmp_path / "kept")
    save(service, "a-token")
    [file] = (tmp_path / "kept").iterdir()
    file.write_text('{"authType": "a-token-that-was-cut')

    with pytest.raises(StorageError, match="delete it") as caught:
        load(service)

    assert "that-was-cut" not in str(caught.value) and "that-was-cut" not in str(caught.value.__cause__)


def test_without_a_store_of_secrets_the_keyring_says_what_to_write():
    earlier_keyring = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())
    try:
        with pytest.raises(ConfigurationError, match="FileCredentialService"):
            KeyringCredentialService()
    finally:
        keyring.set_keyring(earlier_keyring)


def test_a_runner_of_a_later_process_finds_what_is_kept(tmp_path: Path):
    scheme, log = APIKey(in_=APIKeyIn.header, name="X"), list[str | None]()

    def fetch(tool_context: ToolContext) -> str:
        """Fetch it."""
        log.append(tool_context.auth_credential and tool_context.auth_credential.api_key)
        return "fetched"

    def run(*answers: Any, new_message: Any = "hi", sessions: InMemorySessionService) -> list[Any]:
        tool = FunctionTool(fetch, auth_config=AuthConfig(auth_scheme=scheme))
        runner = Runner(
            app_name="app",
            agent=guide(*answers, tools=[tool]),
            session_service=sessions,
            credential_service=FileCredentialService(tmp_path / "kept"),
            auto_create_session=True,
        )
        return list(runner.run(user_id="u", session_id="s", new_message=new_message))

    sessions = InMemorySessionService()
    asks = run(call("fetch"), sessions=sessions)[1].get_function_calls()[0]
    text = {"functionResponse": {"id": asks.id, "name": asks.name, "response": {"apiKey": "a-persons-key"}}}
    run("done", new_message=types.Part.model_validate(text), sessions=sessions)
    run(call("fetch"), "done", sessions=InMemorySessionService())

    assert log == ["a-persons-key"] * 2


def test_a_service_that_keeps_tokens_for_all_to_read_is_none_and_says_what_to_write():
    with pytest.raises(
        ConfigurationError, match=r"InMemoryCredentialService\(\), KeyringCredentialService\(\) or File"
    ):
        SessionStateCredentialService()
