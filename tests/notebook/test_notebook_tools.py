"""%%agent --notebook: what an agent learns of the notebook's variables and cells."""

import json
from typing import Any

import pytest

from adk_nb import redaction
from adk_nb.models import ScriptedLlm, call
from tests.notebook.conftest import Shell
from tests.support.each import each

AGENT = "%%agent analyst -m model --notebook\nHelp with the data."


@pytest.fixture(autouse=True)
def secrets():
    yield
    redaction.forget()


class Asked:
    """What the model was told of one call."""

    def __init__(self, shell: Shell, name: str, /, **args: Any) -> None:
        shell.names["model"] = model = ScriptedLlm(call(name, **args), "Done.")
        shell.cell(AGENT)
        shell.cell("%chat -q analyst Look.")
        [response] = [part.function_response for part in model.requests[-1].contents[-1].parts]
        self.result: dict[str, Any] = response.response
        self.pictures = response.parts or []


def looked(shell: Shell, name: str) -> Any:
    return Asked(shell, "look_at", name=name).result


# ---- list_variables


def test_the_newest_variables_come_first_with_type_shape_and_size(shell: Shell):
    shell.cell("import pandas as pd\nsales = pd.DataFrame({'city': ['Oslo', 'Bonn'], 'amount': [3, 4]})")
    shell.cell("rates = {'EUR': 1.0}\ncount = 3\ntitle = 'Sales'")

    listed = Asked(shell, "list_variables").result["variables"]

    listed.pop("model", None)
    assert [*listed][:4] == ["title", "count", "rates", "sales"]
    assert listed["title"] == 'str, "Sales"'
    assert listed["count"] == "int, 3"
    assert listed["rates"] == "dict, 1 item"
    assert listed["sales"].startswith("pandas.DataFrame, 2 x 2, ")


def test_modules_functions_classes_agents_and_private_names_are_left_out(shell: Shell):
    shell.cell("import json\n_private = 1\ndef f(): ...\nclass C: ...\nc = C()\nother = print")

    assert Asked(shell, "list_variables").result["variables"] == {"c": "C"}


def test_a_filter_has_words_of_the_name_or_the_type(shell: Shell):
    shell.cell("sales_2024 = [1]\nsales_2025 = {}\nother = [2]")

    assert [*Asked(shell, "list_variables", filter="SALES list").result["variables"]] == ["sales_2024"]
    assert Asked(shell, "list_variables", filter="nothing").result["note"] == (
        "no variable has 'nothing' in its name or type"
    )


def test_a_thousand_variables_are_bounded_and_the_rest_is_counted(shell: Shell):
    shell.names.update({f"value_{n}": "text " * 8 for n in range(1_000)})

    result = Asked(shell, "list_variables").result

    assert len(json.dumps(result)) <= 4_000
    left_out = int(result["left_out"].split()[0].replace(",", ""))
    assert left_out + len(result["variables"]) == 1_000
    assert "value_999" in result["variables"]


def test_known_secrets_are_not_listed_and_names_of_keys_have_no_value(shell: Shell):
    redaction.remember("correct-horse-battery")
    shell.cell("phrase = 'correct-horse-battery'\napi_key = 'abc'\ncity = 'Oslo'")

    result = Asked(shell, "list_variables").result

    assert result["variables"] == {
        "city": 'str, "Oslo"',
        "api_key": "str, not shown: its name is that of a key",
    }


# ---- look_at

FRAMES = {
    "pandas": "import pandas as pd\ndf = pd.DataFrame({'city': ['Oslo', 'Bonn', None], 'amount': [3.5, 4.5, 9.0]})",
    "polars": "import polars as pl\ndf = pl.DataFrame({'city': ['Oslo', 'Bonn', None], 'amount': [3.5, 4.5, 9.0]})",
}


@each("library", FRAMES)
def test_of_a_frame_the_model_gets_columns_nulls_ranges_and_rows(shell: Shell, library: str):
    shell.cell(FRAMES[library])

    result = looked(shell, "df")

    assert (result["type"], result["rows"], result["column_count"]) == (f"{library}.DataFrame", 3, 2)
    assert "1 null, 2 different" in result["columns"]["city"]
    assert "3.5 to 9" in result["columns"]["amount"]
    assert [row["amount"] for row in result["first_rows"]] == [3.5, 4.5, 9.0]
    assert "Bonn" in str(shell.names["_run"]._repr_mimebundle_()["text/html"]), "the owner sees it as a table"


def test_a_frame_of_ten_thousand_columns_is_bounded(shell: Shell):
    shell.cell("import numpy as np, pandas as pd\nwide = pd.DataFrame(np.ones((50, 10_000)))")

    result = looked(shell, "wide")

    assert result["column_count"] == 10_000 and result["described"] == "the first 30"
    assert len(result["columns"]) == 30 and len(json.dumps(result)) <= 4_000


@each(
    "made, column",
    [
        ("pd.DataFrame([[1, 2]], columns=['a', 'a'])", "2.a"),
        ("pd.DataFrame([[1, 2]], columns=[7, ('x', 1)])", "7"),
        ("pd.DataFrame({'a': [1, 2]}, index=pd.Index([5, 6], name='id'))", "a"),
        ("pd.Series([1.0, None])", "value"),
        ("pd.DataFrame()", None),
    ],
)
def test_odd_frames_of_pandas_are_read(shell: Shell, made: str, column: str | None):
    shell.cell(f"import pandas as pd\ndf = {made}")

    result = looked(shell, "df")

    assert "problem" not in result
    assert column is None or column in result["columns"]


def test_of_an_array_the_model_gets_shape_type_and_range(shell: Shell):
    shell.cell("import numpy as np\ngrid = np.arange(6.0).reshape(2, 3)\ngrid[0, 0] = np.nan")

    assert looked(shell, "grid") == {
        "type": "numpy.ndarray",
        "shape": [2, 3],
        "dtype": "float64",
        "size": "48 B",
        "range": "1 to 5",
        "nan": "1",
        "first_values": ["nan", 1.0, 2.0, 3.0, 4.0, 5.0],
    }


def test_a_figure_goes_to_the_model_as_a_picture_and_stays_open(shell: Shell):
    shell.cell("import matplotlib; matplotlib.use('agg')\nimport matplotlib.pyplot as plt")
    shell.cell("fig, ax = plt.subplots(figsize=(90, 2), dpi=200)\n_ = ax.set_title('Sales')")

    asked = Asked(shell, "look_at", name="fig")

    assert asked.result["type"] == "matplotlib.Figure" and asked.result["axes"] == ["Sales"]
    [picture] = asked.pictures
    assert picture.inline_data.mime_type == "image/png"
    assert int.from_bytes(picture.inline_data.data[16:20]) <= 1_100  # its width
    assert shell.cell("plt.fignum_exists(fig.number)") is True
    shell.cell("plt.close('all')")


def test_a_large_picture_is_made_smaller(shell: Shell):
    shell.cell("from PIL import Image\nphoto = Image.new('RGB', (6000, 30))")

    asked = Asked(shell, "look_at", name="photo")

    assert asked.result["size"] == "6,000 x 30 pixels, RGB"
    assert int.from_bytes(asked.pictures[0].inline_data.data[16:20]) == 1_024


def test_of_a_long_text_the_model_gets_length_and_beginning_without_secrets(shell: Shell):
    redaction.remember("correct-horse-battery")
    shell.names["letter"] = "The word is correct-horse-battery. " + "x" * 50_000

    result = looked(shell, "letter")

    assert result["length"] == 50_035
    assert result["beginning"].startswith("The word is [secret]. x") and len(result["beginning"]) == 2_000


HOSTILE = """
class Hostile:
    def ran(self, *args, **kwargs):
        touched.append(1)
        raise SystemExit
    __repr__ = __str__ = __len__ = __iter__ = __getattr__ = __bool__ = __format__ = ran
touched = []
class HostileList(list):
    __len__ = __repr__ = __iter__ = Hostile.ran
one, many, nested = Hostile(), HostileList([1, 2]), {'inside': [Hostile()]}
"""


def test_no_code_of_a_class_of_the_notebook_runs(shell: Shell):
    shell.cell(HOSTILE)

    note = "its content is not read, as that would run code of its class"
    assert looked(shell, "one") == {"type": "Hostile", "note": note}
    assert looked(shell, "many") == {"type": "HostileList", "length": 2, "note": note}
    assert looked(shell, "nested") == {"type": "dict", "length": 1, "items": {"inside": ["<Hostile>"]}}
    assert Asked(shell, "list_variables", filter="hostile").result["variables"]["one"] == "Hostile"
    assert shell.names["touched"] == []


LOUD = """
class Loud:
    def __repr__(self):
        touched.append(1)
        return 'loud'
touched, one = [], Loud()
"""


@each(
    "made",
    [
        "import pandas as pd\nframe = pd.DataFrame({'x': [one], 'password': ['hunter']})",
        "import polars as pl\nframe = pl.DataFrame({'x': pl.Series([one], dtype=pl.Object), 'password': ['hunter']})",
    ],
)
def test_a_frame_is_shown_to_the_owner_without_code_of_its_values_and_without_keys(shell: Shell, made: str):
    shell.cell(f"{LOUD}\n{made}\ntouched.clear()")

    looked(shell, "frame")

    shown = str(shell.names["_run"]._repr_mimebundle_()["text/html"])
    assert "&lt;Loud&gt;" in shown and "hunter" not in shown
    assert shell.names["touched"] == []


def test_a_name_that_is_not_there_or_that_of_a_key_is_refused_by_name(shell: Shell):
    shell.cell("sales = [1]\npassword = 'x'")

    assert looked(shell, "sale")["error"].endswith("there is no variable 'sale'; did you mean 'sales'?")
    assert looked(shell, "password")["error"].endswith("'password' is not shown: its name is that of a key")


def test_keys_in_dicts_and_columns_with_the_name_of_a_key_are_hidden(shell: Shell):
    shell.cell("import pandas as pd\nsettings = {'password': 'hunter', 'city': 'Oslo'}")
    shell.cell("users = pd.DataFrame({'name': ['Ida'], 'password': ['hunter']})")

    assert looked(shell, "settings")["items"] == {"password": "[redacted]", "city": "Oslo"}
    shell.cell("by_password = users.set_index('password')\ntwice = pd.concat([users, users], axis=1)")

    for name in ("users", "by_password", "twice"):
        assert "hunter" not in json.dumps(looked(shell, name)), name


# ---- cells


def test_cells_are_read_from_the_history_by_number_and_by_words(shell: Shell):
    shell.cell("sales = 3")
    shell.cell("sales + 1")
    shell.cell("other = 5")

    by_words = Asked(shell, "read_cells", wanted="sales").result["cells"]
    by_number = Asked(shell, "read_cells", wanted="3").result["cells"]

    assert [cell["source"] for cell in by_words] == ["sales + 1", "sales = 3"]
    assert by_words[0]["result"] == 4
    assert by_number == [{"number": 3, "source": "sales + 1", "result": 4}]


def test_a_secret_in_a_cell_is_hidden(shell: Shell):
    redaction.remember("correct-horse-battery")
    shell.cell("word = 'correct-horse-battery'")

    [cell] = Asked(shell, "read_cells", wanted="word").result["cells"]

    assert cell["source"] == "word = '[secret]'"
    assert Asked(shell, "read_cells", wanted="correct-h").result["cells"] == [], "a guess is not confirmed"


def test_a_new_cell_and_a_change_are_shown_where_no_page_takes_them(shell: Shell):
    shell.cell("total = 1")

    written = Asked(shell, "write_cell", source="total = 2").result
    changed = Asked(shell, "change_cell", number=2, source="total = 3").result
    unknown = Asked(shell, "change_cell", number=99, source="total = 3").result

    assert "no page of this notebook takes new cells" in written["shown"]
    assert "nothing is changed" in changed["shown"]
    assert "no cell with the number 99 has run" in unknown["error"]
    assert shell.names["total"] == 1


# ---- the toolset


def test_the_toolset_works_in_python_with_a_filter_and_a_prefix(shell: Shell):
    shell.names["model"] = model = ScriptedLlm(call("nb_list_variables"), "Done.")
    shell.cell(
        "from adk_nb import Agent, NotebookToolset\n"
        "tools = NotebookToolset(tool_filter=['list_variables'], tool_name_prefix='nb')\n"
        "helper = Agent(name='helper', model=model, tools=[tools])\nnumbers = [1, 2]"
    )
    shell.cell("%chat -q helper Look.")

    assert [*model.requests[0].tools_dict] == ["nb_list_variables"]
    assert "numbers" in str(model.requests[1].contents[-1])


def test_the_line_of_the_agent_says_that_it_sees_the_notebook(shell: Shell):
    shell.names["model"] = ScriptedLlm()

    assert str(shell.cell(AGENT)).splitlines()[0] == "analyst v1 · model model · notebook"
    assert "notebook" in str(shell.cell("%agents")).splitlines()[0]
