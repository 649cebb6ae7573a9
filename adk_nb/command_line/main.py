"""`adk-nb`: its grammar, its errors in one line each, and its exit codes."""

import os
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

import adk_nb
from adk_nb.command_line.exits import STOPPED, UNREAD, USAGE
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
            3 waits for an approval or an answer · 130 stopped · 141 the output was not read to its end
"""


class Parser(ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        """Print what is wrong, and where the help is."""
        sys.stderr.write(f"{self.prog.split()[0]}: {message}; see {self.prog} --help\n")
        sys.exit(USAGE)


def parser() -> ArgumentParser:
    """The grammar of the command line."""
    root = Parser(
        prog="adk-nb",
        description="Run, test and serve the agents of a notebook, without Jupyter.",
        epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=f"adk-nb {adk_nb.__version__}")
    commands = root.add_subparsers(metavar="COMMAND", dest="command", required=True, parser_class=Parser)
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
    serve = _command(commands, "serve", "serve an agent over HTTP: ADK's paths, AG-UI, MCP and A2A", "serve:serve")
    serve.add_argument("agent", nargs="?", metavar="AGENT")
    serve.add_argument("--port", type=_port, metavar="N", help="left out: the first that is free from 8765 on")
    serve.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="beyond 127.0.0.1 it needs TLS or a proxy"
    )
    serve.add_argument("--sessions", metavar="URL", help="where sessions are kept: sqlite:///FILE or postgresql://...")
    serve.add_argument("--workers", type=_workers, default=1, metavar="N", help="processes, which share the sessions")
    serve.add_argument("--name", metavar="HOST", help="the host name by which clients call it, as shop.example")
    serve.add_argument("--tls-cert", metavar="FILE", help="the certificate, in PEM")
    serve.add_argument("--tls-key", metavar="FILE", help="its key")
    serve.add_argument(
        "--behind-proxy", nargs="?", const="127.0.0.1", metavar="ADDRESS",
        help="a proxy at this address (127.0.0.1) ends TLS, and its X-Forwarded headers count",
    )  # fmt: skip
    serve.add_argument(
        "--grace", type=_seconds, default=10, metavar="SECONDS", help="for open requests at the end (10)"
    )
    serve.add_argument("--log-format", choices=("json", "text"), help="left out: text for a person, JSON lines else")
    serve.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    serve.add_argument("-q", "--quiet", action="store_true", help="do not say which cells were left out")
    serve.epilog = "The token that callers send is in the variable ADK_NB_TOKEN. Probes: /livez and /readyz."
    show = _command(commands, "show", "list the agents of a source, and the cells that are left out", "checks:show")
    _add_output_options(show)
    commands.add_parser("adk", add_help=False, help="create, run, eval, web, api_server: as google-adk takes them")
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


def _whole(noun: str, least: int, most: int) -> Callable[[str], int]:
    def convert(typed: str) -> int:
        if not typed.isdecimal() or not least <= int(typed) <= most:
            raise ArgumentTypeError(f"{typed!r} is no {noun}; use a number from {least} to {most}")
        return int(typed)

    return convert


_port, _workers, _seconds = _whole("port", 1, 65_535), _whole("count", 1, 64), _whole("time", 0, 3_600)


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
    words = sys.argv[1:] if arguments is None else [*arguments]
    if words[:1] == ["adk"]:
        return _told("adk", lambda: import_module("adk_nb.command_line.adk").main(words[1:]))
    args = parser().parse_args(words)
    return _told("adk-nb", lambda: _run(args))


def adk() -> int:
    """`adk`, as cells call it where google-adk is not installed."""
    return main(["adk", *sys.argv[1:]])


def _told(program: str, run: Callable[[], int]) -> int:
    """The exit code of `run`, whose errors are told in a line each."""
    remember_environment()
    code = UNREAD
    try:
        code = run()
        sys.stdout.flush()
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # as of `adk-nb ... | head`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        elif error.filename is None:
            raise
        else:
            sys.stderr.write(f"{program}: cannot use {error.filename!r}: {error.strerror}\n")
            return USAGE
    except UserError as error:
        text = "; ".join([str(error), *getattr(error, "__notes__", ())])
        sys.stderr.write(f"{program}: {hidden(' '.join(text.split()))}\n")
        return USAGE
    except KeyboardInterrupt:
        sys.stderr.write(f"{program}: stopped\n")
        return STOPPED
    return code


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
