"""Answer each row of a table."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from pydantic import BaseModel

from adk_nb import sync
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.apps.app import App
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.evaluation.batch import Batch, Confirm, Progress, Row
from adk_nb.evaluation.case_run import CaseRun
from adk_nb.evaluation.cases import Case, fill_template
from adk_nb.evaluation.cluster import run_on_cluster
from adk_nb.evaluation.evaluation import default_service
from adk_nb.evaluation.frames import add_columns, is_frame, rows_of_frame
from adk_nb.runtime.run_config import RunConfig
from adk_nb.sessions.base_session_service import BaseSessionService
from adk_nb.wire import copy_model

STATUS, ERROR, COST, RUN = "_status", "_error", "_cost", "_run"
"""Columns beside the answer: `done`, `error`, `pending` or `not run`; why; US dollars; the run's session."""


def agent_map(agent: BaseAgent | App, data: Any, **options: Any) -> Any:
    """`aagent_map` for code that does not await; works in a notebook cell."""
    return sync.run(aagent_map(agent, data, **options))


async def aagent_map(
    agent: BaseAgent | App,
    data: Any,
    *,
    message: str | Callable[[Mapping[str, Any]], str] = "{{message}}",
    schema: Any = None,
    budget_usd: float | None = None,
    confirm_above_usd: float | None = None,
    max_concurrency: int = 32,
    confirm: Confirm = "ask",
    session_service: BaseSessionService | None = None,
    app_name: str | None = None,
    run_config: RunConfig | None = None,
    scheduler: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Any:
    """Ask an agent about each row of a table; rows with the same message are asked once.

    Args:
        agent: An agent or an app.
        data: A frame of pandas or polars, or a list of dicts. It stays as it is.
        message: Template with `{{column}}`, or a function of a row.
        schema: A pydantic model or JSON schema that the answers must fit; its fields become columns. None: the text of
            the answer becomes the column `answer`.
        budget_usd: US dollars that the table may cost; rows that it does not reach have the status `not run`.
        confirm_above_usd: If more is projected after five rows, no further row starts.
        max_concurrency: Most rows at once.
        confirm: Approvals: left open ("ask"), given ("yes"), refused ("no"), or given for listed tools.
        session_service: Keeps the runs; rows that are done there are not asked again.
        app_name: The app of their sessions.
        run_config: Of every run.
        scheduler: Address of a Dask scheduler, `tcp://...`.
        on_progress: Called at most once a second, and at the end.

    Returns:
        The table with the answer's columns, `_status`, `_error`, `_cost` and `_run`: a frame of the same library, or a
        list of new dicts.

    Raises:
        InputError: The table is empty, or has no column that the message names; nothing was asked.
    """
    rows = rows_of_frame(data) if is_frame(data) else _dicts(data)
    keys, cases = list[str](), dict[str, Case]()
    for number, fields in enumerate(rows, 1):
        text = fill_template(message, fields, number) if isinstance(message, str) else message(fields)
        # Equal messages are one case, whose answer goes into all of their rows.
        case = cases.setdefault(text, Case(id=f"row{number}", messages=(text,)))
        keys.append(case.id)
    if not keys:
        raise InputError("the table has no row, so there is nothing to ask")
    batch = Batch(
        _with_schema(agent, schema),
        session_service=session_service or default_service(len(cases)),
        app_name=app_name,
        max_concurrency=max_concurrency,
        budget_usd=budget_usd,
        confirm_above_usd=confirm_above_usd,
        confirm=confirm,
        run_config=run_config,
        on_progress=on_progress,
        scheduler=scheduler,
    )
    answers = await _answers(batch, list(cases.values()), _column_names(schema))
    return _joined(data, [answers[key] for key in keys])


async def _answers(batch: Batch, cases: list[Case], columns: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Case id -> the columns of its answer."""
    answers: dict[str, dict[str, Any]] = {}
    running = batch.run(cases) if batch.scheduler is None else run_on_cluster(batch, cases)
    async for row in running:
        if not row.events and row.status != "not run":
            session = await batch.load(row.case)
            row.events = session.events if session else ()
        answers[row.case.id] = _columns_of(row, columns)
    return answers


def _columns_of(row: Row, columns: tuple[str, ...]) -> dict[str, Any]:
    run = CaseRun(row.case, row.events, {}, seconds=row.seconds)
    values: dict[str, Any] = dict.fromkeys(columns)
    status, error = str(row.status), row.error
    if row.status == "done":
        if columns == ("answer",):
            values["answer"] = run.answer
        elif isinstance(output := run.output, dict):
            values |= {name: cast(dict[str, Any], output).get(name) for name in columns}
        else:
            status, error = "error", f"the answer does not fit the schema: {run.answer!r:.120}"
    return {**values, STATUS: status, ERROR: error or None, COST: row.cost_usd, RUN: row.session_id}


def _joined(data: Any, answers: list[dict[str, Any]]) -> Any:
    if is_frame(data):
        return add_columns(data, {name: [row[name] for row in answers] for name in answers[0]})
    return [{**fields, **answer} for fields, answer in zip(_dicts(data), answers, strict=True)]


def _dicts(data: Any) -> list[dict[str, Any]]:
    if not isinstance(data, list):
        raise InputError(f"a table is a frame or a list of dicts, got {data!r:.60}")
    rows = cast(list[Any], data)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise InputError(f"row {number} of the table is {row!r:.60}; write a list of dicts")
    return [dict(cast(Mapping[str, Any], row)) for row in rows]


def _with_schema(agent: BaseAgent | App, schema: Any) -> BaseAgent | App:
    """The agent with `output_schema`."""
    if schema is None:
        return agent
    root = agent.root_agent if isinstance(agent, App) else agent
    if not isinstance(root, LlmAgent):
        raise ConfigurationError(
            f"a schema goes with an agent that has a model, and {root.name!r} is a {type(root).__name__}"
        )
    # A copy: the caller's agent keeps its own schema.
    typed = root.clone(update={"output_schema": schema})
    return copy_model(agent, root_agent=typed) if isinstance(agent, App) else typed


def _column_names(schema: Any) -> tuple[str, ...]:
    if schema is None:
        return ("answer",)
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return tuple(schema.model_fields)
    if isinstance(schema, Mapping):
        properties: Any = cast(Mapping[str, Any], schema).get("properties")
        if properties:
            return tuple(properties)
    raise ConfigurationError(
        f"a schema for columns is a pydantic model or a JSON schema of an object, got {schema!r:.60}"
    )
