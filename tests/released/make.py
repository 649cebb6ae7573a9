"""Write what this version stores, through the doors that a user has, for the tests of later versions to read.

python -m tests.released.make    into tests/released/VERSION, once for each release

`nb.db`, `trip.json`, `cassettes/` and `book.ipynb` are of a notebook that a kernel ran; `killed.db` is of a process
that ended in the midst of a payment; `postgres.sql` is the dump of a database.
"""
# pyright: basic
# nbformat carries no types.

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import nbformat

from adk_nb import Chat, LlmAgent, __version__, tool
from adk_nb.models import ScriptedLlm, call
from adk_nb.runners import Runner
from adk_nb.sessions import BaseSessionService, DatabaseSessionService, SqliteSessionService
from notebooks.demo import execute
from tests.sessions.postgres import Postgres, running

TOOL = '''%%tool --confirm "amount > 100"
def pay(to: str, amount: float) -> str:
    """Pay a person an amount in euros."""
    return f"paid {amount:g} euros to {to}"
'''
SPELL = '''%%tool
def count_letter(word: str, letter: str) -> int:
    """Count how often a letter occurs in a word."""
    return word.count(letter)
'''
SPELLER = "%%agent speller -m offline -t count_letter\nYou count letters."
EVAL = """%%eval speller --max-concurrency 1
| id | message | answer |
| --- | --- | --- |
| berry | How often is the letter r in the word strawberry? | 3 |
| plain | How often is the letter z in the word apple? | 5 |
"""
ASKED = "How often is the letter p in the word apple?"
CELLS = [
    '%load_ext adk_nb\n%config AdkNb.sessions = "sqlite:///nb.db"',
    TOOL,
    'from adk_nb.models import ScriptedLlm, call\nmodel = ScriptedLlm("Hello Ada.", call("pay", to="Bo", amount=5.0), '
    '"Bo has it.", call("pay", to="Anna", amount=250.0))',
    "%%agent clerk -m model -t pay\nYou pay what is agreed.",
    "%chat clerk I am Ada.",
    '%state budget=400 user:name="Ada é"',
    "%chat clerk Pay 5 euros to Bo",
    "%session save trip.json",
    "%chat clerk Pay 250 euros to Anna",  # and nobody approves
    SPELL,
    SPELLER,
    f"%session new counted\n%record\n%chat speller {ASKED}",
    "%replay off",
    EVAL,
]


def make(folder: Path) -> None:
    """Write everything into a folder that is not there yet."""
    folder.mkdir(parents=True)
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    for place, cell in enumerate(book.cells):
        cell.id = f"cell-{place}"
    path = folder / "book.ipynb"
    nbformat.write(book, path)
    nbformat.write(execute(path), path)
    subprocess.run([sys.executable, "-m", "tests.released.make", "--killed", folder / "killed.db"], check=False)
    for name in ("nb.db", "killed.db"):
        with closing(sqlite3.connect(folder / name)) as db:  # one file, without what SQLite keeps beside it
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            db.execute("PRAGMA journal_mode=DELETE")
    shutil.rmtree(folder / ".ipynb_checkpoints", ignore_errors=True)
    with running() as postgres:
        asyncio.run(_talk(DatabaseSessionService(postgres.url())))
        (folder / "postgres.sql").write_text(dump(postgres), encoding="utf-8")


def dump(postgres: Postgres) -> str:
    """All tables and rows, as SQL."""
    options = ["--inserts", "--no-owner", "--no-privileges", "--no-comments", "-h", postgres.folder, "-U", "tester"]
    done = subprocess.run(["pg_dump", *options, "postgres"], capture_output=True, text=True, check=True)
    ours = [line for line in done.stdout.splitlines() if line and not line.startswith(("--", "\\", "SET "))]
    return "\n".join(ours) + "\n"


async def _talk(service: BaseSessionService) -> None:
    """A turn that ends, and one that waits for an approval."""

    @tool(confirm=True)
    def pay(to: str, amount: float) -> str:
        """Pay a person an amount in euros."""
        return f"paid {amount:g} euros to {to}"

    model = ScriptedLlm("Hello Ada.", call("pay", to="Anna", amount=250.0))
    runner = Runner(app_name="bank", agent=LlmAgent(name="clerk", model=model, tools=[pay]), session_service=service)
    state = {"budget": 400, "user:name": "Ada é", "app:rate": 1.5}
    await service.create_session(app_name="bank", user_id="ada", session_id="s", state=state)
    for said in ("I am Ada.", "Pay 250 euros to Anna"):
        async for _ in runner.run_async(user_id="ada", session_id="s", new_message=said):
            pass
    await runner.close()
    await service.close()


def _be_killed(path: Path) -> None:
    """End this process while a payment is made."""

    @tool(effect="once")
    def pay(to: str, amount: float) -> str:
        """Pay a person an amount in euros."""
        os._exit(9)

    model = ScriptedLlm(call("pay", to="Anna", amount=250.0))
    clerk = LlmAgent(name="clerk", model=model, tools=[pay])
    Chat(clerk, session="main", session_service=SqliteSessionService(path), show="off").ask("Pay Anna")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--killed"]:
        _be_killed(Path(sys.argv[2]))
    else:
        make(Path(__file__).parent / __version__)
