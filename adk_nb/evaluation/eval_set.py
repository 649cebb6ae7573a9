"""A file of eval cases, as google-adk stores it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from adk_nb import clock, types
from adk_nb.errors import InputError
from adk_nb.evaluation.eval_case import EvalCase, IntermediateData, Invocation, SessionInput


class EvalSet(BaseModel):
    """Eval cases under one id. Source of the fields: google-adk 2.13."""

    eval_set_id: str
    name: str | None = None
    description: str | None = None
    eval_cases: list[EvalCase]
    creation_timestamp: float = 0.0
    """Seconds since the epoch, UTC."""


def read_eval_set(path: str | Path, initial_session: Mapping[str, Any] | None = None) -> EvalSet:
    """Read a `*.evalset.json` or `*.test.json` file, also in the older format of lists of queries.

    Args:
        path: The file.
        initial_session: The session in which the cases of the older format begin: `state`, `app_name`, `user_id`.

    Raises:
        InputError: There is no such file, or it is no eval set.
    """
    path = Path(path)
    try:
        data: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"cannot read the eval set {str(path)!r}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{str(path)!r} is not JSON: {error}") from error
    try:
        if isinstance(data, list):
            # The older format: a list of named cases, which have `data`, or of the turns of one conversation.
            cases = cast(list[dict[str, Any]], data)
            if not (cases and "data" in cases[0]):
                case: dict[str, Any] = {
                    "name": str(path),
                    "data": cases,
                    "initial_session": dict(initial_session or {}),
                }
                cases = [case]
            return EvalSet(
                eval_set_id=path.stem,
                name=path.stem,
                creation_timestamp=clock.now(),
                eval_cases=[
                    EvalCase(
                        eval_id=case["name"],
                        conversation=[_turn(turn) for turn in case["data"]],
                        session_input=SessionInput.model_validate(session)
                        if (session := case.get("initial_session"))
                        else None,
                        creation_timestamp=clock.now(),
                    )
                    for case in cases
                ],
            )
        return EvalSet.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{str(path)!r} is not an eval set of google-adk: {place}: {first['msg']}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{str(path)!r} is not an eval set: its cases need 'query' and 'reference', or 'name' and 'data'"
        ) from error


def write_eval_set(eval_set: EvalSet, path: str | Path) -> None:
    """Write a file that google-adk 2.13 reads: snake_case, without empty fields."""
    Path(path).write_text(eval_set.model_dump_json(indent=2, exclude_none=True) + "\n", encoding="utf-8")


def _turn(turn: Mapping[str, Any]) -> Invocation:
    calls = [
        types.FunctionCall(name=use["tool_name"], args=use["tool_input"]) for use in turn.get("expected_tool_use", ())
    ]
    texts = [
        (response["author"], [types.Part(text=response["text"])])
        for response in turn.get("expected_intermediate_agent_responses", ())
    ]
    return Invocation(
        invocation_id=clock.new_id(),
        user_content=types.Content(role="user", parts=[types.Part(text=turn["query"])]),
        final_response=types.Content(role="model", parts=[types.Part(text=turn.get("reference") or "")]),
        intermediate_data=IntermediateData(tool_uses=calls, intermediate_responses=texts),
        creation_timestamp=clock.now(),
    )
