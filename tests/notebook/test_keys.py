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
from adk_nb.models.default_model import CLAUDE_MODEL, GEMINI_MODEL, OPENAI_MODEL
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


def test_a_key_is_asked_for_in_a_field_that_does_not_show_it(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    prompts = types_in(monkeypatch, f"  {KEY}\n")
    said = str(shell.cell("%key gemini")).splitlines()

    assert said[0] == "GOOGLE_API_KEY is set, from what you typed"
    assert prompts == ["GOOGLE_API_KEY (it is not shown): "]
    assert os.environ["GOOGLE_API_KEY"] == KEY
    assert KEY not in saved(shell)


def test_a_key_that_came_in_is_hidden_from_then_on(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    types_in(monkeypatch, KEY)
    shell.cell("%key gemini")
    shell.cell("import os\nmine = os.environ['GOOGLE_API_KEY']")

    assert "{{mine}} looks like a secret and was not put in" in shell.fails("%%agent guide\nUse {{mine}}.")
    assert redaction.hidden(f"told {KEY}") == "told [secret]"


def test_what_is_set_already_is_taken_as_it_is(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GEMINI_API_KEY", KEY)

    assert first_line(shell, "%key google") == "GEMINI_API_KEY is set, from the environment"
    assert "GOOGLE_API_KEY" not in os.environ
    assert first_line(shell, "%key") == "GEMINI_API_KEY is set"


def test_a_key_is_found_in_dotenv_beside_the_notebook_or_above(shell: Shell, work: Path):
    (work / ".env").write_text(f"# mine\nOTHER=1\nOPENAI_API_KEY='{KEY}'\n")
    (work / "lessons").mkdir()
    shell.ip.starting_dir = str(work / "lessons")

    assert first_line(shell, "%key openai") == "OPENAI_API_KEY is set, from .env"
    assert os.environ["OPENAI_API_KEY"] == KEY
    assert "OTHER" not in os.environ
    assert KEY not in saved(shell)


def test_a_key_is_found_in_the_keyring(shell: Shell, ring: Ring):
    ring.held["adk_nb", "ANTHROPIC_API_KEY"] = KEY

    assert first_line(shell, "%key anthropic") == "ANTHROPIC_API_KEY is set, from the keyring"
    assert os.environ["ANTHROPIC_API_KEY"] == KEY


def test_a_machine_without_a_keyring_is_no_fault_unless_it_was_asked_for(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    def none(service: str, name: str) -> None:
        raise NoKeyringError("none")

    monkeypatch.setattr(keyring, "get_password", none)
    types_in(monkeypatch, KEY)

    assert "from what you typed" in str(shell.cell("%key openai"))
    assert shell.fails("%key openai --from keyring") == (
        "InputError: %key: the keyring does not answer: NoKeyringError; take another place"
    )


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

    assert first_line(shell, "%key gemini") == "GOOGLE_API_KEY is set, from Colab's secrets"
    assert os.environ["GOOGLE_API_KEY"] == KEY


def test_a_secret_that_colab_keeps_back_says_so(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    in_colab(monkeypatch, {"GOOGLE_API_KEY": NotebookAccessError("not granted")})

    assert shell.fails("%key gemini") == (
        "InputError: %key: Colab does not hand GOOGLE_API_KEY out: NotebookAccessError: not granted; let this notebook "
        "read it in the list of secrets"
    )
    assert shell.fails("%key openai --from colab") == (
        "InputError: %key: OPENAI_API_KEY is not in Colab's secrets; add OPENAI_API_KEY with the key symbol at the "
        "left, and let this notebook read it"
    )


def test_a_key_is_found_in_the_secrets_of_kaggle(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    class UserSecretsClient:
        def get_secret(self, name: str) -> str:
            return {"GOOGLE_API_KEY": KEY}[name]

    kaggle = ModuleType("kaggle_secrets")
    kaggle.UserSecretsClient = UserSecretsClient  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, "kaggle_secrets", kaggle)
    monkeypatch.setenv("KAGGLE_KERNEL_RUN_TYPE", "Interactive")

    assert first_line(shell, "%key gemini") == "GOOGLE_API_KEY is set, from Kaggle's secrets"


def test_where_to_look_can_be_said(shell: Shell, ring: Ring, work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "an-old-one-0000")
    ring.held["adk_nb", "OPENAI_API_KEY"] = KEY

    assert first_line(shell, "%key openai --from keyring") == "OPENAI_API_KEY is set, from the keyring"
    assert os.environ["OPENAI_API_KEY"] == KEY
    types_in(monkeypatch, "another-one-1111")
    assert first_line(shell, "%key openai --from ask") == "OPENAI_API_KEY is set, from what you typed"
    assert os.environ["OPENAI_API_KEY"] == "another-one-1111"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("%key gemnii", "%key knows no 'gemnii'; did you mean gemini? any other is named by its"),
        (
            "%key gemini --from env",
            "%key: GOOGLE_API_KEY or GEMINI_API_KEY is not in the environment; set it before the",
        ),
        (
            "%key gemini --from dotenv",
            "%key: GOOGLE_API_KEY or GEMINI_API_KEY is not in .env; add a line GOOGLE_API_KEY=",
        ),
        (
            "%key gemini --from keyring",
            "%key: GOOGLE_API_KEY or GEMINI_API_KEY is not in the keyring; type in a terminal",
        ),
        ("%key gemini --from colab", "%key: this is not Colab; type %key without --from"),
        ("%key gemini --from kaggle", "%key: this is not Kaggle; type %key without --from"),
        (
            "%key gemini --from keyrign",
            "%key --from: unknown place 'keyrign'; use env, colab, kaggle, dotenv, keyring or ask",
        ),
        ("%key gemini openai", "%key takes one provider at a time, and no key; write %key gemini"),
        ("%key gemini", "%key: GOOGLE_API_KEY is set nowhere, and nobody can be asked here; set it before the kernel"),
    ],
)
def test_what_cannot_be_says_what_to_type(line: str, said: str, shell: Shell, work: Path):
    assert shell.fails(line).startswith(f"InputError: {said}")


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
    said = shell.fails(line.format(key))

    assert said == (
        "InputError: %key takes no key: what is typed in a cell stays in the notebook; take it out of the cell, type "
        f"%key {whose}, and paste the key into the field that opens"
    )


@pytest.mark.parametrize("line", ["%key openai Qx7-12", "%key Qx7-12", "%key openai env Qx7-12"])
def test_a_key_of_a_kind_that_nobody_knows_is_not_repeated_either(line: str, shell: Shell, work: Path):
    assert "Qx7" not in shell.fails(line)


def test_a_word_that_is_no_key_is_no_secret_afterwards(shell: Shell, work: Path):
    assert "takes no key" in shell.fails("%key gemini gemini-2.5-flash")

    assert redaction.hidden("answered by gemini-2.5-flash") == "answered by gemini-2.5-flash"


@pytest.mark.parametrize("typed", ["two words", '"quoted-0001"', ""])
def test_what_is_no_key_is_refused_and_not_repeated(
    typed: str, shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    types_in(monkeypatch, typed)
    said = shell.fails("%key gemini")

    assert said.startswith("InputError: %key: ")
    assert not typed or typed not in said
    assert "GOOGLE_API_KEY" not in os.environ


def test_any_other_key_is_named_by_its_variable_and_can_be_forgotten(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    types_in(monkeypatch, KEY)

    assert first_line(shell, "%key TAVILY_API_KEY") == "TAVILY_API_KEY is set, from what you typed"
    assert str(shell.cell("%key TAVILY_API_KEY --forget")) == "TAVILY_API_KEY is not set any more in this kernel"
    assert "TAVILY_API_KEY" not in os.environ
    assert str(shell.cell("%key TAVILY_API_KEY --forget")) == "TAVILY_API_KEY was not set"
    assert "%key openai" in first_line(shell, "%key")


def test_on_a_public_binder_it_warns(shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BINDER_SERVICE_HOST", "10.0.0.1")
    types_in(monkeypatch, KEY)

    assert str(shell.cell("%key gemini")).splitlines()[-1] == (
        "this runs on a public Binder, whose keeper could read GOOGLE_API_KEY: use a key that you can throw away"
    )


# ---- the model of agents that name none

WAITER = "%%agent waiter\nYou serve drinks."


def says(server: GeminiServer, text: str) -> None:
    """Let the server answer the next request as OpenAI's does."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    server.replies.append(Reply(json.dumps(body).encode()))


def test_agents_that_name_no_model_ask_the_vendor_whose_key_was_set_at_once(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    types_in(monkeypatch, KEY)
    shell.cell(WAITER)
    with GeminiServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        says(server, "Coffee?")
        told = str(shell.cell("%key openai"))
        reply = shell.cell("%chat waiter Hi")

    assert reply.text == "Coffee?"
    assert server.requests[0].body["model"] == OPENAI_MODEL and OPENAI_MODEL in told
    again = str(shell.cell(WAITER))
    assert "unchanged" not in again and f"model offline → {OPENAI_MODEL}" in again
    assert "unchanged" in str(shell.cell(WAITER))
    assert f"model {OPENAI_MODEL} → offline" in str(shell.cell("%key openai --forget") and shell.cell(WAITER))


def test_the_line_that_installs_the_vendor_s_package_is_told_with_the_key(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    types_in(monkeypatch, KEY)
    monkeypatch.setitem(sys.modules, "anthropic", None)
    shell.cell(WAITER)
    install = "%pip install 'adk-nb[anthropic]'"

    assert install in str(shell.cell("%key claude"))
    assert install in str(shell.cell("%doctor"))
    shell.fails("%chat waiter Hi")
    assert install in shell.printed


def test_a_key_that_does_not_decide_says_what_does_and_how_to_ask_its_model(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    types_in(monkeypatch, KEY)
    shell.cell("%key gemini")
    after_another = str(shell.cell("%key anthropic"))
    shell.cell('%config AdkNb.model = "offline"')
    as_set = str(shell.cell("%key openai"))

    assert f"{GEMINI_MODEL} still (GOOGLE_API_KEY is set)" in after_another
    assert after_another.endswith(f'%config AdkNb.model = "{CLAUDE_MODEL}"')
    assert "offline still" in as_set and as_set.endswith('%config AdkNb.model = ""')
    shell.cell('%config AdkNb.model = ""')
    assert str(shell.cell("%key")).endswith(f"{GEMINI_MODEL} (GOOGLE_API_KEY is set)")
    assert str(shell.cell("%key gemini --forget")).endswith(f"{OPENAI_MODEL} (OPENAI_API_KEY is set)")


def test_ollama_needs_no_key_and_is_told_how_it_is_named(shell: Shell, work: Path):
    assert '%config AdkNb.model = "ollama:llama3.2"' in shell.fails("%key ollama")


def test_the_stand_in_names_every_way_to_a_real_model(shell: Shell, work: Path):
    shell.cell(WAITER)
    told = shell.cell("%chat waiter Hi").text

    assert all(f"%key {vendor}" in told for vendor in ("gemini", "openai", "anthropic"))
    assert "GOOGLE_API_KEY" not in told
