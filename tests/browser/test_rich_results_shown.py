"""What tools give to look at, in a real page: a table, a figure, a drawing, a page of others; files, and cost."""

from pathlib import Path

import pytest
from chats import SETUP
from lab import Lab

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]
CONTRAST = Path(__file__).with_name("contrast.js").read_text()
TOOLS = """
import pandas as pd
from matplotlib.figure import Figure
from adk_nb import types
from adk_nb.models import LlmResponse
from adk_nb.tools import ToolContext

class Map:
    def _repr_html_(self):
        return ("<h3>Oslo</h3><p style='color:teal'>a map, <b>as html</b></p><script>parent.alert(1)</script>"
                "<img src=x onerror=parent.alert(2)>")

class Drawing:
    def _repr_svg_(self):
        return ("<svg xmlns='http://www.w3.org/2000/svg' width='120' height='40' onload='alert(3)'>"
                "<script>alert(4)</script><rect width='120' height='40' fill='teal'/></svg>")

def sales(year: int) -> object:
    'Sales by city.'
    cities = ["Oslo", "Paris", "<b>Rome</b>"]
    return pd.DataFrame({"city": cities, "sold": [12, 40, 7], "share": [0.203389, 0.678, None]})

def plot(year: int) -> object:
    'Draws the sales.'
    figure = Figure(figsize=(4, 2))
    figure.add_subplot().bar(["Oslo", "Paris", "Rome"], [12, 40, 7])
    return figure

def place(city: str) -> object:
    'A map.'
    return Map()

def logo() -> object:
    'A logo.'
    return Drawing()

async def export(tool_context: ToolContext) -> str:
    'Saves files.'
    await tool_context.save_artifact("sales.csv", types.Part(inline_data=types.Blob(
        data=b"city,sold\\nOslo,12\\nParis,40\\n", mime_type="text/csv")))
    return "saved"

def counted(*parts):
    said = [types.Part(text=one) if isinstance(one, str) else one for one in parts]
    return LlmResponse(content=types.Content(role="model", parts=said), model_version="gemini-2.5-flash",
        usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=1204, candidates_token_count=96,
            cached_content_token_count=800, thoughts_token_count=40, total_token_count=1340))

calls = [call("sales", year=2026), call("plot", year=2026), call("place", city="Oslo"), call("logo"), call("export")]
said = counted("Paris sells **most**:\\n\\n```\\nmax(sold)\\n```")
analyst = Agent(name="analyst", model=ScriptedLlm(counted(*calls), said),
    tools=[sales, plot, place, logo, export])
"""


def test_results_are_shown_as_what_they_are(lab: Lab):
    page = lab.open(lab.write("rich.ipynb", SETUP, TOOLS, "%chat analyst How were the sales?"))
    page.resize(1000, 1500)
    page.js("for (const cell of panel.content.widgets) cell.inputHidden = true;")
    for cell in range(3):
        page.run_cell(cell)
    answer = ".adknb-answered .adknb-looked-at"

    page.wait(f"{answer} img")
    page.screenshot("rich-answer")
    assert page.wait(".adknb-answered pre", "max(sold)").size["height"] < 40, "more than the one line of code"
    assert [cell.text for cell in page.all(f"{answer} td")][:3] == ["Oslo", "12", "0.203389"]
    alts = [image.get_attribute("alt") for image in page.all(f"{answer} img")]
    assert [("plot()" in alt, "logo()" in alt) for alt in alts] == [(True, False), (False, True)]
    assert all(image.size["width"] > 50 for image in page.all(f"{answer} img"))

    page.click(".adknb-fold", "tokens")
    page.wait(".adknb-row .adknb-looked-at iframe")
    calls, tokens, cost, model = page.wait(".adknb-foot").text.split(" · ")
    assert (calls, cost, model) == ("2 model calls", "≈ $0.0010", "gemini-2.5-flash")
    assert tokens.split(" / ") == ["2,408 tokens in (cached 1,600)", "192 out + 80 thinking"]
    assert "genai-prices" in (page.wait(".adknb-foot").get_attribute("title") or "")
    page.screenshot("rich-events")
    assert "1,340 tok" in page.wait(".adknb-tokens").text
    page.theme("JupyterLab Dark")
    page.screenshot("rich-dark")
    assert page.js(CONTRAST) == []

    page.click("[role=tab]", "Artifacts")
    page.wait(".adknb-artifact td", "Oslo")
    page.screenshot("rich-artifacts")

    saved = page.saved().cells[2].outputs[-1].data["text/html"]
    assert saved.count('src="data:image/') == 2
    assert '<iframe title="page from place()' in saved
    assert page.alerts() == []


FIGURES = """
import matplotlib.pyplot as plt

def growth() -> object:
    'Draws the growth.'
    figure, axes = plt.subplots()
    axes.plot([1, 3, 2])
    return figure

model = ScriptedLlm(*[said for _ in range(4) for said in (call("growth"), "Here it is.")])
analyst = Agent(name="analyst", model=model, tools=[growth])
"""


def test_figures_of_pyplot_are_whole_whatever_the_page_says_meanwhile(lab: Lab):
    page = lab.open(lab.write("figures.ipynb", SETUP + "%matplotlib inline\n" + FIGURES, *["%chat analyst Draw"] * 4))
    page.run_cell(0)
    text = "return [...panel.content.widgets[arguments[0]].node.querySelectorAll('img')].map((one) => one.src)"
    matches: list[str] = []
    for cell in range(1, 5):
        page.run_cell(cell)
        page.until(lambda cell=cell: page.js(text, cell), "the figure")
        matches += page.js(text, cell)

    assert len(set(matches)) == 1 and len(matches[0]) > 20_000
