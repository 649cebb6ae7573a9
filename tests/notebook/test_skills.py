"""%%agent --skills: folders of skills in a notebook, from the cell that names them to the export."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adk_nb.models import ScriptedLlm, call
from adk_nb.notebook.view.rows import rows_of
from adk_nb.runtime.approvals import REDEFINED
from adk_nb.tools.skill_toolset import SkillToolset
from tests.notebook.conftest import Shell
from tests.support.skills import REPORT, write_skill

LOAD = call("load_skill", skill_name="trip-budget")
RUN = call("run_skill_script", skill_name="trip-budget", file_path="scripts/report.py", args={"city": "Oslo"})
CLERK = "%%agent clerk -m model --skills skills\nAnswer."


@pytest.fixture
def work(tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the notebook, with two skills."""
    monkeypatch.chdir(tmp_path)
    shell.ip.starting_dir = str(tmp_path)
    write_skill(tmp_path / "skills", files={"scripts/report.py": REPORT})
    write_skill(tmp_path / "skills", "letters")
    return tmp_path


def scripted(shell: Shell, *answers: Any) -> ScriptedLlm:
    shell.names["model"] = model = ScriptedLlm(*answers)
    return model


def results_of(reply: Any) -> list[Any]:
    """The results of scripts in a turn."""
    responses = [part.function_response for event in reply.events for part in event.parts]
    return [response.response for response in responses if response and response.name == "run_skill_script"]


# ---- the cell


def test_a_cell_names_a_folder_and_says_which_skills_are_in_it(shell: Shell, work: Path):
    model = scripted(shell, "Hi.")
    said = shell.cell(CLERK)
    again = shell.cell(CLERK)
    shell.cell("%chat clerk hi")

    assert str(said).splitlines() == ["clerk v1 · model model · skills skills", "2 skills: letters, trip-budget"]
    assert str(again).splitlines()[0] == "clerk v1, unchanged"
    instruction = str(model.requests[0].config.system_instruction)
    assert "Plans letters." in instruction and "Plans trip-budget." in instruction
    assert set(model.requests[0].tools_dict) == {"load_skill", "load_skill_resource", "run_skill_script"}


def test_the_front_matter_may_name_folders(shell: Shell, work: Path):
    write_skill(work / "more", "trains")
    scripted(shell)
    said = shell.cell("%%agent clerk\n---\nmodel: model\nskills: [skills/letters, more]\n---\nAnswer.")

    assert str(said).splitlines()[1] == "2 skills: letters, trains"
    assert "skills: skills/letters, more" not in str(said)
    said = shell.cell("%%agent clerk -m model --skills more\nAnswer.")
    assert "clerk v1 → v2 (skills -skills/letters)" in str(said)


def test_hostile_skills_are_named_in_a_line_each_and_the_others_are_used(shell: Shell, work: Path):
    write_skill(work / "skills", "evil", "no front matter")
    (work / "skills/letters/assets").symlink_to("/etc")
    model = scripted(shell, LOAD, "Done.")
    said = str(shell.cell(CLERK)).splitlines()
    reply = shell.cell("%chat clerk hi")

    assert said[1] == "1 skill: trip-budget"
    assert said[2].startswith("skill 'evil' is left out: SKILL.md does not begin with a line ---")
    assert said[3] == "skill 'letters' is left out: 'assets' is a link that leads out of its folder"
    assert reply.text == "Done." and "evil" not in str(model.requests[0].config.system_instruction)
    assert "left out" not in shell.printed  # the cell said so before


def test_a_shelf_without_a_usable_skill_says_why_and_how_a_colon_is_written(shell: Shell, work: Path):
    scripted(shell)
    (work / "skills/trip").mkdir(parents=True)
    (work / "skills/trip/SKILL.md").write_text("---\nname: trip\ndescription: Trips: by bus\n---\nAsk.")
    said = str(shell.cell("%%agent clerk -m model --skills skills/trip\nAnswer.")).splitlines()

    assert "skills/trip" in said[1] and "write a folder" not in said[1]
    assert "line 3" in said[2] and "': ' in quotes" in said[2]


def test_a_skill_that_goes_bad_later_is_named_in_the_turn(shell: Shell, work: Path, caplog: pytest.LogCaptureFixture):
    scripted(shell, "Hi.", "Hi again.", "Hi.")
    shell.cell(CLERK)
    shell.cell("%chat clerk hi")
    (work / "skills/letters/SKILL.md").write_text("broken")
    shell.cell("%chat clerk hi")
    shell.cell("%chat clerk hi")

    faults = [record.message for record in caplog.records]
    assert len(faults) == 1 and faults[0].startswith("skill 'letters' is left out: SKILL.md does not begin")


@pytest.mark.parametrize(
    ("folder", "says"),
    [
        ("skils", "there is no folder 'skils'; did you mean 'skills'?"),
        ("skills/leters", "did you mean 'skills/letters'?"),
        ("skills/letters/SKILL.md", "is a file; name its folder, as --skills skills/letters"),
        ("/nowhere/at/all", "there is no folder '/nowhere/at/all'; a relative path starts in "),
    ],
)
def test_a_folder_that_is_not_there_is_named_with_what_to_type(shell: Shell, work: Path, folder: str, says: str):
    fault = shell.fails(f"%%agent clerk --skills {folder}\nAnswer.")

    assert fault.startswith("InputError: %%agent --skills: ") and says in fault and "\n" not in fault
    assert "clerk" not in shell.names


def test_a_folder_may_be_empty_yet_and_a_team_has_no_skills(shell: Shell, work: Path):
    (work / "later").mkdir()
    model = scripted(shell, "Hi.")
    said = shell.cell("%%agent clerk -m model --skills later\nAnswer.")
    write_skill(work / "later", "trains")
    shell.cell("%chat clerk hi")

    assert "no skill yet in later; write a folder with a SKILL.md in it" in str(said)
    assert "Plans trains." in str(model.requests[0].config.system_instruction)
    fault = shell.fails("%%agent team --kind sequential --skills skills\nclerk")
    assert "--kind sequential has no --skills" in fault


def test_tools_and_agents_list_skills(shell: Shell, work: Path):
    write_skill(work / "skills", "evil", "no front matter")
    scripted(shell)
    shell.cell(CLERK)
    listed = str(shell.cell("%tools"))

    assert "skill letters " in listed and "Plans letters." in listed and "clerk" in listed
    assert "always, of scripts" in next(line for line in listed.splitlines() if "trip-budget" in line)
    assert "skill 'evil' is left out" in listed
    assert "skills" in str(shell.cell("%agents")).splitlines()[-1]
    assert "skills skills" in str(shell.cell("%agents --show clerk")).splitlines()[0]


def test_tab_proposes_folders_with_skills(shell: Shell, work: Path):
    write_skill(work / "data/know-how", "trains")

    assert shell.complete("%%agent clerk --skills sk") == ["%%agent clerk --skills skills"]
    assert shell.complete("%%agent clerk --skills da") == ["%%agent clerk --skills data/know-how"]
    assert shell.complete("%%agent clerk --skills skills,da") == ["%%agent clerk --skills skills,data/know-how"]


def test_an_agent_with_tools_has_skills_beside_them(shell: Shell, work: Path):
    model = scripted(shell, "Hi.", "Hi.")
    shell.cell('%%tool\ndef look() -> str:\n    "Looks."\n    return "sunny"')
    shell.cell("%%agent clerk -m model -t look --skills skills\nAnswer.")
    shell.cell("%chat clerk hi")
    shell.cell('%%tool\ndef look() -> str:\n    "Looks twice."\n    return "sunny"')
    shell.cell("%chat clerk hi")

    assert {"look", "load_skill"} <= set(model.requests[1].tools_dict)
    assert model.requests[1].tools_dict["look"].description == "Looks twice."
    assert any(isinstance(tool, SkillToolset) for tool in shell.names["clerk"].tools)


# ---- the run


def test_a_load_is_a_line_of_the_run_and_the_script_stands_in_the_request(shell: Shell, work: Path):
    scripted(shell, LOAD, RUN, "It costs 3.")
    shell.cell(CLERK)
    waiting = shell.cell("%chat clerk What does it cost?")
    rows = [row for row in rows_of(waiting.events) if row["kind"] == "marker"]
    listed = shell.cell("%confirm")
    done = shell.cell("%confirm --yes")

    assert [row["text"] for row in rows] == ["skill trip-budget loaded"]
    for shown in (str(waiting), waiting._repr_mimebundle_()["text/html"], str(listed)):
        assert "scripts/report.py, 3 lines" in shown and "print('report', *sys.argv[1:])" in shown
        assert "python scripts/report.py --city Oslo" in shown
    assert done.text == "It costs 3."
    assert results_of(done)[0]["stdout"] == "report --city Oslo\n"


def test_characters_that_cannot_be_seen_are_spelled_out_in_a_script(shell: Shell, work: Path):
    (work / "skills/trip-budget/scripts/report.py").write_text(
        "print('safe')  # \u202e#)'live'(tnirp", encoding="utf-8"
    )
    scripted(shell, RUN)
    shell.cell(CLERK)
    waiting = shell.cell("%chat clerk go")

    assert "\\u202e#" in str(waiting) and "\u202e" not in str(waiting)


def test_a_changed_script_is_asked_anew(shell: Shell, work: Path):
    scripted(shell, RUN, RUN, "Done.")
    shell.cell(CLERK)
    shell.cell("%chat clerk go")
    (work / "skills/trip-budget/scripts/report.py").write_text("print('new')")
    fault = shell.fails("%confirm --yes")
    again = shell.cell("%confirm --reask")

    assert "a file of the skill was changed since this was requested; ask again with %confirm --reask" in fault
    assert again.interrupts[0].documents == {"scripts/report.py": "print('new')"}
    assert shell.cell("%confirm --yes").text == "Done."


def test_an_approval_waits_for_the_next_kernel_and_a_changed_skill_is_noticed_there(shell: Shell, work: Path):
    def kernel(*answers: Any) -> None:
        shell.cell("%unload_ext adk_nb")
        shell.ip.adk_nb = None
        shell.ip.config.pop("AdkNb", None)
        shell.ip.reset(new_session=False)
        shell.cell('%load_ext adk_nb\n%config AdkNb.sessions = "sqlite:///nb.db"')
        scripted(shell, *answers)
        shell.cell(CLERK)

    kernel(LOAD, RUN)
    shell.cell("%chat clerk go")
    kernel("It costs 3.", RUN)
    listed = str(shell.cell("%confirm"))
    done = shell.cell("%confirm --yes")
    shell.cell("%chat clerk once more")
    kernel("No.")
    (work / "skills/trip-budget/scripts/report.py").write_text("print('new')")
    shell.cell("%confirm --yes")

    assert "print('report', *sys.argv[1:])" in listed
    assert done.text == "It costs 3." and results_of(done)[0]["stdout"] == "report --city Oslo\n"
    assert results_of(shell.names["_run"]) == [{"error": REDEFINED}]


def test_a_recording_with_skills_is_replayed(shell: Shell, work: Path):
    scripted(shell, LOAD, "Done.")
    shell.cell("%record --file tape.jsonl")
    shell.cell(CLERK)
    shell.cell("%chat clerk hi")
    shell.cell("%record off")
    shell.cell("%session new other")
    scripted(shell)
    shell.cell("%replay --file tape.jsonl")
    again = shell.cell("%chat clerk hi")
    shell.cell("%replay off")

    assert again.text == "Done."


# ---- the export


@pytest.mark.slow
def test_an_exported_script_loads_the_skills_and_shows_scripts_before_it_asks(shell: Shell, work: Path):
    scripted(shell)
    shell.cell(
        "from adk_nb.models import ScriptedLlm, call\nmodel = ScriptedLlm(\n"
        "    call('run_skill_script', skill_name='trip-budget', file_path='report.py'), 'Done.')"
    )
    shell.cell(CLERK)
    (work / "out").mkdir()
    said = str(shell.cell("%export out/agent.py"))
    ran = subprocess.run(
        [sys.executable, work / "out/agent.py", "go"], input="y\n", capture_output=True, text=True, cwd=work
    )

    assert "clerk reads the skill ../skills/trip-budget, relative to the written file: take it along" in said
    assert "print('report', *sys.argv[1:])" in ran.stdout and "Done." in ran.stdout, ran.stderr


def test_an_export_to_google_adk_runs_no_scripts_there(shell: Shell, work: Path):
    shell.cell("%%agent clerk --skills skills\nAnswer.")
    said = str(shell.cell("%export my_agents"))
    code = (work / "my_agents/agent.py").read_text()

    assert "scripts of trip-budget do not run there; google-adk would run them without approval" in said
    assert 'tool_filter=["load_skill", "load_skill_resource"]' in code
    assert 'load_skill_from_dir(Path(__file__).parent.joinpath("../skills/letters"))' in code
    assert "from google.adk.skills import load_skill_from_dir" in code
