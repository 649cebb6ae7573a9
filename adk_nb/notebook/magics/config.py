"""`%config AdkNb`: settings of the notebook, checked and applied when they change."""

import asyncio
import math
import os
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from typing import Any

from traitlets import Bool, Bunch, Enum, Float, Int, TraitError, Unicode, observe, validate
from traitlets.config import Config, Configurable

from adk_nb import google_adk
from adk_nb.errors import UserError, closest
from adk_nb.lazy import late, require
from adk_nb.models.default_model import MODEL_VARIABLE, find_default_model
from adk_nb.notebook import settings
from adk_nb.notebook.place import can_ask
from adk_nb.notebook.registry import Extension, Setting, registry

FILE_PREFIX = "sqlite:///"
"""Prefix of the address of a session file."""
_SERVER = re.compile(r"postgres(?:ql)?(?:\+\w+)?://[^@?]*@?[^@?]*\w(?:\?.*)?")
_PASSWORD = re.compile(r"(://[^:@/]*:|:(?!//)).*(?=@)|(\w*password=)[^&]*", re.IGNORECASE)
_FILE_LIKE = re.compile(r"(?:sqlite3?(?:\+\w+)?:/{0,4}|file:/{0,3})?([^:]*)")

_TURN_SETTINGS = ("max_cost_usd", "max_iterations", "timeout", "show_thoughts", "interp_max_chars")
"""Settings that are copied to `notebook.settings.now`."""

# Imported when a setting needs it: %load_ext has to be fast.
_late = late({"LLMRegistry": "adk_nb.models.registry"})


class AdkNb(Configurable):
    """Settings: `%config AdkNb.model = "offline"` in a cell, or `c.AdkNb.model` in ipython_config.py for good."""

    model = Unicode(
        "",
        help="Model of agents that name none. Empty: the first of Gemini, OpenAI, Anthropic whose key is set; else "
        "the server at OPENAI_BASE_URL, or Ollama, if it answers; else offline.",
    ).tag(config=True)
    display = Enum(
        ("auto", "widget", "static", "text", "off"),
        "auto",
        help="How runs are shown: live if a user is there (auto), live in any kernel (widget), in the saved form "
        "only (static), as plain text (text), or not at all except for the reply (off). The variable ADK_NB_DISPLAY "
        "can set the meaning of auto.",
    ).tag(config=True)
    on_error = Enum(
        ("raise", "card"),
        "raise",
        help="After a turn that ended with an error: fail the cell, so that Run All stops (raise), or only show the "
        "error (card). Errors in the cell itself are always raised.",
    ).tag(config=True)
    strict = Bool(
        False, help="Fail a cell that names undefined tools, agents or state keys, instead of printing a note."
    ).tag(config=True)
    confirm = Enum(
        ("ask", "yes", "no"),
        "ask",
        help="Approvals in a turn: leave them open (ask), approve all (yes), or reject all (no). A call that needs "
        "approval never runs without one, even if no user is there to answer.",
    ).tag(config=True)
    sessions = Unicode(
        "",
        help="Where sessions are stored: 'sqlite:///nb.db' is a file beside the notebook, which later kernels read "
        "too; 'postgresql://user:password@host/database' a server. Empty: in memory, until the kernel ends.",
    ).tag(config=True)
    sessions_shared = Bool(
        False,
        help="All agents speak in the current session, and see what was said to the others. Otherwise each has a "
        "session of its own; -s names another one for a line.",
    ).tag(config=True)
    max_iterations = Int(
        16, help="Limit of model calls in a turn, for agents defined from now on without --max-iterations."
    ).tag(config=True)
    max_cost_usd = Float(
        None,
        allow_none=True,
        help="Limit of the cost of a turn in US dollars, by the prices of genai-prices; above it no further "
        "model call is made. None: no limit.",
    ).tag(config=True)
    timeout = Float(
        None,
        allow_none=True,
        help="Limit of a turn in seconds, after which it ends with an error; a sync tool that does not end "
        "continues in its thread. None: no limit.",
    ).tag(config=True)
    show_thoughts = Bool(True, help="Show the thoughts of models with their answers.").tag(config=True)
    interp_max_chars = Int(
        4_000, help="Limit of characters of a {{variable}} in an instruction or a message; the rest is cut off."
    ).tag(config=True)
    google_adk = Bool(
        False,
        help="Let `from google.adk... import ...` import adk_nb, and `!adk ...` run it, where google-adk is not "
        "installed.",
    ).tag(config=True)
    nest_asyncio = Bool(
        False, help="Let cells call asyncio.run(...), with nest-asyncio2. Cannot be undone until the kernel restarts."
    ).tag(config=True)

    on_sessions: Callable[[str], None] | None = None
    """Callback that opens the address of sessions; raises a UserError if it cannot."""

    def __init__(self, **values: Any) -> None:
        self._environment_model = os.environ.get(MODEL_VARIABLE)
        self._addresses: dict[str, str] = {}
        """Address of sessions without its password -> with it."""
        self._added: dict[str, tuple[str, Setting]] = {}
        """Setting of an extension -> the extension's name, and the setting."""
        self.unusable: dict[str, str] = {}
        """Setting -> why its value in the configuration of IPython is not used."""
        self._is_starting = True
        for extension in registry:
            self._add_settings(extension)
        super().__init__(**values)
        self._is_starting = False

    def _load_config(self, cfg: Any, section_names: Any = None, traits: Any = None) -> None:
        """Take the values of a configuration; at the start, one that cannot be used leaves its default."""
        if not self._is_starting:
            super()._load_config(cfg, section_names, traits)
            return
        section: Any = self._find_my_config(cfg)
        for name, value in section.items():
            try:
                super()._load_config(Config({AdkNb.__name__: {name: value}}), section_names, traits)
            except (TraitError, UserError) as error:
                self.unusable[name] = str(error)
                self.config[AdkNb.__name__].pop(name, None)  # else each %config would be refused

    def _add_settings(self, extension: Extension) -> None:
        """Add the settings of an extension; one that cannot be added is a row of `%doctor`."""
        for setting in extension.settings:
            try:
                old = self._trait_values.pop(setting.name, None)
                self.unobserve_all(setting.name)
                trait = copy(setting.trait).tag(config=True)
                self.add_traits(**{setting.name: trait, f"_check_{setting.name}": _validator(extension, setting)})
                self._added[setting.name] = extension.name, setting
                if old is not None:
                    try:
                        setattr(self, setting.name, old)
                    except TraitError:  # it is of another type now
                        self.config[AdkNb.__name__].pop(setting.name, None)
                if setting.apply:
                    self.observe(partial(self._apply, extension, setting), setting.name)
            except Exception as error:
                registry.note(extension, error)

    def _apply(self, extension: Extension, setting: Setting, change: Any) -> None:
        if apply := registry.use(extension, setting.apply):
            apply(self, setting.name, change.old)

    def add(self, extension: Extension) -> None:
        """Add the settings of an extension that came later, with their values in ipython_config.py.

        In place of those that an earlier one of its name had; a value that still fits stays.
        """
        new = {setting.name: (extension.name, setting) for setting in extension.settings}
        old = {name: added for name, added in self._added.items() if added[0] == extension.name}
        if new == old:
            return
        for name in old.keys() - new:
            self.unobserve_all(name)
            self.traits()[name].tag(config=False)  # traitlets cannot remove it; so it is no setting
            self._trait_values.pop(name, None)
            self.config[AdkNb.__name__].pop(name, None)
            del self._added[name]
        self._add_settings(extension)
        self._load_config(self.config)

    def update_config(self, config: Config) -> None:
        """Apply a `%config` line; raise a TraitError for an unknown name, of which traitlets only warns."""
        names = self.trait_names(config=True)
        section: Any = config[type(self).__name__]
        for name in section:
            if name not in names:
                near = closest(name, names)
                hint = f"did you mean AdkNb.{near}?" if near else "%config AdkNb lists them"
                raise TraitError(f"AdkNb has no setting {name!r}; {hint}")
        super().update_config(config)
        if "model" in section:
            line = f"default model: {self.model_in_words}"
            if find_default_model().is_of_code:  # the setting has no effect
                line += f'; above this setting; to change it: LlmAgent.set_default_model("{self.model or "offline"}")'
            sys.stdout.write(f"{line}\n")

    @property
    def address(self) -> str:
        """The address of sessions with its password, which `sessions` has masked."""
        return self._addresses.get(self.sessions, self.sessions)

    @validate("model")
    def _check_model(self, proposal: Any) -> str:
        name = proposal.value.strip()
        with _trait_errors():
            if name:
                _late("LLMRegistry").check(name)
        return name

    @observe("model")
    def _set_model(self, change: Any) -> None:
        if change.new:
            os.environ[MODEL_VARIABLE] = change.new
        else:
            self._restore_model()

    @validate("max_cost_usd", "max_iterations", "timeout", "interp_max_chars")
    def _check_positive(self, proposal: Any) -> Any:
        name, value = proposal.trait.name, proposal.value
        if value is not None and not 0 < value < math.inf:
            none = ", or None for no limit" if proposal.trait.allow_none else ""
            raise TraitError(f"{name} must be a positive number{none}, got {value!r}")
        with _trait_errors():
            if value is not None and name == "max_cost_usd":
                require("genai_prices", package="genai-prices")  # the cost of a turn needs prices
        return value

    @observe(*_TURN_SETTINGS)
    def _set_for_turns(self, change: Any) -> None:
        default = getattr(type(self), change.name).default_value
        value = getattr(settings.Settings, change.name) if change.new == default else change.new
        setattr(settings.now, change.name, value)

    @validate("sessions")
    def _check_address(self, proposal: Any) -> str:
        address = proposal.value.strip()
        safe = _PASSWORD.sub(lambda match: f"{match[1] or match[2]}***", address)
        path = address.removeprefix(FILE_PREFIX)
        if not address or (path != address and path.strip("/") and path[:1] != ":" and "\0" not in path):
            return address
        if _SERVER.fullmatch(address):
            if safe != address:
                self._addresses[safe] = address
            return safe
        match = _FILE_LIKE.fullmatch(address)
        file = match[1] if match and match[1].strip("./") else "nb.db"
        raise TraitError(
            f'sessions: cannot use {safe[:80]!r}; write "{FILE_PREFIX}{file}" for a file beside the notebook, '
            '"postgresql://host/database" for a server, with user:password@ before the host if it needs them (@ in a '
            'password is %40), or "" for memory'
        )

    @observe("sessions")
    def _use_sessions(self, change: Any) -> None:
        if not self.on_sessions:
            return
        try:
            self.on_sessions(self.address)
        except UserError:
            callback, self.on_sessions = self.on_sessions, None
            self.sessions = change.old
            self.on_sessions = callback
            raise

    @observe("confirm")
    def _set_policy(self, change: Any) -> None:
        settings.now.confirm = change.new

    @observe("google_adk")
    def _set_google_adk(self, change: Any) -> None:
        if change.new:
            google_adk.stand_in_for_google_adk()
            google_adk.put_adk_on_path(is_watched=can_ask())
        else:
            google_adk.give_google_adk_back()

    @observe("nest_asyncio")
    def _nest_asyncio(self, change: Any) -> None:
        if not change.new:
            return
        loop = None
        with suppress(RuntimeError):
            loop = asyncio.get_running_loop()
        try:
            require("nest_asyncio2", package="nest-asyncio2").apply(loop)
        except UserError:
            self.nest_asyncio = False
            raise

    def restore(self) -> None:
        """Undo the effects of all settings outside this object, for `%unload_ext`."""
        self.confirm = "ask"
        settings.now = settings.Settings()
        google_adk.give_google_adk_back()
        self._restore_model()

    def apply(self) -> None:
        """Apply the settings again after `restore`."""
        if self.model:
            os.environ[MODEL_VARIABLE] = self.model
        if self.google_adk:
            google_adk.stand_in_for_google_adk()
            google_adk.put_adk_on_path(is_watched=can_ask())
        for extension in registry:
            for setting in extension.settings:
                if (
                    setting.apply
                    and setting.name in self._added
                    and getattr(self, setting.name) != self.trait_defaults(setting.name)
                ):
                    registry.call(extension, setting.apply, self, setting.name, None)
        for name in _TURN_SETTINGS:
            self._set_for_turns(Bunch(name=name, new=getattr(self, name)))

    def _restore_model(self) -> None:
        if self._environment_model is None:
            os.environ.pop(MODEL_VARIABLE, None)
        else:
            os.environ[MODEL_VARIABLE] = self._environment_model

    @property
    def model_in_words(self) -> str:
        """The default model, and the reason for it. Imports no model."""
        default = find_default_model()
        return default.name if default.name == self.model else str(default)


def _validator(extension: Extension, setting: Setting) -> Any:
    """A validator of traitlets for a setting, which raises the UserError of its check as a TraitError."""

    def check(settings: AdkNb, proposal: Any) -> Any:
        with _trait_errors():
            function = registry.use(extension, setting.check) if setting.check else None
            return function(proposal.value) if function else proposal.value

    return validate(setting.name)(check)


@contextmanager
def _trait_errors() -> Generator[None]:
    """Raise a UserError as a TraitError: traitlets then keeps the old value."""
    try:
        yield
    except UserError as error:
        raise TraitError(str(error)) from None
