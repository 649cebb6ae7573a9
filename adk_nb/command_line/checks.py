"""`adk-nb doctor` and `adk-nb show`."""

import json
import sys
from argparse import Namespace
from dataclasses import asdict

from adk_nb.command_line.exits import DONE, FAILED
from adk_nb.command_line.loading import Loaded
from adk_nb.notebook.magics import doctor as magic
from adk_nb.notebook.magics.agent import agents


def doctor(args: Namespace, loaded: Loaded) -> int:
    """Print the rows of `%doctor`; fail if one is a problem."""
    findings = magic.findings(loaded.host)
    if args.json:
        sys.stdout.write(json.dumps([asdict(finding) for finding in findings], ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(f"{magic.doctor(loaded.host, '', None)}\n")
    return FAILED if any(finding.is_problem for finding in findings) else DONE


def show(args: Namespace, loaded: Loaded) -> int:
    """Print what a source defines, and what was left out of it."""
    notebook = loaded.notebook
    if args.json:
        left_out = [{"cell": one.cell, "reason": one.reason} for one in loaded.left_out]
        found = {"agents": notebook.addressees, "tools": notebook.tool_names, "left_out": left_out}
        sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")
    else:
        loaded.addressee(next(iter(notebook.addressees), None))  # raises if there is none
        sys.stdout.write(f"{agents(loaded.host, '', None)}\n")
    return DONE
