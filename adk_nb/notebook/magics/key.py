"""`%key`: put a key into the environment, and into nothing else."""

import os
from typing import Any

from adk_nb.errors import InputError
from adk_nb.models.default_model import find_default_model, vendor_model
from adk_nb.notebook import keys
from adk_nb.notebook.magics.grammar import Argument, Grammar, Option
from adk_nb.notebook.magics.host import Host
from adk_nb.notebook.magics.output import Output, text
from adk_nb.notebook.place import folder_of

KEY = Grammar(
    "key",
    "Get a key into this kernel without showing it: from the environment, the secrets of Colab or Kaggle, .env, the "
    "keyring, or a field that you paste it into. It is never shown, and not in the notebook.",
    examples=["%key gemini", "%key openai --from keyring", "%key TAVILY_API_KEY", "%key gemini --forget"],
    arguments=[
        Argument(
            "PROVIDER",
            "gemini, openai, anthropic, or the variable that is to hold it; without one: which are set",
            many=True,
            choices=("gemini", "openai", "anthropic"),
        )
    ],
    options=[
        Option(
            "--from PLACE",
            "look there alone: env, colab, kaggle, dotenv, keyring; ask: type it anew",
            choices=("env", "colab", "kaggle", "dotenv", "keyring", "ask"),
        ),
        Option("--forget", "take it out of this kernel"),
    ],
    twin='os.environ["GOOGLE_API_KEY"] = getpass.getpass()',
)


def key(host: Host, line: str, cell: str | None) -> Output:
    """Set, forget or list keys, and never show one.

    Raises:
        InputError: As `keys.find`; or the line does not fit.
    """
    args, settings = KEY.parse(line, cell), host.settings
    providers: list[str] = args.provider
    if not providers:
        return text(*_set_keys(), _default_model(settings))
    for provider in providers:
        keys.variables_of(provider, meant=providers[0])  # a key is refused before anything repeats it
    if len(providers) > 1:
        raise InputError(f"%key takes one provider at a time, and no key; write %key {providers[0]}")
    names = keys.variables_of(providers[0])
    if args.forget:
        return text(_forget(names), _default_model(settings) if vendor_model(names[0]) else "")
    place: str | None = getattr(args, "from")
    is_public = "BINDER_SERVICE_HOST" in os.environ and place in (None, "ask")
    found_key = keys.find(names, folder_of(host.shell), place)
    name = next((name for name in names if os.environ.get(name, "").strip() == found_key.value), names[0])
    keys.use(name, found_key)
    lines = [f"{name} is set, from {found_key.where}", *_model_lines(vendor_model(name), settings)]
    if is_public:
        lines.append(
            f"this runs on a public Binder, whose keeper could read {names[0]}: use a key that you can throw away"
        )
    return text(*lines)


def _set_keys() -> list[str]:
    names = dict.fromkeys(name for names in keys.PROVIDERS.values() for name in names)
    lines = [f"{name} is set" for name in names if os.environ.get(name, "").strip()]
    return lines or ["no key is set; type %key gemini, %key openai or %key anthropic, or work without one: -m offline"]


def _default_model(settings: Any) -> str:
    return f"agents that name no model: {settings.model_in_words}"


def _model_lines(model: str, settings: Any) -> list[str]:
    """The model of agents that name none, and what to type if that is not `model`, whose key was set just now."""
    if not model:
        return []
    default = find_default_model()
    if default.name == model:
        install = [f"first type: {default.install}"] if default.install else []
        return [f"agents that name no model ask {model}", *install]
    change = '%config AdkNb.model = ""' if settings.model else f'%config AdkNb.model = "{model}"'
    reason = f'%config AdkNb.model = "{settings.model}"' if settings.model else default.reason
    return [f"agents that name no model ask {default.name} still ({reason}); to ask {model}, type: {change}"]


def _forget(names: Any) -> str:
    gone = [name for name in names if os.environ.pop(name, None) is not None]
    if not gone:
        return f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'} not set"
    return f"{' and '.join(gone)} {'is' if len(gone) == 1 else 'are'} not set any more in this kernel"
