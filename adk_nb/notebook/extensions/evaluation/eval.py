"""`%%eval`: run an agent on cases and score its answers."""

import difflib
import inspect
import re
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from IPython.display import display  # pyright: ignore[reportUnknownVariableType]

from adk_nb import sync
from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.errors import EvaluationFailedError, InputError, UserError, closest
from adk_nb.evaluation.calls import call_text
from adk_nb.evaluation.case_run import invocations_of, turn_as_reference
from adk_nb.evaluation.cases import Case, read_cases
from adk_nb.evaluation.eval_case import EvalCase, SessionInput, content_text, get_all_tool_calls
from adk_nb.evaluation.eval_set import EvalSet, write_eval_set
from adk_nb.evaluation.evaluation import Difference, Evaluation, aevaluate
from adk_nb.evaluation.fingerprint import agent_fingerprint
from adk_nb.evaluation.judges import judge
from adk_nb.evaluation.metrics import BUILT_IN
from adk_nb.evaluation.row_runs import RECORD, load_run
from adk_nb.evaluation.waiting_calls import call_key
from adk_nb.events.event import Event
from adk_nb.events.tool_confirmation import ToolConfirmation
from adk_nb.models.registry import LLMRegistry
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.chat.error_hints import shorten_interrupt
from adk_nb.notebook.chat.past import find_turn, turns_of
from adk_nb.notebook.chat.reply import Reply
from adk_nb.notebook.chat.turn_options import notice_of
from adk_nb.notebook.extensions.evaluation.approvals import WaitingList
from adk_nb.notebook.extensions.evaluation.kept import EvaluationRecord, kept, service_for_rows
from adk_nb.notebook.extensions.evaluation.progress_line import ProgressLine
from adk_nb.notebook.extensions.evaluation.stored_run import show_stored_run
from adk_nb.notebook.extensions.evaluation.tables import difference_blocks, evaluation_blocks, summary
from adk_nb.notebook.magics import values
from adk_nb.notebook.magics.grammar import Argument, Grammar, Option
from adk_nb.notebook.magics.output import Host, Output, text
from adk_nb.notebook.place import display_mode, folder_of
from adk_nb.notebook.registry import registry
from adk_nb.notebook.variables import user_variables
from adk_nb.notebook.view.document import Block, Code, Text
from adk_nb.notebook.view.reply_view import Notices
from adk_nb.runtime.interrupts import Interrupt
from adk_nb.tools.function_tool import FunctionTool

APP = "evaluation"
"""The app of the runs' sessions, so that %session does not list them."""

EVAL = Grammar(
    "eval",
    "Run an agent on cases, a row each, and score its answers. A run that is done is not repeated until the agent, "
    "one of its tools or the case changes.",
    cells=True,
    body="table",
    examples=[
        "%%eval planner --repeats 3\n| message | calls | answer |\n| --- | --- | --- |\n"
        '| How long is a day on Jupiter? | planet_facts(planet="Jupiter") | contains 9.9 |',
        "%eval planner --cases cases.csv --min 0.9",
        "%eval add -1 --as jupiter",
        "%eval diff -1 -2",
        "%eval open jupiter",
        "%eval export planner.evalset.json",
    ],
    arguments=[
        Argument(
            "WORD",
            "the agent; or add TURN, open CASE|RUN, rerun, diff RUN RUN, approve [TOOL], reject [TOOL], export FILE",
            many=True,
            names="agent",
        )
    ],
    options=[
        Option("--cases VAR|FILE", "cases in a variable, or a CSV, YAML, JSON, .md or evalset file", names="variable"),
        Option(
            "--metrics a,b", "metrics beside those of the columns: functions of a run, or names", convert=values.names
        ),
        Option("--judge MODEL", "the model that answers the column judge, or a variable that holds one", names="model"),
        Option("--repeats N", "runs of each case", convert=values.positive_integer),
        Option(
            "--min SCORE", "fail the cell below this score, from 0 to 1, or if a case has none", convert=values.share
        ),
        Option("--budget USD", "start no more runs after this cost in US dollars", convert=values.dollars),
        Option("--max-concurrency N", "most runs at once (32)", convert=values.positive_integer),
        Option("--stub a,b", "tools that do not run, answered from the case or with (stubbed)", convert=values.names),
        Option("--yes", "approve all calls that need approval"),
        Option("--no", "reject all calls that need approval"),
        Option("--as NAME", "with add: the id of the case"),
        Option("--failed", "with rerun: also what failed"),
    ],
    twin="evaluate(planner, cases, metrics=[polite], repeats=3), from adk_nb.evaluation; the last one is in _eval",
)


def eval(host: Host, line: str, cell: str | None) -> Any:
    """Evaluate an agent, or look at an evaluation. The evaluation is in `_eval`, too.

    Raises:
        EvaluationFailedError: The score is below `--min`, or a case has no value.
        UserError: The line or a case is wrong; nothing ran.
    """
    args = EVAL.parse(line, cell)
    first, *rest = args.word or [""]
    if cell is None and first in _ACTIONS and first not in host.notebook.addressees:
        return _ACTIONS[first](host, args, rest)
    known = [*host.notebook.addressees, *_ACTIONS]
    if cell is None and first and first not in known and (near := closest(first, known)) in _ACTIONS:
        raise InputError(f"{args.mark}: there is no action {first!r}; did you mean %eval {near}?")
    if rest:
        raise InputError(f"{args.mark}: unexpected {' '.join(rest)!r}; type {EVAL.usage}, see {args.mark}?")
    return _evaluate(host, args, first or host.notebook.agent_for_text()[0], cell)


def _evaluate(host: Host, args: Any, name: str, cell: str | None) -> Evaluation:
    notebook = host.notebook
    if args.yes and args.no:
        raise InputError(f"{args.mark}: --yes and --no exclude each other; choose one")
    agent = agent_named(notebook, name)
    cases, metrics = read_cases(_cases(host, args, name, cell)), _metrics(notebook, args.metrics or [])
    judge_model = notebook.model_named(args.judge) if args.judge else ""
    if judge_model and isinstance(judge_model, str):
        LLMRegistry.new_llm(judge_model)  # raises for an unknown name before anything runs
    show_model_notice(root_of(agent), only_first=True)  # else a chip of the table says it
    with ProgressLine(host.settings.display) as progress:
        evaluation = _until_stopped(
            host,
            lambda on_stop: aevaluate(
                agent,
                cases,
                metrics=metrics,
                repeats=args.repeats or 1,
                budget_usd=args.budget,
                confirm_above_usd=None if args.budget else host.settings.confirm_above_usd,
                max_concurrency=args.max_concurrency or 32,
                stubs=args.stub or (),
                confirm="yes" if args.yes else "no" if args.no else "ask",
                judge_model=judge_model,
                session_service=service_for_rows(notebook),
                app_name=APP,
                scheduler=host.settings.scheduler or None,
                on_progress=progress.show,
                on_stop=on_stop,
            ),
        )
    return _keep(host, evaluation, minimum=args.min)


def _until_stopped(
    host: Host, run: Callable[[Callable[[Evaluation], None]], Coroutine[Any, Any, Evaluation]]
) -> Evaluation:
    """Return the evaluation of `run(on_stop)`. Ctrl-C keeps and displays the finished runs, and raises."""
    stopped: list[Evaluation] = []
    try:
        return sync.run(run(stopped.append))
    except KeyboardInterrupt as stop:
        if stopped:
            (partial,) = stopped
            _store(host.notebook, partial)
            display(evaluation_output(host, partial))
            left = sum(row.outcome == "not run" for row in partial.rows)
            shorten_interrupt(
                stop, [f"{left} of {len(partial.rows)} runs are left: run this cell again, and it goes on"]
            )
        raise


def _keep(
    host: Host, evaluation: Evaluation, *, minimum: float | None = None, before: Evaluation | None = None
) -> Evaluation:
    """Keep an evaluation as the last one, list what waits, and fail the cell below `minimum`.

    `before`: the evaluation that was answered or rerun, whose list goes on.
    """
    _store(host.notebook, evaluation)
    sync.run(_answerable(host, evaluation, before).waiting.show())
    if minimum is not None and (evaluation.score is None or evaluation.score < minimum):
        display(evaluation_output(host, evaluation))
        raise EvaluationFailedError(f"{summary(evaluation, has_costs=False)}; the minimum is {minimum:g}")
    if minimum is not None and (unknown := evaluation.without_value):
        display(evaluation_output(host, evaluation))
        named = "; ".join(f"{case!r} ({reason:.200})" for case, reason in list(unknown.items())[:5])
        more = f"; and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise EvaluationFailedError(
            f"{summary(evaluation, has_costs=False)}; --min {minimum:g} needs a value of each case, and there is none "
            f"of {named}{more}"
        )
    return evaluation


def _store(notebook: Notebook, evaluation: Evaluation) -> None:
    definition, sources = notebook.definitions.get(evaluation.agent), list[str]()
    if definition:  # the sources of the agent's cell and of its tools
        sources.append(definition.source)
        for tool in notebook.tools_named(definition.tools):
            if isinstance(tool, FunctionTool):
                with suppress(OSError, TypeError):  # a function that no cell defines
                    sources.append(inspect.getsource(tool.func))
    kept(notebook).evaluations.append(EvaluationRecord(evaluation, "\n".join(sources)))
    notebook.variables["_eval"] = evaluation


@dataclass
class _Answerable:
    """An evaluation as it is after the answers so far, and the list of what its runs wait for."""

    evaluation: Evaluation
    waiting: WaitingList


_answerables: "WeakKeyDictionary[Evaluation, _Answerable]" = WeakKeyDictionary()
"""Evaluations that are made of each other by answers have one."""


def _answerable(host: Host, evaluation: Evaluation, before: Evaluation | None = None) -> _Answerable:
    """Of an evaluation, which is the one `before` after an answer or a rerun."""
    notebook, mode = host.notebook, host.settings.display
    if known := _answerables.get(before or evaluation):
        known.evaluation, _answerables[evaluation] = evaluation, known
        return known

    async def answer(keys: Collection[str], decision: ToolConfirmation) -> None:
        evaluation = answerable.evaluation
        calls = [call for call in evaluation.waiting_calls if call_key(call) in keys]
        after = await evaluation.aanswer(decision, calls=calls)
        answerable.evaluation, _answerables[after] = after, answerable
        _store(notebook, after)

    async def events_of(approval: Interrupt) -> Sequence[Event]:
        return await answerable.evaluation.events_of(approval)

    waiting = WaitingList(
        "%eval",
        root_of(agent_named(notebook, evaluation.agent)),
        mode,
        newest=lambda: root_of(agent_named(notebook, evaluation.agent)),
        waiting=lambda: answerable.evaluation.waiting_calls,
        events_of=events_of,
        answer=answer,
        result=lambda: evaluation_output(host, answerable.evaluation),
    )
    answerable = _answerables[evaluation] = _Answerable(evaluation, waiting)
    return answerable


def root_of(agent: Any) -> BaseAgent:
    """The agent itself, or that of an app."""
    return agent.root_agent if isinstance(agent, App) else agent


def evaluation_output(host: Host, evaluation: Evaluation) -> Output:
    """The table of an evaluation, as a cell shows it."""
    label = ""
    with suppress(UserError):  # the agent, or a tool of it, was removed
        label, colon, _ = (notice_of(root_of(agent_named(host.notebook, evaluation.agent))) or "").partition(": ")
        label = label if colon else ""
    has_costs = display_mode(host.settings.display) != "static"
    return Output(*evaluation_blocks(evaluation, has_costs=has_costs, label=label))


def display_data(host: Host, evaluation: Evaluation) -> dict[str, str]:
    """The same by media type, for the last expression of a cell."""
    return evaluation_output(host, evaluation).forms


def agent_named(notebook: Notebook, name: str) -> Any:
    """The agent or app with that name, with its tools as they are defined now."""
    value = notebook.variables.get(name)
    agent = notebook.agent_now(name)
    return value if isinstance(value, App) else agent


def show_model_notice(agent: BaseAgent, *, only_first: bool = False) -> None:
    """Display a notice if a stand-in or a recording answers. `only_first`: unless an earlier cell explains it."""
    if blocks := [block for block in Notices(notice_of(agent)).blocks() if not (only_first and block.folded)]:
        display(Output(*blocks))


def _cases(host: Host, args: Any, name: str, cell: str | None) -> Any:
    """The cases of the cell, of `--cases`, or of `%eval add`."""
    notebook = host.notebook
    if args.cases and (cell or "").strip():
        raise InputError(f"{args.mark}: cases are below the line or in --cases, not both")
    if args.cases:
        return source_named(host, args.cases)
    if cell is not None and cell.strip():
        return cell
    if added := kept(notebook).added_cases.get(name):
        return list(added.values())
    raise InputError(
        f"{args.mark} needs cases: write a table below %%eval {name}, give --cases, or type %eval add -1 after a turn"
    )


def source_named(host: Host, word: str) -> Any:
    """The value of a variable, or else the path of a file, relative to the notebook.

    Raises:
        InputError: There is no such variable, and the word is no path.
    """
    if word in host.notebook.variables:
        return host.notebook.variables[word]
    path = folder_of(host.shell) / Path(word).expanduser()
    if path.suffix or path.exists():
        return path
    near = closest(word, user_variables(host.notebook.variables))
    hint = f"; did you mean {near!r}?" if near else ""
    raise InputError(f"no variable or file {word!r}{hint}")


def _metrics(notebook: Notebook, names: list[str]) -> list[Any]:
    """The metrics that are named: variables of the notebook, extensions' ones, or names of built-in ones."""
    metrics: list[Any] = []
    built_in, added = [*BUILT_IN, "judge"], registry.metric_names
    for name in names:
        # `judge` imported from the package makes metrics, and is none: the name stands for the column.
        is_own = name in notebook.variables and notebook.variables[name] is not judge
        if not is_own and name not in built_in and name not in added:
            near = closest(name, [*built_in, *added, *user_variables(notebook.variables)])
            hint = f"; did you mean {near!r}?" if near else ""
            raise InputError(
                f"there is no metric {name!r}{hint}; define a function of a run in a cell, or use a name "
                f"such as {', '.join(list(BUILT_IN)[:3])}"
            )
        if is_own:
            metrics.append(notebook.variables[name])
        else:
            metrics.append(registry.metric(name) if name in added else name)
    return metrics


# ---- actions


def _add(host: Host, args: Any, rest: list[str]) -> Output:
    """Add a case made from a turn: its message, its calls and its answer."""
    notebook = host.notebook
    name = notebook.sessions.current
    turn = find_turn(turns_of(notebook.sessions.history()), rest[0] if rest else "-1", name)
    reference = tuple(turn_as_reference(invocation) for invocation in invocations_of(turn.events))[-1:]
    answer = content_text(reference[0].final_response) if reference and reference[0].final_response else ""
    if not answer.strip():
        raise InputError(
            f"the turn {turn.question!r:.60} has no answer in text, so there is nothing to expect; name another turn: "
            "%eval add -2"
        )
    agent = notebook.agent_in_question()
    cases = kept(notebook).added_cases.setdefault(agent, {})
    case_id = getattr(args, "as") or f"case{len(cases) + 1}"
    cases[case_id] = Case(id=case_id, messages=(turn.message,), reference=reference)
    calls = "; ".join(map(call_text, get_all_tool_calls(reference[0].intermediate_data))) or "none"
    row = [case_id, turn.question, calls, f"like {answer}"]
    cells = " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row)
    table = f"| id | message | calls | answer |\n| --- | --- | --- | --- |\n| {cells} |"
    count = "1 case" if len(cases) == 1 else f"{len(cases)} cases"
    return Output(
        Text(
            f"case {case_id!r} added; {count} of {agent}: run with %eval {agent}, or correct in a cell %%eval {agent}"
        ),
        Code(table),
    )


def _open(host: Host, args: Any, rest: list[str]) -> Reply:
    """Show a run of a case (by default the first that did not pass), or a run of %map by its `_run`."""
    if len(rest) not in (1, 2) or (len(rest) == 2 and not rest[1].isdigit()):
        raise InputError("%eval open takes a case, and a repeat from 0 on: %eval open CASE, or %eval open CASE 2")
    if re.fullmatch(r"row-[0-9a-f]{20}", rest[0]):
        row = sync.run(load_run(service_for_rows(host.notebook), APP, rest[0]))
        if row is None:
            raise InputError(f"there is no run {rest[0]!r}; a table of %map has its runs in the column _run")
        return _show_run(host, row.agent, row.case.question, row.events, {})
    evaluation = _last(host.notebook, 1).evaluation
    run = evaluation.run(rest[0], int(rest[1]) if len(rest) == 2 else None)
    return _show_run(host, evaluation.agent, run.case.question, run.events, run.case.state)


def _show_run(host: Host, agent: str, question: str, events: Sequence[Event], start_state: Mapping[str, Any]) -> Reply:
    root, mode = root_of(agent_named(host.notebook, agent)), host.settings.display
    visible = [event for event in events if RECORD not in (event.custom_metadata or {})]
    return sync.run(show_stored_run(root, question, visible, start_state, mode, how_to_answer="%eval approve"))


def _rerun(host: Host, args: Any, rest: list[str]) -> Evaluation:
    evaluation = _last(host.notebook, 1).evaluation
    agent = agent_named(host.notebook, evaluation.agent)
    if agent_fingerprint(agent) != evaluation.version:
        raise InputError(
            f"{evaluation.agent} or one of its tools changed since this evaluation; run its cell %%eval "
            f"{evaluation.agent} again: it runs the changed agent, and %eval diff compares"
        )
    after = _until_stopped(host, lambda on_stop: evaluation.arerun(failed=args.failed, on_stop=on_stop))
    return _keep(host, after, before=evaluation)


def _answer(host: Host, args: Any, rest: list[str], *, action: str) -> Evaluation:
    """Approve or reject what the last evaluation has listed of the calls that wait."""
    evaluation, tool = _last(host.notebook, 1).evaluation, rest[0] if rest else None
    waiting = _answerable(host, evaluation).waiting
    keys = sync.run(waiting.chosen(action, tool))
    if keys is None:
        return evaluation
    decision = ToolConfirmation(confirmed=action == "approve", by=f"%eval {action}")
    sync.run(waiting.check(keys, decision))
    calls = [call for call in evaluation.waiting_calls if call_key(call) in keys]
    after = _until_stopped(host, lambda on_stop: evaluation.aanswer(decision, calls=calls, on_stop=on_stop))
    waiting.answered(keys, decision)
    return _keep(host, after, before=evaluation)


def _diff(host: Host, args: Any, rest: list[str]) -> Output:
    """Compare two evaluations, by default the last two."""
    words = rest or ["-1", "-2"]
    if len(words) != 2:
        raise InputError("%eval diff takes two evaluations: %eval diff -1 -2 compares the last with the one before")
    after, before = (_last(host.notebook, _number(word)) for word in words)
    lines = difflib.unified_diff(before.source.splitlines(), after.source.splitlines(), lineterm="", n=1)
    changes = [line for line in lines if not line.startswith(("---", "+++"))]
    blocks: list[Block] = difference_blocks(Difference(before=before.evaluation, after=after.evaluation), changes)
    return Output(*blocks)


def _export(host: Host, args: Any, rest: list[str]) -> Output:
    """Write the cases of the last evaluation, and those that were added to it, as an eval set of google-adk."""
    if len(rest) != 1:
        raise InputError("%eval export takes one FILE, as in %eval export FILE")
    path = folder_of(host.shell) / Path(rest[0]).expanduser()
    if path.suffix != ".json":
        raise InputError(
            f"%eval export writes an eval set of google-adk, which is JSON, and {path.name!r} says otherwise; type "
            f"%eval export {path.with_suffix('').name}.evalset.json"
        )
    notebook = host.notebook
    evaluation = kept(notebook).evaluations[-1].evaluation if kept(notebook).evaluations else None
    agent = evaluation.agent if evaluation else notebook.agent_in_question()
    expected = {case.id: (case, list(case.reference)) for case in kept(notebook).added_cases.get(agent, {}).values()}
    if evaluation is None and not expected:
        _last(notebook, 1)  # raises: there is nothing to write
    for result in evaluation.cases if evaluation else ():
        turns = list(result.case.reference)
        if evaluation and not turns and result.outcome == "passed":
            turns = [turn_as_reference(turn) for turn in evaluation.run(result.case.id).turns]
        expected[result.case.id] = result.case, turns
    cases = [
        EvalCase(
            eval_id=case.id,
            conversation=turns,
            session_input=SessionInput(app_name=agent, user_id="user", state=dict(case.state)),
        )
        for case, turns in expected.values()
        if turns
    ]
    if not cases:
        raise InputError("no case passed, so there is no right answer to write; see the table of %eval")
    name = path.name.removesuffix(".json").removesuffix(".evalset").removesuffix(".test")
    write_eval_set(EvalSet(eval_set_id=name, eval_cases=cases), path)
    left_out = len(expected) - len(cases)
    note = f"; {left_out} left out, as they did not pass" if left_out else ""
    return text(f"wrote {len(cases)} {'case' if len(cases) == 1 else 'cases'} to {path.name}{note}")


_ACTIONS: dict[str, Callable[[Host, Any, list[str]], Any]] = {
    "add": _add,
    "approve": partial(_answer, action="approve"),
    "diff": _diff,
    "export": _export,
    "open": _open,
    "reject": partial(_answer, action="reject"),
    "rerun": _rerun,
}


def _number(word: str) -> int:
    if not word.lstrip("-").isdigit() or not int(word.lstrip("-")) > 0:
        raise InputError(f"an evaluation is -1 for the last, -2 for the one before, got {word!r}")
    return int(word.lstrip("-"))


def _last(notebook: Notebook, number: int) -> EvaluationRecord:
    if number > len(kept(notebook).evaluations):
        count = len(kept(notebook).evaluations)
        count_label = "1 evaluation" if count == 1 else f"{count} evaluations"
        fault = f"there is {count_label}, and no evaluation -{number}" if count else "there is no evaluation yet"
        raise InputError(f"{fault}; begin a cell with %%eval AGENT and a table of cases")
    return kept(notebook).evaluations[-number]
