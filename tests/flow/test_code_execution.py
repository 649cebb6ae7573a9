"""Code in answers, from the model's words to the model's next request, with an executor that runs none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from adk_nb import types
from adk_nb.agents import LlmAgent
from adk_nb.artifacts import FileArtifactService
from adk_nb.code_executors import BaseCodeExecutor, BuiltInCodeExecutor
from adk_nb.code_executors.code_execution_utils import CodeExecutionInput, CodeExecutionResult, File
from adk_nb.errors import ConfigurationError
from adk_nb.events import Event
from adk_nb.models import LlmCapabilities, ScriptedLlm, call
from adk_nb.planners import PlanReActPlanner
from adk_nb.tools import built_in_code_execution
from tests.support.talk import Talk, look, requests, summaries


class Answers(BaseCodeExecutor):
    """Says what it was told to say."""

    answer: Callable[[CodeExecutionInput], CodeExecutionResult] = lambda request: CodeExecutionResult(
        stdout="2\n", exit_code=0
    )
    asked: list[CodeExecutionInput] = Field(default_factory=list[CodeExecutionInput])

    def execute_code(self, invocation_context: Any, code_execution_input: CodeExecutionInput) -> CodeExecutionResult:
        self.asked.append(code_execution_input)
        return self.answer(code_execution_input)


def coder(*answers: Any, says: CodeExecutionResult | None = None, **fields: Any) -> LlmAgent:
    if "code_executor" not in fields:
        fields["code_executor"] = Answers(**({"answer": lambda request: says} if says else {}))
    return LlmAgent(name="a", model=ScriptedLlm(*answers), **fields)


def codes(agent: LlmAgent) -> list[str]:
    assert isinstance(agent.code_executor, Answers)
    return [request.code for request in agent.code_executor.asked]


def instruction(agent: LlmAgent, request: int) -> str:
    assert isinstance(agent.model, ScriptedLlm)
    return str(agent.model.requests[request].config.system_instruction)


def output(event: Event) -> tuple[str, str]:
    result = event.parts[-1].code_execution_result
    assert result and result.outcome
    return result.outcome.value, result.output or ""


def test_the_first_block_is_run_and_what_it_gave_is_told_to_the_model():
    agent = coder("I will run\n```tool_code\nprint(1+1)\n```\nand then\n```python\nprint(3)\n```", "answer 2")
    talk = Talk(agent)

    code, result, last = talk.say("calc")

    assert [part.text for part in code.parts] == ["I will run\n", None]
    assert code.parts[1].executable_code == types.ExecutableCode(code="print(1+1)", language=types.Language.PYTHON)
    assert code.is_final_response()
    assert output(result) == ("OUTCOME_OK", "Code execution result:\n2\n\n")
    assert (result.content and result.content.role) == "model"
    assert not result.is_final_response()
    assert result.actions.state_delta == {"_code_execution_context": {}}
    assert summaries([last]) == [("a", "answer 2 .")]
    assert talk.stored().state == {"_code_execution_context": {}}
    assert codes(agent) == ["print(1+1)"]
    assert requests(agent) == [
        [("user", "calc")],
        [
            ("user", "calc"),
            ("model", "I will run\n; ```tool_code\nprint(1+1)\n```"),
            ("user", "```tool_output\nCode execution result:\n2\n\n\n```"),
        ],
    ]
    assert "```tool_code\n" in instruction(agent, 0)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\nx\n```", "x"),
        ("```python\n\n```", None),
        ("```python\nx", None),
        ("```js\nx\n```", None),
        ("```js\nx\n```\n```python\ny\n```", "y"),
        ("```python\na\n```\n```tool_code\nb\n```", "a"),
    ],
)
def test_which_block_is_code(text: str, code: str | None):
    agent = coder(text, "done")

    Talk(agent).say()

    assert codes(agent) == ([code] if code else [])


def test_an_answer_that_calls_tools_is_no_code():
    agent = coder(["```python\nx\n```", call("look")], "done", tools=[look])

    Talk(agent).say()

    assert codes(agent) == []


def test_thoughts_are_not_run_but_a_planners_action_is():
    thought = types.Part(text="```python\nx\n```", thought=True)
    agent = coder([thought, types.Part(text="words")])
    Talk(agent).say()
    assert codes(agent) == []

    agent = coder("/*ACTION*/\n```python\nx\n```", "/*FINAL_ANSWER*/ done", planner=PlanReActPlanner())
    events = Talk(agent).say()
    assert codes(agent) == ["x"]
    assert summaries(events)[-1] == ("a", "done .")


def test_an_agent_whose_state_has_a_schema_can_run_code():
    class stored_values(BaseModel):
        answer: str

    talk = Talk(coder("```python\nx\n```", "2", state_schema=stored_values, output_key="answer"))

    talk.say()

    assert not talk.error
    assert talk.stored().state == {"_code_execution_context": {}, "answer": "2"}


def test_words_before_code_are_not_the_output():
    agent = coder("I will run\n```python\nx\n```", "7", output_key="o", output_schema=int)
    talk = Talk(agent)

    events = talk.say()

    assert not any(event.error_code for event in events)
    assert talk.stored().state["o"] == 7


def test_code_that_fails_is_told_and_after_two_in_a_row_none_is_run():
    block = "```python\nx\n```"
    agent = coder(block, block, block, says=CodeExecutionResult(stdout="so far\n", stderr="NameError: x", exit_code=1))
    talk = Talk(agent)

    events = talk.say()

    assert [output(event) for event in events if event.has_trailing_code_execution_result()] == [
        ("OUTCOME_FAILED", "so far\n\nNameError: x")
    ] * 2
    assert summaries(events)[-1] == ("a", f"{block} .")
    assert ["```tool_code" in instruction(agent, index) for index in range(3)] == [True, True, False]
    assert talk.stored().state["_code_executor_error_counts"] == {talk.stored().events[0].invocation_id: 2}


def test_one_that_works_between_two_that_fail_counts_anew_and_a_new_turn_does_too():
    block = "```python\nx\n```"
    codes_given = iter([1, 0, 1, 1, 1])
    executor = Answers(answer=lambda request: CodeExecutionResult(stderr="hm", exit_code=next(codes_given)))
    agent = coder(block, block, block, block, block, block, "end", code_executor=executor)
    talk = Talk(agent)

    assert len(talk.say()) == 4 * 2 + 1
    assert len(talk.say()) == 2 + 1


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        (CodeExecutionResult(stderr="DeprecationWarning", exit_code=0), "OUTCOME_OK"),
        (CodeExecutionResult(stderr="DeprecationWarning"), "OUTCOME_FAILED"),
        (CodeExecutionResult(stdout="1", exit_code=3), "OUTCOME_FAILED"),
        (CodeExecutionResult(), "OUTCOME_OK"),
    ],
)
def test_the_exit_status_tells_how_it_went_and_stderr_only_where_there_is_none(
    result: CodeExecutionResult, outcome: str
):
    events = Talk(coder("```python\nx\n```", "done", says=result)).say()

    assert output(events[1])[0] == outcome
    assert ("Deprecation" in output(events[1])[1]) is bool(result.stderr)


def test_files_that_come_out_are_kept_as_artifacts(tmp_path: Path):
    image = File(name="image_1.png", content=b"\x89PNG", mime_type="image/png")
    odd = File(name="../up", content="aGk=")
    agent = coder("```python\nx\n```", "done", says=CodeExecutionResult(output_files=[image, odd], exit_code=0))
    talk = Talk(agent)
    talk.runner.artifact_service = FileArtifactService(tmp_path)

    result = talk.say()[1]

    assert result.actions.artifact_delta == {"image_1.png": 0}
    assert "`image_1.png`" in output(result)[1] and "`../up`" in output(result)[1]


def test_without_an_artifact_service_the_words_of_the_code_are_told_all_the_same():
    files = [File(name="a.txt", content="aGk=")]
    agent = coder("```python\nx\n```", "done", says=CodeExecutionResult("hi\n", output_files=files, exit_code=0))
    talk = Talk(agent)
    talk.runner.artifact_service = None

    result = talk.say()[1]

    assert "hi" in output(result)[1]
    assert "`a.txt`" in output(result)[1] and "artifact_service=" in output(result)[1]
    assert not talk.error


def csv_and_words(data: bytes = b"x,y\n1,2\n") -> list[types.Part]:
    return [types.Part(inline_data=types.Blob(data=data, mime_type="text/csv")), types.Part(text="sum?")]


def test_a_data_file_is_looked_into_once_and_given_to_the_code_instead_of_the_model():
    agent = coder("```python\nx\n```", "3", "again", code_executor=Answers(optimize_data_file=True, stateful=True))
    talk = Talk(agent)

    events = talk.say(csv_and_words())
    talk.say("and now?")

    assert isinstance(agent.code_executor, Answers)
    looks, runs = agent.code_executor.asked
    name = looks.input_files[0].name
    assert name.startswith("data_")
    assert f"read_csv('{name}')" in looks.code
    assert [(file.name, file.data) for file in runs.input_files] == [(name, b"x,y\n1,2\n")]
    assert {request.execution_id for request in agent.code_executor.asked} == {"s"}
    assert len(events) == 5
    first, _, last = requests(agent)
    assert first[0] == ("user", f"\nAvailable file: `{name}`\n; sum?")
    assert [role for role, _ in first] == ["user", "model", "user"]
    assert last[0] == first[0]
    assert talk.stored().state["_code_execution_context"] == {
        "execution_session_id": "s",
        "processed_input_files": [name],
    }


def test_the_messages_of_the_session_keep_their_data_files():
    talk = Talk(coder("ok", code_executor=Answers(optimize_data_file=True)))

    talk.say(csv_and_words())

    assert talk.stored().events[0].parts[0].inline_data


class RunsItself(ScriptedLlm):
    """A model whose service runs code."""

    @property
    def capabilities(self) -> LlmCapabilities:
        return LlmCapabilities(code_execution=True)


def code_part(code: str) -> types.Part:
    return types.Part(executable_code=types.ExecutableCode(code=code, language=types.Language.PYTHON))


def result_part(text: str) -> types.Part:
    return types.Part(code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output=text))


def test_the_models_service_is_offered_its_own_code_execution_and_asked_again_after_a_bare_result():
    model = RunsItself([code_part("1+1"), result_part("2")], "it is 2")
    talk = Talk(LlmAgent(name="a", model=model, code_executor=BuiltInCodeExecutor()))

    events = talk.say("calc")

    assert [bool(event.is_final_response()) for event in events] == [False, True]
    assert model.requests[0].config.tools == [types.Tool(code_execution=types.ToolCodeExecution())]
    assert model.requests[1].contents[1].parts == events[0].parts
    assert "```" not in str(model.requests[0].config.system_instruction)


def test_a_model_whose_service_runs_no_code_is_refused_with_what_to_write_instead():
    talk = Talk(LlmAgent(name="a", model=ScriptedLlm("hi"), code_executor=BuiltInCodeExecutor()))

    (event,) = talk.say()

    assert "code_executor=KernelCodeExecutor()" in (event.error_message or "")


def test_built_in_code_execution_among_the_tools_does_the_same():
    model = RunsItself("hi")

    Talk(LlmAgent(name="a", model=model, tools=[built_in_code_execution])).say()

    assert model.requests[0].config.tools == [types.Tool(code_execution=types.ToolCodeExecution())]


def test_built_in_code_execution_leaves_the_code_to_the_agents_executor_and_needs_one_of_the_two():
    agent = coder("```python\nx\n```", "done", tools=[built_in_code_execution])
    Talk(agent).say()
    assert codes(agent) == ["x"]

    (event,) = Talk(LlmAgent(name="a", model=ScriptedLlm("hi"), tools=[built_in_code_execution])).say()
    assert "code_executor=KernelCodeExecutor()" in (event.error_message or "")


def test_code_in_the_models_own_form_is_run_too():
    agent = coder([code_part("1+1"), types.Part(text="it will be 2")], "2")

    events = Talk(agent).say()

    assert codes(agent) == ["1+1"]
    assert len(events) == 3


@pytest.mark.parametrize("executor", ["kernel", {"timeout_seconds": 3}, BuiltInCodeExecutor])
def test_what_is_no_executor_is_refused(executor: Any):
    with pytest.raises(ConfigurationError, match="instance of BaseCodeExecutor"):
        LlmAgent(name="a", model=ScriptedLlm(), code_executor=executor)


def test_a_setting_that_there_is_not_is_refused_with_the_one_that_was_meant():
    with pytest.raises(ConfigurationError, match="'timeout_seconds'"):
        Answers(timeout_second=3)
