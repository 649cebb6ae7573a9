"""`%config AdkNb`: what can be set for a whole notebook."""

import asyncio
import math
import os
import re
from collections.abc import Callable
from typing import Any

from traitlets import Bool, Bunch, Enum, Float, Int, List, TraitError, Unicode, observe, validate
from traitlets.config import Config, Configurable

from adk_nb import google_adk
from adk_nb.errors import UserError, closest
from adk_nb.lazy import face, require
from adk_nb.models.default_model import MODEL_VARIABLE, find_default_model
from adk_nb.notebook import settings

IN_A_FILE = "sqlite:///"
"""What the address of a file of sessions begins with."""
_ON_A_SERVER = re.compile(r"postgres(?:ql)?(?:\+\w+)?://[^@?]*@?[^@?]*\w(?:\?.*)?")
_PASSWORD = re.compile(r"(://[^:@/]*:|:(?!//)).*(?=@)|(\w*password=)[^&]*", re.IGNORECASE)
_NEAR_FILE = re.compile(r"(?:sqlite3?(?:\+\w+)?:/{0,4}|file:/{0,3})?([^:]*)")

_OF_TURNS = ("max_cost_usd", "max_iterations", "timeout", "show_thoughts", "interp_max_chars")
"""What stands in `notebook.settings`, too."""

# Loaded when a setting needs them: %load_ext is to cost nothing.
_late, _ = face(__name__, {"LLMRegistry": "adk_nb.models.registry", "Chat": "adk_nb.notebook.chat"})


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

    def __init__(self, **said: Any) -> None:
        self._given_model = os.environ.get(MODEL_VARIABLE)
        self.on_sessions: Callable[[str], None] | None = None
        """Called with where sessions are to be kept; raises a UserError if they cannot be."""
        self._addresses: dict[str, str] = {}
        """Addresses of sessions as they are shown -> as they are."""
        super().__init__(**said)

    def update_config(self, config: Config) -> None:
        """Take what `%config` sets; traitlets would only warn of a name that it does not know."""
        known = self.trait_names(config=True)
        section: Any = config[type(self).__name__]
        for name in section:
            if name not in known:
                near = closest(name, known)
                hint = f"did you mean AdkNb.{near}?" if near else "%config AdkNb lists them"
                raise TraitError(f"AdkNb has no setting {name!r}; {hint}")
        super().update_config(config)

    @property
    def address(self) -> str:
        """Where sessions are kept, with the password, which `sessions` does not show."""
        return self._addresses.get(self.sessions, self.sessions)

    @validate("model")
    def _known_model(self, proposal: Any) -> str:
        named = proposal.value.strip()
        if named:
            try:
                _late("LLMRegistry").check(named)
            except UserError as error:  # in traitlets' terms, so that the old value stays
                raise TraitError(str(error)) from None
        return named

    @observe("model")
    def _set_model(self, change: Any) -> None:
        if change.new:
            os.environ[MODEL_VARIABLE] = change.new
        else:
            self._leave_model()

    @validate("redact")
    def _known_patterns(self, proposal: Any) -> list[str]:
        for one in proposal.value:
            try:
                re.compile(one)
            except re.error as error:
                raise TraitError(f"redact takes regular expressions, and {one!r} is none: {error}") from None
        return proposal.value

    @validate("cassette_dir")
    def _known_folder(self, proposal: Any) -> str:
        named = proposal.value.strip()
        if not named or "\0" in named or os.path.isfile(os.path.expanduser(named)):
            raise TraitError(f"cassettes cannot be kept in {named!r}; write the name of a folder, such as 'cassettes'")
        return named

    @validate("max_cost_usd", "max_iterations", "timeout", "interp_max_chars")
    def _above_zero(self, proposal: Any) -> Any:
        if proposal.value is not None and not 0 < proposal.value < math.inf:
            last = ", or None for no limit" if proposal.trait.allow_none else ""
            raise TraitError(f"{proposal.trait.name} is a number above zero{last}, and not {proposal.value!r}")
        if proposal.value is not None and proposal.trait.name == "max_cost_usd":
            try:
                require("genai_prices", package="genai-prices")  # without prices nothing could be held to it
            except UserError as error:  # in traitlets' terms, so that the old value stays
                raise TraitError(str(error)) from None
        return proposal.value

    @observe(*_OF_TURNS)
    def _for_all(self, change: Any) -> None:
        usual = getattr(type(self), change.name).default_value
        setattr(
            settings.now, change.name, getattr(settings.Settings, change.name) if change.new == usual else change.new
        )

    @validate("sessions")
    def _known_place(self, proposal: Any) -> str:
        named = proposal.value.strip()
        shown = _PASSWORD.sub(lambda found: f"{found[1] or found[2]}***", named)
        path = named.removeprefix(IN_A_FILE)
        if not named or (path != named and path.strip("/") and path[:1] != ":" and "\0" not in path):
            return named
        if _ON_A_SERVER.fullmatch(named):
            if shown != named:
                self._addresses[shown] = named
            return shown
        meant = _NEAR_FILE.fullmatch(named)
        near = meant[1] if meant and meant[1].strip("./") else "nb.db"
        raise TraitError(
            f'sessions cannot be kept in {shown[:80]!r}; write "{IN_A_FILE}{near}" for a file beside the notebook, '
            '"postgresql://user:password@host/database" for a server (in a password, @ is %40), or "" for memory'
        )

    @observe("sessions")
    def _keep_sessions(self, change: Any) -> None:
        if not self.on_sessions:
            return
        try:
            self.on_sessions(self.address)
        except UserError:
            taking, self.on_sessions = self.on_sessions, None
            self.sessions = change.old
            self.on_sessions = taking
            raise

    @observe("confirm")
    def _set_policy(self, change: Any) -> None:
        _late("Chat").policy = change.new

    @observe("google_adk")
    def _stand_in(self, change: Any) -> None:
        if change.new:
            google_adk.stand_in_for_google_adk()
        else:
            google_adk.give_google_adk_back()

    @observe("nest_asyncio")
    def _nest(self, change: Any) -> None:
        if not change.new:
            return
        try:
            require("nest_asyncio2", package="nest-asyncio2").apply(_running_loop())
        except UserError:
            self.nest_asyncio = False
            raise

    def give_back(self) -> None:
        """Let all be as it was before: the default model as the environment says, approvals open, turns as usual."""
        self.confirm = "ask"
        settings.now = settings.Settings()
        google_adk.give_google_adk_back()
        self._leave_model()

    def count_again(self) -> None:
        """Undo `give_back`, for what is set still."""
        if self.model:
            os.environ[MODEL_VARIABLE] = self.model
        if self.google_adk:
            google_adk.stand_in_for_google_adk()
        for name in _OF_TURNS:
            self._for_all(Bunch(name=name, new=getattr(self, name)))

    def _leave_model(self) -> None:
        if self._given_model is None:
            os.environ.pop(MODEL_VARIABLE, None)
        else:
            os.environ[MODEL_VARIABLE] = self._given_model

    @property
    def model_in_words(self) -> str:
        """The model of agents that name none, and why it is that one; loads no model."""
        found = find_default_model()
        if os.environ.get(MODEL_VARIABLE, "").strip():
            return found.name
        return f"{found.name} ({found.reason}{f'; type: {found.install}' if found.install else ''})"


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
