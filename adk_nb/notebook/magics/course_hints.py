"""After a cell that was written for google-adk: a line with what to type here."""

import re
import shutil
import sys
from typing import Any

from adk_nb.google_adk import COMMANDS

_COMMAND = re.compile(r"^\s*(?:\w+\s*=\s*)?(?:!{1,2}|%(?:sx|system)\s)\s*adk\s+([a-z_]+)", re.MULTILINE)
_IN_A_SCRIPT = re.compile(r"^\s*adk\s+([a-z_]+)", re.MULTILINE)


def hint(result: Any) -> None:
    """Say what replaces the commands of a cell, and how `google.adk` is found."""
    cell = result.info.raw_cell or ""
    commands = (_IN_A_SCRIPT if re.match(r"%%(?:bash|sh|system|sx|!)", cell) else _COMMAND).findall(cell)
    for command in dict.fromkeys(commands) if not shutil.which("adk") else ():
        instead = COMMANDS.get(command, "see %%agent?, %chat? and %agents")
        sys.stderr.write(f"adk_nb: there is no `adk {command}` here; {instead}\n")
    error = result.error_in_exec
    if isinstance(error, ModuleNotFoundError) and error.name in ("google", "google.adk"):
        sys.stderr.write(
            "adk_nb: google-adk is not installed; type: %config AdkNb.google_adk = True, and import again\n"
        )
