"""A table is answered row by row."""

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from adk_nb import Agent, types
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.evaluation import agent_map
from adk_nb.models.llm_response import LlmResponse
from adk_nb.models.scripted_llm import ScriptedLlm
from adk_nb.sessions import InMemorySessionService
from tests.support.late import late

pandas, polars = late("pandas"), late("polars")

ROWS = [{"text": "Great!", "stars": 5}, {"text": "Bad.", "stars": 1}, {"text": "Great!", "stars": 4}]


class Label(BaseModel):
    label: Literal["good", "bad"]
    confidence: float


def _classifier(request: list[str]) -> Agent:
    def answer(callback_context: Any, llm_request: Any) -> LlmResponse:
        text = llm_request.contents[-1].parts[-1].text
        request.append(text)
        if "broken" in text:
            raise RuntimeError("no model")
        label = {"label": "good" if "Great" in text else "bad", "confidence": 0.9}
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=json.dumps(label))]))

    return Agent(name="classify", model="gemini-2.5-flash", before_model_callback=answer)


def test_rows_with_the_same_message_run_once() -> None:
    requests: list[str] = []
    table = agent_map(_classifier(requests), ROWS, message="Classify: {{text}}", schema=Label)
    assert sorted(requests) == ["Classify: Bad.", "Classify: Great!"]
    assert [row["label"] for row in table] == ["good", "bad", "good"]
    assert [row["stars"] for row in table] == [5, 1, 4]
    assert table[0]["_run"] == table[2]["_run"] != table[1]["_run"]
    assert {row["_status"] for row in table} == {"done"}
    assert "label" not in ROWS[0]


def test_without_a_schema_the_text_is_the_answer() -> None:
    (row,) = agent_map(_classifier([]), [{"message": "Great!"}])
    assert json.loads(row["answer"])["label"] == "good"


def test_a_list_of_messages_is_a_table_with_one_column() -> None:
    requests: list[str] = []
    table = agent_map(_classifier(requests), ["Great!", "Bad."])
    assert sorted(requests) == ["Bad.", "Great!"]
    assert [row["message"] for row in table] == ["Great!", "Bad."]


def test_a_csv_file_is_a_table(tmp_path: Path) -> None:
    path = tmp_path / "reviews.csv"
    path.write_text("text,stars\nGreat!,5\nBad.,1\n", encoding="utf-8-sig")
    table = agent_map(_classifier([]), path, message="{{text}}", schema=Label)
    assert [(row["text"], row["stars"], row["label"]) for row in table] == [
        ("Great!", "5", "good"),
        ("Bad.", "1", "bad"),
    ]
    with pytest.raises(InputError) as refusal:
        agent_map(_classifier([]), tmp_path / "review.csv", message="{{text}}")
    assert "review.csv" in str(refusal.value) and "No such file" in str(refusal.value)


@pytest.mark.parametrize("library", [pandas, polars], ids=["pandas", "polars"])
def test_a_frame_stays_of_its_library(library: Any) -> None:
    frame = library.DataFrame(ROWS)
    mapped = agent_map(_classifier([]), frame, message="{{text}}", schema=Label)
    assert isinstance(mapped, library.DataFrame)
    assert list(mapped["label"]) == ["good", "bad", "good"]
    assert list(mapped["stars"]) == [5, 1, 4]
    assert list(frame.columns) == ["text", "stars"]


def test_a_pandas_frame_keeps_its_index() -> None:
    frame = pandas.DataFrame(ROWS, index=[30, 10, 20])
    mapped = agent_map(_classifier([]), frame, message="{{text}}", schema=Label)
    assert list(mapped.index) == [30, 10, 20]
    assert list(mapped["label"]) == ["good", "bad", "good"]


def test_a_row_that_fails_says_why_and_the_others_go_on() -> None:
    table = agent_map(_classifier([]), [{"text": "Great!"}, {"text": "broken"}], message="{{text}}", schema=Label)
    assert [row["_status"] for row in table] == ["done", "error"]
    assert "no model" in table[1]["_error"] and table[1]["label"] is None


def test_finished_rows_are_not_run_again() -> None:
    requests: list[str] = []
    service = InMemorySessionService()
    agent = _classifier(requests)
    agent_map(agent, ROWS, message="{{text}}", schema=Label, session_service=service)
    agent_map(agent, [*ROWS, {"text": "Fine."}], message="{{text}}", schema=Label, session_service=service)
    assert sorted(requests) == ["Bad.", "Fine.", "Great!"]


def test_failed_rows_are_run_again() -> None:
    service = InMemorySessionService()
    agent = Agent(name="flaky", model=ScriptedLlm(RuntimeError("busy"), "Fine."))
    rows = [{"message": "How is it?"}]
    assert agent_map(agent, rows, session_service=service)[0]["_status"] == "error"
    assert agent_map(agent, rows, session_service=service)[0]["answer"] == "Fine."


def test_another_schema_asks_again() -> None:
    requests: list[str] = []
    service, agent = InMemorySessionService(), _classifier(requests)
    agent_map(agent, ROWS, message="{{text}}", session_service=service)
    table = agent_map(agent, ROWS, message="{{text}}", schema=Label, session_service=service)
    assert len(requests) == 4 and table[0]["label"] == "good"


def test_a_function_makes_the_message() -> None:
    requests: list[str] = []
    agent_map(_classifier(requests), ROWS[:1], message=lambda row: f"{row['text']} ({row['stars']} stars)")
    assert requests == ["Great! (5 stars)"]


@pytest.mark.parametrize(
    ("data", "options", "facts"),
    [
        ([], {}, ["no row"]),
        (ROWS, {}, ["'message'", "'text'", "'stars'"]),
        (ROWS, {"message": "{{txet}}"}, ["'txet'", "'text'"]),
        (ROWS, {"message": "{text}"}, ["{text}", "{{column}}"]),
        ("text", {}, ["'text'"]),
        ([7], {}, ["row 1", "7"]),
        (ROWS, {"message": "{{text}}", "budget_usd": 0}, ["0"]),
    ],
)
def test_a_table_that_cannot_be_asked_is_refused(data: Any, options: Any, facts: list[str]) -> None:
    with pytest.raises(InputError) as refusal:
        agent_map(_classifier([]), data, **options)
    assert all(fact in str(refusal.value) for fact in facts), refusal.value


def test_a_schema_has_fields() -> None:
    with pytest.raises(ConfigurationError, match="int"):
        agent_map(_classifier([]), ROWS, message="{{text}}", schema=int)


@pytest.mark.parametrize("schema", [None, Label])
def test_a_row_that_was_cut_at_the_limit_of_its_output_keeps_its_text(schema: Any) -> None:
    content = types.Content(role="model", parts=[types.Part(text="Tea is")])
    cut = LlmResponse(content=content, finish_reason=types.FinishReason.MAX_TOKENS, error_code="MAX_TOKENS")

    (row,) = agent_map(Agent(name="a", model=ScriptedLlm(cut)), ["Tea?"], schema=schema)

    assert row["_status"] == "error"
    assert "MAX_TOKENS" in row["_error"]
    assert "Tea is" in (row["_error"] if schema else row["answer"])


@pytest.mark.parametrize("missing", [None, float("nan"), "NA", "NaT", "<NA>", "", "  "])
def test_a_row_without_a_question_is_refused_by_its_number(missing: Any) -> None:
    requests: list[str] = []
    rows = [{"text": "Great!"}, {"text": getattr(pandas, missing) if missing in ("NA", "NaT") else missing}]
    for table in (rows, pandas.DataFrame(rows, dtype=object), pandas.DataFrame(rows).convert_dtypes()):
        with pytest.raises(InputError, match="row 2"):
            agent_map(_classifier(requests), table, message="Classify: {{text}}")
    with pytest.raises(InputError, match="row 2"):
        agent_map(_classifier(requests), rows, message=lambda row: row["text"])
    assert requests == []


def test_a_missing_value_beside_others_is_put_in_as_nothing() -> None:
    requests: list[str] = []
    frame = pandas.DataFrame({"text": ["Great!", "Bad."], "stars": [5, None]}).convert_dtypes()
    agent_map(_classifier(requests), frame, message="{{text}} ({{stars}})")
    assert sorted(requests) == ["Bad. ()", "Great! (5)"]


def test_a_column_that_is_there_is_not_replaced_by_the_schema() -> None:
    requests: list[str] = []
    rows = [{"text": "Great!", "label": "mine"}]
    for table in (rows, pandas.DataFrame(rows), polars.DataFrame(rows)):
        with pytest.raises(InputError, match="'label'"):
            agent_map(_classifier(requests), table, message="{{text}}", schema=Label)
    assert requests == [] and rows == [{"text": "Great!", "label": "mine"}]


def test_files_of_a_row_are_sent_and_make_it_another_row(tmp_path: Path) -> None:
    sent: list[list[bytes]] = []

    def answer(callback_context: Any, llm_request: Any) -> LlmResponse:
        parts = llm_request.contents[-1].parts
        data = [part.inline_data.data for part in parts if part.inline_data]
        sent.append(data)
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=str(data))]))

    agent, service = (
        Agent(name="reader", model="gemini-2.5-flash", before_model_callback=answer),
        InMemorySessionService(),
    )
    one, two = tmp_path / "one.png", tmp_path / "two.png"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    rows = [
        {"message": "Read it.", "files": str(one)},
        {"message": "Read it.", "files": f"{one}, {two}"},
        {"message": "Read it.", "files": None},
        {"message": "Read it.", "files": [str(one)]},
    ]
    table = agent_map(agent, rows, session_service=service)
    assert [row["answer"] for row in table] == ["[b'1']", "[b'1', b'2']", "[]", "[b'1']"]
    assert len(sent) == 3
    one.write_bytes(b"3")
    assert agent_map(agent, rows[:1], session_service=service)[0]["answer"] == "[b'3']"
    with pytest.raises(InputError, match="absent"):
        agent_map(agent, [{"message": "Read it.", "files": "absent.png"}])
