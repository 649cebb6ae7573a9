"""Answer each row of a table."""

import asyncio
from array import array
from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, Unpack, cast

from pydantic import BaseModel

from adk_nb import sync, types
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.apps.app import App
from adk_nb.errors import ConfigurationError, InputError
from adk_nb.evaluation.batch import Batch, BatchOptions, lists_options
from adk_nb.evaluation.case_run import CaseRun
from adk_nb.evaluation.cases import FIELD, Case, check_file, files_of, fill_template, rows_of_file
from adk_nb.evaluation.cluster import run_on_cluster
from adk_nb.evaluation.frames import add_columns, is_frame, is_missing, rows_of_frame
from adk_nb.evaluation.row_runs import Row, waiting_calls
from adk_nb.evaluation.temporary_rows import default_service
from adk_nb.evaluation.waiting_calls import call_key
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.wire import copy_model

STATUS, ERROR, COST, RUN = "_status", "_error", "_cost", "_run"
"""Columns beside the answer: `done`, `error`, `pending` or `not run`; why; US dollars; the run's session."""


@lists_options
async def aagent_map(
    agent: BaseAgent | App,
    data: Any,
    *,
    message: str | Callable[[Mapping[str, Any]], str] = "{{message}}",
    schema: Any = None,
    on_stop: Callable[[Any], None] | None = None,
    **options: Unpack[BatchOptions],
) -> Any:
    """Ask an agent about each row of a table; rows with the same message and files are asked once.

    Args:
        agent: An agent or an app.
        data: A frame of pandas or polars, a list of dicts or of messages, or the path of a CSV file. It stays as it is.
        message: Template with `{{column}}`, or a function of a row. Files in a column `files`, paths in a list or
            with commas, go with it.
        schema: A pydantic model or JSON schema that the answers must fit; its fields become columns. None: the text of
            the answer becomes the column `answer`.
        on_stop: Called with the table of what is done if this is cancelled, by Ctrl-C for instance.
        **options: Of the batch: `budget_usd` (rows that it does not reach have the status `not run`),
            `confirm_above_usd`, `max_concurrency`, `confirm` ("ask", "yes", "no", or a list of tools),
            `session_service` (rows that are done there are not asked again), `app_name`, `run_config`, `scheduler`,
            `on_progress`; see `BatchOptions`.

    Returns:
        The table with the answer's columns, `_status`, `_error`, `_cost` and `_run`: a frame of the same library, or a
        list of new dicts.

    Raises:
        InputError: The table is empty, has no column that the message names, a row without a value there, or a column
            with the name of one of the schema's fields; nothing was asked.
    """
    run = TableRun(agent, data, message=message, schema=schema, **options)
    await run.ask(on_stop)
    return run.table


agent_map = sync.twin(aagent_map, "agent_map")
"""`aagent_map` for code that does not await; works in a notebook cell."""


class TableRun:
    """A table that an agent is asked about, and the approvals that its rows wait for. Arguments as of `aagent_map`."""

    def __init__(
        self,
        agent: BaseAgent | App,
        data: Any,
        *,
        message: str | Callable[[Mapping[str, Any]], str] = "{{message}}",
        schema: Any = None,
        **options: Unpack[BatchOptions],
    ) -> None:
        self._data = list(rows_of_file(data)) if isinstance(data, Path) else data
        fields = _column_names(schema)
        self._questions, self._places = _questions(self._data, message, () if schema is None else fields)
        options["session_service"] = options.get("session_service") or default_service(len(self._questions))
        self._batch = Batch(_with_schema(agent, schema), **options)
        self._answers = _Answers(fields, len(self._questions))
        self._pending: dict[str, tuple[Case, list[Interrupt]]] = {}
        """By its id, the case of a row that waits, and its open approvals."""

    @property
    def table(self) -> Any:
        """The table with the answers so far."""
        return self._answers.joined(self._data, self._places)

    @property
    def errors(self) -> list[str]:
        """The errors of the rows so far, each once."""
        return self._answers.errors

    @property
    def waiting_calls(self) -> list[Interrupt]:
        """The open approvals of all rows."""
        return [call for _, calls in self._pending.values() for call in calls]

    async def events_of(self, approval: Interrupt) -> Sequence[Event]:
        """The events of the row that waits for an approval."""
        case = next(case for case, calls in self._pending.values() if approval in calls)
        session = await self._batch.rows.load(case)
        return session.events if session else ()

    async def ask(self, on_stop: Callable[[Any], None] | None = None) -> None:
        """Ask about all rows."""
        # Cases are made as they are asked: a long table is not in memory twice.
        cases = (
            Case(id=str(number), messages=(text,), files=files) for (text, files), number in self._questions.items()
        )
        running = partial(run_on_cluster, self._batch) if self._batch.scheduler else self._batch.run
        await self._collect(running(cases, total=len(self._questions), is_retry=True), on_stop)

    async def answer(
        self, decision: ToolConfirmation, keys: Collection[str], *, on_stop: Callable[[Any], None] | None = None
    ) -> None:
        """Answer those of the `waiting_calls` that have one of these keys, and let their rows run on."""
        waiting = [(case, 0) for case, calls in self._pending.values() if any(call_key(call) in keys for call in calls)]
        await self._collect(self._batch.answer(waiting, decision, keys), on_stop)

    async def _collect(self, running: AsyncGenerator[Row, None], on_stop: Callable[[Any], None] | None) -> None:
        try:
            async with aclosing(running) as rows:
                async for row in rows:
                    self._answers.put(int(row.case.id), row, await self._batch.rows.run_of(row))
                    self._pending.pop(row.case.id, None)
                    if row.status == "pending":
                        self._pending[row.case.id] = row.case, waiting_calls(row)
        except asyncio.CancelledError:
            if on_stop:
                on_stop(self.table)
            raise


_Question = tuple[str, tuple[str, ...]]
"""A message, and the files that go with it."""


def _questions(
    data: Any, message: str | Callable[[Mapping[str, Any]], str], new_columns: Sequence[str]
) -> tuple[dict[_Question, int], Sequence[int]]:
    """The questions, numbered, and of each row the number of its question."""
    if isinstance(message, str) and not FIELD.search(message):
        raise InputError(
            f"the message {message!r:.80} names no column, so every row would ask the same; write {{{{column}}}}"
        )
    numbers, places = dict[_Question, int](), array("L")
    for number, fields in enumerate(rows_of_frame(data) if is_frame(data) else _dicts(data), 1):
        if there := next((name for name in new_columns if name in fields), None):
            raise InputError(
                f"the table has a column {there!r}, and so has the schema: its answers would replace it; rename one, "
                "or drop the column if it has the answers of an earlier run"
            )
        text = fill_template(message, fields, number) if isinstance(message, str) else message(fields)
        if is_missing(text):
            raise InputError(f"row {number}: the message is empty, so there is nothing to ask; drop the row")
        files = files_of(fields, f"row {number}")
        # Equal messages are one question, whose answer goes into all of their rows.
        place = numbers.setdefault((text, files), len(numbers))
        if place == len(numbers) - 1:
            for path in files:
                check_file(path)
        places.append(place)
    if not places:
        raise InputError("the table has no row, so there is nothing to ask")
    return numbers, places


class _Answers:
    """The columns of the answers; a question that was not asked has the status `not run`."""

    def __init__(self, fields: tuple[str, ...], count: int) -> None:
        self._fields = fields
        self._columns: dict[str, list[Any]] = {name: [None] * count for name in (*fields, STATUS, ERROR, COST, RUN)}
        self._columns[STATUS] = ["not run"] * count

    @property
    def errors(self) -> list[str]:
        """The errors, each once."""
        return list(dict.fromkeys(filter(None, self._columns[ERROR])))

    def put(self, place: int, row: Row, run: CaseRun) -> None:
        """Note the answer to a question."""
        status, error = str(row.status), row.error
        cut = [event for event in run.events if event.error_code == types.FinishReason.MAX_TOKENS.value and event.text]
        if row.status == "error" and cut:
            # Part of an answer is better than nothing; of a structured one it has no column of its own.
            if self._fields == ("answer",):
                self._columns["answer"][place] = cut[-1].text
            else:
                error = f"{error}; until then: {cut[-1].text!r:.500}"
        if row.status == "done":
            if self._fields == ("answer",):
                self._columns["answer"][place] = run.answer
            elif isinstance(output := run.output, dict):
                for name in self._fields:
                    self._columns[name][place] = cast(dict[str, Any], output).get(name)
            else:
                status, error = "error", f"the answer does not fit the schema: {run.answer!r:.120}"
        for name, value in ((STATUS, status), (ERROR, error or None), (COST, row.cost_usd), (RUN, row.session_id)):
            self._columns[name][place] = value

    def joined(self, data: Any, places: Sequence[int]) -> Any:
        """The table with the answers. `places`: of each row, the number of its question."""
        columns = {name: [values[place] for place in places] for name, values in self._columns.items()}
        if is_frame(data):
            return add_columns(data, columns)
        names = list(columns)
        return [
            {**fields, **dict(zip(names, values, strict=True))}
            for fields, values in zip(_dicts(data), zip(*columns.values(), strict=True), strict=True)
        ]


def _dicts(data: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(data, list):
        raise InputError(f"a table is a frame, a CSV file, or a list of dicts or messages, got {data!r:.60}")
    for number, row in enumerate(cast(list[Any], data), 1):
        if isinstance(row, str):
            row = {"message": row}
        if not isinstance(row, Mapping):
            raise InputError(f"row {number} of the table is {row!r:.60}; write a list of dicts or messages")
        yield cast(Mapping[str, Any], row)


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
