"""`adk-nb eval` and `adk-nb map`: the cases of a notebook, and the rows of a table."""

import csv
import io
import json
import re
import sys
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, redirect_stdout
from pathlib import Path
from typing import Any, cast

from adk_nb.command_line.exits import DONE, FAILED, WAITING
from adk_nb.command_line.loading import Loaded
from adk_nb.errors import EvaluationFailedError, InputError
from adk_nb.evaluation.evaluation import Evaluation
from adk_nb.evaluation.frames import is_frame, rows_of_frame
from adk_nb.notebook.extensions.evaluation import eval as eval_magic
from adk_nb.notebook.extensions.evaluation import map as map_magic
from adk_nb.notebook.extensions.evaluation.kept import kept
from adk_nb.notebook.view.plain_text import one_line, quoted
from adk_nb.redaction import without_known

_EVAL_CELL = re.compile(r"\s*%%eval\b[ \t]*(?P<line>[^\n]*)\n?(?P<body>.*)", re.DOTALL)
_EVAL_LINE = re.compile(r"^%eval[ \t]+(?P<line>.*--cases.*)$", re.MULTILINE)


def evaluate(args: Namespace, loaded: Loaded) -> int:
    """Run the cases of the notebook's `%%eval` cells, or those of a file; fail below the minimum."""
    options = [f"--{name} {quoted(str(value))}" for name, value in _given(args, "repeats", "budget", "judge", "stub")]
    options += [f"--{name}" for name in ("yes", "no") if getattr(args, name)]
    if args.min is not None:
        options.append(f"--min {args.min}")
    results, error = list[tuple[str, Evaluation]](), ""
    waits = False
    for place, line, body in _cases(args, loaded):
        before = len(kept(loaded.notebook).evaluations)
        with _aside():
            try:
                # What a cell says itself comes later, and counts; what is typed here comes last.
                eval_magic.eval(loaded.host, f"--min 1 {line} {' '.join(options)}", body)
            except EvaluationFailedError as failed:
                error = error or str(failed)
        for record in kept(loaded.notebook).evaluations[before:]:
            results.append((place, record.evaluation))
            waits |= bool(record.evaluation.waiting_calls)
            if not args.json:
                sys.stdout.write(f"{place}: {eval_magic.evaluation_output(loaded.host, record.evaluation)}\n")
    if args.json:
        found = [_evaluation_as_json(place, evaluation) for place, evaluation in results]
        sys.stdout.write(json.dumps({"passed": not error, "evaluations": found}, ensure_ascii=False) + "\n")
    elif error:
        sys.stderr.write(f"adk-nb: {error}\n")
    return WAITING if waits else FAILED if error else DONE


def _cases(args: Namespace, loaded: Loaded) -> Iterator[tuple[str, str, str | None]]:
    """Where cases are, the line of `%eval` for them, and the lines below it.

    Raises:
        InputError: There are none, or none of the agent.
    """
    if args.cases:
        yield args.cases, f"{loaded.addressee(args.agent)} --cases {quoted(_named(loaded, args.cases))}", None
        return
    found = list[tuple[str, str, str | None]]()
    for one in loaded.left_out:
        place = f"cell {one.cell}"
        if one.reason == "%%eval" and (cell := _EVAL_CELL.match(one.source)):
            found.append((place, cell["line"], cell["body"]))
        elif one.reason == "%eval":
            found += [(place, match["line"], None) for match in _EVAL_LINE.finditer(one.source)]
    wanted = [case for case in found if args.agent in (None, *_words(case[1]))]
    if not wanted:
        of_agent = f" of {loaded.addressee(args.agent)}" if args.agent else ""
        raise InputError(
            f"{loaded.path.name} has no %%eval cell{of_agent}; write one, or name a table: adk-nb eval {args.source} "
            f"{args.agent or 'AGENT'} --cases cases.csv"
        )
    yield from wanted


def _words(line: str) -> Sequence[str]:
    return eval_magic.EVAL.parse(line, "").word or [""]


def _evaluation_as_json(place: str, evaluation: Evaluation) -> dict[str, Any]:
    cases = [
        {
            "id": case.case.id,
            "outcome": case.outcome,
            "score": case.score,
            "reason": case.reason,
            "messages": [one_line(message, 500) for message in case.case.messages if isinstance(message, str)],
        }
        for case in evaluation.cases
    ]
    return without_known({"place": place, "agent": evaluation.agent, "score": evaluation.score, "cases": cases})


def map_rows(args: Namespace, loaded: Loaded) -> int:
    """Ask about each row of a table, and write the table with the answers."""
    line = f"{loaded.addressee(args.agent)} --over {quoted(_named(loaded, args.over))}"
    for name, value in _given(args, "message", "schema", "budget"):
        line += f" --{name} {quoted(str(value))}"
    line += "".join(f" --{name}" for name in ("yes", "no") if getattr(args, name))
    out = (loaded.started_in / args.out).absolute() if args.out else None
    if out is not None and not out.parent.is_dir():
        raise InputError(f"there is no folder {out.parent}; make it, or give another --out")
    if out is not None and out.is_dir():  # said before all rows are asked and paid
        raise InputError(f"{out} is a folder; name a file in it")
    notes = io.StringIO()
    with _aside(notes):
        table = map_magic.map(loaded.host, line, None)
    sys.stderr.write(notes.getvalue())
    rows = [*rows_of_frame(table)] if is_frame(table) else cast(list[dict[str, Any]], table)
    is_csv = out.suffix.lower() == ".csv" if out else not args.json
    text = _as_csv(rows) if is_csv else "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
    if out is not None:
        out.write_text(text, encoding="utf-8", newline="")
        sys.stderr.write(f"{len(rows)} rows in {args.out}\n")
    else:
        sys.stdout.write(text)
    if waiting := sum(row.get("_status") == "pending" for row in rows):
        sys.stderr.write(f"{waiting} of {len(rows)} rows wait for approval; --yes or --no answers them\n")
        return WAITING
    return FAILED if any(row.get("_error") for row in rows) else DONE


def _as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(dict.fromkeys(name for row in rows for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _named(loaded: Loaded, word: str) -> str:
    """A variable of the notebook, or a file: as it is typed, from the folder where the command was."""
    path = loaded.started_in / Path(word).expanduser()
    return str(path) if path.exists() and word not in loaded.notebook.variables else word


def _given(args: Namespace, *names: str) -> list[tuple[str, Any]]:
    return [(name, value) for name in names if (value := getattr(args, name)) is not None]


def _aside(notes: io.StringIO | None = None) -> AbstractContextManager[Any]:
    """What a magic shows on its way goes to a person who watches; never to the standard output."""
    return redirect_stdout(sys.stderr if sys.stderr.isatty() else notes or io.StringIO())
