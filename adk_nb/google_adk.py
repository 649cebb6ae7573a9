"""Stand in for google-adk where it is not installed: `from google.adk.agents import Agent` finds adk_nb's."""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from adk_nb.errors import MissingModuleError

_GOOGLE_ADK, _OURS = "google.adk", "adk_nb"
COMMANDS = {
    "api_server": "type %serve NAME",
    "create": "begin a cell with %%agent NAME",
    "deploy": "type %export my_agents/ for a package that google-adk deploys",
    "eval": "begin a cell with %%eval AGENT and a table of cases, or call adk_nb.evaluation.AgentEvaluator.evaluate",
    "run": "type %chat NAME and your text",
    "web": "type %serve NAME for Google's dev UI, or %chat NAME for a chat box here",
}
"""Subcommand of `adk` -> what to use."""


def stand_in_for_google_adk() -> None:
    """Import adk_nb for `google.adk` and the modules below it, and print that.

    Where google-adk is installed, print that instead and change nothing.
    """
    if _FINDER in sys.meta_path:
        return
    if importlib.util.find_spec(_GOOGLE_ADK) is not None:
        sys.stdout.write(f"{_GOOGLE_ADK} is the installed google-adk; to use adk_nb: %pip uninstall -y google-adk\n")
        return
    sys.meta_path.insert(0, _FINDER)  # first, so that a later `%pip install google-adk` does not mix the two
    sys.stdout.write(f"{_GOOGLE_ADK} is adk_nb here, as google-adk is not installed\n")


def give_google_adk_back() -> None:
    """Undo `stand_in_for_google_adk`. Names that a cell has imported stay."""
    if _FINDER not in sys.meta_path:
        return
    sys.meta_path.remove(_FINDER)
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{_GOOGLE_ADK}.")]:
        del sys.modules[name]
    vars(sys.modules["google"]).pop("adk", None)


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not f"{fullname}.".startswith(f"{_GOOGLE_ADK}."):
            return None
        if importlib.util.find_spec(_counterpart(fullname)) is None:
            submodule = fullname.removeprefix(f"{_GOOGLE_ADK}.")
            raise MissingModuleError(f"google.adk is adk_nb here, which has no {submodule!r}", name=fullname)
        return ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        # The import system returns what sys.modules holds afterwards: one module under two names.
        sys.modules[module.__name__] = importlib.import_module(_counterpart(module.__name__))


def _counterpart(name: str) -> str:
    return _OURS + name.removeprefix(_GOOGLE_ADK)


_FINDER = _Finder()
