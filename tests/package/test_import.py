"""Importing is cheap: what is not used is not loaded."""

import subprocess
import sys

import pytest

from adk_nb.errors import MissingExtraError
from adk_nb.lazy import require

HEAVY = (
    "google.genai", "pydantic", "anywidget", "ipywidgets", "IPython", "traitlets", "openai", "anthropic", "litellm",
    "sqlalchemy", "mcp", "httpx2", "nest_asyncio2", "pandas", "numpy", "markdown_it", "asyncio",
)  # fmt: skip
LIGHT = HEAVY[:1] + HEAVY[2:-1]
"""All but pydantic, of which our records are made, and asyncio, on which agents run."""


def loaded_by(code: str, names: tuple[str, ...]) -> list[str]:
    asks = f"import sys\n{code}\nprint([name for name in {names!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return eval(done.stdout)


def test_the_package_itself_loads_nothing_heavy():
    slow = ("importlib.metadata", "importlib.resources")  # each longer than the rest
    assert loaded_by("import adk_nb; dir(adk_nb); adk_nb.__version__", (*HEAVY, *slow)) == []


@pytest.mark.slow
def test_a_face_loads_nothing_before_a_name_is_used():
    rooms = (
        *"agents artifacts auth code_executors engines events memory models notebook planners sessions tools".split(),  # noqa: SIM905
        *("telemetry", "tools.mcp_tool", "tools.openapi_tool"),
    )

    assert loaded_by("\n".join(f"import adk_nb.{room}; dir(adk_nb.{room})" for room in rooms), HEAVY) == []


@pytest.mark.slow
def test_the_runtime_needs_no_notebook_and_no_optional_package():
    without = tuple(name for name in LIGHT if name not in ("google.genai", "httpx2"))  # the one loads the other

    assert loaded_by("from adk_nb import Event, LlmAgent, RunConfig, Runner, run, tool, types", without) == []


def test_running_async_work_needs_no_content_types():
    assert loaded_by("from adk_nb import run", ("google.genai", "pydantic")) == []


@pytest.mark.slow
def test_a_schema_is_checked_without_the_grammar_of_a_format_which_still_works_for_others():
    check = "from adk_nb.tools.json_arguments import JsonArguments\n"
    check += "assert JsonArguments({'type': 'integer'}, '').error_message('x')"
    iri = "from jsonschema import FormatChecker; fits = FormatChecker().conforms; "
    iri += "assert fits('http://ä.de/x', 'iri') and not fits('a b', 'iri')"

    check += "\nassert 'jsonschema' in sys.modules and not {'rfc3987_syntax', 'lark'} & {*sys.modules}"
    assert loaded_by(f"{check}\n{iri}", ("rfc3987_syntax", "lark")) == ["rfc3987_syntax", "lark"]


def test_a_missing_part_of_a_package_is_named_by_the_package():
    with pytest.raises(MissingExtraError) as missing:
        require("nowhere.inside.it", package="nowhere")
    assert "'nowhere'" in str(missing.value) and "inside" not in str(missing.value)
