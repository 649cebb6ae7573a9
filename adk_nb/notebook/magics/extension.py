"""The IPython extension: registers the magics, completion, hints and settings of a shell, and removes them."""

# pyright: basic
# IPython's shells and Magics are untyped, and the magics are imported lazily.

import os
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from IPython.core import oinspect
from IPython.core.completer import CompletionContext, SimpleCompletion
from IPython.core.display import JSON
from IPython.core.getipython import get_ipython
from IPython.core.magic import Magics, magics_class, no_var_expand

import adk_nb
from adk_nb import runtime
from adk_nb.errors import UserError
from adk_nb.lazy import late
from adk_nb.notebook.magics import catalog, hooks
from adk_nb.notebook.magics.config import FILE_PREFIX, AdkNb
from adk_nb.notebook.magics.grammar import without_semicolon
from adk_nb.notebook.place import display_mode, folder_of
from adk_nb.notebook.registry import Extension, registry

_AGENT_TYPE = ("adk_nb.agents.base_agent", "BaseAgent")
"""Agents display their drawing; registered by name, so that nothing is imported for it."""
_NOTEBOOK = "adk_nb"
"""The attribute of the shell that holds its `Notebook`, which outlives `%reload_ext`."""
_MATCHER = "adk_nb"
_NAMES_TARGET = "adk_nb.names"
"""The target of comms that ask for `known_names`; `editors/jupyterlab/src/extension.js` has it, too."""
_PAGE = "text/markdown"
"""The form of help that a page folds; one of HTML is left out by default."""
_HELP = "_adk_nb_help"
"""The attribute of a magic's function that has its name."""
_MAGIC = re.compile(r"%(\w+)")

# Imported when a cell first needs them: %load_ext has to be fast.
_late = late(
    {
        "Notebook": "adk_nb.notebook.cells.notebook",
        "debug_view": "adk_nb.notebook.magics.debug_view",
        "mime_bundle": "adk_nb.notebook.magics.agent",
        "known_among": "adk_nb.notebook.magics.completion",
        "propose": "adk_nb.notebook.magics.completion",
        "resumed_note": "adk_nb.notebook.magics.session",
        "result_of": "adk_nb.notebook.magics.output",
    },
)


@magics_class
class AdkMagics(Magics):
    """The magics of one shell, which is the `Host` that their functions get."""

    shell: Any

    def __init__(self, shell: Any, settings: AdkNb) -> None:
        super().__init__(shell)
        self.settings = settings
        self.cells = hooks.CellCounter(shell)
        self.preload = hooks.Preload()
        for name in registry.magic_names:
            self.magics["line"][name] = self.magics["cell"][name] = self._magic(name)
        if (notebook := getattr(shell, _NOTEBOOK, None)) is not None:
            settings.sessions = notebook.sessions.address
        settings.on_sessions = self._keep_sessions_in

    def add(self, extension: Extension, earlier: Extension | None) -> None:
        """Bring what a cell registers into the shell, in place of an earlier one of its name."""
        for magic in earlier.magics if earlier else ():
            for known in (*self.magics.values(), *self.shell.magics_manager.magics.values()):
                known.pop(magic.name, None)
        for shown_type in earlier.displays if earlier else ():
            _formatter(self.shell).pop(shown_type.replace(":", "."), None)
        self.settings.add(extension)
        for magic in extension.magics:
            self.magics["line"][magic.name] = self.magics["cell"][magic.name] = self._magic(magic.name)
        self.shell.register_magics(self)
        self.add_displays(extension)

    def add_displays(self, extension: Extension) -> None:
        """Show values of some types as an extension does; they are named, so that nothing is imported for it."""
        for shown_type, function in extension.displays.items():
            show = partial(registry.call, extension, function, self)
            _formatter(self.shell).for_type_by_name(*shown_type.split(":"), show)

    def _magic(self, name: str) -> Callable[..., Any]:
        def magic(line: str, cell: str | None = None) -> Any:
            """Run the function of the magic; its traceback is hidden, as errors are about the line."""
            __tracebackhide__ = True
            waits = not self.preload.is_over
            line_of_wait = hooks.LoadingLine(self.settings, is_alone=cell is not None) if waits else nullcontext()
            with line_of_wait, hooks.without_collections():
                function = catalog.function(name)  # imports what it needs
            output = function(self, line, cell)
            _, silent = without_semicolon(line)
            return _late("result_of")(output, silent=silent, raises=self.settings.on_error == "raise")

        magic.__name__, magic.__doc__ = name, f"See %{name}?"
        magic.getdoc = lambda: "\n".join(filter(None, catalog.help_of(name)))  # %name? calls it
        setattr(magic, _HELP, name)
        return no_var_expand(magic)

    def _keep_sessions_in(self, address: str) -> None:
        folder, path = folder_of(self.shell), address.removeprefix(FILE_PREFIX)
        notes = self.notebook.keep_sessions_in(address, folder)
        if path != address and folder / Path(path).expanduser() != Path(path).expanduser().absolute():
            notes = [f"sessions are kept in {folder / path}, beside the notebook; cells run in another folder", *notes]
        for line in [*notes, *_late("resumed_note")(self.notebook)]:
            sys.stdout.write(line + "\n")

    @property
    def notebook(self) -> Any:
        """Definitions and sessions of this notebook; made when first needed."""
        notebook = getattr(self.shell, _NOTEBOOK, None)
        if notebook is None:
            notebook = _late("Notebook")(self.shell.user_ns)
            notebook.keep_sessions_in(self.settings.address, folder_of(self.shell))
            setattr(self.shell, _NOTEBOOK, notebook)
        notebook.strict = self.settings.strict
        notebook.sessions.shared = self.settings.sessions_shared
        notebook.cell_number = lambda: self.cell_number
        return notebook

    @property
    def cell_number(self) -> int:
        """The n of `In[n]` of the running cell."""
        return self.cells.number

    @property
    def cell_sources(self) -> list[str]:
        """Sources of the cells run so far, in order; the first is empty."""
        return self.cells.sources

    @property
    def events(self) -> list[tuple[str, Callable[[Any], None]]]:
        """Names of IPython's events, and callbacks to register for them."""
        return [
            ("pre_run_cell", self.cells.begin_cell),
            ("pre_run_cell", self.preload.pause),
            ("post_run_cell", hooks.print_hints),
            ("post_run_cell", self.preload.after_cell),
        ]


def load_ipython_extension(shell: Any) -> None:
    """Register the magics with `shell`; a second call keeps the settings."""
    old = _registered(shell)
    unload_ipython_extension(shell)
    taken = {name for kind in shell.magics_manager.magics.values() for name in kind}
    registry.find(magics=taken, settings=dir(AdkNb))
    settings = old.settings if old else AdkNb(parent=shell)
    for extension in registry:
        try:
            settings.add(extension)
        except Exception as error:  # a value of %config that its new version does not take
            registry.note(extension, error)
    settings.apply()
    if settings not in shell.configurables:
        shell.configurables.append(settings)
    magics = AdkMagics(shell, settings)
    shell.register_magics(magics)
    hooks.install_line_transformers(shell)
    if (hooked := _help_hooks(shell)) is not None:
        hooked.setdefault(_PAGE, _folded_help)
    if completer := getattr(shell, "Completer", None):
        completer.custom_matchers.append(_matcher(magics))
    _formatter(shell).for_type_by_name(*_AGENT_TYPE, lambda agent: _late("mime_bundle")(magics.notebook, agent))
    for extension in registry:
        magics.add_displays(extension)
    registry.on_register = magics.add
    hooks.install_traceback_filter(shell)
    hooks.install_farewell(shell)
    runtime.debug_view = lambda *run: _late("debug_view")(lambda: settings.display)(*run)
    for event, callback in magics.events:
        shell.events.register(event, callback)
    if comm := _comm():
        comm.get_comm_manager().register_target(_NAMES_TARGET, _answer_editor)
    for extension in registry:
        for variable, function in extension.switches.items():
            if os.environ.get(variable):
                registry.call(extension, function, magics)
    sys.stdout.write(greeting(shell, settings) + "\n")
    for name, reason in settings.unusable.items():
        sys.stderr.write(f"AdkNb.{name} in the configuration of IPython is not used: {reason}\n")
    if names := [*registry.problems]:
        counted = "1 extension" if len(names) == 1 else f"{len(names)} extensions"
        sys.stderr.write(f"{counted} cannot be used: {', '.join(names)}; see %doctor\n")


def unload_ipython_extension(shell: Any) -> None:
    """Remove the magics. Definitions stay with the shell, for the next `%load_ext`."""
    old = _registered(shell)
    if old is None:
        return
    for extension in registry:
        module = extension.unload.partition(":")[0] if isinstance(extension.unload, str) else ""
        if extension.unload and (not module or module in sys.modules):
            registry.call(extension, extension.unload, old)
    registry.on_register = None
    del shell.magics_manager.registry[AdkMagics.__name__]
    for registered in shell.magics_manager.magics.values():
        for name in old.magics["line"]:
            registered.pop(name, None)
    shell.configurables.remove(old.settings)
    old.settings.restore()
    hooks.remove_line_transformers(shell)
    if (hooked := _help_hooks(shell)) and hooked.get(_PAGE) is _folded_help:
        del hooked[_PAGE]
    if completer := getattr(shell, "Completer", None):
        matchers = completer.custom_matchers
        matchers[:] = [matcher for matcher in matchers if getattr(matcher, "matcher_identifier", "") != _MATCHER]
    shown = [shown_type.replace(":", ".") for extension in registry for shown_type in extension.displays]
    for shown_type in (".".join(_AGENT_TYPE), *shown):
        _formatter(shell).pop(shown_type, None)
    hooks.remove_traceback_filter(shell)
    hooks.remove_farewell(shell)
    runtime.debug_view = None
    if comm := _comm():
        comm.get_comm_manager().targets.pop(_NAMES_TARGET, None)  # not there if comm was imported later
    old.preload.pause()
    for event, callback in old.events:
        shell.events.unregister(event, callback)


def known_names(names: dict[str, list[str]]) -> JSON | None:
    """Answer an editor: which of `names`, by kind as in `Option.names`, this notebook has; None if nothing is defined.

    JupyterLab's extension evaluates it (`editors/jupyterlab/src/extension.js`), and only where this file is loaded.
    """
    shell = get_ipython()
    if getattr(shell, _NOTEBOOK, None) is None or (magics := _registered(shell)) is None:
        return None
    return JSON(_late("known_among")(magics.notebook, names))


def _comm() -> Any:
    """The package `comm`, which every kernel imports; None in a terminal."""
    return sys.modules.get("comm")


def _answer_editor(comm: Any, message: dict[str, Any]) -> None:
    """Send `known_names` to an editor whose kernel, as Pyodide's, evaluates no expressions of a request."""
    answer = known_names(message["content"]["data"])
    comm.send(answer.data if answer else {})


def _matcher(magics: AdkMagics) -> Callable[[CompletionContext], Any]:
    def matcher(context: CompletionContext) -> Any:
        """Return completions as IPython's matcher API v2 has them; suppress its own where there are any."""
        proposals = None
        if any(map(registry.has_magic, _MAGIC.findall(context.full_text))):  # else nothing has to be imported
            cell, line, prefix = context.full_text, context.cursor_line, context.text_until_cursor
            try:
                proposals = _late("propose")(magics.notebook, cell, line, prefix)
            except UserError as error:  # the extension of the magic cannot be used
                sys.stderr.write(f"\n{error}\n")
        if proposals is None:
            return {"completions": [], "suppress": False}
        names = [name for name in proposals.names if name.startswith(proposals.fragment)]
        return {
            "completions": [SimpleCompletion(text=name, type=proposals.kind) for name in names],
            "suppress": True,
            "matched_fragment": proposals.fragment,
            "ordered": True,
        }

    # IPython's decorator context_matcher sets these, and is untyped.
    vars(matcher).update(matcher_api_version=2, matcher_identifier=_MATCHER, matcher_priority=200)
    return matcher


def _help_hooks(shell: Any) -> dict[str, Any] | None:
    """The functions that add forms to what `name?` shows; None before IPython 8.22, which calls them otherwise."""
    return shell.inspector.mime_hooks if hasattr(oinspect, "InspectorHookData") else None


def _folded_help(data: Any) -> str | None:
    """The help of a magic for a page, with all but its beginning folded; None for anything else."""
    name = getattr(data.obj, _HELP, None)
    if name is None:
        return None
    first, rest = catalog.help_of(name)
    summary = "<summary>All arguments and options</summary>"
    folded = f"\n<details>{summary}\n\n```text\n{rest}```\n\n</details>\n" if rest else ""
    return f"```text\n{first}```\n{folded}"


def _formatter(shell: Any) -> Any:
    return shell.display_formatter.mimebundle_formatter


def greeting(shell: Any, settings: AdkNb) -> str:
    """Return the greeting; without the model where it is saved, so that notebook files do not depend on keys."""
    is_saved = getattr(shell, "kernel", None) is not None or display_mode() == "static"
    model = "" if is_saved else f" · model {settings.model_in_words}"
    return f"adk_nb {adk_nb.__version__}{model} · %%agent?, %%tool?, %chat?, %agents"


def _registered(shell: Any) -> Any:
    return shell.magics_manager.registry.get(AdkMagics.__name__)
