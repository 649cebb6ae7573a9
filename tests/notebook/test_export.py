"""%export: the agents and tools of a notebook as a package or a script, without the notebook."""

import ast
import importlib.util
import os
import re
import runpy
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from adk_nb import types
from adk_nb.models import OpenAILlm
from adk_nb.models.default_model import GEMINI_MODEL
from adk_nb.notebook.extensions.export.statements import statements
from tests.notebook.conftest import Shell
from tests.peers.told_exported import ASKS, heard
from tests.support.exports import ANSWERS, MODEL, NOTEBOOKS, Notebook, told_in_the_notebook
from tests.support.talk import Talk


@pytest.fixture
def work(tmp_path: Path, shell: Shell) -> Path:
    """The folder of the notebook."""
    shell.ip.starting_dir = str(tmp_path)
    return tmp_path


def told_by(root_agent: Any, notebook: Notebook) -> list[dict[str, Any]]:
    """What a session of an exported agent tells."""
    talk = Talk(root_agent, notebook.state)
    ANSWERS[:] = notebook.answers
    pending: list[Any] = []
    for message in notebook.messages:
        content: Any = message
        if isinstance(message, bool):
            answer = types.FunctionResponse(id=pending[-1].id, name=ASKS, response={"confirmed": message})
            content = types.Content(role="user", parts=[types.Part(function_response=answer)])
        events = talk.say(content)
        assert not talk.error
        pending += [call for event in events for call in event.get_function_calls() if call.name == ASKS]
    return heard(talk.stored().events)


def written(file: Path) -> dict[str, Any]:
    """The variables of a script, or of a package that runs here as it would with google-adk."""
    if file.is_file():
        return runpy.run_path(str(file))
    code = (file / "agent.py").read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "exported"}
    exec(re.sub(f"[\"']{re.escape(GEMINI_MODEL)}[\"']", repr(MODEL), code.replace("google.adk", "adk_nb")), names)
    return names


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_what_is_exported_tells_the_events_of_the_notebook(name: str, shell: Shell, work: Path):
    output = told_in_the_notebook(shell, NOTEBOOKS[name])
    shell.cell("%export agent.py")
    shell.cell("%export exported/")

    assert told_by(written(work / "agent.py")["root_agent"], NOTEBOOKS[name]) == output
    assert told_by(written(work / "exported")["root_agent"], NOTEBOOKS[name]) == output


def test_the_package_is_as_adk_wants_it_and_names_only_google_adk(shell: Shell, work: Path):
    shell.cell("%%tool\ndef look(city: str) -> str:\n    'Looks.'\n    return city")
    text = str(shell.cell("%%agent guide -t look -m gemini-2.5-pro\nLook."))
    text = str(shell.cell("%export my_agents/"))

    assert text == (
        "wrote my_agents/__init__.py, my_agents/agent.py: root_agent is guide\n"
        "next, in a terminal: adk run my_agents, or adk web ."
    )
    assert "from . import agent as agent" in (work / "my_agents/__init__.py").read_text()
    code = (work / "my_agents/agent.py").read_text()
    assert code == (
        '"""The agent guide, for google-adk; written by %export of adk_nb."""\n\n'
        "from google.adk.agents import LlmAgent\n\n\n"
        "def look(city: str) -> str:\n    'Looks.'\n    return city\n\n\n"
        'guide = LlmAgent(name="guide", model="gemini-2.5-pro", instruction="Look.", tools=[look])\n'
        "root_agent = guide\n"
    )


def test_a_script_answers_in_a_terminal(shell: Shell, work: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch):
    shell.cell("%%tool\ndef look(city: str) -> dict:\n    'The sky over a city.'\n    return {'sky': f'sunny {city}'}")
    shell.cell("%%agent guide -t look\nLook.")
    text = str(shell.cell("%export agent.py"))
    monkeypatch.setattr("sys.argv", ["agent.py", "The", "sky", "over", "Oslo"])
    capsys.readouterr()
    runpy.run_path(str(work / "agent.py"), run_name="__main__")

    assert "terminal: python agent.py your question" in text
    assert "sunny Oslo" in capsys.readouterr().out


@pytest.mark.parametrize(("answer", "text"), [("y", "Paid 7."), ("", "not approved")])
def test_a_script_asks_in_the_terminal_before_a_call_that_needs_a_person(
    answer: str, text: str, shell: Shell, work: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
):
    shell.cell("%%tool --confirm\ndef pay(euros: int) -> str:\n    'Pays some euros.'\n    return f'paid {euros}'")
    shell.cell("%%agent clerk -t pay\nPay.")
    shell.cell("%export agent.py")
    requests: list[str] = []
    monkeypatch.setattr(
        "builtins.input", lambda text="": requests.append(text) or (answer if "may" in text else "Pay 7")
    )
    monkeypatch.setattr("sys.argv", ["agent.py"])
    capsys.readouterr()
    runpy.run_path(str(work / "agent.py"), run_name="__main__")

    assert requests == ["you: ", "may pay run with {'euros': 7}? [y/N] "]
    assert text in capsys.readouterr().out


def test_a_script_asks_for_each_of_several_calls_and_its_own_names_are_no_tool_s(
    shell: Shell, work: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
):
    shell.cell("from adk_nb.models import ScriptedLlm, call")
    shell.cell("script = ScriptedLlm([call('pay', euros=7), call('pay', euros=8)], 'One is paid.', 'Both.')")
    shell.cell("def reply(euros): return f'paid {euros}'")
    shell.cell("%%tool --confirm\ndef pay(euros: int) -> str:\n    'Pays.'\n    print(reply(euros))\n    return 'ok'")
    shell.cell("%%agent clerk -t pay -m script\nPay.")
    shell.cell("%export agent.py")
    requests: list[str] = []
    monkeypatch.setattr("builtins.input", lambda text="": requests.append(text) or "y")
    monkeypatch.setattr("sys.argv", ["agent.py", "Pay", "both"])
    capsys.readouterr()
    runpy.run_path(str(work / "agent.py"), run_name="__main__")

    assert requests == [f"may pay run with {{'euros': {euros}}}? [y/N] " for euros in (7, 8)]
    assert capsys.readouterr().out == "paid 7\npaid 8\nBoth.\n"


def test_what_only_ipython_can_run_is_written_as_the_data_it_made(shell: Shell, work: Path):
    shell.cell("import asyncio\nasync def fetch(): return [1, 2]\nrows = await fetch()")
    shell.cell("listing = !echo hello\nlisting = list(listing)\nfolder = %pwd")
    shell.cell("%%tool\ndef count() -> list:\n    'Counts.'\n    return [len(rows), len(folder)]")
    shell.cell("%%agent clerk -t count\nCount.")
    shell.cell("%export agent.py")
    code = (work / "agent.py").read_text()

    assert "rows = [1, 2]" in code
    assert "folder = '/" in code
    assert "get_ipython" not in code
    assert written(work / "agent.py")["count"]()[0] == 2


def test_only_what_the_agents_need_is_written_in_an_order_in_which_it_runs(shell: Shell, work: Path):
    shell.cell("import math, json\nfrom typing import Literal\nunused = 1\n# a day\nDAY = 24")
    shell.cell(
        "def hours(days):\n    return math.floor(days * DAY) + _more()\n\n"
        "def _more(): return hours(0) if DAY < 0 else 0"
    )
    shell.cell("class Place:\n    here: Literal['a', 'b'] = 'a'\n    a_day = hours(1)")
    shell.cell("names = ['a']; names.append('b'); print(unused)")
    shell.cell(
        "%%tool\ndef look(days: float) -> dict:\n    'Looks.'\n"
        "    return {'hours': hours(days), 'in': names, 'p': Place.a_day}"
    )
    shell.cell("%%agent guide -t look\nLook.")
    shell.cell("DAY = 25")
    shell.cell("%export agent.py")
    code = (work / "agent.py").read_text()
    names = written(work / "agent.py")

    assert names["look"](2) == {"hours": 50, "in": ["a", "b"], "p": 25}
    assert "unused" not in code
    assert "import json" not in code
    assert "# a day" not in code  # DAY was bound anew
    assert "print" not in code.partition("def _ask_in_terminal")[0]


def test_data_that_no_cell_makes_in_python_is_written_as_it_is_now(shell: Shell, work: Path):
    shell.ip.user_ns |= {"prices": {"tea": 2.5}, "opened": open(os.devnull)}  # noqa: SIM115
    shell.cell("%%tool\ndef price(of: str) -> float:\n    'Price.'\n    return prices[of]\n")
    shell.cell("%%agent shop -t price\nSell.")
    shell.cell("%export agent.py")
    assert "prices = {'tea': 2.5}" in (work / "agent.py").read_text()

    shell.cell("%%tool\ndef price(of: str) -> str:\n    'Price.'\n    return opened.read()\n")
    shell.ip.user_ns["opened"].close()
    assert "InputError: %export: price needs 'opened', a TextIOWrapper" in shell.fails("%export agent.py")


def test_what_is_invisible_is_written_as_an_escape(shell: Shell, work: Path):
    shell.cell("%%tool\ndef look() -> str:\n    'Looks \u2066up.'  # \u202e\n    return 'a\u202eb'\n")
    shell.cell("%%agent guide -t look\nHelp \u202e them\u200b, and\u2066 kindly.")
    shell.cell("%export agent.py")

    code = (work / "agent.py").read_text()
    assert not {*"\u202e\u2066\u200b"} & {*code} and "\\u202e" in code
    assert written(work / "agent.py")["look"]() == "a\u202eb"
    assert written(work / "agent.py")["root_agent"].instruction == "Help \u202e them\u200b, and\u2066 kindly."

    shell.cell("%%tool\ndef look() -> str:\n    'Looks.'\n    return r'a\u202eb'\n")
    assert "a\\u202eb" in shell.fails("%export agent.py")


def test_state_keys_stay_and_variables_are_frozen(shell: Shell, work: Path):
    shell.cell("city = 'Oslo'\n")
    shell.cell("%%agent guide\nIn {{city}} for {user:name?} with {app:plan}.")
    shell.cell("city = 'Rome'")
    text = str(shell.cell("%export agent.py"))

    assert 'instruction="In Oslo for {user:name?} with {app:plan}."' in (work / "agent.py").read_text()
    assert "note: guide reads app:plan from the state: set it before the first turn" in text


class Context:
    def __init__(self, **state: Any) -> None:
        self.state = state


def test_braces_that_are_text_go_through_a_function(shell: Shell, work: Path):
    shell.cell("%state budget=400")
    shell.cell('%%agent guide\nFor {budget}, {count} and {user?}: {"a": {}} "quoted"')
    shell.cell("%export exported")
    instruction = written(work / "exported")["root_agent"].instruction

    assert instruction(Context(budget=[1, 2])) == 'For [1, 2], {count} and : {"a": {}} "quoted"'
    assert instruction(Context(budget="x", count=3, user=None)) == 'For x, 3 and : {"a": {}} "quoted"'
    with pytest.raises(KeyError, match="'budget'"):
        instruction(Context())


def test_braces_of_a_raw_cell_mean_nothing(shell: Shell, work: Path):
    shell.cell("%%agent guide --raw\nSay {x} and {{y}}.")
    shell.cell("%export exported")

    assert written(work / "exported")["root_agent"].instruction(Context(x=1)) == "Say {x} and {{y}}."


def test_a_model_in_a_file_becomes_gemini_and_the_report_says_how_to_ask_the_file(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(sys.modules, "xllamacpp", ModuleType("xllamacpp"))
    sys.modules["xllamacpp"].__spec__ = ModuleSpec("xllamacpp", None)
    shell.cell("%%agent guide -m gguf:/models/qwen.gguf\nLook.")
    package, script = str(shell.cell("%export exported")), str(shell.cell("%export agent.py"))

    assert 'model="gguf:' not in (work / "exported" / "agent.py").read_text()
    assert "llama-server --model /models/qwen.gguf" in package and f"the model is {GEMINI_MODEL} there" in package
    assert 'model="gguf:/models/qwen.gguf"' in (work / "agent.py").read_text()
    assert "/models/qwen.gguf, with adk_nb's extra `local`" in script


def test_names_that_google_adk_lacks_are_reported(shell: Shell, work: Path):
    shell.cell("%%tool --timeout 5\ndef look(city: str) -> str:\n    'Looks.'\n    return city")
    shell.cell("%%agent guide -t look --max-iterations 3\nLook.")
    package = str(shell.cell("%export exported"))
    script = str(shell.cell("%export agent.py"))

    assert package.splitlines()[1:4] == [
        "note: guide: max_iterations is left out; google-adk has RunConfig(max_llm_calls=...)",
        "note: tool look: timeout is left out; google-adk has no such option",
        f"note: guide: the model is {GEMINI_MODEL} there; google-adk does not have the notebook's",
    ]
    assert "note" not in script
    assert written(work / "agent.py")["root_agent"].max_iterations == 3
    assert written(work / "agent.py")["look_tool"].timeout == 5


def test_a_condition_of_a_tool_is_a_function_there(shell: Shell, work: Path):
    shell.cell("def is_big(amount):\n    return amount > 5")
    shell.cell("%%tool --confirm=is_big\ndef pay(amount: float, to: str) -> str:\n    'Pays.'\n    return to")
    shell.cell(
        '%%tool --confirm "amount > 9"\ndef send(amount: float = 10, to: str = "") -> str:\n    "Sends."\n    return to'
    )
    shell.cell("%%agent clerk -t pay,send\nPay.")
    shell.cell("%export exported")
    names = written(work / "exported")

    assert [names["_pay_asks"](amount=number, to="x") for number in (4, 6)] == [False, True]
    assert [names["_send_asks"](**item, to="x") for item in ({}, {"amount": 3}, {"amount": "?"})] == [True, False, True]


def test_a_key_is_not_written(shell: Shell, work: Path):
    shell.cell('KEY = "sk-abcdefghijklmnop0123456789"')
    shell.cell("%%tool\ndef look(city: str) -> str:\n    'Looks.'\n    return KEY")
    shell.cell("%%agent guide -t look\nLook.")

    message = shell.fails("%export agent.py")
    assert (
        "InputError: %export: the file" in message
        and 'token: KEY = "[redacted]"; read' in message
        and 'os.environ["NAME"]' in message
    )
    assert not (work / "agent.py").exists()


def test_a_file_that_was_written_by_hand_stays(shell: Shell, work: Path):
    shell.cell("%%agent guide\nLook.")
    (work / "agent.py").write_text("mine = 1\n")

    message = shell.fails("%export agent.py")
    assert message.startswith("InputError: %export: ")
    assert "agent.py exists and %export" in message
    assert (work / "agent.py").read_text() == "mine = 1\n"
    shell.cell("%export other.py")
    shell.cell("%export other.py")


def test_who_is_the_root_has_to_be_clear(shell: Shell, work: Path):
    assert "InputError: %export: no agent" in shell.fails("%export agent.py")
    shell.cell("%%agent one\nOne.")
    shell.cell("%%agent two\nTwo.")
    assert "InputError: %export: which agent" in shell.fails("%export agent.py")
    shell.cell("%%agent team --kind parallel\none, two")
    assert "root_agent is team, with one, two" in str(shell.cell("%export agent.py"))


@pytest.mark.parametrize("name", ["my-agents", "class", "google"])
def test_a_folder_has_to_be_a_package(name: str, shell: Shell, work: Path):
    shell.cell("%%agent guide\nLook.")

    assert shell.fails(f"%export {name}/") == (
        f"InputError: %export: {name!r} cannot be the name of a package; write a folder such as my_agents, or a script "
        "agent.py"
    )


def test_an_undefined_member_is_reported(shell: Shell, work: Path):
    shell.cell("%%agent team --kind sequential\nlater_one")

    assert "InputError: %export: later_one" in shell.fails("%export agent.py")


def test_a_model_that_google_adk_has_not_is_another_there(shell: Shell, work: Path):
    shell.cell("from adk_nb import Agent\nfrom adk_nb.models import OfflineLlm, ScriptedLlm")
    shell.cell("script = ScriptedLlm('Hello.')")
    shell.cell("one = Agent(name='one', model=script)\ntwo = Agent(name='two', model=OfflineLlm())")
    shell.cell("three = Agent(name='three', model='https://example.test/ask', sub_agents=[one, two])")
    package = str(shell.cell("%export exported"))
    shell.cell("%export agent.py")
    code = (work / "exported/agent.py").read_text()

    assert f"note: three, one, two: the model is {GEMINI_MODEL} there" in package
    assert "Scripted" not in code
    assert "Offline" not in code
    assert written(work / "exported")["three"].sub_agents[1].model == MODEL
    assert Talk(written(work / "agent.py")["one"].clone()).say()[-1].text == "Hello."


@pytest.mark.parametrize(
    ("model", "name", "address", "key"),
    [
        ("http://127.0.0.1:9/v1#qwen3", "openai/qwen3", "http://127.0.0.1:9/v1", "none"),
        ("ollama:hf.co/small/model", "openai/hf.co/small/model", "http://127.0.0.1:9/v1", "of-ollama"),
        ("openai:gpt-6-luna", "openai/gpt-6-luna", None, None),
        ("gpt-6-luna", "openai/gpt-6-luna", None, None),
        (OpenAILlm(model="m", base_url="http://h/v1", api_key="geheim"), "openai/m", "http://h/v1", "of-openai"),
    ],
)
def test_a_model_of_openai_s_api_or_of_litellm_is_a_lite_llm_there(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch, model: Any, name: str, address: str | None, key: str
):
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    monkeypatch.setenv("OLLAMA_API_KEY", "of-ollama")
    shell.names["own"] = model
    of_cell = model if isinstance(model, str) else "own"
    shell.cell(
        f"from adk_nb import Agent\nboss = Agent(name='boss', model={f'{model!r}' if model is of_cell else 'own'})"
    )
    shell.cell(f"%%agent guide --root -m {of_cell}\nBe brief.")

    assert GEMINI_MODEL not in str(shell.cell("%export exported"))

    code = (work / "exported/agent.py").read_text()
    assert "from google.adk.models.lite_llm import LiteLlm" in code
    assert "geheim" not in code and "of-o" not in code
    expected = {"model": name, "api_base": address, "api_key": key}
    assert lite_llms(code) == [{field: value for field, value in expected.items() if value}] * 2


SECRET = "geheim-1234567890"


@pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed; make litellm")
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("made", "there"),
    [
        ("'litellm:mistral/small'", {"model": "mistral/small"}),
        (f"LiteLlm('mistral/small', api_key='{SECRET}')", {"model": "mistral/small"}),
        ("LiteLlm('openai/m', api_base='http://h/v1')", {"model": "openai/m", "api_base": "http://h/v1"}),
        (
            "LiteLlm('openai/m', api_base='http://h/v1', api_key='none')",
            {"model": "openai/m", "api_base": "http://h/v1", "api_key": "of-openai"},
        ),
        (
            f"LiteLlm('azure/m', azure_ad_token='{SECRET}', api_version='2024-01')",
            {"model": "azure/m", "api_version": "2024-01"},
        ),
        (
            "LiteLlm('openai/m', temperature=0.2, keyword_boost=3, client=object(), extra_body={'top_k': 3})",
            {"model": "openai/m", "temperature": 0.2, "keyword_boost": 3, "extra_body": {"top_k": 3}},
        ),
    ],
)
def test_a_lite_llm_is_one_there_with_its_arguments_and_without_its_secrets(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch, made: str, there: dict[str, Any]
):
    monkeypatch.setenv("OPENAI_API_KEY", "of-openai")
    shell.cell(f"from adk_nb import Agent\nfrom adk_nb.models import LiteLlm\nown = {made}")
    shell.cell("boss = Agent(name='boss', model=own)")
    shell.cell("%%agent guide --root -m own\nBe brief.")

    assert GEMINI_MODEL not in str(shell.cell("%export exported"))

    code = (work / "exported/agent.py").read_text()
    assert SECRET not in code
    assert lite_llms(code) == [there, there]


@pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed; make litellm")
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    "argument",
    [
        f"extra_headers={{'Authorization': 'Bearer {SECRET}'}}",
        f"api_base='http://bob:{SECRET}@h/v1'",
        f"extra_body={{'api_key': '{SECRET}'}}",
    ],
)
def test_a_secret_inside_of_a_lite_llm_s_arguments_is_not_written(shell: Shell, work: Path, argument: str):
    shell.cell(f"from adk_nb.models import LiteLlm\nown = LiteLlm('openai/m', {argument})")
    shell.cell("%%agent guide -m own\nBe brief.")

    said = shell.fails("%export exported")

    assert "os.environ" in said
    assert SECRET not in said
    assert not (work / "exported").exists()


def lite_llms(code: str) -> list[dict[str, Any]]:
    """The arguments of each LiteLlm that the code makes; litellm need not be there."""
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    made = [call for call in calls if ast.unparse(call.func) == "LiteLlm"]
    return [{word.arg or "": eval(ast.unparse(word.value), {"os": os}) for word in call.keywords} for call in made]


def test_a_default_model_with_a_server_of_its_own_is_exported_with_it(
    shell: Shell, work: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ADK_NB_DEFAULT_MODEL", "http://127.0.0.1:9/v1#qwen3")
    shell.cell("%%agent guide\nBe brief.")
    shell.cell("%export exported")

    [model] = lite_llms((work / "exported/agent.py").read_text())
    assert model == {"model": "openai/qwen3", "api_base": "http://127.0.0.1:9/v1", "api_key": "none"}


def test_what_only_adk_nb_has_goes_into_a_script_alone(shell: Shell, work: Path):
    shell.cell("from adk_nb import Chat")
    shell.cell("def ask(text: str) -> str:\n    'Asks.'\n    return Chat(guide).ask(text).text")
    shell.cell("%tool ask")
    shell.cell("%%agent guide -t ask\nLook.")

    assert "script instead: %export" in shell.fails("%export exported")
    shell.cell("%export agent.py")
    assert written(work / "agent.py")["root_agent"].name == "guide"


def test_an_agent_that_cannot_be_written_is_left_out_if_it_is_not_the_root(shell: Shell, work: Path):
    shell.cell("from adk_nb import Agent, Chat\nprices = {'tea': 2}")
    shell.cell("def ask(text: str) -> str:\n    'Asks.'\n    return prices, Chat")
    shell.cell("asking = Agent(name='asking', tools=[ask])")
    shell.cell("def price(of: str) -> int:\n    'Price.'\n    return prices[of]")
    shell.cell("seller = Agent(name='seller', model='gemini-2.5-pro', tools=[price])")
    shell.cell("%%agent guide --root\nLook.")

    text = str(shell.cell("%export exported"))
    assert "root_agent is guide, with seller\n" in text
    assert "note: asking is left out: google-adk has no Chat" in text
    names = written(work / "exported")
    assert names["root_agent"].name == "guide"
    assert names["price"]("tea") == 2
    assert "asking" not in names


def test_what_python_set_on_an_agent_is_written_too(shell: Shell, work: Path):
    shell.cell("%%agent guide\nLook.")
    shell.cell("def guard(callback_context, llm_request):\n    return None\nguide.before_model_callback = guard")
    shell.cell("%export agent.py")

    names = written(work / "agent.py")
    assert names["root_agent"].before_model_callback is names["guard"]


def test_whatever_else_an_agent_was_given_is_written_too(shell: Shell, work: Path):
    shell.cell("from pydantic import BaseModel\nclass Trip(BaseModel):\n    town: str")
    shell.cell("%%agent guide\nLook.")
    shell.cell("setattr(guide, 'output_schema', Trip); setattr(guide, 'include_contents', 'none')")
    shell.cell(
        "setattr(guide, 'on_output_error', 'raw'); setattr(guide, 'before_tool_callback', [lambda **said: None])"
    )
    package = str(shell.cell("%export exported"))
    shell.cell("%export agent.py")

    agent = written(work / "agent.py")["root_agent"]
    assert (agent.output_schema.__name__, agent.include_contents, agent.on_output_error) == ("Trip", "none", "raw")
    assert "note: guide: on_output_error is left" in package and "google-adk's LlmAgent" in package
    assert "note: guide: before_tool_callback is left" in package


@pytest.mark.parametrize("place", ["nope/agent.py", "nope/my_agents/"])
def test_a_folder_that_is_not_there_is_not_made(place: str, shell: Shell, work: Path):
    shell.cell("%%agent guide\nLook.")

    assert shell.fails(f"%export {place}") == (
        f"InputError: there is no folder {work / 'nope'}; make it, or give another path"
    )
    assert not (work / "nope").exists()


def test_statements_say_what_they_change_and_whether_they_wait():
    cell = "a, b[0] = 1, 2\nfor i in y: z.append(i)\nif q: q = 1; q += 2\n[x async for x in a()]\nn += 1"
    found = statements([cell], str)

    assert [(*statement.changes,) for statement in found] == [("b",), ("z",), ("q",), (), ("n",)]
    assert [(*statement.binds,) for statement in found] == [("a",), ("i",), ("q",), (), ()]
    assert [statement.is_magic for statement in found] == [False, False, False, True, False]
