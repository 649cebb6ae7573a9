"""`adk-nb serve`: an agent as an HTTP service, until it is told to stop."""

import json
import os
import signal
import ssl
import sys
from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from adk_nb.agents.base_agent import BaseAgent
from adk_nb.apps.app import App
from adk_nb.command_line.exits import DONE, FAILED
from adk_nb.command_line.loading import Loaded, agents_below, load
from adk_nb.errors import InputError
from adk_nb.google_adk import IN_A_CELL, UNWATCHED
from adk_nb.lazy import require
from adk_nb.models.default_model import MODEL_VARIABLE
from adk_nb.models.http_address import is_loopback
from adk_nb.notebook.cells.session_store import open_service
from adk_nb.redaction import hidden
from adk_nb.runners import Runner
from adk_nb.serving.extra import check_extra
from adk_nb.sessions.base_session_service import BaseSessionService

TOKEN = "ADK_NB_TOKEN"
"""Environment variable with the secret that callers send."""
_FOR_WORKERS = "ADK_NB_SERVE"
"""Environment variable by which worker processes learn what they serve; the token has its own."""
_EXTRA = "adk-nb[serve]"
_GRACE = 5
"""Seconds for open requests at the end."""
_SILENT_SECONDS = 60
"""Of a worker that imports and is not killed for it."""


def serve(args: Namespace, loaded: Loaded) -> int:
    """Serve an agent, and return when the server has ended."""
    check_extra()
    name = loaded.addressee(args.agent)
    for option in ("tls_cert", "tls_key"):  # the current folder is the notebook's now
        if file := getattr(args, option):
            setattr(args, option, str(loaded.started_in / file))
    token, is_new = _token(args)
    address = loaded.notebook.sessions.address
    if args.workers > 1 and not address:
        raise InputError(
            f"{args.workers} workers need sessions in a file or a database that they share; add --sessions "
            "sqlite:///sessions.db or --sessions postgresql://..."
        )
    port = _free_port(args)
    scheme = "https" if args.tls_cert or args.behind_proxy else "http"
    url = f"{scheme}://{args.name}" if args.name else f"{scheme}://{_in_url(args.host)}:{port}"
    plan = {
        "source": str(loaded.path),
        "agent": name,
        "sessions": address,
        "url": url,
        "hosts": [args.name] if args.name else [],
    }
    os.environ[TOKEN] = token
    os.environ[_FOR_WORKERS] = json.dumps(plan)
    global _loaded
    _loaded = loaded if args.workers == 1 else None
    operation = require("adk_nb.serving.operation", package=_EXTRA)
    as_json = args.log_format == "json" or (args.log_format is None and not sys.stderr.isatty())
    sys.stderr.write(_greeting(name, url, address, args.workers, token if is_new else ""))
    return _until_the_end(
        f"{__name__}:new_app",
        factory=True,
        host=args.host,
        port=port,
        workers=args.workers,
        log_config=operation.log_settings(as_json=as_json, level=args.log_level),
        ssl_certfile=args.tls_cert,
        ssl_keyfile=args.tls_key,
        proxy_headers=bool(args.behind_proxy),
        forwarded_allow_ips=args.behind_proxy or None,
        timeout_graceful_shutdown=args.grace,
        timeout_worker_healthcheck=_SILENT_SECONDS,
    )


def _free_port(args: Namespace) -> int:
    """The port that is named, or a free one; uvicorn opens it again, for each worker. Raises as `bound_socket`."""
    with require("adk_nb.serving.server", package=_EXTRA).bound_socket(args.port, args.host) as listening:
        return listening.getsockname()[1]


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _until_the_end(app: Any, **settings: Any) -> int:
    """Serve an app until the process is told to stop; returns the exit code."""
    limits = require("adk_nb.serving.server", package=_EXTRA).LIMITS
    signal.signal(signal.SIGTERM, _end)
    try:
        require("uvicorn", package=_EXTRA).run(app, **settings, **limits)
    except SystemExit as error:  # uvicorn has logged why
        return FAILED if error.code else DONE
    return DONE


def serve_folder(args: Namespace) -> int:
    """Serve the agents in a folder, as `adk web` and `adk api_server`: one process, on this machine."""
    check_extra()
    if not is_loopback(f"//{_in_url(args.host)}"):
        raise InputError(f"--host {args.host} can be reached from other machines; for that there is adk-nb serve")
    folder = Path(args.agents_dir).absolute()
    if args.default_llm_model:
        os.environ[MODEL_VARIABLE] = args.default_llm_model
    agents, problems = agents_below(folder)
    app, many, operation = (require(f"adk_nb.serving.{name}", package=_EXTRA) for name in ("app", "many", "operation"))
    port = _free_port(args)
    url, given = f"http://{_in_url(args.host)}:{port}", os.environ.get(TOKEN, "").strip()
    token = given or app.new_token()
    sessions = _sessions_at(args.session_service_uri)
    runners = {
        name: require("adk_nb.serving.agent_service", package=_EXTRA).new_runner(agent, sessions)
        for name, agent in agents.items()
    }
    apps = {name: app.create_app(one, token=token, name=name, url=url) for name, one in runners.items()}
    for line in problems:
        sys.stderr.write(f"adk: {line}\n")
    has_page = require("adk_nb.serving.adk_debug", package=_EXTRA).ui_folder() is not None
    page = f"{url}/dev-ui/" if has_page else f"{url}/list-apps"
    sys.stderr.write(f"{', '.join(agents)}: at {url}, until Ctrl-C\n")
    if not has_page:
        sys.stderr.write("Google's dev UI comes with google-adk; a chat box in a notebook is %chat NAME\n")
    if os.environ.get(IN_A_CELL) == UNWATCHED:
        sys.stderr.write("it is not kept running, as nobody is there to stop this cell\n")
        return DONE
    with _handed_over(given, token, page) as line:
        sys.stderr.write(f"{line}\n")
        served = operation.Operated(
            many.app_of_many(apps, token), operation.sessions_answer(next(iter(runners.values())))
        )
        log = operation.log_settings(as_json=False, level=args.log_level)
        return _until_the_end(served, host=args.host, port=port, log_config=log, timeout_graceful_shutdown=_GRACE)


def _end(*signal: object) -> NoReturn:
    """End as after Ctrl-C: uvicorn raises the signal that ended it once more, when all is closed."""
    raise SystemExit(DONE)


@contextmanager
def _handed_over(given: str, token: str, page: str) -> Generator[str]:
    """A line that says how to get the token: on a terminal the token, else a file that only this user can read."""
    if given:
        yield f"the token is that of {TOKEN}"
    elif sys.stderr.isatty() and not os.environ.get(IN_A_CELL):  # what a cell prints is saved with the notebook
        yield f"open {page}?token={token}"
    else:
        with TemporaryDirectory(prefix="adk-nb-") as folder:  # mode 700
            file = Path(folder) / "token"
            file.write_text(token, encoding="utf-8")
            yield f"the token that callers send is in {file}, until the end"


def _sessions_at(uri: str | None) -> BaseSessionService | None:
    """The session service of an address; None: in memory."""
    if not uri or uri.startswith("memory:"):
        return None
    return open_service(uri, Path.cwd())


_loaded: Loaded | None = None
"""What the only process serves; None in a worker, which loads it."""


def new_app() -> Any:
    """The ASGI app, as the environment describes it: uvicorn calls it in each process."""
    # Taken away: what tools start must not learn the token, with which calls are approved, or the database's password.
    plan, token = json.loads(os.environ.pop(_FOR_WORKERS)), os.environ.pop(TOKEN)
    loaded = _loaded
    if loaded is None:
        loaded = load(plan["source"])
        loaded.keep_sessions_in(plan["sessions"])
    app, operation = (require(f"adk_nb.serving.{name}", package=_EXTRA) for name in ("app", "operation"))
    runner = _runner(loaded, plan["agent"])
    served = app.create_app(runner, token=token, name=plan["agent"], url=plan["url"], hosts=plan["hosts"])
    return operation.Operated(served, operation.sessions_answer(runner))


def _runner(loaded: Loaded, name: str) -> Runner:
    """The runner of a variable, or one for an app or an agent, with the notebook's sessions."""
    notebook = loaded.notebook
    value = notebook.variables.get(name)
    if isinstance(value, Runner):
        return value
    source: App | BaseAgent = value if isinstance(value, App) else notebook.agent_now(name)
    return require("adk_nb.serving.agent_service", package=_EXTRA).new_runner(source, notebook.sessions.service)


def _token(args: Namespace) -> tuple[str, bool]:
    """The token, and whether it was made now.

    Raises:
        InputError: The server is to be reached from elsewhere, and not protected; or nobody would learn the token.
    """
    given = os.environ.get(TOKEN, "").strip()
    if bool(args.tls_cert) != bool(args.tls_key):
        raise InputError("--tls-cert and --tls-key go together; name both files")
    for file in filter(None, (args.tls_cert, args.tls_key)):
        if not Path(file).is_file():
            raise InputError(f"there is no file {file!r}")
    if args.tls_cert:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(args.tls_cert, args.tls_key, lambda: "")
        except ssl.SSLError as error:
            problem = f"--tls-cert and --tls-key cannot be used: {error.reason or error}; name PEM files that belong "
            raise InputError(f"{problem}together, and a key without a password") from error
    if not is_loopback(f"//{_in_url(args.host)}"):
        if not (args.tls_cert or args.behind_proxy):
            raise InputError(
                f"--host {args.host} can be reached from other machines; add --tls-cert and --tls-key, or "
                "--behind-proxy if a proxy ends TLS before it"
            )
        if not args.name:
            raise InputError(
                f"--host {args.host} needs --name: the host name by which clients call it, as shop.example"
            )
        if not given:
            raise InputError(f"--host {args.host} needs a token; set {TOKEN} to a secret of 16 characters or more")
    if given:
        if len(given) < 16:
            raise InputError(f"{TOKEN} has {len(given)} characters, and needs 16")
        return given, False
    if not sys.stderr.isatty():  # a log keeps what is written there
        raise InputError(f"nobody sees a new token here; set {TOKEN} to a secret of 16 characters or more")
    return require("adk_nb.serving.app", package=_EXTRA).new_token(), True


def _greeting(name: str, url: str, address: str, workers: int, token: str) -> str:
    if not token and not sys.stderr.isatty():
        return ""
    lines = [
        f"{name} is served at {url}, until Ctrl-C; callers send the header Authorization: Bearer TOKEN",
        f"token: {token}" if token else f"the token is that of {TOKEN}",
        f"sessions are kept in {hidden(address)}" if address else "sessions are lost at the end; --sessions keeps them",
        "who has the token may also approve calls",
        *([f"{workers} processes"] if workers > 1 else []),
    ]
    return "\n".join(lines) + "\n"
