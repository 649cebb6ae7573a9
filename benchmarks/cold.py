"""W1: what a fresh process pays before the first turn. Each case is a process of its own."""

import os
import subprocess
from dataclasses import dataclass

AGENT = """
from {package}.agents import LlmAgent
def add(x: int) -> str:
    'Adds one.'
    return str(x + 1)
LlmAgent(name='a', model='gemini-3.5-flash-lite', instruction='Be brief.', tools=[add])
"""
SHELL = "from IPython.core.interactiveshell import InteractiveShell; shell = InteractiveShell.instance()"
LOAD_EXT = """
import sys
shell.run_line_magic('load_ext', 'adk_nb')
assert 'chat' in shell.magics_manager.magics['line'], 'no %chat'
assert 'google.genai' not in sys.modules, 'google.genai was imported'
"""


@dataclass(frozen=True)
class Cold:
    """What a case runs, and the case whose cost is taken off."""

    peer: str
    code: str
    above: str | None = None


CASES = {
    "types": Cold("adk_nb", "from google.genai import types"),
    "google-adk": Cold("google-adk", AGENT.format(package="google.adk")),
    "adk_nb": Cold("adk_nb", AGENT.format(package="adk_nb")),
    "shell": Cold("adk_nb", SHELL),
    "load_ext": Cold("adk_nb", SHELL + LOAD_EXT, above="shell"),
}


def run(python: str, code: str) -> dict[str, float]:
    """CPU seconds and peak megabytes of a process that runs `code`."""
    process = subprocess.Popen([python, "-W", "ignore", "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    text = process.stderr.read().decode()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(text.strip().splitlines()[-1])
    return {"cpu_s": used.ru_utime + used.ru_stime, "rss_mb": used.ru_maxrss / 1e3}
