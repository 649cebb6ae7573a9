"""%key: a key gets into the kernel, and into nothing that is shown or saved."""

import getpass
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import keyring
import pytest
from IPython.core.error import StdinNotImplementedError
from keyring.backend import KeyringBackend
from keyring.errors import NoKeyringError

from adk_nb import redaction
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.models.vendor_facts import ANTHROPIC, OPENAI
from tests.models.gemini_server import GeminiServer, Reply
from tests.notebook.conftest import Shell

KEY = "Qx7-not-a-real-key-0042"
NAMES = ("GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "TAVILY_API_KEY")


class Ring(KeyringBackend):
    """A keyring in memory."""

    priority = 1  # pyright: ignore[reportAssignmentType]

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}
        super().__init__()

    def get_password(self, service: str, username: str) -> str | None:
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.held[service, username] = password


@pytest.fixture
def work(tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of a notebook in which no key is set, and nobody types one."""
    for name in (*NAMES, "KAGGLE_KERNEL_RUN_TYPE", "BINDER_SERVICE_HOST"):
        monkeypatch.setenv(name, "")  # so that what the test sets is taken back
        monkeypatch.delenv(name)
    shell.ip.starting_dir = str(tmp_path)

    def nobody(prompt: str) -> str:
        raise StdinNotImplementedError("no frontend")

    monkeypatch.setattr(getpass, "getpass", nobody)
    before = keyring.get_keyring()
    keyring.set_keyring(Ring())
    yield tmp_path
    keyring.set_keyring(before)
    redaction.forget()


@pytest.fixture
def ring(work: Path) -> Ring:
    found = keyring.get_keyring()
    assert isinstance(found, Ring)
    return found


def types_in(monkeypatch: pytest.MonkeyPatch, text: str) -> list[str]:
    prompts: list[str] = []

    def typed(prompt: str) -> str:
        prompts.append(prompt)
        return text

    monkeypatch.setattr(getpass, "getpass", typed)
    return prompts


def first_line(shell: Shell, cell: str) -> str:
    return str(shell.cell(cell)).splitlines()[0]


def saved(shell: Shell) -> str:
    """All that a notebook would keep: what was typed, and what was shown."""
    return "\n".join([shell.printed, *map(str, shell.ip.history_manager.input_hist_raw), repr(shell.ip.user_ns["Out"])])


def test_a_key_is_typed_into_a_hidden_field(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    prompts = types_in(monkeypatch, f"  {KEY}\n")
    line = first_line(shell, "%key gemini")

    assert line.startswith("GOOGLE_API_KEY ") and line.endswith("your input")
    assert [prompt.split()[0] for prompt in prompts] == ["GOOGLE_API_KEY"]
    assert os.environ["GOOGLE_API_KEY"] == KEY
    assert KEY not in saved(shell)


def test_a_new_key_is_hidden_from_then_on(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    types_in(monkeypatch, KEY)
    shell.cell("%key gemini")
    shell.cell("import os\nmine = os.environ['GOOGLE_API_KEY']")

    message = shell.fails("%%agent guide\nUse {{mine}}.")
    assert "{{mine}}" in message and "secret" in message and KEY not in message
    assert redaction.hidden(f"told {KEY}") == "told [secret]"


def test_a_key_in_the_environment_is_used(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GEMINI_API_KEY", KEY)

    line = first_line(shell, "%key google")
    assert line.startswith("GEMINI_API_KEY ") and line.endswith("the environment")
    assert "GOOGLE_API_KEY" not in os.environ
    assert first_line(shell, "%key").startswith("GEMINI_API_KEY ")


def test_a_key_is_found_in_dotenv_beside_the_notebook_or_above(shell: Shell, work: Path):
    (work / ".env").write_text(f"# mine\nOTHER=1\nOPENAI_API_KEY='{KEY}'\n")
    (work / "lessons").mkdir()
    shell.ip.starting_dir = str(work / "lessons")

    line = first_line(shell, "%key openai")
    assert line.startswith("OPENAI_API_KEY ") and line.endswith(" .env")
    assert os.environ["OPENAI_API_KEY"] == KEY
    assert "OTHER" not in os.environ
    assert KEY not in saved(shell)


def test_a_key_is_found_in_the_keyring(shell: Shell, ring: Ring):
    ring.held["adk_nb", "ANTHROPIC_API_KEY"] = KEY

    line = first_line(shell, "%key anthropic")
    assert line.startswith("ANTHROPIC_API_KEY ") and line.endswith("the keyring")
    assert os.environ["ANTHROPIC_API_KEY"] == KEY


def test_a_missing_keyring_is_an_error_only_if_the_line_names_it(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    def none(service: str, name: str) -> None:
        raise NoKeyringError("none")

    monkeypatch.setattr(keyring, "get_password", none)
    types_in(monkeypatch, KEY)

    assert first_line(shell, "%key openai").endswith("your input")
    message = shell.fails("%key openai --from keyring")
    assert message.startswith("InputError: %key: ") and "NoKeyringError" in message and "--from" in message


class SecretNotFoundError(Exception):
    """As google.colab.userdata has it."""


class NotebookAccessError(Exception):
    """As google.colab.userdata has it."""


def in_colab(monkeypatch: pytest.MonkeyPatch, secrets: dict[str, Any]) -> None:
    colab, userdata = ModuleType("google.colab"), ModuleType("google.colab.userdata")

    def get(name: str) -> str:
        found = secrets.get(name, SecretNotFoundError(name))
        if isinstance(found, Exception):
            raise found
        return found

    userdata.get = get  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "google.colab", colab)
    monkeypatch.setitem(sys.modules, "google.colab.userdata", userdata)


def test_a_key_is_found_in_the_secrets_of_colab(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    in_colab(monkeypatch, {"GEMINI_API_KEY": KEY})

    line = first_line(shell, "%key gemini")
    assert line.startswith("GOOGLE_API_KEY ") and line.endswith("Colab's secrets")
    assert os.environ["GOOGLE_API_KEY"] == KEY


def test_an_error_of_colab_names_the_secret(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    in_colab(monkeypatch, {"GOOGLE_API_KEY": NotebookAccessError("not granted")})

    denied = shell.fails("%key gemini")
    assert denied.startswith("InputError: %key: Colab ") and "GOOGLE_API_KEY" in denied
    assert "NotebookAccessError: not granted" in denied
    missing = shell.fails("%key openai --from colab")
    assert missing.startswith("InputError: %key: ") and missing.count("OPENAI_API_KEY") == 2
    assert "Colab" in missing


def test_a_key_is_found_in_the_secrets_of_kaggle(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    class UserSecretsClient:
        def get_secret(self, name: str) -> str:
            return {"GOOGLE_API_KEY": KEY}[name]

    kaggle = ModuleType("kaggle_secrets")
    kaggle.UserSecretsClient = UserSecretsClient  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "kaggle_secrets", kaggle)
    monkeypatch.setenv("KAGGLE_KERNEL_RUN_TYPE", "Interactive")

    line = first_line(shell, "%key gemini")
    assert line.startswith("GOOGLE_API_KEY ") and line.endswith("Kaggle's secrets")


def test_from_names_the_only_place_to_look(shell: Shell, ring: Ring, work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "an-old-one-0000")
    ring.held["adk_nb", "OPENAI_API_KEY"] = KEY

    line = first_line(shell, "%key openai --from keyring")
    assert line.startswith("OPENAI_API_KEY ") and line.endswith("the keyring")
    assert os.environ["OPENAI_API_KEY"] == KEY
    types_in(monkeypatch, "another-one-1111")
    line = first_line(shell, "%key openai --from ask")
    assert line.endswith("your input")
    assert os.environ["OPENAI_API_KEY"] == "another-one-1111"


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        ("%key gemnii", ("%key: ", "'gemnii'", "did you mean gemini?", "%key TAVILY_API_KEY")),
        ("%key gemini --from env", ("%key: GOOGLE_API_KEY or GEMINI_API_KEY ", "the environment; ")),
        ("%key gemini --from dotenv", ("%key: GOOGLE_API_KEY or GEMINI_API_KEY ", ".env; ", "GOOGLE_API_KEY=")),
        ("%key gemini --from keyring", ("%key: ", "the keyring; ", "keyring set adk_nb GOOGLE_API_KEY")),
        ("%key gemini --from colab", ("%key: ", "not Colab; ", "%key without --from")),
        ("%key gemini --from kaggle", ("%key: ", "not Kaggle; ", "%key without --from")),
        ("%key gemini --from keyrign", ("%key --from: ", "'keyrign'; ", "env, colab, kaggle, dotenv, keyring or ask")),
        ("%key gemini openai", ("%key ", "%key gemini")),
        ("%key gemini", ("%key: GOOGLE_API_KEY ", ".env")),
    ],
)
def test_an_error_names_the_place_and_what_to_type(line: str, facts: tuple[str, ...], shell: Shell, work: Path):
    message = shell.fails(line)
    assert message.startswith(f"InputError: {facts[0]}")
    assert all(fact in message for fact in facts)


@pytest.mark.parametrize(
    ("line", "whose"),
    [
        ("%key {}", "gemini"),
        ("%key {}==", "gemini"),
        ("%key gemini {}", "gemini"),
        ("%key {} --forget", "gemini"),
        ("%key openai {}", "openai"),
        ("%key OPENAI_API_KEY={}", "OPENAI_API_KEY"),
        ("%key anthropic={}", "anthropic"),
        ("%key TAVILY_API_KEY {}", "TAVILY_API_KEY"),
        ("%key TAVILY_API_KEY=mine", "TAVILY_API_KEY"),
    ],
)
def test_a_key_on_the_line_is_refused_and_not_repeated(line: str, whose: str, shell: Shell, work: Path):
    key = "AIza" + "b3" * 16
    message = shell.fails(line.format(key))

    assert message.startswith("InputError: %key ")
    assert f" type %key {whose}, " in message and key not in message


@pytest.mark.parametrize("line", ["%key openai Qx7-12", "%key Qx7-12", "%key openai env Qx7-12"])
def test_a_key_in_an_unknown_format_is_not_repeated(line: str, shell: Shell, work: Path):
    assert "Qx7" not in shell.fails(line)


def test_a_refused_word_that_is_no_key_is_not_hidden_later(shell: Shell, work: Path):
    message = shell.fails("%key gemini gemini-2.5-flash")
    assert "takes no key" in message

    text = "answered by gemini-2.5-flash"
    assert redaction.hidden(text) == text


@pytest.mark.parametrize("typed", ["two words", '"quoted-0001"', ""])
def test_a_value_with_blanks_or_quotes_is_refused_and_not_repeated(
    typed: str, shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    types_in(monkeypatch, typed)
    message = shell.fails("%key gemini")

    assert message.startswith("InputError: %key: ")
    assert not typed or typed not in message
    assert "GOOGLE_API_KEY" not in os.environ


def test_any_other_key_is_named_by_its_variable_and_can_be_forgotten(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    types_in(monkeypatch, KEY)

    shell.cell("%key TAVILY_API_KEY")
    assert os.environ["TAVILY_API_KEY"] == KEY
    forget = "%key TAVILY_API_KEY --forget"
    removed = str(shell.cell(forget))
    assert "TAVILY_API_KEY" in removed and "removed" in removed
    assert "TAVILY_API_KEY" not in os.environ
    assert "not set" in str(shell.cell(forget))
    assert "%key openai" in first_line(shell, "%key")


def test_on_a_public_binder_it_warns(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BINDER_SERVICE_HOST", "10.0.0.1")
    types_in(monkeypatch, KEY)

    warning = str(shell.cell("%key gemini")).splitlines()[-1]
    assert "Binder" in warning and "GOOGLE_API_KEY" in warning


# ---- the default model

WAITER = "%%agent waiter\nYou serve drinks."


def says(server: GeminiServer, text: str) -> None:
    """Let the server answer the next request as OpenAI's does."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    server.replies.append(Reply(json.dumps(body).encode()))


def test_the_default_model_follows_the_key_at_once(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    types_in(monkeypatch, KEY)
    shell.cell(WAITER)
    with GeminiServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        says(server, "Coffee?")
        told = str(shell.cell("%key openai"))
        reply = shell.cell("%chat waiter Hi")

    assert reply.text == "Coffee?"
    assert server.requests[0].body["model"] == OPENAI.default_model and OPENAI.default_model in told
    again = str(shell.cell(WAITER))
    assert "unchanged" not in again and f"model offline → {OPENAI.default_model}" in again
    assert "unchanged" in str(shell.cell(WAITER))
    assert f"model {OPENAI.default_model} → offline" in str(shell.cell("%key openai --forget") and shell.cell(WAITER))


def test_a_missing_vendor_package_comes_with_the_line_that_installs_it(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    types_in(monkeypatch, KEY)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    shell.cell(WAITER)
    install = '%pip install "anthropic<'

    assert install in str(shell.cell("%key claude"))
    assert install in str(shell.cell("%doctor"))
    shell.fails("%chat waiter Hi")
    assert install in shell.printed


def test_a_key_that_does_not_change_the_default_model_says_how_to_change_it(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    def found(vendor: str) -> str:
        return f"{vendor}_API_KEY is set"

    types_in(monkeypatch, KEY)
    shell.cell("%key gemini")
    after_another = str(shell.cell("%key anthropic"))
    shell.cell('%config AdkNb.model = "offline"')
    as_set = str(shell.cell("%key openai"))

    assert f"still {GEMINI_MODEL} (GOOGLE_API_KEY " in after_another
    assert after_another.endswith(f'%config AdkNb.model = "{ANTHROPIC.default_model}"')
    assert "still offline" in as_set and as_set.endswith('%config AdkNb.model = ""')
    shell.cell('%config AdkNb.model = ""')
    assert str(shell.cell("%key")).endswith(f"{GEMINI_MODEL} ({found('GOOGLE')})")
    assert str(shell.cell("%key gemini --forget")).endswith(f"{OPENAI.default_model} ({found('OPENAI')})")


def test_ollama_needs_no_key(shell: Shell, work: Path):
    assert '"ollama:llama3.2"' in shell.fails("%key ollama")


def test_the_offline_model_names_the_magic_for_each_vendor(shell: Shell, work: Path):
    shell.cell(WAITER)
    told = shell.cell("%chat waiter Hi").text

    assert all(f"%key {vendor}" in told for vendor in ("gemini", "openai", "anthropic"))
    assert "GOOGLE_API_KEY" not in told
