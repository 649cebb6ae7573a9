"""`%config AdkNb`: what can be set for a whole notebook."""

import asyncio
import math
import os
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

from traitlets import Bool, Bunch, Enum, Float, Int, List, TraitError, Unicode, observe, validate
from traitlets.config import Config, Configurable

from adk_nb import google_adk
from adk_nb.errors import UserError, closest
from adk_nb.lazy import face, require
from adk_nb.models.default_model import MODEL_VARIABLE, find_default_model
from adk_nb.notebook import settings

FILE_PREFIX = "sqlite:///"
"""The beginning of the address of a file of sessions."""
_SERVER = re.compile(r"postgres(?:ql)?(?:\+\w+)?://[^@?]*@?[^@?]*\w(?:\?.*)?")
_PASSWORD = re.compile(r"(://[^:@/]*:|:(?!//)).*(?=@)|(\w*password=)[^&]*", re.IGNORECASE)
_FILE_LIKE = re.compile(r"(?:sqlite3?(?:\+\w+)?:/{0,4}|file:/{0,3})?([^:]*)")

_TURN_SETTINGS = ("max_cost_usd", "max_iterations", "timeout", "show_thoughts", "interp_max_chars")
"""Those that `notebook.settings` has, too."""

# Loaded when a setting needs them: %load_ext is to cost nothing.
_late, _ = face(__name__, {"LLMRegistry": "adk_nb.models.registry"})


class AdkNb(Configurable):
    """Settings: `%config AdkNb.model = "offline"` in a cell, or `c.AdkNb.model` in ipython_config.py for good."""

    model = Unicode(
        "",
        help="Model of agents that name none. Empty: that of the first of Gemini, OpenAI, Anthropic whose key is "
        "set; else Ollama's, if it answers; else offline.",
    ).tag(config=True)
    display = Enum(
        ("auto", "widget", "static", "text", "off"),
        "auto",
        help="How runs are shown: live where there is somebody to look (auto), live in any kernel (widget), only as "
        "saved (static), in plain text alone (text), or not at all but for the reply (off). What auto is, the variable "
        "ADK_NB_DISPLAY can say.",
    ).tag(config=True)
    on_error = Enum(
        ("raise", "card"),
        "raise",
        help="What a turn of a cell does that ends with an error, besides showing it: its cell fails, so that Run All "
        "stops (raise), or the notebook goes on (card). What you can mend in a cell is raised always.",
    ).tag(config=True)
    strict = Bool(
        False, help="A cell fails that names tools, agents or state keys that are not there yet, instead of a note."
    ).tag(config=True)
    confirm = Enum(
        ("ask", "yes", "no"),
        "ask",
        help="What a turn does about approvals: leave them open, approve, or reject all. Left open, nothing runs, also "
        "where nobody is there to click.",
    ).tag(config=True)
    sessions = Unicode(
        "",
        help="Where sessions are kept: 'sqlite:///nb.db' is a file beside the notebook, which later kernels go on "
        "with; 'postgresql://user:password@host/database' a server's. Empty: in this kernel's memory.",
    ).tag(config=True)
    cassette_dir = Unicode(
        "cassettes", help="The folder, beside the notebook, of the cassettes that %record makes and %replay reads."
    ).tag(config=True)
    redact = List(
        Unicode(),
        help="Regular expressions for what is not written into a cassette, beside keys, tokens and e-mail addresses.",
    ).tag(config=True)
    max_iterations = Int(
        16, help="Model calls in a turn of an agent whose cell does not say; for cells that run from then on."
    ).tag(config=True)
    max_cost_usd = Float(
        None,
        allow_none=True,
        help="US dollars that a turn may cost, by the table of genai-prices: then no model is asked again. None: no "
        "limit.",
    ).tag(config=True)
    timeout = Float(
        None,
        allow_none=True,
        help="Seconds for a turn, which then ends with an error; a sync tool that is at work comes to its end first. "
        "None: no limit.",
    ).tag(config=True)
    show_thoughts = Bool(True, help="Show what models think, where they tell it, with what they say.").tag(config=True)
    interp_max_chars = Int(
        4_000, help="Characters of a {{variable}} that are put into an instruction or a message; the rest is cut off."
    ).tag(config=True)
    google_adk = Bool(
        False, help="Let `from google.adk... import ...` find adk_nb, where google-adk is not installed."
    ).tag(config=True)
    nest_asyncio = Bool(
        False, help="Let cells call asyncio.run(...), with nest-asyncio2. Stays on until the kernel restarts."
    ).tag(config=True)

    def __init__(self, **values: Any) -> None:
        self._environment_model = os.environ.get(MODEL_VARIABLE)
        self.on_sessions: Callable[[str], None] | None = None
        """Called with the address of sessions; raises a UserError if it cannot be used."""
        self._addresses: dict[str, str] = {}
        """Addresses of sessions without their password -> with it."""
        super().__init__(**values)

    def update_config(self, config: Config) -> None:
        """Take the values of a `%config` line; traitlets would only warn of a name that it does not know."""
        names = self.trait_names(config=True)
        section: Any = config[type(self).__name__]
        for name in section:
            if name not in names:
                near = closest(name, names)
                hint = f"did you mean AdkNb.{near}?" if near else "%config AdkNb lists them"
                raise TraitError(f"AdkNb has no setting {name!r}; {hint}")
        super().update_config(config)

    @property
    def address(self) -> str:
        """The address of sessions with its password, which `sessions` does not show."""
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

    @validate("redact")
    def _check_patterns(self, proposal: Any) -> list[str]:
        for pattern in proposal.value:
            try:
                re.compile(pattern)
            except re.error as error:
                raise TraitError(f"redact takes regular expressions, and {pattern!r} is none: {error}") from None
        return proposal.value

    @validate("cassette_dir")
    def _check_folder(self, proposal: Any) -> str:
        name = proposal.value.strip()
        if not name or "\0" in name or os.path.isfile(os.path.expanduser(name)):
            raise TraitError(f"cassettes cannot be kept in {name!r}; write the name of a folder, such as 'cassettes'")
        return name

    @validate("max_cost_usd", "max_iterations", "timeout", "interp_max_chars")
    def _check_positive(self, proposal: Any) -> Any:
        name, value = proposal.trait.name, proposal.value
        if value is not None and not 0 < value < math.inf:
            none = ", or None for no limit" if proposal.trait.allow_none else ""
            raise TraitError(f"{name} is a number above zero{none}, and not {value!r}")
        with _trait_errors():
            if value is not None and name == "max_cost_usd":
                require("genai_prices", package="genai-prices")  # no turn could be held to it without prices
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
            f'sessions cannot be kept in {safe[:80]!r}; write "{FILE_PREFIX}{file}" for a file beside the notebook, '
            '"postgresql://user:password@host/database" for a server (in a password, @ is %40), or "" for memory'
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
        """Undo what settings changed: the environment's default model, approvals left open, turns as usual."""
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
        for name in _TURN_SETTINGS:
            self._set_for_turns(Bunch(name=name, new=getattr(self, name)))

    def _restore_model(self) -> None:
        if self._environment_model is None:
            os.environ.pop(MODEL_VARIABLE, None)
        else:
            os.environ[MODEL_VARIABLE] = self._environment_model

    @property
    def model_in_words(self) -> str:
        """The model of agents that name none, and the reason for it; loads no model."""
        default = find_default_model()
        if os.environ.get(MODEL_VARIABLE, "").strip():
            return default.name
        return f"{default.name} ({default.reason}{f'; type: {default.install}' if default.install else ''})"


@contextmanager
def _trait_errors() -> Generator[None]:
    """Raise a UserError as traitlets' own error, after which the old value stays."""
    try:
        yield
    except UserError as error:
        raise TraitError(str(error)) from None
