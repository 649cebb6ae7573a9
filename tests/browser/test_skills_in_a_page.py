"""Skills in a real page: a load is a row, and the card of a script shows all of it before a click."""

from pathlib import Path

import pytest
from lab import Lab

pytestmark = [pytest.mark.browser, pytest.mark.browser_all]

SKILLS = Path(__file__).parents[2] / "notebooks" / "data" / "skills"
BUDGET = (SKILLS / "class-trip/scripts/budget.py").read_text(encoding="utf-8")
SETUP = f"""%load_ext adk_nb
import shutil
shutil.copytree({str(SKILLS)!r}, "skills")
from pathlib import Path
Path("skills/class-trip/scripts/other.sh").write_text("ls")
from adk_nb.models import ScriptedLlm, call
budget = dict(skill_name="class-trip", file_path="scripts/budget.py", args={{"pupils": 24, "nights": 3}})
script = ScriptedLlm(
    call("load_skill", skill_name="class-trip"),
    call("run_skill_script", **budget),
    call("run_skill_script", **budget),
    "The trip costs **3058 euros**.",
)"""
OFFICE = "%%agent office -m script --skills skills\nYou work in the office of a school."


def test_a_script_is_read_before_it_is_approved_and_a_changed_one_is_asked_anew(lab: Lab):
    page = lab.open(lab.write("skills.ipynb", SETUP, OFFICE, "%chat office What does a trip cost?"))
    page.run_all(wait=False)
    page.wait(".adknb-card[role='alertdialog'] .adknb-source", "argparse")
    page.wait(".adknb-root", "skill class-trip loaded")
    text = str(page.js("return document.querySelector('.adknb-source').textContent"))
    titles = page.js("return [...document.querySelectorAll('.adknb-document summary')].map((one) => one.textContent)")
    opened = page.js("return [...document.querySelectorAll('.adknb-document')].map((one) => one.open)")
    page.scroll_to(".adknb-card[role='alertdialog']")
    for theme in ("light", "dark"):
        page.theme(f"JupyterLab {theme.title()}")
        page.screenshot(f"skills-{theme}")
    page.resize(560, 900)
    page.scroll_to(".adknb-card[role='alertdialog']")
    page.screenshot("skills-narrow")
    page.resize(1280, 900)

    assert text == BUDGET.rstrip("\n")
    assert titles == ["scripts/budget.py, 17 lines", "scripts/other.sh, 1 line"]
    assert opened == [True, False]

    changed = lab.folder / "skills/class-trip/scripts/budget.py"
    changed.write_text("print('3058 euros')", encoding="utf-8")
    page.click(".adknb-button", "Approve")
    page.wait(".adknb-card", "a file of the skill was changed since this was requested")
    page.screenshot("skills-changed")
    page.button("Re-ask").click()
    page.wait(".adknb-card[role='alertdialog'] .adknb-source", "print('3058 euros')")
    page.button("Approve").click()
    page.wait("strong", "3058 euros")
    page.screenshot("skills-answered")
