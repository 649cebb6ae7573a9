"""A question in SQL in JupyterLab: the query with its colours, the table below it, and the frame in the next cell."""

import pytest
from lab import Lab

SQL = "select city, sum(price) as total\\nfrom sales -- all of it\\nwhere price > 1\\ngroup by city order by total desc"
CELLS = [
    "%load_ext adk_nb",
    "import pandas as pd\nfrom adk_nb.models import ScriptedLlm, call\n"
    "df = pd.DataFrame({'city': ['Oslo', 'Rome', 'Oslo'], 'price': [1.5, 2.0, 4.0]})\n"
    f"model = ScriptedLlm(call('sales_describe'), call('sales_query', sql='{SQL}'), 'Most was sold in **Oslo**.')",
    "%tool sales --data df",
    "%%agent analyst -m model -t sales\nAnswer from the data.",
    "%chat analyst Where did we sell most?",
    "sales_1",
]


@pytest.mark.browser
@pytest.mark.browser_all
def test_a_query_is_shown_in_colours_with_its_table(lab: Lab):
    page = lab.open(lab.write("data.ipynb", *CELLS))
    page.run_all(timeout=120)

    shown = page.wait(".adknb-shown-code")
    words = [found.text for found in page.all(".adknb-shown-code .adknb-code-keyword")]
    assert {"select", "from", "group", "by"} <= set(words)
    assert "-- all of it" in shown.text
    assert page.wait(".adknb-looked-at table", "Oslo")
    assert "5.5" in page.text(5)
    page.screenshot("data_light")
    page.theme("JupyterLab Dark")
    page.screenshot("data_dark")
    page.theme("JupyterLab Light")
    page.resize(500, 900)
    page.screenshot("data_narrow")
    page.resize(1200, 1000)
    page.save()
    page.reload()
    assert "sum(price)" in page.text(4)
    page.screenshot("data_saved")
    assert page.alerts() == []
