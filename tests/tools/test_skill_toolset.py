"""SkillToolset: a model is told of skills, loads what it needs, and runs scripts that a person has seen."""

import logging
from pathlib import Path
from typing import Any

import pytest

from adk_nb import Chat
from adk_nb.agents import LlmAgent
from adk_nb.code_executors import BuiltInCodeExecutor, UnsafeLocalCodeExecutor
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.models import LlmRequest, ScriptedLlm, call
from adk_nb.skills import Frontmatter, Resources, Script, Skill, SkillCatalog, load_skill_from_dir
from adk_nb.tools.base_toolset import StaticToolset
from adk_nb.tools.function_tool import FunctionTool
from adk_nb.tools.skill_toolset import SkillDiscoveryMode, SkillToolset
from tests.support.skills import REPORT, write_skill

RUN = call("run_skill_script", skill_name="trip-budget", file_path="scripts/report.py", args={"city": "Oslo"})


def chat_with(toolset: SkillToolset, *answers: Any, **fields: Any) -> tuple[Chat, ScriptedLlm]:
    model = ScriptedLlm(*answers)
    return Chat(LlmAgent(name="clerk", model=model, tools=[toolset], **fields)), model


def results(chat: Chat, tool: str) -> list[Any]:
    """The results of a tool in the chat's session, without placeholders."""
    responses = [part.function_response for event in chat.events for part in event.parts if part.function_response]
    return [response.response for response in responses if response.name == tool]


def offered(request: LlmRequest) -> set[str]:
    return set(request.tools_dict)


def trip_budget(folder: Path, **files: str | bytes) -> Path:
    return write_skill(folder, files={"scripts/report.py": REPORT, "references/prices.md": "Bus: 3", **files})


def with_scripts(folder: Path, **options: Any) -> SkillToolset:
    return SkillToolset(SkillCatalog(folder), code_executor=UnsafeLocalCodeExecutor(), **options)


# ---- what the model is told, and what it loads


def test_a_model_lists_skills_loads_one_and_reads_its_files(tmp_path: Path):
    toolset = SkillToolset([load_skill_from_dir(trip_budget(tmp_path))])
    chat, model = chat_with(
        toolset,
        call("list_skills"),
        call("load_skill", skill_name="trip-budget"),
        call("load_skill_resource", skill_name="trip-budget", file_path="references/prices.md"),
        "Done.",
    )
    reply = chat.ask("What does it cost?")

    assert reply.text == "Done."
    assert results(chat, "list_skills")[0]["result"].split("\n")[1:4] == ["<skill>", "<name>", "trip-budget"]
    assert results(chat, "load_skill") == [
        {
            "skill_name": "trip-budget",
            "instructions": "Do it in steps.",
            "frontmatter": {
                "name": "trip-budget",
                "description": "Plans trip-budget.",
                "license": None,
                "compatibility": None,
                "allowed_tools": None,
                "metadata": {},
            },
        }
    ]
    assert results(chat, "load_skill_resource")[0]["content"] == "Bus: 3"
    assert "`list_skills` lists them" in str(model.requests[0].config.system_instruction)
    assert "Plans trip-budget." not in str(model.requests[0].config.system_instruction)


def test_skills_can_stand_in_the_instruction_instead(tmp_path: Path):
    trip_budget(tmp_path)
    toolset = SkillToolset(SkillCatalog(tmp_path), discovery_mode=SkillDiscoveryMode.EAGER, tool_name_prefix="my")
    chat, model = chat_with(toolset, call("my_load_skill", skill_name="trip-budget"), "Done.")
    chat.ask("hi")

    assert offered(model.requests[0]) == {"my_load_skill", "my_load_skill_resource"}
    instruction = str(model.requests[0].config.system_instruction)
    assert "<name>\ntrip-budget\n</name>\n<description>\nPlans trip-budget.\n</description>" in instruction
    assert "`my_load_skill`" in instruction and "Scripts of skills cannot be run here" in instruction
    assert results(chat, "my_load_skill")[0]["instructions"] == "Do it in steps."


def test_an_agent_without_skills_is_told_nothing_of_them(tmp_path: Path):
    chat, model = chat_with(SkillToolset(SkillCatalog(tmp_path)), "Hello.")

    assert chat.ask("hi").text == "Hello."
    assert "skill" not in str(model.requests[0].config.system_instruction)


@pytest.mark.parametrize(
    ("made", "code", "says"),
    [
        (call("load_skill", skill_name="trip-buget"), "SKILL_NOT_FOUND", "did you mean 'trip-budget'?"),
        (call("load_skill", skill_name="../../etc"), "SKILL_NOT_FOUND", "there is: trip-budget"),
        (call("load_skill"), "INVALID_ARGUMENTS", "missing: skill_name"),
        (call("load_skill", skill_name=["a"]), "INVALID_ARGUMENTS", "missing: skill_name"),
        (call("load_skill", skill_name="evil"), "SKILL_REFUSED", "does not begin with a line ---"),
        (
            call("load_skill_resource", skill_name="trip-budget", file_path="references/price.md"),
            "RESOURCE_NOT_FOUND",
            "did you mean 'references/prices.md'?",
        ),
        (
            call("load_skill_resource", skill_name="trip-budget", file_path="references/../../evil/SKILL.md"),
            "RESOURCE_NOT_FOUND",
            "references/prices.md",
        ),
        (
            call("load_skill_resource", skill_name="trip-budget", file_path="/etc/passwd"),
            "INVALID_RESOURCE_PATH",
            "'/etc/passwd'",
        ),
        (
            call("run_skill_script", skill_name="trip-budget", file_path="scripts/rm.py"),
            "SCRIPT_NOT_FOUND",
            "scripts/report.py",
        ),
        (call("run_skill_script", skill_name="nobody", file_path="scripts/rm.py"), "SKILL_NOT_FOUND", "trip-budget"),
        (
            call("run_skill_script", skill_name="trip-budget", file_path="scripts/report.py", args="--city Oslo"),
            "INVALID_ARGUMENTS",
            "args",
        ),
        (
            call(
                "run_skill_script",
                skill_name="trip-budget",
                file_path="scripts/report.py",
                args=["a"],
                positional_args=["b"],
            ),
            "INVALID_ARGUMENTS",
            "positional_args",
        ),
        (
            call("run_skill_script", skill_name="trip-budget", file_path="scripts/notes.txt"),
            "UNSUPPORTED_SCRIPT_TYPE",
            ".py, .sh, .bash",
        ),
    ],
)
def test_a_wrong_call_is_an_error_for_the_model_and_asks_nobody(tmp_path: Path, made: Any, code: str, says: str):
    trip_budget(tmp_path, **{"scripts/notes.txt": "x"})
    write_skill(tmp_path, "evil", "no front matter")
    chat, _ = chat_with(with_scripts(tmp_path), made, "It failed.")
    reply = chat.ask("hi")

    assert reply.text == "It failed." and not reply.interrupts
    result = results(chat, made.function_call.name)[0]
    assert result["error_code"] == code and says in result["error"], result


def test_a_skill_may_read_the_state(tmp_path: Path):
    text = (
        "---\nname: trip-budget\ndescription: d\nmetadata:\n  adk_inject_state: true\n---\nFor {user:name?} in {city}."
    )
    write_skill(tmp_path, text=text)
    chat, _ = chat_with(SkillToolset(SkillCatalog(tmp_path)), call("load_skill", skill_name="trip-budget"), "Done.")
    chat.state["city"] = "Oslo"
    chat.ask("hi")

    assert results(chat, "load_skill")[0]["instructions"] == "For  in Oslo."


def test_a_picture_is_shown_once_and_other_bytes_are_named(tmp_path: Path):
    files: dict[str, str | bytes] = {"assets/map.png": b"\x89PNG\xff", "assets/data.bin": b"\xff\xfe"}
    trip_budget(tmp_path, **files)
    chat, model = chat_with(
        SkillToolset(SkillCatalog(tmp_path)),
        call("load_skill_resource", skill_name="trip-budget", file_path="assets/map.png"),
        call("load_skill_resource", skill_name="trip-budget", file_path="assets/data.bin"),
        "Done.",
    )
    chat.ask("hi")

    blobs = [
        [part.inline_data.data for content in one.contents for part in content.parts or [] if part.inline_data]
        for one in model.requests
    ]
    assert blobs == [[], [b"\x89PNG\xff"], []]
    assert "2 bytes of type application/octet-stream" in results(chat, "load_skill_resource")[1]["error"]


def test_a_long_file_is_truncated(tmp_path: Path):
    trip_budget(tmp_path, **{"references/long.md": "x" * 150_000})
    chat, _ = chat_with(
        SkillToolset(SkillCatalog(tmp_path)),
        call("load_skill_resource", skill_name="trip-budget", file_path="references/long.md"),
        "Done.",
    )
    chat.ask("hi")

    content = results(chat, "load_skill_resource")[0]["content"]
    assert content.endswith("\n... cut after 100,000 of 150,000 characters") and len(content) < 100_100


def test_two_skills_of_one_name_are_refused():
    skill = Skill(frontmatter=Frontmatter(name="a-skill", description="d"), instructions="Go.")

    with pytest.raises(InputError, match="two skills are named 'a-skill'"):
        SkillToolset([skill, skill])


def test_an_edited_skill_is_used_at_the_next_turn(tmp_path: Path):
    trip_budget(tmp_path)
    chat, model = chat_with(
        SkillToolset(SkillCatalog(tmp_path), discovery_mode=SkillDiscoveryMode.EAGER),
        "Hello.",
        call("load_skill", skill_name="train-plan"),
        "Done.",
    )
    chat.ask("hi")
    write_skill(tmp_path, "train-plan")
    write_skill(tmp_path, text="---\nname: trip-budget\ndescription: For budgets.\n---\nNew.")
    chat.ask("and now?")

    assert "train-plan" not in str(model.requests[0].config.system_instruction)
    assert "Plans train-plan." in str(model.requests[1].config.system_instruction)
    assert "For budgets." in str(model.requests[1].config.system_instruction)
    assert results(chat, "load_skill")[0]["skill_name"] == "train-plan"


# ---- scripts


def test_a_script_runs_after_an_approval_that_shows_all_of_it(tmp_path: Path):
    trip_budget(tmp_path, **{"scripts/other.sh": "ls"})
    chat, _ = chat_with(with_scripts(tmp_path), RUN, "It is done.")
    reply = chat.ask("Report on Oslo")
    approval = reply.interrupts[0]
    ran_before = results(chat, "run_skill_script")

    assert approval.documents == {"scripts/report.py": REPORT, "scripts/other.sh": "ls"}
    assert approval.prompt.startswith(
        "python scripts/report.py --city Oslo · in a copy of the folder of skill trip-budg"
    )
    assert "it can reach your files and the network" in approval.prompt
    assert all("error" in result for result in ran_before)
    shown = str(reply)
    assert "scripts/report.py, 3 lines" in shown and "print('report', *sys.argv[1:])" in shown
    assert chat.approve().text == "It is done."
    assert results(chat, "run_skill_script")[-1] == {
        "skill_name": "trip-budget",
        "file_path": "scripts/report.py",
        "stdout": "report --city Oslo\n",
        "stderr": "",
        "status": "success",
    }


def test_a_rejected_script_does_not_run(tmp_path: Path):
    trip_budget(tmp_path, **{"scripts/report.py": f"open({str(tmp_path / 'ran')!r}, 'w')"})
    chat, _ = chat_with(with_scripts(tmp_path), RUN, "Pity.")
    chat.ask("Report")

    assert chat.reject(reason="not today").text == "Pity."
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("changed", ["scripts/report.py", "scripts/new.py", "assets/table.csv"])
def test_a_skill_that_changed_after_the_request_needs_a_new_approval(tmp_path: Path, changed: str):
    trip_budget(tmp_path)
    chat, _ = chat_with(with_scripts(tmp_path), RUN, RUN, "Done.")
    chat.ask("Report")
    (tmp_path / "trip-budget" / changed).parent.mkdir(exist_ok=True)
    (tmp_path / "trip-budget" / changed).write_text("print('changed')")
    with pytest.raises(InputError, match="a file of the skill was changed since this was requested"):
        chat.approve()
    again = chat.reject()

    assert changed in again.interrupts[0].documents or changed.startswith("assets/")
    assert chat.approve().text == "Done."


def test_an_approval_is_for_one_script_not_for_another_that_is_put_in_its_place(tmp_path: Path):
    trip_budget(tmp_path, **{"scripts/other.py": "print('other')"})
    chat, _ = chat_with(with_scripts(tmp_path), RUN, "Done.")
    chat.ask("Report")
    chat.approve(file_path="scripts/other.py")

    assert "redefined" in results(chat, "run_skill_script")[-1]["error"]


def test_the_arguments_of_a_script_can_be_edited_by_the_approver(tmp_path: Path):
    trip_budget(tmp_path)
    chat, _ = chat_with(with_scripts(tmp_path), RUN, "Done.")
    chat.ask("Report")
    chat.approve(args={"city": "Bergen"})

    assert results(chat, "run_skill_script")[-1]["stdout"] == "report --city Bergen\n"


@pytest.mark.parametrize(
    ("args", "command"),
    [
        ({}, "report\n"),
        ({"args": ["a b", 1]}, "report a b 1\n"),
        ({"args": {"n": 1}, "short_options": {"v": 2}, "positional_args": ["x"]}, "report --n 1 -v 2 -- x\n"),
        ({"args": {"x; rm -rf": "$(ls)"}}, "report --x; rm -rf $(ls)\n"),
    ],
)
def test_arguments_reach_a_script_as_they_are(tmp_path: Path, args: dict[str, Any], command: str):
    trip_budget(tmp_path)
    made = call("run_skill_script", skill_name="trip-budget", file_path="report.py", **args)
    chat, _ = chat_with(with_scripts(tmp_path), made, "Done.")
    chat.ask("Report")
    chat.approve()

    assert results(chat, "run_skill_script")[-1]["stdout"] == command


@pytest.mark.parametrize(
    ("name", "source", "status", "out", "err"),
    [
        ("run.sh", "cat references/prices.md; echo oops >&2", "warning", "Bus: 3", "oops\n"),
        ("run.py", "raise SystemExit(3)", "error", "", "status 3"),
        ("run.py", "import helper", "success", "helped\n", ""),
        ("run.py", "open('assets.txt', 'w').write('x'); print('ok')", "success", "ok\n", ""),
        ("run.py", "print('x' * 100_000)", "success", "more characters were dropped", ""),
    ],
)
def test_a_script_runs_in_a_copy_of_its_folder(tmp_path: Path, name: str, source: str, status: str, out: str, err: str):
    skill = trip_budget(tmp_path, **{f"scripts/{name}": source, "scripts/helper.py": "print('helped')"})
    files_before = sorted(skill.rglob("*"))
    made = call("run_skill_script", skill_name="trip-budget", file_path=f"scripts/{name}")
    chat, _ = chat_with(with_scripts(tmp_path), made, "Done.")
    chat.ask("Report")
    chat.approve()

    result = results(chat, "run_skill_script")[-1]
    assert (result["status"], out in result["stdout"], err in result["stderr"]) == (status, True, True), result
    assert sorted(skill.rglob("*")) == files_before


def test_a_script_that_takes_too_long_is_stopped(tmp_path: Path):
    trip_budget(tmp_path, **{"scripts/report.py": "import time\nprint('begun', flush=True)\ntime.sleep(600)"})
    chat, _ = chat_with(with_scripts(tmp_path, script_timeout=1), RUN, "Done.")
    chat.ask("Report")
    chat.approve()

    result = results(chat, "run_skill_script")[-1]
    assert result["status"] == "error" and result["stdout"] == "begun\n"
    assert "longer than 1 seconds" in result["stderr"]


def test_a_script_gets_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SHOP_API_KEY", "secret-4711")
    trip_budget(tmp_path, **{"scripts/report.py": "import os\nprint(dict(os.environ))"})
    chat, _ = chat_with(with_scripts(tmp_path), RUN, "Done.")
    chat.ask("Report")
    chat.approve()

    assert "secret-4711" not in results(chat, "run_skill_script")[-1]["stdout"]


def test_the_agents_own_executor_runs_scripts_where_the_toolset_has_none(tmp_path: Path):
    trip_budget(tmp_path)
    own, model = chat_with(
        SkillToolset(SkillCatalog(tmp_path)),
        RUN,
        "Done.",
        code_executor=UnsafeLocalCodeExecutor(error_retry_attempts=0),
    )
    own.ask("Report")
    own.approve()
    none, without = chat_with(SkillToolset(SkillCatalog(tmp_path)), "Hi.")
    none.ask("Report")
    built_in, in_model = chat_with(SkillToolset(SkillCatalog(tmp_path), code_executor=BuiltInCodeExecutor()), "Hi.")
    built_in.ask("Report")

    assert "run_skill_script" in offered(model.requests[0])
    assert results(own, "run_skill_script")[-1]["stdout"] == "report --city Oslo\n"
    assert "run_skill_script" not in offered(without.requests[0]) | offered(in_model.requests[0])


def test_without_scripts_there_is_no_tool_to_run_them(tmp_path: Path):
    write_skill(tmp_path)
    chat, model = chat_with(with_scripts(tmp_path), "Hi.")
    chat.ask("hi")

    assert offered(model.requests[0]) == {"list_skills", "load_skill", "load_skill_resource"}


def test_a_file_of_a_skill_made_in_python_cannot_leave_the_folder(tmp_path: Path):
    resources = Resources(assets={"../../out.txt": "x"}, scripts={"report.py": Script(src=REPORT)})
    skill = Skill(frontmatter=Frontmatter(name="trip-budget", description="d"), instructions="Go.", resources=resources)
    chat, _ = chat_with(SkillToolset([skill], code_executor=UnsafeLocalCodeExecutor()), RUN, "No.")
    chat.ask("Report")

    assert results(chat, "run_skill_script")[0]["error_code"] == "INVALID_RESOURCE_PATH"


def test_a_filter_leaves_scripts_out(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    trip_budget(tmp_path)
    toolset = with_scripts(tmp_path, tool_filter=["load_skill"], discovery_mode=SkillDiscoveryMode.EAGER)
    chat, model = chat_with(toolset, "Hi.")
    with caplog.at_level(logging.WARNING):
        chat.ask("hi")

    assert offered(model.requests[0]) == {"load_skill"}
    assert "run_skill_script" not in str(model.requests[0].config.system_instruction)
    assert not caplog.records


# ---- tools that a skill brings


def with_tools(folder: Path, *names: str, skill: str = "trip-budget") -> Path:
    listed = ", ".join(names)
    front = f"name: {skill}\ndescription: d\nmetadata:\n  adk_additional_tools: [{listed}]"
    return write_skill(folder, skill, text=f"---\n{front}\n---\nBook it.")


def book(city: str) -> str:
    """Book a trip."""
    return f"booked {city}"


def cancel(city: str) -> str:
    """Cancel a trip."""
    return f"cancelled {city}"


BOOK = [call("load_skill", skill_name="trip-budget"), call("book", city="Oslo"), "Booked."]


def test_a_skill_brings_tools_in_the_turn_that_loads_it_and_later(tmp_path: Path):
    skill = load_skill_from_dir(with_tools(tmp_path, "book"))
    chat, model = chat_with(SkillToolset([skill], additional_tools=[book, cancel]), *BOOK, "And now?")
    assert chat.ask("Book Oslo").text == "Booked."
    chat.ask("Thanks")

    assert results(chat, "book") == [{"result": "booked Oslo"}]
    assert ["book" in offered(request) for request in model.requests] == [False, True, True, True]
    assert not any("cancel" in offered(request) for request in model.requests), "no skill names it"
    other = Chat(LlmAgent(name="clerk", model=ScriptedLlm("Hi."), tools=[SkillToolset([skill])]))
    other.ask("Hello")
    assert dict(other.state) == {}, "each session loads for itself"


def test_a_tool_of_a_skill_waits_for_its_approval_as_any_other(tmp_path: Path):
    skill = load_skill_from_dir(with_tools(tmp_path, "book"))
    toolset = SkillToolset([skill], additional_tools=[FunctionTool(book, require_confirmation=True)])
    chat, _ = chat_with(toolset, *BOOK)
    reply = chat.ask("Book Oslo")

    assert [interrupt.call.name for interrupt in reply.interrupts] == ["book"]
    assert chat.approve().text == "Booked." and results(chat, "book")[-1] == {"result": "booked Oslo"}


def test_additional_tools_may_be_toolsets_and_have_the_prefix_of_the_skills(tmp_path: Path):
    skill = load_skill_from_dir(with_tools(tmp_path, "book"))
    toolset = SkillToolset([skill], additional_tools=[StaticToolset([book, cancel])], tool_name_prefix="trip")
    chat, model = chat_with(
        toolset, call("trip_load_skill", skill_name="trip-budget"), call("trip_book", city="Oslo"), "Booked."
    )
    chat.ask("Book Oslo")

    assert results(chat, "trip_book") == [{"result": "booked Oslo"}]
    assert "trip_book" in offered(model.requests[1]) and "trip_cancel" not in offered(model.requests[1])


def test_a_skill_that_names_what_is_not_there_says_so_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    skill = load_skill_from_dir(with_tools(tmp_path, "fly", "load_skill"))
    chat, _ = chat_with(SkillToolset([skill], additional_tools=[book]), BOOK[0], "Loaded.", "Yes.")
    with caplog.at_level(logging.WARNING):
        chat.ask("Load it")
        chat.ask("Again")

    said = [record.getMessage() for record in caplog.records]
    assert sum("'fly', which is not among additional_tools" in text for text in said) == 1
    assert sum("'load_skill', which is a tool of the skills themselves" in text for text in said) == 1


def test_what_cannot_be_an_additional_tool_is_refused(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="'book'"):
        SkillToolset([], additional_tools=["book"])  # type: ignore[list-item]
    with pytest.raises(InputError, match="adk_additional_tools must be a list of names"):
        load_skill_from_dir(
            write_skill(
                tmp_path, text="---\nname: trip-budget\ndescription: d\nmetadata: {adk_additional_tools: x}\n---\n"
            )
        )
