"""Findings of `%doctor`: problems, the model and its key, the display, the loop, versions; and what to type next."""

import asyncio
import importlib.util
import os
import platform
import re
import sys
from collections.abc import Iterator
from concurrent.futures import TimeoutError as NoAnswer
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from adk_nb import __version__, sync
from adk_nb.code_executors import isolation
from adk_nb.models.default_model import MODEL_VARIABLE, find_default_model, uses_vertex
from adk_nb.notebook.keys import PROVIDERS
from adk_nb.notebook.place import DISPLAY_VARIABLE, can_ask
from adk_nb.notebook.tape import current
from adk_nb.redaction import hidden

_SECONDS = 2.0
"""How long the loop may take to answer."""
_PACKAGE = "adk-nb"
_NEEDED = ("ipython", "ipykernel", "ipywidgets", "anywidget", "google-genai", "pydantic", "httpx2")
_CLICKS_AT_ONCE = (7, 0)
"""The ipykernel that hears clicks while a cell runs."""
_WAKES_UP = (7, 4)
"""The ipykernel, of those, that never leaves a page's first words unread: https://github.com/ipython/ipykernel/pull/1529"""
_NOT_SHOWN = ("dev", "lab")
"""Extras of those who work on this package, and on its tutorials."""


@dataclass(frozen=True)
class Finding:
    """One row."""

    about: str
    found: str
    next: str = ""
    """What to type or do; empty: nothing."""
    is_problem: bool = False


def findings(shell: Any, settings: Any) -> list[Finding]:
    """All rows: problems, then model and key, then the notebook; versions last. Keys by their names alone."""
    rows = [
        _model(settings),
        _keys(),
        _front_end(shell),
        _widget(shell, settings),
        _questions(shell),
        _loop(),
        _nested(settings),
        _code(),
        _sessions(settings),
        _recording(),
        *_package_problems(),
    ]
    return [*sorted(rows, key=lambda row: not row.is_problem), *_versions()]


# ---- what is installed


def _package_problems() -> Iterator[Finding]:
    for name in _NEEDED:
        if not _installed(name):
            yield Finding(name, "not installed", f"%pip install {name}", is_problem=True)
    version = _installed("ipykernel") or "8"
    release = tuple(int(part) for part in re.findall(r"\d+", f"{version}.0")[:2])
    if release < _CLICKS_AT_ONCE:
        found = f"{version}: a click on a card counts when its cell has ended"
        yield Finding("ipykernel", found, "or answer with %confirm", is_problem=True)
    elif release < _WAKES_UP:
        found = f"{version}: at times it does not hear a page that was loaded again; load it once more"
        yield Finding("ipykernel", found, "%pip install -U ipykernel", is_problem=True)


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
    """The extras of this package whose requirements are all there."""
    requirements: dict[str, list[str]] = {}
    try:
        for line in metadata.requires(_PACKAGE) or []:
            name, extra = re.match(r"[\w.-]+", line), re.search(r"extra\s*==\s*['\"]([\w.-]+)['\"]", line)
            if name and extra and extra[1] not in _NOT_SHOWN and name[0] != _PACKAGE:
                requirements.setdefault(extra[1], []).append(name[0])
    except metadata.PackageNotFoundError:  # not installed by pip
        return []
    return [extra for extra, names in sorted(requirements.items()) if all(map(_installed, names))]


# ---- keys and models


def _keys() -> Finding:
    if uses_vertex():
        return Finding("key", "none needed: Vertex AI takes Google Cloud's credentials")
    variables = dict.fromkeys(name for names in PROVIDERS.values() for name in names)
    if keys := [name for name in variables if os.environ.get(name, "").strip()]:
        return Finding("key", f"{', '.join(keys)} {'is' if len(keys) == 1 else 'are'} set")
    return Finding("key", "none is set", "%key gemini (or openai, anthropic)")


def _model(settings: Any) -> Finding:
    default = find_default_model()
    is_stand_in = default.name == "offline" and not os.environ.get(MODEL_VARIABLE, "").strip()
    hint = "%key gemini (or openai, anthropic), or %config AdkNb.model = ..." if is_stand_in else default.install
    return Finding("model", f"{settings.model_in_words}, for agents that name none", hint)


# ---- where this runs


def _front_end(shell: Any) -> Finding:
    return Finding("runs in", next(name for is_here, name in _places(shell) if is_here))


def _places(shell: Any) -> Iterator[tuple[bool, str]]:
    yield "google.colab" in sys.modules, "Colab"
    yield "KAGGLE_KERNEL_RUN_TYPE" in os.environ, "Kaggle"
    yield "BINDER_SERVICE_HOST" in os.environ, "Binder"
    yield _has_kernel(shell) and not can_ask(), "a notebook that is being tested or converted"
    yield "__vsc_ipynb_file__" in shell.user_ns, "VS Code"
    yield _has_kernel(shell), "Jupyter"
    yield True, "IPython, in a terminal or a script"


def _has_kernel(shell: Any) -> bool:
    return getattr(shell, "kernel", None) is not None


def _widget(shell: Any, settings: Any) -> Finding:
    """The display of runs, and its reason."""
    if settings.display != "auto":
        return Finding("live view", f"{settings.display}, as set", '%config AdkNb.display = "auto"')
    if not _has_kernel(shell):
        return Finding("live view", "none: a terminal shows replies as text")
    if mode := os.environ.get(DISPLAY_VARIABLE):
        return Finding("live view", f"{mode}, as {DISPLAY_VARIABLE} says", '%config AdkNb.display = "widget"')
    if not can_ask():
        return Finding("live view", "none: nobody looks, so runs are shown as they are saved")
    if importlib.util.find_spec("anywidget") is None:
        return Finding("live view", "anywidget is missing", "%pip install anywidget", is_problem=True)
    seen = "if it stays empty, a page that may load no scripts: "
    return Finding("live view", "a widget (anywidget); " + seen + "then runs are shown as saved", _STATIC)


_STATIC = '%config AdkNb.display = "static"'


def _questions(shell: Any) -> Finding:
    if can_ask():
        return Finding("questions", "you can be asked, as %key does")
    return Finding(
        "questions", "nobody can be asked here", "approvals: %confirm; keys: set them before the kernel starts"
    )


def _loop() -> Finding:
    """Ask the thread that runs all agents for a sign of life."""
    handle = sync.start(_answer())
    try:
        handle.result(_SECONDS)
    except (NoAnswer, TimeoutError):
        handle.cancel()
        busy = "something blocks it: an async tool that never waits; write it as `def`, or @tool(thread=True)"
        return Finding("loop", f"the thread adk-nb-loop does not answer; {busy}", "restart the kernel", is_problem=True)
    return Finding("loop", "the thread adk-nb-loop answers")


async def _answer() -> None:
    await asyncio.sleep(0)


def _nested(settings: Any) -> Finding:
    if settings.nest_asyncio:
        return Finding("asyncio.run", "works in a cell, with nest-asyncio2; all tasks of this kernel are slower for it")
    return Finding("asyncio.run", "not in a cell: write await", "or: %config AdkNb.nest_asyncio = True")


def _code() -> Finding:
    """Isolation of the code of models, for agents with a code executor."""
    if isolated := isolation.available():
        found = f"isolated from other processes by {Path(isolated.program).name}; files and the network are open to it"
        if not isolation.available(sandbox=True):
            return Finding("models' code", f"{found}; bwrap makes no sandbox here")
        return Finding("models' code", found, 'to close them: KernelCodeExecutor(isolation="sandbox")')
    found = f"not isolated: {isolation.MISSING}; it can read this kernel's keys"
    return Finding("models' code", found, _BUBBLEWRAP if sys.platform == "linux" else "")


_BUBBLEWRAP = "install bubblewrap: apt-get install bubblewrap"


# ---- the notebook


def _sessions(settings: Any) -> Finding:
    if settings.sessions:
        return Finding("sessions", f"kept in {hidden(settings.sessions)}")
    return Finding("sessions", "in this kernel's memory", '%config AdkNb.sessions = "sqlite:///nb.db" keeps them')


def _recording() -> Finding:
    tape = current()
    if tape is None:
        return Finding("recording", "off: the model answers", "%record, %replay")
    doing = {"auto": "replayed, and recorded if not there", "record": "recorded", "replay": "replayed"}[tape.mode]
    return Finding("recording", f"answers are {doing}: {tape.place.shown}", "%replay off")
