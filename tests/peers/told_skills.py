"""Loads skills from folders and calls their tools: python told_skills.py PACKAGE.

PACKAGE is google.adk or adk_nb. Told is, by what was tried: what came of it. Of errors their code alone, and of skills
that cannot be loaded that they cannot.
"""

import asyncio
import importlib
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

FOLDED = """\
---
name: trip-budget
description: >
  Estimates what a trip costs,
  with <prices> & "quotes".
license: MIT
compatibility: Python 3
allowed-tools: Bash Read
metadata:
  author: anna
  adk_inject_state: true
version: 1.5
---

# Steps

Go to {city}{hotel?}.
"""
PLAIN = "---\nname: letters\ndescription: Writes letters.\n---\nDear ...\n"
FILES = {
    "trip-budget/SKILL.md": FOLDED,
    "trip-budget/references/prices.md": "Bus: 3\n",
    "trip-budget/references/far/hotels.md": "Hotel: 90",
    "trip-budget/assets/form.txt": "Name:",
    "trip-budget/scripts/report.py": "import sys, helper\nprint(helper.NAME, *sys.argv[1:])\n",
    "trip-budget/scripts/helper.py": "NAME = 'helped'\n",
    "trip-budget/scripts/fail.py": "import sys\nprint('out')\nsys.exit(3)\n",
    "trip-budget/scripts/look.sh": "cat references/prices.md; echo oops >&2\n",
    "trip-budget/scripts/notes.txt": "x",
    "letters/skill.md": PLAIN,
}
WRONG = {
    "no-front": "text",
    "not-closed": "---\nname: not-closed\n",
    "no-yaml": "---\nname: [\n---\n",
    "no-mapping": "---\n- a\n---\n",
    "no-name": "---\ndescription: d\n---\n",
    "no-description": "---\nname: no-description\n---\n",
    "Upper": "---\nname: Upper\ndescription: d\n---\n",
    "a--b": "---\nname: a--b\ndescription: d\n---\n",
    "under_score": "---\nname: under_score\ndescription: d\n---\n",
    "other": "---\nname: another\ndescription: d\n---\n",
    "long": f"---\nname: long\ndescription: {'d' * 1025}\n---\n",
    "wrong-flag": "---\nname: wrong-flag\ndescription: d\nmetadata: {adk_inject_state: 3}\n---\n",
}
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("list_skills", {}),
    ("load_skill", {"skill_name": "trip-budget"}),
    ("load_skill", {"skill_name": "letters"}),
    ("load_skill", {"skill_name": "nobody"}),
    ("load_skill", {}),
    ("load_skill_resource", {"skill_name": "trip-budget", "file_path": "references/prices.md"}),
    ("load_skill_resource", {"skill_name": "trip-budget", "file_path": "references/far/hotels.md"}),
    ("load_skill_resource", {"skill_name": "trip-budget", "file_path": "assets/form.txt"}),
    ("load_skill_resource", {"skill_name": "trip-budget", "file_path": "scripts/helper.py"}),
    ("load_skill_resource", {"skill_name": "trip-budget", "file_path": "../letters/skill.md"}),
    ("load_skill_resource", {"skill_name": "trip-budget", "file_path": "references/nothing.md"}),
    ("load_skill_resource", {"skill_name": "trip-budget"}),
    ("run_skill_script", {"skill_name": "trip-budget", "file_path": "scripts/report.py", "args": {"city": "Oslo"}}),
    ("run_skill_script", {"skill_name": "trip-budget", "file_path": "report.py", "args": ["a b", "c"]}),
    (
        "run_skill_script",
        {
            "skill_name": "trip-budget",
            "file_path": "scripts/report.py",
            "args": {"n": 1},
            "short_options": {"v": 2},
            "positional_args": ["x"],
        },
    ),
    ("run_skill_script", {"skill_name": "trip-budget", "file_path": "scripts/look.sh"}),
    ("run_skill_script", {"skill_name": "trip-budget", "file_path": "scripts/fail.py"}),
    ("run_skill_script", {"skill_name": "trip-budget", "file_path": "scripts/notes.txt"}),
    ("run_skill_script", {"skill_name": "trip-budget", "file_path": "scripts/none.py"}),
    ("run_skill_script", {"skill_name": "trip-budget", "file_path": "scripts/report.py", "args": "x"}),
    (
        "run_skill_script",
        {"skill_name": "trip-budget", "file_path": "scripts/report.py", "args": ["a"], "positional_args": ["b"]},
    ),
]
ASKS = "adk_request_confirmation"


def told(package: str, folder: Path) -> dict[str, Any]:
    """Everything that is tried."""
    for name, content in FILES.items():
        path = folder / "skills" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    skills = importlib.import_module(f"{package}.skills")
    loaded = skills.load_skills_from_dir(folder / "skills")
    return {
        "loaded": [_skill(skill) for skill in loaded],
        "listed": sorted(skills.list_skills_in_dir(folder / "skills")),
        "refused": [name for name, text in WRONG.items() if _refuses(skills, folder / "wrong" / name, text)],
        "called": asyncio.run(_called(package, loaded)),
        "brought": asyncio.run(_brought(package, loaded[0].model_copy(deep=True))),
    }


def _skill(skill: Any) -> dict[str, Any]:
    files = skill.resources
    return {
        "front": skill.frontmatter.model_dump(mode="json"),
        "by alias": skill.frontmatter.model_dump(mode="json", by_alias=True),
        "text": skill.instructions,
        "files": [sorted(files.list_references()), sorted(files.list_assets()), sorted(files.list_scripts())],
    }


def _refuses(skills: Any, folder: Path, text: str) -> bool:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    try:
        skills.load_skill_from_dir(folder)
    except ValueError:
        return True
    return False


async def _brought(package: str, skill: Any) -> dict[str, Any]:
    """Which tools each request had, and the results, while a model loads a skill that brings a tool."""

    def book(city: str) -> str:
        """Book a trip."""
        return f"booked {city}"

    def cancel(city: str) -> str:
        """Cancel a trip."""
        return f"cancelled {city}"

    skill.frontmatter.metadata["adk_additional_tools"] = ["book", "fly"]
    name = skill.frontmatter.name
    answers: list[Any] = [("book", {"city": "Rome"}), ("load_skill", {"skill_name": name}), ("book", {"city": "Oslo"})]
    requests, module, types = [], _modules(package), importlib.import_module("google.genai.types")

    class Calls(module["models"].BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False):
            requests.append(sorted({"book", "cancel", "fly"} & llm_request.tools_dict.keys()))
            part = types.Part(text="Done.")
            if answers:
                name, args = answers.pop(0)
                part = types.Part(function_call=types.FunctionCall(name=name, args=args))
            yield module["models"].LlmResponse(content=types.Content(role="model", parts=[part]))

    toolset = importlib.import_module(f"{package}.tools.skill_toolset").SkillToolset(
        skills=[skill], additional_tools=[book, cancel]
    )
    agent = module["agents"].LlmAgent(name="clerk", model=Calls(model="calls"), tools=[toolset])
    runner = module["runners"].InMemoryRunner(agent=agent, app_name="app")
    where = {"app_name": "app", "user_id": "u", "session_id": "s"}
    await runner.session_service.create_session(**where)
    for text in ("Book", "Thanks"):
        said = types.Content(role="user", parts=[types.Part(text=text)])
        async for _ in runner.run_async(user_id="u", session_id="s", new_message=said):
            pass
    session = await runner.session_service.get_session(**where)
    responses = [one for event in session.events for one in event.get_function_responses()]
    results = ["error" if "error" in one.response else one.response.get("result") for one in responses]
    state = {key: value for key, value in session.state.items() if "skill" in key}
    return {"offered": requests, "results": results, "state": state}


def _modules(package: str) -> dict[str, Any]:
    return {name: importlib.import_module(f"{package}.{name}") for name in ("agents", "models", "runners")}


async def _called(package: str, loaded: list[Any]) -> list[Any]:
    """The result of each call, in the order of CALLS; approvals are given."""
    module = _modules(package)
    types = importlib.import_module("google.genai.types")
    toolset = importlib.import_module(f"{package}.tools.skill_toolset").SkillToolset(
        skills=loaded, code_executor=importlib.import_module(f"{package}.code_executors").UnsafeLocalCodeExecutor()
    )
    answers = [*CALLS]

    class Calls(module["models"].BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False):
            if answers:
                name, args = answers.pop(0)
                parts = [types.Part(function_call=types.FunctionCall(name=name, args=args))]
            else:
                parts = [types.Part(text="Done.")]
            yield module["models"].LlmResponse(content=types.Content(role="model", parts=parts))

    agent = module["agents"].LlmAgent(name="clerk", model=Calls(model="calls"), tools=[toolset])
    runner = module["runners"].InMemoryRunner(agent=agent, app_name="app")
    where = {"app_name": "app", "user_id": "u", "session_id": "s"}
    await runner.session_service.create_session(**where, state={"city": "Oslo"})
    message: Any = types.Part(text="hi")
    while message:
        said, message = types.Content(role="user", parts=[message]), None
        async for event in runner.run_async(user_id="u", session_id="s", new_message=said):
            for call in event.get_function_calls():
                if call.name == ASKS:
                    answer = types.FunctionResponse(id=call.id, name=ASKS, response={"confirmed": True})
                    message = types.Part(function_response=answer)
    session = await runner.session_service.get_session(**where)
    responses = [one for event in session.events for one in event.get_function_responses() if one.name != ASKS]
    return [_result(one.name, one.response) for one in responses if "approval" not in str(one.response.get("error"))]


def _result(tool: str, response: dict[str, Any]) -> list[Any]:
    if "error" in response:
        return [tool, {"error_code": response["error_code"]}]
    if tool == "list_skills":  # a description of several lines
        return [tool, " ".join(response["result"].split())]
    kept = {**response, "stderr": bool(response["stderr"])} if response.get("status") == "error" else response
    return [tool, kept]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(told(sys.argv[1], Path(place).resolve())))
