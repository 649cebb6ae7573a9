"""`adk-nb`: its grammar, its errors in one line each, and its exit codes."""

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import adk_nb
from adk_nb.command_line.exits import DONE, STOPPED, USAGE
from adk_nb.errors import UserError
from adk_nb.redaction import hidden, remember_environment

_EXAMPLES = """\
SOURCE is a notebook (.ipynb), a Python file that defines agents, or a folder of an agent as google-adk has it.
AGENT may be left out where there is one. Cells that talk, evaluate, serve or install are left out; the tag
"skip" leaves out a cell, the tag "run" runs it whatever it does.

  adk-nb run shop.ipynb clerk "How many apples are there?"
  git diff | adk-nb run review.ipynb reviewer
  adk-nb chat shop.ipynb clerk --session ada
  adk-nb eval shop.ipynb --min 0.9
  adk-nb map shop.ipynb clerk --over letters.csv --out answers.csv
  adk-nb serve shop.ipynb clerk --sessions sqlite:///shop.db --port 8765
  adk-nb doctor

exit codes: 0 done · 1 the turn failed, or a score is too low · 2 something to correct, nothing was asked
            3 waits for an approval or an answer · 130 stopped
"""


class _Parser(ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> Any:
        """Print what is wrong, and where the help is."""
        sys.stderr.write(f"adk-nb: {message}; see {self.prog} --help\n")
        sys.exit(USAGE)


def parser() -> ArgumentParser:
    """The grammar of the command line."""
    root = _Parser(
        prog="adk-nb",
        description="Run, test and serve the agents of a notebook, without Jupyter.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=f"adk-nb {adk_nb.__version__}")
    commands = root.add_subparsers(metavar="COMMAND", dest="command", required=True, parser_class=_Parser)
    run = _command(commands, "run", "ask an agent once, and print its answer", "talk:run")
    run.add_argument("words", nargs="*", metavar="[AGENT] TEXT", help="the text in quotes; - or none: what is piped in")
    _add_talk_options(run)
    approvals = run.add_mutually_exclusive_group()
    approvals.add_argument("--yes", action="store_true", help="approve all calls of this turn")
    approvals.add_argument("--no", action="store_true", help="reject all calls that need approval")
    _add_output_options(run)
    chat = _command(commands, "chat", "talk to an agent, line by line; approvals are asked for", "talk:chat")
    chat.add_argument("agent", nargs="?", metavar="AGENT")
    _add_talk_options(chat)
    chat.add_argument("-q", "--quiet", action="store_true", help="do not say which cells were left out")
    evaluate = _command(commands, "eval", "run the cases of the %%eval cells, or of a file", "tables:evaluate")
    evaluate.add_argument("agent", nargs="?", metavar="AGENT", help="only the cases of this agent")
    evaluate.add_argument("--min", type=_share, metavar="SCORE", help="from 0 to 1; left out: as the cell says, or 1")
    evaluate.add_argument("--cases", metavar="FILE", help="a CSV, YAML, JSON, .md or evalset file, or a variable")
    evaluate.add_argument("--repeats", type=int, metavar="N", help="runs of each case")
    evaluate.add_argument("--judge", metavar="MODEL", help="the model that answers the column judge")
    evaluate.add_argument("--stub", metavar="a,b", help="tools that do not run, answered from the case")
    _add_batch_options(evaluate)
    table = _command(commands, "map", "ask about each row of a table, and write it with the answers", "tables:map_rows")
    table.add_argument("agent", nargs="?", metavar="AGENT")
    table.add_argument("--over", required=True, metavar="FILE", help="a CSV file, JSON lines, or a variable")
    table.add_argument("--message", metavar="TEXT", help="the message, with {{column}}; left out: the column message")
    table.add_argument("--schema", metavar="NAME", help="a pydantic model whose fields become columns")
    table.add_argument("--out", metavar="FILE", help=".csv or .jsonl; left out: the standard output")
    _add_batch_options(table)
    show = _command(commands, "show", "list the agents of a source, and the cells that are left out", "checks:show")
    _add_output_options(show)
    doctor = _command(commands, "doctor", "check this installation", "checks:doctor", needs_source=False)
    _add_output_options(doctor)
    return root


def _share(typed: str) -> float:
    try:
        value = float(typed)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ArgumentTypeError(f"{typed!r} is no score; use a number from 0 to 1")
    return value


def _command(commands: Any, name: str, purpose: str, function: str, *, needs_source: bool = True) -> ArgumentParser:
    command: ArgumentParser = commands.add_parser(name, help=purpose, description=f"{purpose[0].upper()}{purpose[1:]}.")
    if needs_source:
        command.add_argument("source", metavar="SOURCE", help="a notebook, a Python file, or the folder of an agent")
    else:
        command.add_argument("source", nargs="?", metavar="SOURCE", help="also check what this notebook defines")
    command.set_defaults(function=function)
    return command


def _add_talk_options(command: ArgumentParser) -> None:
    command.add_argument("--session", metavar="NAME", help="the session to go on with; left out: a new one")
    command.add_argument(
        "--sessions", metavar="URL", help="where sessions are kept: sqlite:///FILE or postgresql://..."
    )
    command.add_argument("-m", "--model", metavar="MODEL", help="another model, as %%chat takes it")


def _add_batch_options(command: ArgumentParser) -> None:
    command.add_argument("--sessions", metavar="URL", help="keeps the runs too, so that what is done is not repeated")
    command.add_argument("--budget", type=float, metavar="USD", help="start no more runs after this cost")
    approvals = command.add_mutually_exclusive_group()
    approvals.add_argument("--yes", action="store_true", help="approve all calls that need approval")
    approvals.add_argument("--no", action="store_true", help="reject all calls that need approval")
    _add_output_options(command)


def _add_output_options(command: ArgumentParser) -> None:
    command.add_argument("--json", action="store_true", help="print one JSON object")
    command.add_argument("-q", "--quiet", action="store_true", help="do not say which cells were left out")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code."""
    args = parser().parse_args(arguments)
    remember_environment()
    try:
        return _run(args)
    except UserError as error:
        text = "; ".join([str(error), *getattr(error, "__notes__", ())])
        sys.stderr.write(f"adk-nb: {hidden(' '.join(text.split()))}\n")
        return USAGE
    except KeyboardInterrupt:
        sys.stderr.write("adk-nb: stopped\n")
        return STOPPED
    except BrokenPipeError:  # as of `adk-nb ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE


def _run(args: Namespace) -> int:
    module, _, name = args.function.partition(":")
    function: Callable[..., int] = getattr(import_module(f"adk_nb.command_line.{module}"), name)
    loading = import_module("adk_nb.command_line.loading")
    loaded = loading.load(args.source) if args.source else loading.new_shell()
    if address := getattr(args, "sessions", None):
        loaded.keep_sessions_in(address)
    if not getattr(args, "quiet", False) and not getattr(args, "json", False):
        runs_later = ("%%eval", "%eval") if args.command == "eval" else ()
        for line in filter(None, (loaded.summary(runs_later), *loaded.notes)):
            sys.stderr.write(f"{line}\n")
    return function(args, loaded)
