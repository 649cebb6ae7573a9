"""`%doctor`: problems, the model and its key, the display, the event loop, versions; and what to type next."""

import asyncio
import importlib.util
import os
import platform
import re
import sys
from collections.abc import Iterator
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from adk_nb import __version__, sync
from adk_nb.agents.llm_agent import LlmAgent
from adk_nb.code_executors import isolation
from adk_nb.concurrency.threads import IN_A_BROWSER, has_threads
from adk_nb.errors import InputError, UserError
from adk_nb.lazy import extras
from adk_nb.models.default_model import MODEL_VARIABLE, USUAL_PORTS, find_default_model, running_servers, uses_vertex
from adk_nb.models.openai_llm import OpenAILlm
from adk_nb.models.vendor_facts import ANTHROPIC, GOOGLE, OPENAI
from adk_nb.notebook.cells.notebook import Notebook
from adk_nb.notebook.magics import catalog
from adk_nb.notebook.magics.grammar import Grammar
from adk_nb.notebook.magics.output import Finding, Host, Output, whole_table
from adk_nb.notebook.place import DISPLAY_VARIABLE, can_ask
from adk_nb.notebook.registry import registry
from adk_nb.notebook.view import panels
from adk_nb.redaction import hidden

DOCTOR = Grammar(
    "doctor",
    "Check this installation: packages, keys (by name), the default model, the display, the event loop; and what to "
    "type to mend it.",
    examples=["%doctor", "%doctor  # paste it when you ask for help: it contains no keys", "report = %doctor"],
)


def doctor(host: Host, line: str, cell: str | None) -> Output:
    """Return a table of findings."""
    DOCTOR.parse(line, cell)
    found = [*_untold_tools(host.notebook), *findings(host)]
    rows = [[finding.topic, finding.status, finding.advice] for finding in found]
    problems = sum(finding.is_problem for finding in found)
    chip = "1 problem" if problems == 1 else f"{problems or 'no'} problems"
    return whole_table("doctor", ["check", "result", "type next"], rows, [chip])


_MOST_MODELS = 3
"""Models of a server that are named."""
_SECONDS = 2.0
"""Limit for the event loop to respond."""
_NEEDED = ("ipython", "ipykernel", "ipywidgets", "anywidget", "google-genai", "pydantic", "httpx2")
_HANDLES_CLICKS = (7, 0)
"""The ipykernel from which clicks are handled while a cell runs."""
_READS_FIRST_MESSAGES = (7, 4)
"""The ipykernel from which a reloaded page's first messages are always read:
https://github.com/ipython/ipykernel/pull/1529"""
_NOT_THERE = "'emscripten'"
"""In the marker of a requirement that no browser can have."""
_DEVELOPMENT_EXTRAS = ("dev", "lab")
"""Extras for work on this package and its tutorials."""


def findings(host: Host) -> list[Finding]:
    """Return all rows: problems first, versions last. Keys appear by name only."""
    shell, settings = host.shell, host.settings
    rows = [
        _model(settings),
        _keys(),
        _local_models(),
        _front_end(shell),
        _widget(shell, settings),
        _input(shell),
        _loop(),
        _nested(shell, settings),
        _code(),
        _sessions(settings),
        *_unusable(settings),
        *_of_extensions(host),
        *_package_problems(),
    ]
    return [*sorted(rows, key=lambda row: not row.is_problem), *_versions()]


# ---- what is installed


def _package_problems() -> Iterator[Finding]:
    for name in _NEEDED:
        if not _installed(name):
            yield Finding(name, "not installed", f"%pip install {name}", is_problem=True)
    version = "8" if IN_A_BROWSER else _installed("ipykernel") or "8"
    release = tuple(int(part) for part in re.findall(r"\d+", f"{version}.0")[:2])
    if release < _HANDLES_CLICKS:
        status = f"{version}: clicks on a card are handled only after its cell has ended"
        yield Finding("ipykernel", status, "%pip install -U ipykernel, or answer with %confirm", is_problem=True)
    elif release < _READS_FIRST_MESSAGES:
        status = f"{version}: may miss the messages of a reloaded page; reload it once more"
        yield Finding("ipykernel", status, "%pip install -U ipykernel", is_problem=True)


def _versions() -> Iterator[Finding]:
    yield Finding("Python", f"{platform.python_version()}, {platform.system()} {platform.machine()}")
    packages = [f"{name} {version}" for name in _NEEDED if (version := _installed(name))]
    yield Finding("versions", ", ".join([f"adk_nb {__version__}", *packages[:3]]))
    yield Finding("", ", ".join(packages[3:]))
    yield Finding("extras", ", ".join(_installed_extras()) or "none")


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _installed_extras() -> list[str]:
    """The extras of this package whose requirements are all installed."""
    return [
        extra
        for extra, needed in sorted(extras().items())
        if extra not in _DEVELOPMENT_EXTRAS
        and not (IN_A_BROWSER and any(_NOT_THERE in line for line in needed))
        and all(_installed(re.split(r"[^\w.-]", line, maxsplit=1)[0]) for line in needed)
    ]


# ---- keys and models


def _keys() -> Finding:
    if uses_vertex():
        return Finding("key", "none needed: Vertex AI uses Google Cloud credentials")
    variables = [name for vendor in (ANTHROPIC, GOOGLE, OPENAI) for name in vendor.key_variables]
    if keys := [name for name in variables if os.environ.get(name, "").strip()]:
        return Finding("key", f"{', '.join(keys)} {'is' if len(keys) == 1 else 'are'} set")
    return Finding("key", "none is set", "%key gemini (or openai, anthropic)")


def _model(settings: Any) -> Finding:
    default = find_default_model()
    is_stand_in = default.name == "offline" and not (default.is_of_code or os.environ.get(MODEL_VARIABLE, "").strip())
    hint = "%key gemini (or openai, anthropic), or %config AdkNb.model = ..." if is_stand_in else default.install
    return Finding("model", f"{settings.model_in_words}, the default", hint)


def _local_models() -> Finding:
    servers = running_servers()
    if not servers:
        return Finding("models here", f"none: nothing answers at the ports of Ollama, {', '.join(USUAL_PORTS)}")
    found = [f"{server} has {', '.join(server.models[:_MOST_MODELS])}" for server in servers]
    return Finding("models here", "; ".join(found), f"-m {servers[0].names[0]}")


def _untold_tools(notebook: Notebook) -> Iterator[Finding]:
    """A row for each model of the notebook's agents with tools whose server leaves them out of its prompts."""
    models: dict[tuple[str | None, str], OpenAILlm] = {}
    for name in notebook.agent_names:
        with suppress(UserError):  # a model that cannot be used is told where it is used
            agent = notebook.agent(name)
            if isinstance(agent, LlmAgent) and agent.tools and isinstance(model := agent.canonical_model, OpenAILlm):
                models.setdefault((model.address(), model.model), model)
    for model in models.values():
        if sync.run(model.tells_of_tools()) is False:
            what, _, advice = model.without_tools(model.model).partition(". ")
            yield Finding("tools", what, advice, is_problem=True)


# ---- where this runs


def _front_end(shell: Any) -> Finding:
    places = [
        (IN_A_BROWSER, "the browser alone, with Pyodide"),
        ("google.colab" in sys.modules, "Colab"),
        ("KAGGLE_KERNEL_RUN_TYPE" in os.environ, "Kaggle"),
        ("BINDER_SERVICE_HOST" in os.environ, "Binder"),
        (_has_kernel(shell) and not can_ask(), "nbclient or nbconvert: a notebook run without a user"),
        ("__vsc_ipynb_file__" in shell.user_ns, "VS Code"),
        (_has_kernel(shell), "Jupyter"),
        (True, "IPython, in a terminal or a script"),
    ]
    return Finding("runs in", next(name for is_here, name in places if is_here))


def _has_kernel(shell: Any) -> bool:
    return getattr(shell, "kernel", None) is not None


def _widget(shell: Any, settings: Any) -> Finding:
    """The display of runs, and the reason for it."""
    if settings.display != "auto":
        return Finding("live view", f"{settings.display}, set by %config", '%config AdkNb.display = "auto"')
    if not _has_kernel(shell):
        return Finding("live view", "off: a terminal shows replies as text")
    if mode := os.environ.get(DISPLAY_VARIABLE):
        return Finding("live view", f"{mode}, set by {DISPLAY_VARIABLE}", '%config AdkNb.display = "widget"')
    if not can_ask():
        return Finding("live view", "off: without a user, runs are shown in their saved form")
    if importlib.util.find_spec("anywidget") is None:
        return Finding("live view", "anywidget is missing", "%pip install anywidget", is_problem=True)
    status = "a widget (anywidget); it stays empty on a page that blocks scripts"
    return Finding("live view", status, 'if empty: %config AdkNb.display = "static"')


def _input(shell: Any) -> Finding:
    if can_ask():
        return Finding("input", "cells can ask for input, as %key does")
    return Finding(
        "input", "cells cannot ask for input here", "approve with %confirm; set keys before the kernel starts"
    )


def _loop() -> Finding:
    """Check that the loop that runs all agents responds."""
    loop = "the thread adk-nb-loop" if has_threads() else "the loop of the only thread"
    handle = sync.start(asyncio.sleep(0))
    try:
        handle.result(_SECONDS)
    except (FutureTimeoutError, TimeoutError):
        handle.cancel()
        cause = "an async tool may block it; write the tool as `def`, or with @tool(thread=True)"
        status = f"{loop} does not respond: {cause}"
        return Finding("event loop", status, "restart the kernel", is_problem=True)
    return Finding("event loop", f"{loop} responds")


def _nested(shell: Any, settings: Any) -> Finding:
    if settings.nest_asyncio:
        return Finding("asyncio.run", "works in cells, with nest-asyncio2, which slows all tasks of this kernel")
    if not _has_kernel(shell):
        return Finding("asyncio.run", "works in cells that do not await; in Jupyter it fails")
    return Finding("asyncio.run", "fails in cells; write await instead", "or: %config AdkNb.nest_asyncio = True")


def _code() -> Finding:
    """Isolation of code that models write, for agents with a code executor."""
    if IN_A_BROWSER:
        return Finding("models' code", "cannot run: a browser starts no processes")
    if isolated := isolation.available():
        status = f"isolated from other processes by {Path(isolated.program).name}; it has files and the network"
        if not isolation.available(sandbox=True):
            return Finding("models' code", f"{status}; bwrap has no sandbox here")
        return Finding("models' code", status, 'without them: KernelCodeExecutor(isolation="sandbox")')
    status = f"not isolated: {isolation.MISSING}; it can read this kernel's keys"
    return Finding("models' code", status, "apt-get install bubblewrap" if sys.platform == "linux" else "")


# ---- the notebook


def _unusable(settings: Any) -> list[Finding]:
    advice = "mend it in ipython_config.py, or set it with %config"
    return [
        Finding(f"AdkNb.{name}", f"as configured, is not used: {reason}", advice, is_problem=True)
        for name, reason in settings.unusable.items()
    ]


def _sessions(settings: Any) -> Finding:
    if settings.sessions:
        return Finding("sessions", f"stored in {hidden(settings.sessions)}")
    return Finding(
        "sessions", "in memory, lost with this kernel", 'to store them: %config AdkNb.sessions = "sqlite:///nb.db"'
    )


def _of_extensions(host: Host) -> Iterator[Finding]:
    """The rows of the extensions' own checks, then one for each thing of an extension that cannot be used."""
    for extension in registry:
        for check in extension.checks:
            if function := registry.use(extension, check):
                try:
                    for row in function(host) or ():
                        if not isinstance(row, Finding):
                            raise InputError(f"a check returns a list of Finding, not of {row!r:.60}")
                        yield row
                except Exception as error:
                    registry.note(extension, error)
    for extension in registry.outside:  # look at all that it names, which else is imported when it is used
        for magic in extension.magics:
            registry.use(extension, magic.function)
            registry.use(extension, magic.grammar, Grammar)
        for name in extension.metrics:
            with suppress(UserError):  # it is a row below
                registry.metric(name)
        functions = [
            *(hook for setting in extension.settings for hook in (setting.check, setting.apply)),
            *extension.displays.values(),
            *extension.switches.values(),
            extension.unload,
        ]
        for function in filter(None, functions):
            registry.use(extension, function)
    panels.registered()
    for name in ("agent", "chat", "tool"):
        _ = catalog.grammar(name).added
    for name, problems in registry.problems.items():
        for problem, advice in problems.items():
            yield Finding("extension", f"{name}: {problem}", advice, is_problem=True)
