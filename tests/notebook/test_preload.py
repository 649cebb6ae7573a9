"""After %load_ext the runtime is imported in the background: not in its cell, and not by a plain import."""

import pytest

from tests.support.own_process import script

SHELL = """
import sys, threading, time
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
def background():
    "The threads that import, or are about to."
    return [thread for thread in threading.enumerate() if thread.name == 'adk-nb-preload']
"""
LOAD = "shell.run_cell('%load_ext adk_nb')\n"


def run(code: str) -> list[str]:
    """What a process with a shell printed, after the greeting."""
    out, err, _ = script(SHELL + code)
    assert err == ""
    return [line for line in out.splitlines() if line and not line.startswith("adk_nb ")]


@pytest.mark.slow
def test_the_runtime_arrives_once_the_cell_has_ended_and_no_other_is_needed():
    modules = "('google.genai.types', 'adk_nb.agents.llm_agent', 'adk_nb.notebook.magics.chat')"
    printed = run(
        f"def loaded(*_): print([name for name in {modules} if name in sys.modules])\n"
        "shell.events.register('post_run_cell', loaded)\n"  # before that of the extension
        + LOAD
        + "[thread.join() for thread in background()]\nloaded()\n"
        "shell.events.unregister('post_run_cell', loaded)\nshell.run_cell('None')\nprint(background())"
    )

    assert printed == ["[]", str(list(eval(modules))), "[]"]


def test_a_plain_import_begins_nothing():
    code = "import adk_nb; dir(adk_nb); print(background(), 'google.genai' in sys.modules)"

    assert run(code) == ["[] False"]


def test_an_extension_that_is_unloaded_begins_nothing():
    code = "shell.run_cell('%load_ext adk_nb\\n%unload_ext adk_nb')\n"
    code += "print(background(), 'google.genai' in sys.modules)"

    assert run(code) == ["[] False"]


@pytest.mark.slow
def test_what_cannot_be_imported_is_told_by_the_cell_that_needs_it():
    printed = run(
        "sys.modules['google.genai'] = None\n" + LOAD + "[thread.join() for thread in background()]\nprint('quiet')\n"
        "result = shell.run_cell('%%tool\\ndef add(x: int) -> int:\\n    return x')\n"
        "print('error', repr(result.error_in_exec))"
    )

    assert printed[0] == "quiet"
    assert printed[-1].startswith("error ModuleNotFoundError") and "google.genai" in printed[-1]


@pytest.mark.slow
@pytest.mark.parametrize("module", ["google.genai", "adk_nb.agents.llm_agent"])
def test_a_process_that_ends_meanwhile_ends_in_silence(module: str):
    watch = (
        "import threading; under_way = threading.Event()\n"
        "class Watch:\n    @staticmethod\n    def find_spec(name, *_):\n"
        f"        if name == {module!r}: under_way.set()\n"
        "sys.meta_path.insert(0, Watch)\n"
    )

    assert run(watch + LOAD + "under_way.wait(60)\nprint('end')") == ["end"]


@pytest.mark.slow
@pytest.mark.parametrize("waits", ["in the background", "in the cell"])
def test_no_garbage_is_looked_for_while_the_runtime_is_imported(waits: str):
    join = "[thread.join() for thread in background()]\n" if waits == "in the background" else ""
    code = (
        "import gc\ncollections = []\n"
        "class Watch:\n    @staticmethod\n    def find_spec(name, *_):\n"
        "        if name.startswith('google.genai'): collections.append(gc.isenabled())\n"
        "sys.meta_path.insert(0, Watch)\n"
    )
    tool = "shell.run_cell('%%tool\\ndef add(x: int) -> int:\\n    return x;')\n"

    assert run(code + LOAD + join + tool + "print(len(collections) > 5, any(collections), gc.isenabled())")[-1] == (
        "True False True"
    )


WAITS = """
import importlib.util, threading, types
shown = threading.Event()
class Slow:
    "Holds the import of the runtime until the cell has said that it waits."
    @staticmethod
    def find_spec(name, *_):
        if name == 'google.genai':
            sys.meta_path.remove(Slow)
            spec = importlib.util.find_spec(name)
            run = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (shown.wait(50), run(module))
            return spec
sys.meta_path.insert(0, Slow)
publish = shell.display_pub.publish
def watch(data, **_):
    print('shown', repr(data.get('text/plain')))
    shown.set()
shell.display_pub.publish = watch
shell.display_pub.clear_output = lambda wait=False: print('cleared', wait)
"""
CELL = "shell.run_cell('%%tool\\ndef add(x: int) -> int:\\n    \"Adds.\"\\n    return x;')\n"


def waits(display: str) -> str:
    """A shell that looks like a kernel's, and whose first `%%tool` has to wait."""
    kernel = "shell.kernel = types.SimpleNamespace(_allow_stdin=True)\n"
    return WAITS + LOAD + kernel + f"shell.run_cell('%config AdkNb.display = \"{display}\"')\n"


@pytest.mark.slow
def test_a_cell_that_waits_for_the_runtime_says_so_and_takes_it_back():
    assert run(waits("widget") + CELL)[:2] == ["shown 'loading adk_nb ...'", "cleared False"]


@pytest.mark.slow
def test_a_line_that_waits_leaves_what_its_cell_has_shown():
    cell = "shell.run_cell('1\\n%agents')\n"
    assert "cleared False" not in run(waits("widget") + "threading.Timer(1, shown.set).start()\n" + cell)


@pytest.mark.slow
def test_a_saved_notebook_has_no_word_of_the_wait():
    assert run(waits("static") + "threading.Timer(1, shown.set).start()\n" + CELL)[0].startswith("Out[")
