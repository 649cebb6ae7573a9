"""The door to IPython: `%load_ext` registers the magics, Tab, hints and settings; `%unload_ext` takes them out."""

# pyright: basic
# IPython's shells and Magics are untyped, and the magics are loaded late.

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from IPython.core.completer import CompletionContext, SimpleCompletion
from IPython.core.magic import Magics, magics_class, no_var_expand

import adk_nb
from adk_nb.lazy import face
from adk_nb.notebook.magics import catalog, hooks, lines, tracebacks
from adk_nb.notebook.magics.config import FILE_PREFIX, AdkNb
from adk_nb.notebook.magics.grammar import without_semicolon
from adk_nb.notebook.place import display_mode, folder_of
from adk_nb.runtime import debug_view

_AGENT_TYPE = ("adk_nb.agents.base_agent", "BaseAgent")
"""The type that draws itself at the end of a cell; by name, so that nothing is loaded for it."""
_NOTEBOOK = "adk_nb"
"""The attribute of the shell that holds its notebook: one for each shell, and it outlives %reload_ext."""
_MATCHER = "adk_nb"
_HAS_MAGIC = re.compile(rf"%({'|'.join(catalog.MAGICS)})\b")

# Modules on the runtime are loaded when a cell first needs them: %load_ext costs nothing.
_late, _ = face(
    __name__,
    {
        "Notebook": "adk_nb.notebook.registry.notebook",
        "debug_view": "adk_nb.notebook.debug_view",
        "mime_bundle": "adk_nb.notebook.magics.agents",
        "propose": "adk_nb.notebook.magics.completion",
        "resumed_note": "adk_nb.notebook.magics.session",
        "begin_from_environment": "adk_nb.notebook.magics.record",
        "result_of": "adk_nb.notebook.magics.output",
    },
)


@magics_class
class AdkMagics(Magics):
    """The magics of one shell: each is a line or a cell, parsed by its grammar and given to its function."""

    shell: Any

    def __init__(self, shell: Any, settings: AdkNb) -> None:
        super().__init__(shell)
        self.settings = settings
        self.cells = hooks.CellCounter(shell)
        self.preload = hooks.Preload()
        for name in catalog.MAGICS:
            self.magics["line"][name] = self.magics["cell"][name] = self._magic(name)
        if (notebook := getattr(shell, _NOTEBOOK, None)) is not None:
            settings.sessions = notebook.sessions.address
        settings.on_sessions = self._keep_sessions_in

    def _magic(self, name: str) -> Callable[..., Any]:
        def magic(line: str, cell: str | None = None) -> Any:
            __tracebackhide__ = True
            output = catalog.function(name)(self, line, cell)
            _, silent = without_semicolon(line)
            return _late("result_of")(output, silent=silent, raises=self.settings.on_error == "raise")

        magic.__name__, magic.__doc__ = name, f"See %{name}?"
        magic.getdoc = lambda: catalog.grammar(name).help  # IPython asks for it: the help is made when it is looked at
        return no_var_expand(magic)

    def _keep_sessions_in(self, address: str) -> None:
        folder, path = folder_of(self.shell), address.removeprefix(FILE_PREFIX)
        notes = self.notebook.keep_sessions_in(address, folder)
        if path != address and folder / Path(path).expanduser() != Path(path).expanduser().absolute():
            notes = [f"sessions are kept in {folder / path}, beside the notebook, wherever its cells are", *notes]
        for line in [*notes, *_late("resumed_note")(self.notebook)]:
            sys.stdout.write(line + "\n")

    @property
    def notebook(self) -> Any:
        """The definitions of this notebook."""
        notebook = getattr(self.shell, _NOTEBOOK, None)
        if notebook is None:
            notebook = _late("Notebook")(self.shell.user_ns)
            notebook.keep_sessions_in(self.settings.address, folder_of(self.shell))
            setattr(self.shell, _NOTEBOOK, notebook)
        notebook.strict = self.settings.strict
        notebook.cell_number = lambda: self.cell_number
        return notebook

    @property
    def cell_number(self) -> int:
        """The n of `In[n]` of the cell that runs."""
        return self.cells.number

    @property
    def cell_sources(self) -> list[str]:
        """The texts of the cells that were run, in order."""
        return self.cells.sources

    @property
    def events(self) -> list[tuple[str, Callable[[Any], None]]]:
        """Callbacks before and after cells, by IPython's names of the events."""
        return [
            ("pre_run_cell", self.cells.begin_cell),
            ("pre_run_cell", self.preload.pause),
            ("post_run_cell", hooks.hint),
            ("post_run_cell", self.preload.after_cell),
        ]


def load_ipython_extension(shell: Any) -> None:
    """Register the magics with `shell`. A second time changes nothing."""
    old = _registered(shell)
    settings = old.settings if old else AdkNb(parent=shell)
    unload_ipython_extension(shell)
    settings.apply()
    if settings not in shell.configurables:
        shell.configurables.append(settings)
    magics = AdkMagics(shell, settings)
    shell.register_magics(magics)
    lines.install(shell)
    if completer := getattr(shell, "Completer", None):
        completer.custom_matchers.append(_matcher(magics))
    _formatter(shell).for_type_by_name(*_AGENT_TYPE, lambda agent: _late("mime_bundle")(magics.notebook, agent))
    tracebacks.install(shell)
    debug_view.registered = lambda *run: _late("debug_view")(lambda: settings.display)(*run)
    for event, callback in magics.events:
        shell.events.register(event, callback)
    if os.environ.get("ADK_NB_REPLAY"):
        _late("begin_from_environment")(magics)
    sys.stdout.write(greeting(shell, settings) + "\n")


def unload_ipython_extension(shell: Any) -> None:
    """Take the magics out again. What was defined stays with the shell, for the next %load_ext."""
    old = _registered(shell)
    if old is None:
        return
    del shell.magics_manager.registry[AdkMagics.__name__]
    for registered in shell.magics_manager.magics.values():
        for name in catalog.MAGICS:
            registered.pop(name, None)
    shell.configurables.remove(old.settings)
    old.settings.restore()
    lines.remove(shell)
    if completer := getattr(shell, "Completer", None):
        matchers = completer.custom_matchers
        matchers[:] = [matcher for matcher in matchers if getattr(matcher, "matcher_identifier", "") != _MATCHER]
    _formatter(shell).pop(".".join(_AGENT_TYPE), None)
    tracebacks.remove(shell)
    debug_view.registered = None
    tap: Any = sys.modules.get("adk_nb.models.tap")
    if tap:  # else nothing can be recorded
        tap.install(None)
    old.preload.pause()
    for event, callback in old.events:
        shell.events.unregister(event, callback)


def _matcher(magics: AdkMagics) -> Callable[[CompletionContext], Any]:
    def matcher(context: CompletionContext) -> Any:
        proposals = None
        if _HAS_MAGIC.search(context.full_text):  # else nothing is loaded for it
            cell, line, before = context.full_text, context.cursor_line, context.text_until_cursor
            proposals = _late("propose")(magics.notebook, cell, line, before)
        if proposals is None:
            return {"completions": [], "suppress": False}
        names = [name for name in proposals.names if name.startswith(proposals.fragment)]
        return {
            "completions": [SimpleCompletion(text=name, type=proposals.kind) for name in names],
            "suppress": True,
            "matched_fragment": proposals.fragment,
            "ordered": True,
        }

    # The attributes that IPython's own (untyped) decorator context_matcher would set.
    vars(matcher).update(matcher_api_version=2, matcher_identifier=_MATCHER, matcher_priority=200)
    return matcher


def _formatter(shell: Any) -> Any:
    return shell.display_formatter.mimebundle_formatter


def greeting(shell: Any, settings: AdkNb) -> str:
    """Return one line; in a notebook's file the same whoever runs it, with or without a key."""
    is_saved = getattr(shell, "kernel", None) is not None or display_mode() == "static"
    model = "" if is_saved else f" · model {settings.model_in_words}"
    return f"adk_nb {adk_nb.__version__}{model} · %%agent?, %%tool?, %chat?, %agents"


def _registered(shell: Any) -> Any:
    return shell.magics_manager.registry.get(AdkMagics.__name__)
