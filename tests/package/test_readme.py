"""What the README and the pages of the site show works as it stands there."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from adk_nb import sync, types
from adk_nb.agents import LlmAgent
from adk_nb.code_executors import KernelCodeExecutor
from adk_nb.models import HttpLlm, ScriptedLlm
from adk_nb.planners import PlanReActPlanner
from docs.generate import GENERATED
from tests.support.each import each
from tests.support.talk import Talk

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "pages"
TEXTS = {path.stem: path.read_text() for path in [ROOT / "README.md", *sorted(PAGES.glob("*.md"))]}
ELSEWHERE = {"walk"}
"""Cells of a notebook, with a server of models: tests/real_server runs them."""
BLOCKS = [
    (name, block)
    for name in sorted({*TEXTS} - ELSEWHERE)
    for block in re.findall(r"^```python\n(.*?)^```", TEXTS[name], re.MULTILINE | re.DOTALL)
]
TABLE = TEXTS["python"].partition("## What an agent takes")[2].partition("\n## ")[0]
FIELDS = re.findall(r"^\| `(\w+=.*?)` \|", TABLE, re.MULTILINE)


class Sum(BaseModel):
    number: int


def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def check(tool: Any, args: dict[str, Any], tool_context: Any) -> None: ...


NAMES = {
    "HttpLlm": HttpLlm,
    "LlmAgent": LlmAgent,
    "KernelCodeExecutor": KernelCodeExecutor,
    "PlanReActPlanner": PlanReActPlanner,
    "Sum": Sum,
    "check": check,
    "double": double,
    "types": types,
}


@pytest.mark.slow
def test_the_python_blocks_run_one_after_the_other(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}

    for name, block in BLOCKS:
        code = compile(block, f"{name}.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        done = eval(code, names)
        if inspect.iscoroutine(done):
            sync.run(done)

    said = capsys.readouterr().out
    assert "42" in said and "clerk > Hello!" in said and "clerk None Hello again!" in said
    assert "It is paid." in said and (tmp_path / "nb.db").is_file()
    assert names["said"][-1].content.parts[0].text == "Bye!"


@each("field", FIELDS)
def test_each_thing_an_agent_can_be_told_is_understood(field: str):
    agent = eval(f'LlmAgent(name="helper", {field})', dict(NAMES))
    agent.model = ScriptedLlm('{"number": 42}')
    talk = Talk(agent, state={"language": "English"})

    events = talk.say('{"number": 21}')

    assert talk.error is None and [event.error_code for event in events] == [None]


def test_no_row_of_the_table_is_overlooked():
    assert len(FIELDS) == TABLE.count("\n| `") - 1 > 5


def test_what_readme_and_make_open_first_is_the_notebook_to_start_with():
    blocks = TEXTS["README"].partition("## Two commands")[2].split("```")
    made, typed = (block.strip().split("\n") for block in blocks[1:4:2])
    # make below make says which folder it leaves, after the last command.
    make = ["make", "--no-print-directory", "-n", "lab"]
    commands = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=True).stdout

    opened = commands.splitlines()[-1].split()[-1]
    assert opened == "notebooks/00_start_here.ipynb" and (ROOT / opened).is_file()
    assert made == ["make demo", "make test"]
    assert typed == [
        'python3 -m venv .venv && .venv/bin/pip install -e ".[lab]"',
        f".venv/bin/jupyter lab {opened}",
    ]


@pytest.mark.slow
def test_a_newcomer_succeeds_in_a_plain_ipython(tmp_path: Path):
    smoke = ROOT / "tests" / "package" / "smoke.ipy"
    ended = subprocess.run([sys.executable, "-m", "IPython", str(smoke)], cwd=tmp_path, capture_output=True, text=True)

    assert ended.returncode == 0 and "It works." in ended.stdout, ended.stdout + ended.stderr


@pytest.mark.parametrize("path", GENERATED)
def test_what_the_docs_take_from_the_code_is_up_to_date(path: str):
    assert (ROOT / path).read_text() == GENERATED[path](), "run python docs/generate.py"


def test_every_extra_for_users_is_told_with_what_it_is_for():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    table = TEXTS["walk"].partition("## What to install for what")[2].partition("\n## ")[0]

    told = re.findall(r"^\| .+ \| `(\w+)` \|$", table, re.MULTILINE)

    assert sorted(told) == sorted({*settings["project"]["optional-dependencies"]} - {"dev", "docs", "lite"})


def test_the_files_that_the_pages_name_exist():
    named = {path for text in TEXTS.values() for path in re.findall(r"`((?:adk_nb|tests|docs)/[\w./]+)`", text)}

    assert len(named) > 20 and [path for path in sorted(named) if not (ROOT / path).exists()] == []
