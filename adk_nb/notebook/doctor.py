"""What `%doctor` looks at: what is installed, which keys are set, the widget, the loop; and what to type next."""

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


def findings(shell: Any, settings: Any) -> list[Finding]:
    """All there is to say, in an order to read it in; keys by their names alone."""
    return [
        Finding("Python", f"{platform.python_version()}, {platform.system()} {platform.machine()}"),
        Finding("adk_nb", __version__),
        *map(_version, _NEEDED),
        *_extras(),
        *_keys(),
        _model(settings),
        _front_end(shell),
        _widget(shell, settings),
        _questions(shell),
        _loop(),
        _nested(settings),
        _code(),
        _sessions(settings),
        _recording(),
    ]


# ---- what is installed


def _version(name: str) -> Finding:
    found = _installed(name)
    if not found:
        return Finding(name, "not installed", f"%pip install {name}")
    if name == "ipykernel":
        release = tuple(int(part) for part in re.findall(r"\d+", f"{found}.0")[:2])
        if release < _CLICKS_AT_ONCE:
            told = f"{found}: a click on a card counts when its cell has ended"
            return Finding(name, told, "or answer with %confirm")
        if release < _WAKES_UP:
            told = f"{found}: at times it does not hear a page that was loaded again; load it once more"
            return Finding(name, told, "%pip install -U ipykernel")
    return Finding(name, found)


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _extras() -> Iterator[Finding]:
    """Each extra: what it brings, and how to install it."""
    needs: dict[str, list[str]] = {}
    try:
        for one in metadata.requires(_PACKAGE) or []:
            name, extra = re.match(r"[\w.-]+", one), re.search(r"extra\s*==\s*['\"]([\w.-]+)['\"]", one)
            if name and extra and extra[1] not in _NOT_SHOWN and name[0] != _PACKAGE:
                needs.setdefault(extra[1], []).append(name[0])
    except metadata.PackageNotFoundError:
        yield Finding("extras", "unknown: adk-nb was not installed by pip")
    for extra, names in sorted(needs.items()):
        there = {name: _installed(name) for name in names}
        told = ", ".join(f"{name} {found or 'missing'}" for name, found in there.items())
        yield Finding(f"extra {extra}", told, "" if all(there.values()) else f"%pip install '{_PACKAGE}[{extra}]'")


# ---- keys and models


def _keys() -> Iterator[Finding]:
    for provider, names in PROVIDERS.items():
        if provider in ("google", "claude"):  # the same as gemini and anthropic
            continue
        set_ones = [name for name in names if os.environ.get(name, "").strip()]
        if provider == "gemini" and uses_vertex():
            yield Finding("key gemini", "none needed: Vertex AI takes Google Cloud's credentials")
        else:
            yield Finding(
                f"key {provider}",
                f"{', '.join(set_ones)} is set" if set_ones else "not set",
                "" if set_ones else f"%key {provider}",
            )


def _model(settings: Any) -> Finding:
    found = find_default_model()
    is_stand_in = found.name == "offline" and not os.environ.get(MODEL_VARIABLE, "").strip()
    hint = "%key gemini (or openai, anthropic), or %config AdkNb.model = ..." if is_stand_in else found.install
    return Finding("model", f"{settings.model_in_words}, for agents that name none", hint)


# ---- where this runs


def _front_end(shell: Any) -> Finding:
    return Finding("runs in", next(told for is_it, told in _places(shell) if is_it))


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
    """How runs are shown, and why."""
    if settings.display != "auto":
        return Finding("live view", f"{settings.display}, as set", '%config AdkNb.display = "auto"')
    if not _has_kernel(shell):
        return Finding("live view", "none: a terminal shows replies as text")
    if mode := os.environ.get(DISPLAY_VARIABLE):
        return Finding("live view", f"{mode}, as {DISPLAY_VARIABLE} says", '%config AdkNb.display = "widget"')
    if not can_ask():
        return Finding("live view", "none: nobody looks, so runs are shown as they are saved")
    if importlib.util.find_spec("anywidget") is None:
        return Finding("live view", "anywidget is missing", "%pip install anywidget")
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
    """Whether the thread that runs all agents answers."""
    asked = sync.start(_answer())
    try:
        asked.result(_SECONDS)
    except (NoAnswer, TimeoutError):
        asked.cancel()
        busy = "something blocks it: an async tool that never waits; write it as `def`, or @tool(thread=True)"
        return Finding("loop", f"the thread adk-nb-loop does not answer; {busy}", "restart the kernel")
    return Finding("loop", "the thread adk-nb-loop answers")


async def _answer() -> None:
    await asyncio.sleep(0)


def _nested(settings: Any) -> Finding:
    if settings.nest_asyncio:
        return Finding("asyncio.run", "works in a cell, with nest-asyncio2; all tasks of this kernel are slower for it")
    return Finding("asyncio.run", "not in a cell: write await", "or: %config AdkNb.nest_asyncio = True")


def _code() -> Finding:
    """How far the code of models is kept apart, for agents with a code executor."""
    if found := isolation.available():
        told = f"isolated from other processes by {Path(found.program).name}; files and the network are open to it"
        if not isolation.available(sandbox=True):
            return Finding("models' code", f"{told}; bwrap makes no sandbox here")
        return Finding("models' code", told, 'to close them: KernelCodeExecutor(isolation="sandbox")')
    told = f"not isolated: {isolation.MISSING}; it can read this kernel's keys"
    return Finding("models' code", told, _BUBBLEWRAP if sys.platform == "linux" else "")


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
