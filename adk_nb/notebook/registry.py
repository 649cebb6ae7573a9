"""Extensions of the notebook: what a package adds, found by its entry point or registered in a cell.

An extension names what it brings, as `package.module:name`; it is imported when it is used, so that `%load_ext` stays
fast. What cannot be used is left out, is a row of `%doctor`, and stops nothing else. What this package has beside the
core of its notebook (`BUILT_IN`) comes in through the same object.
"""

import importlib
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any, cast

from traitlets import HasTraits, TraitError, TraitType

from adk_nb.errors import ConfigurationError, InputError
from adk_nb.lazy import require

Reference = Any
"""`package.module:name`, imported when it is first used; or the object itself, in a cell."""

GROUP = "adk_nb.extensions"
"""The entry-point group of packages with an extension."""
BUILT_IN = ("evaluation", "recording", "serving", "keys", "export", "skills", "toolsets", "notebook_tools", "telemetry")
"""Folders of `adk_nb/notebook/extensions`, in the order of the page of magics."""
CORE_MAGICS = (
    "agent", "workflow", "tool", "chat", "agents", "tools", "state", "session", "trace", "rewind", "confirm", "doctor",
)  # fmt: skip
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_REFERENCE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*")
_PACKAGE = "adk-nb"
_PANEL = "adk_nb.notebook.view.panels:Panel"
_GRAMMAR = "adk_nb.notebook.magics.grammar:Grammar"
_METRIC = "adk_nb.evaluation.metrics:Metric"
_OPTIONS = {
    "agent": "adk_nb.notebook.magics.grammar:AgentOption",
    "chat": "adk_nb.notebook.magics.grammar:TurnOption",
    "tool": "adk_nb.notebook.magics.grammar:ToolOption",
}


@dataclass(frozen=True)
class Magic:
    """A magic: `%name`, and `%%name` above the lines of a cell."""

    name: str
    function: Reference
    """`(host, line, cell) -> output`; `cell` is None for `%`."""
    grammar: Reference
    """The `Grammar` of its line, from which its help, usage errors and Tab are made."""
    _: KW_ONLY
    text: bool = False
    """Its line may be text that ends in `?`, which IPython would take for a request for help."""


@dataclass(frozen=True)
class Setting:
    """A setting: `%config AdkNb.name = value`."""

    name: str
    trait: TraitType[Any, Any]
    """Its type and default, of traitlets, with a `help`."""
    _: KW_ONLY
    check: Reference = None
    """`(value) -> value`; a UserError that it raises is shown, and the old value stays."""
    apply: Reference = None
    """`(settings, name, old value)`: called after a change, and by `%load_ext` if the value is not the default."""


@dataclass(frozen=True, kw_only=True)
class Extension:
    """What a package adds to the notebook.

    Raises:
        InputError: A field has the wrong type, or a name cannot be used.
    """

    name: str
    """Lower case, unique."""
    install: str = ""
    """What brings the optional modules that it imports, as `%pip install` takes it: `adk-nb-words[count]`."""
    magics: Sequence[Magic] = ()
    settings: Sequence[Setting] = ()
    panels: Sequence[Reference] = ()
    """Each a `Panel`: a tab in the view of a run."""
    options: Mapping[str, Reference] = field(default_factory=dict[str, Reference])
    """`agent`, `chat` or `tool` -> a list with further options of it: `AgentOption`, `TurnOption`, `ToolOption`."""
    checks: Sequence[Reference] = ()
    """Each `(host) -> findings`: rows of `%doctor`."""
    metrics: Mapping[str, Reference] = field(default_factory=dict[str, Reference])
    """A name for `%%eval --metrics` -> a function of a run, or a `Metric`."""
    displays: Mapping[str, Reference] = field(default_factory=dict[str, Reference])
    """A type, as `package.module:Type` -> `(host, value) -> contents by media type`: how a cell shows it."""
    switches: Mapping[str, Reference] = field(default_factory=dict[str, Reference])
    """An environment variable -> `(host)`, which `%load_ext` calls where the variable is set."""
    unload: Reference = None
    """`(host)`, which `%unload_ext` calls, unless its module was never imported."""

    def __post_init__(self) -> None:
        for name in ("magics", "settings", "panels", "checks"):
            if isinstance(value := getattr(self, name), str) or not isinstance(value, Sequence):
                raise InputError(f"{name} must be a list, got {value!r:.60}")
        for name in ("options", "metrics", "displays", "switches"):
            if not isinstance(value := getattr(self, name), Mapping):
                raise InputError(f"{name} must be a dict, got {value!r:.60}")
        named: list[tuple[type, Sequence[Any]]] = [(Magic, self.magics), (Setting, self.settings)]
        for kind, items in named:
            noun = kind.__name__.lower()
            for item in items:
                if not isinstance(item, kind):
                    raise InputError(f"each of {noun}s must be a {kind.__name__}, got {item!r:.60}")
                label = item.name
                if not (isinstance(label, str) and label.isidentifier()) or (kind is Setting and label[0] == "_"):
                    raise InputError(f"{label!r} cannot be the name of a {noun}; use letters, digits, _")
        name: Any = self.name
        if not (isinstance(name, str) and _NAME.fullmatch(name)):
            raise InputError(f"name {name!r}: use lower case letters, digits, - and _, as in 'word-count'")
        for setting in self.settings:
            _check_trait(setting)
        if others := self.options.keys() - {"agent", "chat", "tool"}:
            raise InputError(f"options: only agent, chat and tool take further ones, not {min(others)!r}")
        for reference in self.references:
            if isinstance(reference, str) and not _REFERENCE.fullmatch(reference):
                raise InputError(f"{reference!r:.80} names nothing; write 'package.module:name'")

    @property
    def references(self) -> list[Reference]:
        """All that it names."""
        of_magics = [reference for magic in self.magics for reference in (magic.function, magic.grammar)]
        of_settings = [reference for setting in self.settings for reference in (setting.check, setting.apply)]
        tables = (self.options, self.metrics, self.displays, self.switches)
        named = [*of_magics, *of_settings, *self.panels, *self.checks, self.unload, *self.displays]
        return [
            reference for reference in [*named, *(value for table in tables for value in table.values())] if reference
        ]

    def require(self, module: str) -> ModuleType:
        """Import an optional module.

        Raises:
            MissingExtraError: It is not there; the message says what to `install`.
        """
        return require(module, package=self.install)


class Registry:
    """The extensions of this process."""

    def __init__(self) -> None:
        self.problems: dict[str, dict[str, str]] = {}
        """Extension -> what cannot be used of it -> what to do."""
        self.version = 0
        """Counts the changes."""
        self.on_register: Callable[[Extension, Extension | None], None] | None = None
        """Brings what a cell registers into the shell, in place of an earlier one."""
        self._taken = {"magic": set(CORE_MAGICS), "setting": set[str]()}

    # The tables are filled when they are first used: the extensions of this package import this module.

    @cached_property
    def _extensions(self) -> dict[str, Extension]:
        modules = [importlib.import_module(f"adk_nb.notebook.extensions.{folder}") for folder in BUILT_IN]
        return {module.extension.name: module.extension for module in modules}

    @cached_property
    def _packages(self) -> dict[str, str]:
        """Extension -> the package that has it; empty: a cell."""
        return dict.fromkeys(self._extensions, _PACKAGE)

    @cached_property
    def _magics(self) -> dict[str, tuple[Extension, Magic]]:
        return {magic.name: (extension, magic) for extension in self for magic in extension.magics}

    def __iter__(self) -> Iterator[Extension]:
        return iter([*self._extensions.values()])

    @property
    def outside(self) -> list[Extension]:
        """Those of other packages, and of cells."""
        return [extension for extension in self if self._packages[extension.name] != _PACKAGE]

    def find(self, *, magics: Collection[str], settings: Collection[str]) -> None:
        """Take in the extensions of installed packages.

        `magics`, `settings`: names that the shell and the core have.
        """
        self._taken = {"magic": {*CORE_MAGICS, *magics}, "setting": {*settings}}
        for extension in self.outside:
            if self._packages[extension.name]:
                self._remove(extension.name)
        self.problems.clear()
        self.version += 1
        # importlib.metadata alone takes longer than the rest of %load_ext.
        entries = importlib.import_module("importlib.metadata").entry_points(group=GROUP) if _may_have_entries() else ()
        for entry in entries:
            package = entry.dist.name if entry.dist else entry.value
            try:
                extension = entry.load()
                self._check_names(extension)
                self._add(extension, package)
            except (Exception, SystemExit) as error:
                self._note(entry.name, package, error)

    def register(self, extension: Extension) -> None:
        """Add an extension of a cell, in place of an earlier one of that name.

        Raises:
            InputError: A name is taken, or something in it has the wrong type.
        """
        self._check_names(extension)
        _check_objects(extension)
        if earlier := self._extensions.get(extension.name):
            self._remove(extension.name)
        self._add(extension, "")
        if self.on_register:
            self.on_register(extension, earlier)

    def _add(self, extension: Extension, package: str) -> None:
        self._extensions[extension.name] = extension
        self._packages[extension.name] = package
        self.version += 1
        self._magics |= {magic.name: (extension, magic) for magic in extension.magics}

    def _remove(self, name: str) -> None:
        for magic in self._extensions.pop(name).magics:
            self._magics.pop(magic.name, None)
        del self._packages[name]
        self.version += 1
        self.problems.pop(name, None)

    def _check_names(self, extension: Any) -> None:
        """Raise an InputError if one of its names belongs to another extension, to the core or to IPython."""
        if not isinstance(extension, Extension):
            raise InputError(f"{extension!r:.60} is not an Extension, but of type {type(extension).__name__}")
        if package := self._packages.get(extension.name):
            raise InputError(f"{package} has an extension of that name already; choose another one")
        owners = {kind: dict.fromkeys(names, "") for kind, names in self._taken.items()}
        for other in self:
            if other.name != extension.name:
                for kind, items in (("magic", other.magics), ("setting", other.settings)):
                    owners[kind] |= {item.name: other.name for item in items}
        for kind, mark, items in (("magic", "%", extension.magics), ("setting", "AdkNb.", extension.settings)):
            for name in [item.name for item in items]:
                if name in owners[kind]:
                    owner = owners[kind][name]
                    of = f" in the extension {owner!r}" if owner else ""
                    raise InputError(f"there is a {kind} {mark}{name} already{of}; choose another name")
                owners[kind][name] = extension.name

    # ---- what they bring

    @property
    def magic_names(self) -> list[str]:
        """The core's, then those of the extensions."""
        return [*CORE_MAGICS, *self._magics]

    @property
    def text_magics(self) -> list[str]:
        """Magics of extensions whose line may be text."""
        return [name for name, (_, magic) in self._magics.items() if magic.text]

    def has_magic(self, name: str) -> bool:
        """True for a magic of the core or of an extension."""
        return name in CORE_MAGICS or name in self._magics

    def of_magic(self, name: str, part: str, *kinds: Any) -> Any:
        """The `function` or the `grammar` of an extension's magic.

        Raises:
            ConfigurationError: It cannot be used.
        """
        extension, magic = self._magics[name]
        return self._needed(f"%{name}", extension, getattr(magic, part), *kinds)

    @property
    def metric_names(self) -> list[str]:
        """The metrics that extensions bring."""
        return [name for extension in self for name in extension.metrics]

    def metric(self, name: str) -> Any:
        """The metric of an extension. Raises as `of_magic`."""
        extension = next(extension for extension in self if name in extension.metrics)
        return self._needed(f"metric {name!r}", extension, extension.metrics[name], resolve(_METRIC), Callable)

    def _needed(self, label: str, extension: Extension, reference: Reference, *kinds: Any) -> Any:
        value = self.use(extension, reference, *kinds)
        if value is None:
            lines = "; ".join(self.problems[extension.name])
            raise ConfigurationError(f"{label} cannot be used: {lines}; %doctor says what to do")
        return value

    def use(self, extension: Extension, reference: Reference, *kinds: Any) -> Any:
        """What an extension names; None, and a row of `%doctor`, if it cannot be used.

        `kinds`: the types that it may have; none: it must be a function.
        """
        try:
            value = resolve(reference)
            if not isinstance(value, kinds or Callable):
                label = reference if isinstance(reference, str) else f"{value!r:.60}"
                raise InputError(f"{label} is not a {kinds[0].__name__ if kinds else 'function'}")
        except (Exception, SystemExit) as error:
            self.note(extension, error)
            return None
        return value

    def call(self, extension: Extension, reference: Reference, *arguments: Any) -> Any:
        """Call what an extension names; an error of it is a row of `%doctor`, and the result None."""
        function = self.use(extension, reference)
        try:
            return function(*arguments) if function else None
        except Exception as error:
            self.note(extension, error)

    def note(self, extension: Extension, error: BaseException) -> None:
        """Remember for `%doctor` what cannot be used of an extension."""
        self._note(extension.name, self._packages[extension.name], error)

    def _note(self, name: str, package: str, error: BaseException) -> None:
        advice = f"%pip install -U {package}, or %pip uninstall -y {package}; then restart the kernel"
        reason = str(error) if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        self.problems.setdefault(name, {})[reason] = advice if package else "mend it, and run its cell again"


def resolve(reference: Reference) -> Any:
    """What a reference names."""
    if not isinstance(reference, str):
        return reference
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)


def _check_trait(setting: Setting) -> None:
    """Raise an InputError if the type or the default of a setting cannot be used."""
    trait: Any = setting.trait
    if not isinstance(trait, TraitType):
        raise InputError(f"setting {setting.name!r} needs a trait of traitlets, as Int(10, help='...')")
    try:  # a default of another type would fail wherever the settings are listed
        getattr(type("AdkNb", (HasTraits,), {setting.name: copy(setting.trait)})(), setting.name)
    except TraitError as error:
        raise InputError(f"setting {setting.name!r}, its default: {error}") from None


def _check_objects(extension: Extension) -> None:
    """Raise an InputError if an object that stands in place of its name is not of the type that is needed."""
    wanted: list[tuple[str, Reference, Reference]] = [("panels", panel, _PANEL) for panel in extension.panels]
    for magic in extension.magics:
        wanted += [(f"%{magic.name}", magic.function, None), (f"%{magic.name}", magic.grammar, _GRAMMAR)]
    for setting in extension.settings:
        wanted += [(f"setting {setting.name!r}", hook, None) for hook in (setting.check, setting.apply) if hook]
    for magic_name, items in extension.options.items():
        if not isinstance(items, str):
            if not isinstance(items, Sequence):
                raise InputError(f"options of {magic_name} must be a list, got {items!r:.60}")
            wanted += [(f"options of {magic_name}", item, _OPTIONS[magic_name]) for item in cast(Sequence[Any], items)]
    wanted += [("checks", check, None) for check in extension.checks]
    wanted += [(f"metric {name!r}", metric, _METRIC) for name, metric in extension.metrics.items()]
    wanted += [("displays", function, None) for function in extension.displays.values()]
    wanted += [("switches", function, None) for function in extension.switches.values()]
    wanted += [("unload", extension.unload, None)] if extension.unload else []
    for label, value, kind in wanted:
        is_named = isinstance(value, str) and not label.startswith("options")
        if is_named or (kind in (None, _METRIC) and callable(value)):
            continue
        if not (kind and isinstance(value, resolve(kind))):
            needed = kind.partition(":")[2] if kind and kind != _METRIC else "function"
            raise InputError(f"{label}: {value!r:.60} is not a {needed}")


def _may_have_entries() -> bool:
    """True if an installed package names the group."""
    for folder in sys.path:
        try:
            installed = [name for name in os.listdir(folder or ".") if name.endswith((".dist-info", ".egg-info"))]
        except OSError:
            continue
        for name in installed:
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    if GROUP.encode() in file.read():
                        return True
            except OSError:  # it has none
                continue
    return False


registry = Registry()
"""The extensions of this process."""


def register(extension: Extension) -> None:
    """Add an extension to this notebook, in place of one of that name that a cell has registered.

    Raises:
        InputError: A name is taken.
    """
    registry.register(extension)
