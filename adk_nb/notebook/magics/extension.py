"""The magics: parse the line, call one function, hand back what shows itself."""

# pyright: basic
# IPython's shells and Magics are untyped, and what is loaded late has no type here.

import os
import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand

import adk_nb
from adk_nb.errors import InputError
from adk_nb.lazy import face
from adk_nb.notebook.magics import completion, course_hints, lines, tracebacks
from adk_nb.notebook.magics.addressee import first_word_names, supposed_name
from adk_nb.notebook.magics.asked import alone, helps, shown, unless_silent
from adk_nb.notebook.magics.beside import BesideMagics
from adk_nb.notebook.magics.config import IN_A_FILE, AdkNb, hint
from adk_nb.notebook.magics.grammar import AGENT, AGENTS, CHAT, CONFIRM, SESSION, STATE, TOOL, TOOLS, WORKFLOW
from adk_nb.notebook.magics.preload import Preload
from adk_nb.notebook.magics.run_cells import RunCells
from adk_nb.notebook.magics.time_magics import TimeMagics
from adk_nb.notebook.place import folder_of, is_being_tested
from adk_nb.runtime import debug_view

_DRAWN = ("adk_nb.agents.base_agent", "BaseAgent")
"""What draws itself at the end of a cell; by name, so that nothing is loaded for it."""
_KEPT = "adk_nb"
"""The attribute of the shell that holds its notebook: one for each shell, and it outlives %reload_ext."""

# What stands on the runtime is loaded when a cell first needs it: %load_ext is to cost nothing.
_late, _ = face(
    __name__,
    {
        "agent": "adk_nb.notebook.magics.agent",
        "Notebook": "adk_nb.notebook.registry.notebook",
        "debug_view": "adk_nb.notebook.debug_view",
        "forms_of": "adk_nb.notebook.magics.pictures",
        "known_names": "adk_nb.notebook.magics.known_names",
        "open_box": "adk_nb.notebook.magics.box_line",
        "picture": "adk_nb.notebook.magics.pictures",
        "record": "adk_nb.notebook.magics.record",
        "reports": "adk_nb.notebook.magics.reports",
        "said": "adk_nb.notebook.magics.shown",
        "state": "adk_nb.notebook.magics.state",
        "session": "adk_nb.notebook.magics.session",
        "tables": "adk_nb.notebook.magics.tables",
        "tool_cell": "adk_nb.notebook.registry.tool_cell",
        "toolset_line": "adk_nb.notebook.registry.toolsets",
        "confirm": "adk_nb.notebook.magics.confirm",
        "chat": "adk_nb.notebook.magics.chat",
        "what_came": "adk_nb.notebook.magics.what_came",
    },
)


@magics_class
class AdkMagics(Magics):
    """The magics of one shell."""

    shell: Any

    def __init__(self, shell: Any, settings: AdkNb) -> None:
        super().__init__(shell)
        self.settings = settings
        self.cells = RunCells(shell)
        self.preload = Preload()
        if (kept := getattr(shell, _KEPT, None)) is not None:
            settings.sessions = kept.sessions.kept_in
        settings.on_sessions = self._keep_sessions_in

    def _keep_sessions_in(self, address: str) -> None:
        folder, path = folder_of(self.shell), address.removeprefix(IN_A_FILE)
        told = self.notebook.keep_sessions_in(address, folder)
        if path != address and folder / Path(path).expanduser() != Path(path).expanduser().absolute():
            told = [f"sessions are kept in {folder / path}, beside the notebook, wherever its cells are", *told]
        for line in [*told, *_late("session").found_again(self.notebook)]:
            sys.stdout.write(line + "\n")

    @property
    def notebook(self) -> Any:
        """What this notebook has defined."""
        if getattr(self.shell, _KEPT, None) is None:
            notebook = _late("Notebook")(self.shell.user_ns)
            notebook.keep_sessions_in(self.settings.address, folder_of(self.shell))
            setattr(self.shell, _KEPT, notebook)
        notebook = getattr(self.shell, _KEPT)
        notebook.strict = self.settings.strict
        notebook.cell_number = lambda: self.cell_number
        return notebook

    @property
    def cell_number(self) -> int:
        """The number of the cell that runs."""
        return self.cells.number

    def names(self, kind: str, /) -> Any:
        """What completion proposes."""
        return _late("known_names")(self.notebook, kind)

    @no_var_expand
    @line_cell_magic
    @helps(AGENT)
    def agent(self, line: str, cell: str | None = None) -> Any:
        defined = _late("agent").define_agent(self.notebook, line, cell, self.cell_number)
        return self._introduced(defined)

    @no_var_expand
    @line_cell_magic
    @helps(WORKFLOW)
    def workflow(self, line: str, cell: str | None = None) -> Any:
        defined = _late("agent").define_workflow(self.notebook, line, cell, self.cell_number)
        return self._introduced(defined)

    def _introduced(self, defined: Any) -> Any:
        """What there is to say of an agent, with its drawing if there are others in it."""
        if defined.silent:
            return None
        if defined.has_picture:
            return _late("picture")(self.notebook, defined.name, *defined.told)
        return _late("said")(*defined.told)

    @no_var_expand
    @line_cell_magic
    @helps(TOOL)
    def tool(self, line: str, cell: str | None = None) -> Any:
        __tracebackhide__ = True
        asked = TOOL.parse(line, cell)
        if asked.openapi or asked.mcp:
            defined = _late("toolset_line").define(self.notebook, asked, self.cell_number, folder_of(self.shell))
            return shown(defined, asked)
        if cell is not None and not cell.strip():
            raise InputError("%%tool: the cell is empty; write a function below the line, see %%tool?")
        room = _late("tool_cell")
        options = room.options_of(asked, cell)
        notebook = self.notebook
        if cell is None:
            found = [room.found_variable(name, self.shell.user_ns) for name in asked.name]
        else:
            free = partial(notebook.check_function_name, replace=options.replace)
            found = room.run_tool_cell(self.shell, cell, self.cell_number, free)
        chosen = room.chosen(found, options, asked.mark)
        told = room.define(notebook, chosen, options, self.cell_number)
        helpers = room.untyped_helpers(found, options) if cell is not None else []
        return shown([*told, *([room.helper_note(helpers)] if helpers else [])], asked)

    @no_var_expand
    @line_cell_magic
    @helps(CHAT)
    def chat(self, line: str, cell: str | None = None) -> Any:
        notebook = self.notebook
        names = notebook.agent_words
        held = notebook.conversations
        asked = CHAT.parse(line, cell, leads=lambda word: first_word_names(word, names, notebook.removed, held))
        opens_box = cell is None and not asked.text.strip()
        if not opens_box and (asked.height or not asked.text.strip()):
            name = asked.agent or next(iter(names), "NAME")
            raise InputError(
                "--height is of the chat box, which %chat opens without a text; leave it out, or the text"
                if asked.height
                else f"{asked.mark} needs a text; write it below the line, or %chat {name} alone for a chat box"
            )
        turns = _late("chat")
        for one, other in (("yes", "no"), ("quiet", "static")):
            if getattr(asked, one) and getattr(asked, other):
                raise InputError(f"{asked.mark}: --{one} and --{other} cannot both be; choose one")
        confirm, policy = self._confirm(asked)
        said = turns.Said(
            text=asked.text,
            agent=asked.agent,
            session=asked.session,
            fresh=asked.new,
            raw=asked.raw,
            capture=asked.capture,
            confirm=confirm,
            policy=policy,
            in_lines=asked.ask,
            show="off" if asked.quiet or asked.silent else "static" if asked.static else self.settings.display,
            attach=tuple(asked.attach or ()),
            error=asked.error,
            tools=tuple(asked.tools or ()),
            model=asked.model,
            max_cost=asked.max_cost,
            cell=self.cell_number,
            supposed_name=supposed_name(asked.text, names) if cell is None and not (asked.agent or asked.plain) else "",
            first_line=0 if cell is None else 2,
        )
        if opens_box:
            return _late("open_box")(notebook, asked, said)
        with self._taped(asked):
            reply = turns.say(notebook, said)
        return self.what_came(reply, silent=bool(asked.silent or asked.capture))

    @no_var_expand
    @line_cell_magic
    @helps(AGENTS)
    def agents(self, line: str, cell: str | None = None) -> Any:
        asked = alone(AGENTS, line, cell)
        tables = _late("tables")
        if asked.rm:
            return shown([self.notebook.forget_agent(asked.rm)], asked)
        if asked.graph is not None:
            name = asked.graph or self.notebook.agent_for_text()
            return unless_silent(_late("picture")(self.notebook, name), asked)
        if asked.show:
            return unless_silent(tables.agent_cell(self.notebook, asked.show), asked)
        told = tables.agents_as_json if asked.json else tables.agents
        return unless_silent(told(self.notebook), asked)

    @no_var_expand
    @line_cell_magic
    @helps(TOOLS)
    def tools(self, line: str, cell: str | None = None) -> Any:
        asked = alone(TOOLS, line, cell)
        tables = _late("tables")
        if asked.schema is None:
            return unless_silent(tables.tools(self.notebook), asked)
        told = tables.schema(self.notebook, asked.schema) if asked.schema else tables.schemas(self.notebook)
        return unless_silent(told, asked)

    @no_var_expand
    @line_cell_magic
    @helps(STATE)
    def state(self, line: str, cell: str | None = None) -> Any:
        asked = alone(STATE, line, cell)
        return unless_silent(_late("state").show_or_change(self.notebook, asked), asked)

    @no_var_expand
    @line_cell_magic
    @helps(SESSION)
    def session(self, line: str, cell: str | None = None) -> Any:
        asked = alone(SESSION, line, cell)
        return unless_silent(_late("session").show_or_change(self.notebook, asked, self.settings.display), asked)

    @no_var_expand
    @line_cell_magic
    @helps(CONFIRM)
    def confirm(self, line: str, cell: str | None = None) -> Any:
        confirm = _late("confirm")
        asked = confirm.parse(line, cell)
        return self.what_came(confirm.run(self.notebook, asked, self.settings.display), silent=asked.silent)

    def what_came(self, told: Any, *, silent: bool) -> Any:
        """What a cell shows of a turn. Raises a TurnFailedError if it failed, and that is to fail the cell."""
        return _late("what_came")(told, silent=silent, raises=self.settings.on_error == "raise")

    def _taped(self, asked: Any) -> Any:
        """What stands between agents and models in a turn, if its line says something of that."""
        if asked.record or asked.replay:
            return _late("record").for_this_turn(self.shell, self.settings, asked)
        return nullcontext()

    def _confirm(self, asked: Any) -> tuple[str, str]:
        """What happens to approvals in a turn, and where that is said."""
        for word in ("yes", "no", "ask"):
            if getattr(asked, word):
                return word, f"{asked.mark} --{word}"
        return self.settings.confirm, "%config AdkNb.confirm"


def load_ipython_extension(shell: Any) -> None:
    """Register the magics with `shell`. A second time changes nothing."""
    old = _registered(shell)
    settings = old.settings if old else _settings_of(shell)
    unload_ipython_extension(shell)
    settings.count_again()
    if settings not in shell.configurables:
        shell.configurables.append(settings)
    magics = AdkMagics(shell, settings)
    shell.register_magics(magics, BesideMagics(shell, magics), TimeMagics(shell, magics))
    lines.install(shell)
    completion.install(shell, magics)
    _forms(shell).for_type_by_name(*_DRAWN, lambda agent: _late("forms_of")(magics.notebook, agent))
    tracebacks.install(shell)
    debug_view.registered = lambda *run: _late("debug_view")(lambda: settings.display)(*run)
    shell.events.register("pre_run_cell", magics.cells.begin_cell)
    shell.events.register("pre_run_cell", magics.preload.pause)
    shell.events.register("post_run_cell", hint)
    shell.events.register("post_run_cell", course_hints.hint)
    shell.events.register("post_run_cell", magics.preload.after_cell)
    if os.environ.get("ADK_NB_REPLAY"):
        _late("record").begin_as_the_environment_says(shell, settings)
    sys.stdout.write(greeting(shell, settings) + "\n")


def unload_ipython_extension(shell: Any) -> None:
    """Take the magics out again. What was defined stays with the shell, for the next %load_ext."""
    old = _registered(shell)
    if old is None:
        return
    for each in (AdkMagics, BesideMagics, TimeMagics):
        gone = shell.magics_manager.registry.pop(each.__name__)
        for kind, known in shell.magics_manager.magics.items():
            for name in gone.magics[kind]:
                known.pop(name, None)
    shell.configurables.remove(old.settings)
    old.settings.give_back()
    lines.remove(shell)
    completion.remove(shell)
    _forms(shell).pop(".".join(_DRAWN), None)
    tracebacks.remove(shell)
    debug_view.registered = None
    tap: Any = sys.modules.get("adk_nb.models.tap")
    if tap:  # else nothing can be recorded
        tap.install(None)
    shell.events.unregister("pre_run_cell", old.cells.begin_cell)
    old.preload.pause()
    shell.events.unregister("pre_run_cell", old.preload.pause)
    shell.events.unregister("post_run_cell", hint)
    shell.events.unregister("post_run_cell", course_hints.hint)
    shell.events.unregister("post_run_cell", old.preload.after_cell)


def _forms(shell: Any) -> Any:
    """What says how a value at the end of a cell is shown."""
    return shell.display_formatter.mimebundle_formatter


def greeting(shell: Any, settings: AdkNb) -> str:
    """One line; in a notebook's file the same whoever runs it, with or without a key."""
    is_saved = getattr(shell, "kernel", None) is not None or is_being_tested(shell)
    model = "" if is_saved else f" · model {settings.model_in_words}"
    return f"adk_nb {adk_nb.__version__}{model} · %%agent?, %%tool?, %chat?, %agents"


def _registered(shell: Any) -> Any:
    return shell.magics_manager.registry.get(AdkMagics.__name__)


def _settings_of(shell: Any) -> AdkNb:
    return AdkNb(parent=shell)
