"""Secrets in everything a notebook keeps and shows, in a real kernel, in each of IPython's traceback modes."""

import base64
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import nbformat
import planted
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from tests.support.late import late
from tests.support.warm import WARM

nbconvert = late("nbconvert")

pytestmark = pytest.mark.kernel

MODES = ("Context", "Verbose")
"""IPython's own, and the one that shows most."""
ALL_MODES = (*MODES, "Plain", "Minimal", "Docs")
NAMES = (
    "gemini key",
    "own gemini key",
    "gateway key",
    "gateway header",
    "proxy password",
    "variable",
    "password in a variable",
    "database password",
    "cause",
    "context",
    "note",
    "group",
    "log",
    "odd",
    "basic password",
    "additional header",
    "client secret",
    "access token",
    "refresh token",
    "id token",
    "code verifier",
    "code",
    "api key",
    "bearer",
    "private key",
    "key in the query",
    "cookie",
    "provided header",
    "mcp variable",
    "mcp address",
    "mcp header",
    "in the keyring",
    "in a file",
    "named by the author",
)


def secret(name: str) -> str:
    made = "q7Z" + hashlib.sha256(name.encode()).hexdigest()[:21]
    if name == "odd":
        return f"{made[:9]}'\\{{%s}}\"é&+/ {made[9:]}"
    if name == "private key":
        lines = [base64.b64encode(hashlib.sha384(bytes([n])).digest()).decode() for n in range(20)]
        return "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----", ""])
    return made


SECRETS = {name: secret(name) for name in NAMES}


def in_text(text: str) -> set[str]:
    """The secrets that stand in `text`, however they are spelled; 12 characters of one are enough."""
    return {name for name, one in SECRETS.items() if any(piece in text for piece in _pieces(name, one))}


def _pieces(name: str, one: str) -> Iterator[str]:
    if name == "private key":
        yield from (line[:12] for line in one.splitlines()[1:-1])
        return
    if name == "odd":
        yield from (one[:9], one[-12:])
        return
    yield from (one[:12], one[-12:], quote(one))
    if name == "basic password":
        yield base64.b64encode(f"me:{one}".encode()).decode()[:20]


class Done:
    """A notebook that was run, and what it left."""

    def __init__(self, folder: Path, modes: tuple[str, ...]) -> None:
        self.folder = folder
        self.replies: list[dict[str, Any]] = []
        (folder / "secrets.json").write_text(json.dumps(SECRETS))
        self.hidden = [new_code_cell(source) for source in _cells(modes)]
        self.told = [new_code_cell(source) for source in _cells_that_tell()]
        (folder / "secrets.json").chmod(0o600)

    def run(self) -> None:
        book = new_notebook(cells=[*self.hidden, *self.told])
        client = NotebookClient(
            book,
            kernel_name=WARM,
            timeout=60,
            allow_errors=True,
            resources={"metadata": {"path": str(self.folder)}},
            on_cell_executed=lambda cell, cell_index, execute_reply: self.replies.append(execute_reply["content"]),
        )
        client.execute(env=_environment(self.folder))

    def read(self, name: str) -> str:
        return (self.folder / name).read_text(errors="replace")


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "IPYTHONDIR": str(folder / "ipython"),
        "PYTHONPATH": str(Path(planted.__file__).parent),
    }


def _cells(modes: tuple[str, ...]) -> list[str]:
    cells = ["%load_ext adk_nb\nimport planted\nplanted.plant()"]
    for mode in modes:
        cells += [f"%xmode {mode}", *(f"planted.{name}()" for name in planted.FAILURES)]
    cells += ["planted.shown()", "planted.pickled()", "print(planted.record())", "planted.events('events.json')"]
    return [*cells, "%tb"]


def _cells_that_tell() -> list[str]:
    cells = ["planted.tell_everything(); planted.log_to('told.txt')", "%xmode Plain"]
    return [*cells, *(f"planted.{name}()" for name in planted.FAILURES), "planted.events('told.json')"]


@pytest.fixture(scope="module", params=[MODES, pytest.param(ALL_MODES, marks=pytest.mark.kernel_all)], ids=len)
def done(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Done:
    done = Done(tmp_path_factory.mktemp("secrets"), request.param)
    done.run()
    return done


@pytest.mark.kernel_all
def test_every_failure_fails_in_every_mode(done: Done):
    assert len(planted.FAILURES) > 10
    for cell, reply in zip((*done.hidden, *done.told), done.replies, strict=True):
        fails = cell.source.removeprefix("planted.").removesuffix("()") in planted.FAILURES
        assert reply["status"] == ("error" if fails else "ok"), cell


def test_without_the_list_each_secret_would_be_told(done: Done):
    told = json.dumps(done.told, ensure_ascii=False) + done.read("told.txt") + done.read("told.json")

    assert set(NAMES) - in_text(told) == set()


def test_no_saved_notebook_tells_a_secret_nor_does_the_page_made_of_it(done: Done):
    verbose = [cell.source for cell in done.hidden].index("%xmode Verbose")
    longest = done.hidden[verbose : verbose + len(planted.FAILURES) + 1]

    assert in_text(nbformat.writes(new_notebook(cells=done.hidden))) == set()
    assert in_text(json.dumps(done.hidden, ensure_ascii=False)) == set()
    assert in_text(nbconvert.HTMLExporter().from_notebook_node(new_notebook(cells=longest))[0]) == set()


def test_whoever_sent_the_cells_is_told_no_secret(done: Done):
    replies = done.replies[: len(done.hidden)]

    assert any(reply["status"] == "error" for reply in replies)
    assert in_text(json.dumps(replies, ensure_ascii=False)) == set()


def test_events_logs_and_recordings_hold_no_secret(done: Done):
    for name, sign in (("events.json", "[secret]"), ("log.txt", "[secret]"), ("cassette.jsonl", "[secret]")):
        text = done.read(name)

        assert sign in text, name
        assert in_text(text) == set(), name


def test_what_is_pickled_holds_no_secret(done: Done):
    (output,) = next(cell for cell in done.hidden if cell.source == "planted.pickled()").outputs
    files = list(done.folder.glob("*.pickle"))

    assert "environment" in [file.stem for file in files], output
    assert "gemini: ConfigurationError" in output["data"]["text/plain"]
    for file in files:
        assert in_text(file.read_bytes().decode("latin-1")) == set(), file.name
