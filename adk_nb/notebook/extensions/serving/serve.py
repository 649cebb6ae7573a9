"""`%serve`: an agent of this notebook as an HTTP service on this machine."""

import argparse
import importlib
import sys
from contextvars import copy_context
from typing import Any
from weakref import WeakKeyDictionary

from adk_nb.concurrency.threads import IN_A_BROWSER, has_threads
from adk_nb.errors import InputError
from adk_nb.notebook import settings
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.extensions.serving.served_runs import NotebookRunner
from adk_nb.notebook.extensions.serving.served_view import ServedView
from adk_nb.notebook.magics.grammar import Argument, Grammar, Option
from adk_nb.notebook.magics.output import Host, Output, text
from adk_nb.notebook.place import display_mode
from adk_nb.notebook.view.cell_output import OriginCell
from adk_nb.notebook.view.display import in_a_kernel
from adk_nb.notebook.view.run_view import in_a_terminal
from adk_nb.notebook.view.widget import with_view
from adk_nb.serving.extra import check_extra


def _port(typed: str) -> int:
    if not typed.isdecimal() or not 0 < int(typed) < 65_536:
        raise argparse.ArgumentTypeError(f"{typed!r} is no port; use a number from 1 to 65535")
    return int(typed)


SERVE = Grammar(
    "serve",
    "Serve an agent over HTTP on this machine, behind a token: ADK's paths, AG-UI, MCP and A2A. Approvals stay in this "
    "notebook, where the chats of its clients are shown. A second %serve replaces the first.",
    examples=[
        "%serve planner",
        "%serve planner --port 9000",
        "%serve planner --share-sessions",
        "%serve analyst --with-notebook",
        "%serve",
        "%serve --stop",
    ],
    arguments=[Argument("AGENT", "the agent, app or runner; left out: show what is served", names="agent")],
    options=[
        Option("--port N", "the port; left out: the first that is free from 8765 on", convert=_port),
        Option("--share-sessions", "clients read, continue and delete all sessions of this notebook, as you do"),
        Option(
            "--with-notebook",
            "clients reach the variables and cells of this notebook through an agent with --notebook; code asks you",
        ),
        Option("--stop", "stop serving, and free the port"),
    ],
    twin="create_app(planner, token=...), from adk_nb.serving, for uvicorn",
)


class ServedAgent:
    """An agent that is served: the value of `%serve`, and of the variable `_serve`."""

    def __init__(self, name: str, server: Any, token: str, note: str, paths: str) -> None:
        self.name = name
        self.token = token
        """The secret that callers send. No output shows it."""
        self.url: str = server.url
        self._server = server
        self._note = note
        self._paths = paths
        self._view: ServedView | None = None

    @property
    def headers(self) -> dict[str, str]:
        """What a request has to have: `httpx2.get(served.url + "/list-apps", headers=served.headers)`."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def is_running(self) -> bool:
        """False once it was stopped, or another took its place."""
        return self._server.is_running

    @property
    def port(self) -> int:
        """The port on 127.0.0.1."""
        return self._server.port

    def stop(self) -> None:
        """Stop serving, and free the port. Open runs are stopped; what they stored stays."""
        self._server.stop()
        if self._view is not None:
            self._view.stopped()

    def __repr__(self) -> str:
        return str(self._output())

    def _output(self) -> Output:
        if not self.is_running:
            return text(f"{self.name} is served no more; type %serve {self.name}")
        return text(
            f"{self.name} is served at {self.url} until %serve --stop, or the end of this kernel{self._note}",
            self._paths,
            _curl(self.url, "$TOKEN"),
            "the token is _serve.token, and is not saved with the notebook",
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        forms = self._output().forms
        if not (self.is_running and in_a_kernel() and display_mode() == "widget"):
            return forms
        if self._view is None:
            ui = _serving("adk_debug").ui_folder()
            page = f"{self.url}/dev-ui/?app={self.name}&token={self.token}" if ui else ""
            secret = {"token": self.token, "curl": _curl(self.url, self.token), "page": page}
            self._view = ServedView(self.name, self.url, self._paths, secret)
        return with_view(forms, self._view.model_id, "run")


_served: "WeakKeyDictionary[Notebook, ServedAgent]" = WeakKeyDictionary()


def serve(host: Host, line: str, cell: str | None) -> Any:
    """Serve an agent, say what is served, or stop it.

    Raises:
        AgentNotFoundError: There is no such agent; what was served goes on.
        InputError: The port is taken, or there are no sockets here.
        MissingExtraError: The packages of the extra are not installed.
    """
    args, notebook = SERVE.parse(line, cell), host.notebook
    has_options = args.port is not None or args.share_sessions or args.with_notebook
    if args.stop and (args.agent or has_options):
        raise InputError("%serve --stop takes nothing else; type %serve --stop")
    if IN_A_BROWSER or not has_threads():
        raise InputError("%serve needs sockets, which Python in a browser has not; open this notebook in JupyterLab")
    served = _served.get(notebook)
    if args.stop:
        return _stopped(notebook)
    if args.agent is None and not has_options and served and served.is_running:
        return served
    if args.agent is None:
        names = notebook.addressees
        raise InputError(f"nothing is served; type %serve {names[0] if len(names) == 1 else 'AGENT'}")
    notebook.chat(args.agent)  # all that it needs is defined
    served = _started(host, args)
    notebook.variables["_serve"] = served
    if in_a_terminal():  # nothing of it is saved, and no output of this package shows a secret
        sys.stdout.write(f"token: {served.token}\n")
    return served


def _started(host: Host, args: Any) -> ServedAgent:
    """Start a server in place of the last one, whose token it keeps, and whose port if that is free."""
    check_extra()
    name, port, shares_sessions = args.agent, args.port, args.share_sessions
    apps, servers, services = map(_serving, ("app", "server", "agent_service"))
    notebook, mode = host.notebook, display_mode(host.settings.display)
    shows_runs = in_a_kernel() and mode == "widget"
    runner = NotebookRunner(notebook, name, shows_runs=shows_runs, shares_sessions=shares_sessions)
    old = _served.get(notebook)
    token = old.token if old else apps.new_token()
    same_port = old is not None and old.is_running and port in (None, old.port)
    listening = None if same_port else servers.bound_socket(port)
    if old is not None:
        old.stop()
    settings.now.client_apps = frozenset([runner.app_name] if args.with_notebook else [])
    if old is not None:
        listening = listening or servers.bound_socket(old.port)
    assert listening is not None
    service = services.AgentService(runner, name, runner.traces, runner.waiting(), runner.refuse_answer)

    def create(url: str) -> Any:
        return apps.app_of(service, token, url)

    server = servers.Server(create, listening)
    context = copy_context()
    context.run(OriginCell().adopt_context)  # what its runs show is shown in this cell
    context.run(server.start)
    is_other = port is None and not same_port and server.port != servers.PORT
    note = f" ({servers.PORT} was taken)" if is_other else ""
    note += "; its clients share the sessions of this notebook" if shares_sessions else ""
    note += "; its clients reach the variables and cells of this notebook" if args.with_notebook else ""
    served = _served[notebook] = ServedAgent(name, server, token, note, apps.paths(name))
    return served


def _serving(module: str) -> Any:
    """A module of `adk_nb.serving`, which imports packages of its extra."""
    return importlib.import_module(f"adk_nb.serving.{module}")


def _stopped(notebook: Notebook) -> Output:
    served = _served.get(notebook)
    if served is None or not served.is_running:
        raise InputError("nothing is served; type %serve AGENT")
    served.stop()
    settings.now.client_apps = frozenset()
    return text(f"{served.name} is served no more; port {served.port} is free")


def stop_serving(host: Host) -> None:
    """Stop what is served, when the magics are unloaded."""
    served = _served.pop(host.notebook, None)
    if served is not None and served.is_running:
        served.stop()
    settings.now.client_apps = frozenset()


def _curl(url: str, token: str) -> str:
    return f'curl -H "Authorization: Bearer {token}" {url}/list-apps'
