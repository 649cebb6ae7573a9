"""What a reader sees of a saved notebook where there is no kernel and no style: on an exported page, and on GitHub."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import bleach
import nbformat
import pytest
from inline_snapshot import external_file
from nbclient import NotebookClient
from turns import Shown, reply_forms

from adk_nb.notebook.view.widget import VIEW_MIME
from tests.support.each import each
from tests.support.hostile_texts import PAYLOADS, Page
from tests.support.late import late

nbconvert = late("nbconvert")

TUTORIALS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
CELLS = [
    "%load_ext adk_nb\nfrom adk_nb.tools import ToolContext",
    '''
%%tool
def get_weather(city: str, tool_context: ToolContext) -> dict:
    """The weather of a city."""
    tool_context.state["last_city"] = city
    return {"temp_c": {"Paris": 21, "Oslo": 9}[city]}
''',
    '''
%%tool --confirm "amount > 100"
def refund(order: str, amount: float) -> str:
    """Pay an order back."""
    return f"paid {amount} for {order}"
''',
    '''
from adk_nb.models import ScriptedLlm, call

answer = """Paris is **warmer**:

| city | °C |
| --- | --- |
| Paris | 21 |
| Oslo | 9 |

```python
def warmer(a, b):
    # in degrees

    return a > b
```"""
told = ScriptedLlm([call("get_weather", city="Paris"), call("get_weather", city="Oslo")], answer)
pays = ScriptedLlm(
    call("refund", order="A17", amount=250.0), "Here are 100 euros.", call("refund", order="B4", amount=400.0), "No.",
    call("refund", order="C9", amount=120.0),
)
sends = ScriptedLlm(call("transfer_to_agent", agent_name="weather"), RuntimeError("the line is dead"))
''',
    "%%agent weather -m told -t get_weather\nCompare.",
    "%%agent payer -m pays -t refund\nPay.",
    "%%agent desk -m sends --sub weather\nPass on.",
    "%%chat desk\nIs it *warmer* in Paris,\n\nor in Oslo <b>now</b>?",
    "%chat -s orders payer Pay me A17 back.",
    "%confirm -s orders",
    '%confirm -s orders --edit amount=100 --yes --reason "half, as agreed"',
    "%chat -s orders payer And B4.",
    '%confirm -s orders --no --reason "too late"',
    "%chat -s orders payer And C9.",
    "%chat -s dead desk Anybody there?",
    "%trace",
    "%state",
    "%agents",
    "%tools",
]

# Elements and attributes that GitHub leaves in what a user has written. Source: html-pipeline 3,
# lib/html_pipeline/sanitization_filter.rb, DEFAULT_CONFIG; what is in no element of these stays as text.
ELEMENTS = """
    h1 h2 h3 h4 h5 h6 br b i strong em a pre code img tt div ins del sup sub p ol ul table thead tbody tfoot blockquote
    dl dt dd kbd q samp var hr ruby rt rp li tr td th s strike summary details caption figure figcaption abbr bdo cite
    dfn mark small span time wbr"""
OF_ALL = "align alt aria-hidden aria-label colspan dir height id label lang open rowspan start title width"
ATTRIBUTES = {"a": ["href"], "img": ["src", "longdesc"], "*": OF_ALL.split()}


def as_github_shows(html: str) -> str:
    clean = bleach.clean(html, ELEMENTS.split(), ATTRIBUTES, ["http", "https", "mailto"], strip=True)
    return re.sub(r"\n{2,}", "\n", clean).strip() + "\n"


def told(notebook: Any) -> Iterator[dict[str, str]]:
    """The forms of each output, in order."""
    for cell in notebook.cells:
        yield from (dict(output.data) for output in cell.get("outputs", []) if "data" in output)


def exported(notebook: Any) -> str:
    """An exported page without its cells and without its style."""
    exporter = nbconvert.HTMLExporter(template_name="basic", exclude_input=True, exclude_output_prompt=True)
    return exporter.from_notebook_node(notebook)[0]


def words(html: str) -> str:
    return " ".join(" ".join(Page(html).texts).split())


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook after a run in which nobody looked."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source.strip(), id=f"c{number}") for number, source in enumerate(CELLS)]
    )
    place = {"metadata": {"path": str(tmp_path_factory.mktemp("saved"))}}
    quiet = ["--log-level=ERROR"]
    client = NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources=place, extra_arguments=quiet, coalesce_streams=True
    )
    client.allow_error_names = ["TurnFailedError"]
    client.execute()
    return notebook


@pytest.mark.kernel
def test_a_notebook_as_github_shows_it(saved: Any):
    shown = "\n".join(
        as_github_shows(data.get("text/html") or f"<pre>{data['text/plain']}</pre>") for data in told(saved)
    )

    assert shown == external_file("saved/github.html", format=".txt")


@pytest.mark.kernel
def test_a_notebook_as_markdown(saved: Any):
    words, _ = nbconvert.MarkdownExporter().from_notebook_node(saved)

    assert words == external_file("saved/exported.md", format=".txt")


@pytest.mark.kernel
def test_an_exported_page_says_the_same_and_asks_for_no_widget(saved: Any):
    page = exported(saved)

    assert VIEW_MIME not in page
    assert VIEW_MIME not in nbformat.writes(saved)
    for data in told(saved):
        if html := data.get("text/html"):
            assert words(html) in words(page)


@each("path", TUTORIALS)
def test_the_answers_of_a_tutorial_are_read_on_github(path: Path):
    for data in told(nbformat.read(path, as_version=4)):
        # of a question it is the question that is to be read, in the line below
        if answer := re.match(r"\w+(?: · \w+)? > (?:\(waiting for you\).*\n)?(.+)", data["text/plain"]):
            left = re.sub(r'<ol start="(\d+)">', r"\1", as_github_shows(data["text/html"]))  # the page writes it
            assert letters(answer[1].partition("  [")[0])[:40] in letters(unescape(re.sub("<[^>]*>", "", left))), data[
                "text/plain"
            ]


def letters(text: str) -> str:
    """Without what differs from form to form: marks, what a key of a state is written in, and capitals."""
    return re.sub(r"[\W_]", "", text).casefold()


@each("payload", [*PAYLOADS, "```\n\n# one\n \n\n\n- two\n```", "    a\n\n    b", "> \n\n<p>"])
def test_no_line_of_a_reply_is_empty_so_that_a_markdown_file_shows_it_whole(payload: str):
    html = reply_forms(Shown(events=[], text=payload))["text/html"]

    assert not re.search(r"\n[ \t]*\n", html)
    assert nbconvert.filters.markdown2html(html).strip() == html
