"""google-adk's command line, `adk create | run | eval | web | api_server`, on agents of this package.

Source of its words: google-adk 2.13.
"""

import json
import os
import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from adk_nb import clock, sync
from adk_nb.command_line.exits import DONE, FAILED, WAITING
from adk_nb.command_line.loading import Loaded, load
from adk_nb.command_line.main import Parser
from adk_nb.command_line.serve import serve_folder
from adk_nb.errors import InputError
from adk_nb.evaluation.agent_evaluator import metric_of
from adk_nb.evaluation.eval_config import DEFAULT_CRITERIA, EvalConfig, read_eval_config
from adk_nb.evaluation.eval_set import read_eval_set
from adk_nb.evaluation.evaluation import Evaluation, aevaluate
from adk_nb.models.default_model import GEMINI_MODEL, MODEL_VARIABLE
from adk_nb.notebook.chat.chat import Chat
from adk_nb.notebook.chat.chat_box import ask_for_approvals
from adk_nb.notebook.chat.reply import Reply
from adk_nb.redaction import remember

_PACKAGE = "from . import agent\n"
_AGENT = """\
from google.adk.agents import Agent

root_agent = Agent(
    name="root_agent",
    model="{model}",
    description="A helpful assistant for user questions.",
    instruction="Answer user questions to the best of your knowledge",
)
"""
_YAML = """\
name: root_agent
model: {model}
description: A helpful assistant for user questions.
instruction: Answer user questions to the best of your knowledge
"""


def parser() -> ArgumentParser:
    """The grammar, with google-adk's spellings."""
    root = Parser(prog="adk", description="google-adk's commands, run by adk_nb.")
    commands = root.add_subparsers(metavar="COMMAND", required=True, parser_class=Parser)
    for names, function, purpose in (
        (["create"], create, "write the folder of a new agent"),
        (["run"], run, "ask the agent of a folder, or talk to it until exit"),
        (["eval"], evaluate, "run the agent of a folder on eval sets"),
        (["web", "api_server"], serve_folder, "serve the agents of a folder"),
    ):
        for name in names:
            _FIELDS[names[0]](command := commands.add_parser(name, help=purpose, description=purpose))
            command.set_defaults(function=function)
    for name in ("deploy", "optimize", "conformance", "migrate", "test", "eval_set"):
        command = commands.add_parser(name, add_help=False)
        command.add_argument("rest", nargs=REMAINDER)
        command.set_defaults(function=_refuse, name=name)
    return root


def _refuse(args: Namespace) -> int:
    raise InputError(f"adk {args.name} needs google-adk itself: pip install google-adk")


def _add_create(command: ArgumentParser) -> None:
    command.add_argument("app_name")
    for option in ("--model", "--api_key", "--project", "--region"):
        command.add_argument(option, nargs="?")  # `--api_key $GOOGLE_API_KEY` without a key
    command.add_argument("--type", type=str.lower, choices=("code", "config"), default="code")


def _add_services(command: ArgumentParser) -> None:
    command.add_argument("--session_service_uri", metavar="URI", help="memory://, sqlite:///FILE or postgresql://...")
    command.add_argument("--default_llm_model", metavar="MODEL")
    command.add_argument(
        "--log_level", type=str.upper, default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
    )
    command.add_argument("-v", "--verbose", action="store_const", const="DEBUG", dest="log_level")


def _add_run(command: ArgumentParser) -> None:
    command.add_argument("agent")
    command.add_argument("query", nargs="?")
    command.add_argument("--session_id")
    command.add_argument("--replay", metavar="FILE", help="JSON with state and queries")
    command.add_argument("--state", metavar="JSON")
    command.add_argument("--state_file", metavar="FILE")
    command.add_argument("--jsonl", action="store_true", help="print events as JSON lines")
    command.add_argument("--in_memory", action="store_true")
    _add_services(command)


def _add_eval(command: ArgumentParser) -> None:
    command.add_argument("agent_module_file_path")
    command.add_argument("eval_set_file_path_or_id", nargs="+")
    command.add_argument("--config_file_path", metavar="FILE")
    command.add_argument("--print_detailed_results", action="store_true")
    command.add_argument("--log_level", default="INFO")


def _add_web(command: ArgumentParser) -> None:
    command.add_argument("agents_dir", nargs="?", default=".")
    command.add_argument("--host", default="127.0.0.1")
    command.add_argument("--port", type=int, default=8000)
    command.add_argument("--a2a", action="store_true", help="A2A is always served")
    for flag in ("--reload", "--no-reload", "--reload_agents", "--with_ui", "--auto_create_session"):
        command.add_argument(flag, action="store_true", help="has no effect here")
    for option in ("--url_prefix", "--allow_origins"):
        command.add_argument(option, help="has no effect here")
    _add_services(command)


_FIELDS: dict[str, Callable[[ArgumentParser], None]] = {
    "create": _add_create, "run": _add_run, "eval": _add_eval, "web": _add_web
}  # fmt: skip


def create(args: Namespace) -> int:
    """Write the folder of an agent.

    Raises:
        InputError: The folder has something in it, or the one above it does not exist.
    """
    folder = Path(args.app_name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{args.app_name} is there already, and is not overwritten; choose another name")
    if not folder.absolute().parent.is_dir():
        raise InputError(f"there is no folder {folder.absolute().parent}; make it, or give another name")
    remember(args.api_key)
    cloud = bool(args.project and args.region)
    variables = {
        "GOOGLE_GENAI_USE_VERTEXAI": "1" if cloud else "0" if args.api_key else None,
        "GOOGLE_API_KEY": args.api_key,
        "GOOGLE_CLOUD_PROJECT": args.project,
        "GOOGLE_CLOUD_LOCATION": args.region,
    }
    text = {"model": args.model or GEMINI_MODEL}
    folder.mkdir(exist_ok=True)
    secret = folder / ".env"
    secret.touch(0o600)
    secret.write_text("".join(f"{name}={value}\n" for name, value in variables.items() if value), encoding="utf-8")
    (folder / ".gitignore").write_text(".env\n.adk/\n", encoding="utf-8")
    if args.type == "config":
        written = {"root_agent.yaml": _YAML.format(**text)}
    else:
        written = {"__init__.py": _PACKAGE, "agent.py": _AGENT.format(**text)}
    for name, content in written.items():
        (folder / name).write_text(content, encoding="utf-8")
    names = ", ".join([".env", *written])
    sys.stdout.write(f"Agent created in {folder.absolute()}:\n- {names}\ntalk to it: adk run {args.app_name}\n")
    return DONE


def run(args: Namespace) -> int:
    """Ask once, replay queries, or talk until `exit`."""
    replay = _json_file(args.replay) if args.replay else {}
    state = replay.get("state") or (_json_file(args.state_file) if args.state_file else _json(args.state, "--state"))
    chat = _chat(args, load(args.agent), state)
    queries = [args.query] if args.query is not None else replay.get("queries")
    if queries is not None:
        code = DONE
        for query in queries:
            if not args.jsonl and args.query is None:
                sys.stdout.write(f"[user]: {query}\n")
            code = max(code, _asked(chat, query, args.jsonl))
        return code
    sys.stdout.write(f"Running agent {chat.agent.name}, type exit to exit.\n")
    while True:
        sys.stdout.write("[user]: ")
        sys.stdout.flush()
        typed = sys.stdin.readline()
        if not typed or typed.strip() == "exit":
            return DONE
        if typed.strip():
            _asked(chat, typed.strip(), args.jsonl)


def _chat(args: Namespace, loaded: Loaded, state: dict[str, Any]) -> Chat:
    if args.default_llm_model:
        os.environ[MODEL_VARIABLE] = args.default_llm_model
    uri = args.session_service_uri or ""
    if uri and not args.in_memory and not uri.startswith("memory:"):
        loaded.keep_sessions_in(uri)
    notebook, session = loaded.notebook, args.session_id or f"run-{clock.new_id()[:8]}"
    key, service = notebook.sessions.key(session), notebook.sessions.service

    async def begin() -> None:
        if await service.get_session(**key) is None:
            await service.create_session(**key, state=state)

    if state:
        sync.run(begin())
    return notebook.chat(loaded.addressee(), session)


def _asked(chat: Chat, text: str, as_jsonl: bool) -> int:
    """Send a text and print what agents say; returns the exit code."""
    reply = chat.ask(text, show="off")
    _print(reply, as_jsonl)
    while reply.status == "pending":
        # What is piped in was not written for this question.
        after = ask_for_approvals(reply) if sys.stdin.isatty() else reply
        if after is reply:
            sys.stderr.write("(waits for an answer)\n")
            return WAITING
        _print(reply := after, as_jsonl)
    if reply.status == "error":
        sys.stderr.write(f"Error: {reply.error}\n")
        return FAILED
    return DONE


def _print(reply: Reply, as_jsonl: bool) -> None:
    for event in reply.events:
        if as_jsonl:
            sys.stdout.write(event.model_dump_json(by_alias=True, exclude_none=True) + "\n")
        elif event.author != "user" and not event.partial and (text := event.text):
            sys.stdout.write(f"[{event.author}]: {text}\n")
    sys.stdout.flush()


def evaluate(args: Namespace) -> int:
    """Run the cases of eval sets, `FILE` or `FILE:case,case`, and print which passed."""
    loaded = load(args.agent_module_file_path)
    agent = loaded.notebook.agent(loaded.addressee())
    config = args.config_file_path and loaded.started_in / args.config_file_path
    if config and not config.is_file():
        raise InputError(f"there is no file {args.config_file_path!r}")
    criteria = read_eval_config(config) if config else EvalConfig(criteria=dict(DEFAULT_CRITERIA))
    metrics = [metric_of(entry) for entry in criteria.metrics()]
    results = list[tuple[str, Evaluation]]()
    for word in args.eval_set_file_path_or_id:
        file, _, chosen = word.rpartition(":") if ":" in word[2:] else (word, "", "")
        eval_set = read_eval_set(loaded.started_in / file)
        if chosen:
            wanted, known = chosen.split(","), {case.eval_id: case for case in eval_set.eval_cases}
            if missing := [name for name in wanted if name not in known]:
                raise InputError(f"{file} has no case {missing[0]!r}; there is: {', '.join(known)}")
            eval_set = eval_set.model_copy(update={"eval_cases": [known[name] for name in wanted]})
        results.append((eval_set.eval_set_id, sync.run(aevaluate(agent, eval_set, metrics=metrics))))
    sys.stdout.write("*" * 69 + "\nEval Run Summary\n")
    failed = 0
    for name, evaluation in results:
        passed = sum(case.outcome == "passed" for case in evaluation.cases)
        failed += len(evaluation.cases) - passed
        sys.stdout.write(f"{name}:\n  Tests passed: {passed}\n  Tests failed: {len(evaluation.cases) - passed}\n")
        for case in evaluation.cases if args.print_detailed_results else ():
            scores = {key: score.value for row in case.rows for key, score in row.scores.items()}
            told = ", ".join(f"{key} {value}" for key, value in scores.items())
            sys.stdout.write(f"  {case.case.id}: {case.outcome}; {told}{f'; {case.reason}' if case.reason else ''}\n")
    return FAILED if failed else DONE


def _json(text: str | None, where: str) -> dict[str, Any]:
    try:
        value: Any = json.loads(text) if text else {}
    except ValueError as error:
        raise InputError(f"{where} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f'{where} must be a JSON object, as {{"name": "Ada"}}')
    return cast(dict[str, Any], value)


def _json_file(name: str) -> dict[str, Any]:
    try:
        return _json(Path(name).read_text(encoding="utf-8"), name)
    except OSError as error:
        raise InputError(f"cannot read {name!r}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is no text in UTF-8: {error.reason}") from error


def main(arguments: Sequence[str]) -> int:
    """Run one of google-adk's command lines; returns the exit code."""
    args = parser().parse_args(arguments)
    return args.function(args)
