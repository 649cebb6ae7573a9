"""The door for extensions: an installed package that comes in, one that cannot, and what the four cells load."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adk_nb.errors import InputError
from adk_nb.extensions import Extension, Magic, Setting
from adk_nb.notebook.registry import registry, resolve
from tests.support import example_package

ROOT = Path(__file__).parents[2]
SHELL = """
import os, sys
for name in [name for name in os.environ if name.endswith("_API_KEY")]:
    del os.environ[name]
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="nocolor", history_length=0)
shell.history_manager.enabled = False
def cell(source):
    done = shell.run_cell(source)
    return done.result if done.success else print(type(done.error_in_exec or done.error_before_exec).__name__)
def tab(line):
    shell.Completer.use_jedi = False
    with provisionalcompleter():
        return [found.text for found in shell.Completer.completions(line, len(line))]
"""


def run(code: str, *folders: Path) -> str:
    """What a fresh process with a shell prints, with `folders` among its packages."""
    path = f"import sys; sys.path[:0] = {[*map(str, folders)]!r}\n"
    done = subprocess.run([sys.executable, "-c", path + SHELL + code], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def cells(*sources: str) -> str:
    return "\n".join(f"cell({source!r})" for source in sources)


# ---- a package


def test_an_installed_package_adds_a_magic_a_setting_an_option_and_a_panel(tmp_path: Path):
    said = run(
        cells("%load_ext adk_nb")
        + "\nprint('imported:', [name for name in sys.modules if name.startswith('adk_nb_words')])\n"
        + cells(
            "%words",
            "%%agent brief --at-most 5 -m offline\nAnswer.",
            "%agents --show brief",
            "%chat brief Hello there",
            "%trace --why",
            "%words --of question",
            "%words --off",
            "%config AdkNb.words_limit = 1",
            "%words --of question",
            "%config AdkNb.words_limit = 'many'",
            "%words?",
            "%%agent brief --at-most 6 -m offline\nAnswer.",
            "%doctor",
        )
        + "\nprint('tab:', tab('%words --'), tab('%words --of '), tab('%%agent brief --at'))\n"
        "from adk_nb.notebook.view import panels\n"
        "print('panels:', [panel.title for panel in panels.registered()])\n" + cells("%unload_ext adk_nb", "%words"),
        example_package.install(tmp_path),
    )

    assert "imported: ['adk_nb_words']" in said
    assert "%words: there is no answer yet; type %chat first" in said
    assert "brief v1 · model offline · at-most 5" in said
    assert "Answer in at most 5 words." in said  # in the request
    assert said.count("2 words") == 2 and "2 words, more than 1" in said
    assert "%words has no option --off; did you mean --of?" in said
    assert "The 'words_limit' trait" in said
    assert "Count the words of the last answer." in said and "limit of words of an answer" not in said
    assert "brief v1 → v2 (at-most +6 -5)" in said
    assert "tab: ['--of'] ['question', 'answer'] ['--at-most']" in said
    assert "panels: ['Events', 'Waterfall', 'State', 'Graph', 'Prompt', 'Artifacts', 'Words']" in said
    rows = said.partition("\ncheck ")[2].partition("\nPython ")[0]
    assert "model  " in rows and "extension" not in rows
    assert said.endswith("UsageError: Line magic function `%words` not found.\n")


def test_a_value_of_ipython_config_that_does_not_fit_is_said_and_the_others_are_used(tmp_path: Path):
    configured = {"timeout": "many", "max_iterations": -1, "words_limit": "few", "on_error": "raise"}
    said = run(
        f"from traitlets.config import Config\nshell.update_config(Config({{'AdkNb': {configured!r}}}))\n"
        + cells(
            "%load_ext adk_nb",
            "%%agent brief -m offline\nAnswer.",
            "%config AdkNb.on_error",
            "%config AdkNb.timeout = 9",
            "%words",
            "%doctor",
        ),
        example_package.install(tmp_path),
    )

    table = said.partition("\ncheck ")[2]
    for name, why in (("timeout", "'many'"), ("max_iterations", "got -1"), ("words_limit", "'few'")):
        assert re.search(rf"^AdkNb\.{name} in the configuration of IPython is not used: .*{why}", said, re.MULTILINE)
        assert re.search(rf"^AdkNb\.{name} +as configured, is not used: ", table, re.MULTILINE)
    assert "'raise'" in said and "%words: there is no answer yet" in said and "Traceback" not in said


GOOD = "from adk_nb.extensions import Extension, Magic, Setting\nfrom traitlets import Int\n"
BAD = {
    "raises": ("1 / 0", "raises: ZeroDivisionError: division by zero"),
    "exits": ("raise SystemExit(3)", "exits: SystemExit: 3"),
    "nothing": ("", "nothing: AttributeError: module 'bad_nothing' has no attribute 'extension'"),
    "another": ("extension = 'words'", "another: 'words' is not an Extension, but of type str"),
    "typed": (
        GOOD + "extension = Extension(name='typed', magics='words')",
        "typed: magics must be a list, got 'words'",
    ),
    "unknown": (GOOD + "extension = Extension(name='unknown', colour=1)", "unknown: TypeError: "),
    "missing": (
        GOOD + "extension = Extension(name='missing', magics=[Magic('lost', 'nowhere:lost', 'nowhere:LOST')])",
        "missing: ModuleNotFoundError: No module named 'nowhere'",
    ),
    "hides": (
        GOOD + "extension = Extension(name='hides', magics=[Magic('chat', 'os:getcwd', 'os:getcwd')])",
        "hides: there is a magic %chat already; choose another name",
    ),
    "timed": (
        GOOD + "extension = Extension(name='timed', magics=[Magic('time', 'os:getcwd', 'os:getcwd')])",
        "timed: there is a magic %time already; choose another name",
    ),
    "set": (
        GOOD + "extension = Extension(name='set', settings=[Setting('timeout', Int(1))])",
        "set: there is a setting AdkNb.timeout already; choose another name",
    ),
    "twice": (
        GOOD + "extension = Extension(name='keys')",
        "twice: adk-nb has an extension of that name already; choose another one",
    ),
    "options": (
        GOOD + "from adk_nb.extensions import AgentOption, Option\n"
        "OPTIONS = [AgentOption(option=Option('--raw', 'x'), apply=print), 'words',\n"
        "           AgentOption(option=Option('--fine', 'x'), apply=print)]\n"
        "extension = Extension(name='options', options={'agent': 'bad_options:OPTIONS'},\n"
        "                      panels=['bad_options:OPTIONS'])",
        "options: %agent has an option --raw already; choose another name",
    ),
}


def test_a_package_that_cannot_be_used_is_a_line_of_doctor_and_stops_nothing(tmp_path: Path):
    for name, (source, _) in BAD.items():
        (tmp_path / f"bad_{name}.py").write_text(source)
        info = tmp_path / f"bad_{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: bad-{name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[adk_nb.extensions]\n{name} = bad_{name}:extension\n")

    said = run(
        cells(
            "%load_ext adk_nb",
            "%%agent clerk --fine -m offline\nBe kind.",
            "%chat clerk Hello",
            "%lost",
            "%lost?",
            "%doctor",
            "%config AdkNb.timeout = 60",
        )
        + "\ntab('%lost --')",
        tmp_path,
    )

    for _, line in BAD.values():
        assert line in said
    assert "options: 'words' is not a AgentOption" in said and "is not a Panel" in said
    assert "%pip install -U bad-raises, or %pip uninstall -y bad-raises; then restart the kernel" in said
    assert "clerk v1 · model offline · fine" in said and "clerk > " in said
    assert said.count("%lost cannot be used: ModuleNotFoundError: No module named 'nowhere'; %doctor says what") == 3
    assert "Traceback" not in said
    early = [name for name in BAD if name not in ("missing", "options")]  # those are found when they are used
    line = next(line for line in said.splitlines() if " extensions cannot be used: " in line)
    assert line.startswith(f"{len(early)} ext") and line.endswith("; see %doctor") and all(map(line.count, early))


# ---- a cell


def test_a_cell_registers_an_extension_and_runs_again_with_another_one():
    said = run(
        cells(
            "%load_ext adk_nb",
            "from traitlets import Int\nfrom adk_nb.errors import InputError\n"
            "from adk_nb.extensions import Argument, Extension, Grammar, Magic, Setting, register, text\n"
            "HI = Grammar('hi', 'Greet.', examples=['%hi'], arguments=[Argument('NAME', 'whom')])\n"
            "def hi(host, line, cell):\n    return text(f'hi {HI.parse(line, cell).name} {host.settings.greetings}')\n"
            "def even(value):\n    if value % 2: raise InputError(f'greetings: {value} is odd')\n    return value\n"
            "def greeter(*magics): return Extension(name='greeter', magics=[Magic(name, hi, HI) for name in magics],\n"
            "    settings=[Setting('greetings', Int(2), check=even, apply=lambda s, n, old: print('was', old))])",
            "register(greeter('hi'))",
            "%hi Anna",
            "%config AdkNb.greetings = 4",
            "%config AdkNb.greetings = 5",
            "%hi Anna",
            "register(greeter('hi', 'hey'))",
            "%hey Bob",
            "register(greeter('chat'))",
            "register(Extension(name='Greeter'))",
            "register(Extension(name='other', settings=[Setting('greetings', Int(2))]))",
        )
    )

    assert "hi Anna 2" in said and "was 2" in said and "hi Anna 4" in said and "hi Bob 4" in said
    assert "greetings: 5 is odd" in said
    assert "there is a magic %chat already; choose another name" in said
    assert "name 'Greeter': use lower case letters" in said
    assert "there is a setting AdkNb.greetings already in the extension 'greeter'; choose another name" in said


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"name": 3}, "name 3: use lower case letters"),
        ({"magics": [print]}, "each of magics must be a Magic"),
        ({"magics": [Magic("two words", "a:b", "a:c")]}, "'two words' cannot be the name of a magic"),
        ({"settings": [Setting("limit", 3)]}, "setting 'limit' needs a trait of traitlets"),  # pyright: ignore[reportArgumentType]
        ({"options": {"trace": "a:b"}}, "only agent, chat and tool take further ones, not 'trace'"),
        ({"options": ["a:b"]}, "options must be a dict"),
        ({"panels": ["words.py"]}, "'words.py' names nothing; write 'package.module:name'"),
        ({"checks": "a:b"}, "checks must be a list"),
    ],
)
def test_a_field_of_the_wrong_type_says_what_to_write(fields: dict[str, Any], problem: str):
    with pytest.raises(InputError) as raised:
        Extension(**{"name": "words", **fields})

    assert problem in str(raised.value)


# ---- this package


def test_all_that_the_extensions_of_this_package_name_is_there():
    for extension in registry:
        for reference in extension.references:
            assert reference in [*extension.displays] or resolve(reference) is not None, (extension.name, reference)
    assert not registry.problems


def test_the_four_cells_of_the_readme_load_no_extension_and_few_modules():
    text = (ROOT / "README.md").read_text().partition("## Four cells")[2].partition("\n## ")[0]
    four = re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    said = run(
        "import adk_nb.notebook.magics.hooks as hooks\n"
        "hooks.Preload.after_cell = lambda *_: None\n"
        + cells(*four)
        + "\nloaded = [name for name in sys.modules if name.startswith('adk_nb')]\n"
        "print('\\nloaded:', len(loaded), *loaded)\n"
    )

    count, *loaded = said.partition("\nloaded: ")[2].split()
    used = [name for name in loaded if re.fullmatch(r"adk_nb\.notebook\.extensions\.\w+\.\w+", name)]
    assert len(four) == 4 and "Asks for approval: pay" in said
    assert used == [] and int(count) <= 230


def test_the_page_shows_the_package_as_it_is():
    page = (ROOT / "docs" / "pages" / "extend.md").read_text()

    for path in example_package.SOURCE.rglob("*"):
        if path.suffix in (".py", ".toml"):
            assert path.read_text().rstrip() in page, path


# ---- what a newcomer gets wrong

NEW = (
    "from traitlets import Int, Unicode\nfrom adk_nb.panels import Panel\n"
    "from adk_nb.extensions import AgentOption, Extension, Finding, Grammar, Magic, Option, Setting, register, text\n"
    "def data(run, id): return []\n"
    "def panel(name, title): return Panel(name=name, title=title, data=data, module='export default {render() {}}')\n"
    "def polite(agent, value): agent.description = 'polite'\n"
)


def test_panels_of_a_cell_are_shown_and_replaced_with_their_extension():
    said = run(
        cells(
            "%load_ext adk_nb",
            NEW + "from adk_nb.notebook.view import panels\n"
            "def titles(): print([panel.title for panel in panels.registered()][6:])",
            "register(Extension(name='pp', panels=[panel('pp', 'First')]))\ntitles()",
            "register(Extension(name='pp', panels=[panel('qq', 'Second')]))\ntitles()",
            "register(Extension(name='taken', panels=[panel('state', 'Mine')]))",
            "%doctor",
            "%config AdkNb.display = 'widget'",
            "%%agent clerk -m offline\nBe kind.",
            "%chat clerk Hello",
        )
    )

    assert "['First']\n" in said and "['Second']\n" in said
    assert "taken: panel name 'state' is taken; choose another one" in said
    assert "Error" not in said


WRONG = [
    ("AgentOption(option=Option('polite', 'x'), apply=polite)", "write '--polite'"),
    ("Extension(name='s', settings=[Setting('config', Unicode())])", "there is a setting AdkNb.config already"),
    ("Extension(name='s', settings=[Setting('restore', Unicode())])", "there is a setting AdkNb.restore already"),
    ("Extension(name='s', settings=[Setting('_added', Unicode())])", "'_added' cannot be the name of a setting"),
    ("Extension(name='s', settings=[Setting('tone', Unicode(5))])", "setting 'tone', its default: The 'tone' trait"),
    ("Extension(name='s', options={'agent': 42})", "options of agent must be a list, got 42"),
    ("Extension(name='s', options={'agent': [42]})", "options of agent: 42 is not a AgentOption"),
    ("Extension(name='s', panels=[42])", "panels: 42 is not a Panel"),
    ("Extension(name='s', metrics={'m': 3})", "metric 'm': 3 is not a function"),
    ("Extension(name='s', magics=[Magic('m', print, 5)])", "%m: 5 is not a Grammar"),
    ("Extension(name='s', checks=[5])", "checks: 5 is not a function"),
]


def test_a_cell_says_at_once_what_cannot_be_used():
    said = run(
        cells("%load_ext adk_nb", NEW, *(f"register({code})" for code, _ in WRONG), "%config AdkNb.timeout = 60")
    )

    for _, problem in WRONG:
        assert problem in said
    assert said.count("InputError\n") == len(WRONG) and "TraitError" not in said


def test_a_check_that_fails_is_a_row_of_doctor():
    said = run(
        cells(
            "%load_ext adk_nb",
            NEW + "def half(host):\n    yield Finding('half', 'was seen')\n    1 / 0\ndef words(host): return 'words'",
            "register(Extension(name='checks', checks=[half, words]))",
            "%doctor",
        )
    )

    assert "was seen" in said and "checks: ZeroDivisionError: division by zero" in said
    assert "checks: a check returns a list of Finding, not of 'w'" in said


def test_another_type_of_a_setting_takes_its_place_and_one_that_is_gone_is_no_setting():
    said = run(
        cells(
            "%load_ext adk_nb",
            NEW + "def of(*settings): register(Extension(name='s', settings=settings))\n"
            "def show(): print('tone:', repr(get_ipython().magics_manager.registry['AdkMagics'].settings.tone))",
            "of(Setting('tone', Int(1)))",
            "%config AdkNb.tone = 2",
            "of(Setting('tone', Int(3)))\nshow()",
            "of(Setting('tone', Unicode('soft')))\nshow()",
            "%config AdkNb.tone = 'loud'\nshow()",
            "of()",
            "%config AdkNb.tone = 'x'",
            "of(Setting('tone', Int(4)))\nshow()",
        )
    )

    assert [line for line in said.splitlines() if line.startswith("tone: ")] == [
        "tone: 2",
        "tone: 'soft'",
        "tone: 'loud'",
        "tone: 4",
    ]
    assert "AdkNb has no setting 'tone'" in said


def test_a_magic_and_a_display_that_another_run_of_the_cell_leaves_out_are_gone():
    said = run(
        cells(
            "%load_ext adk_nb",
            NEW + "class Thing: pass\nHI = Grammar('hi', 'Greet.', examples=['%hi'])\n"
            "shown = {'__main__:Thing': lambda host, value: {'text/plain': 'a thing'}}",
            "register(Extension(name='g', magics=[Magic('hi', lambda *_: text('hello'), HI)], displays=shown))",
            "%hi",
            "Thing()",
            "register(Extension(name='g'))",
            "%hi",
            "Thing()",
        )
    )

    assert "hello" in said and said.count("a thing") == 1 and "<__main__.Thing" in said
    assert "`%hi` not found" in said and "KeyError" not in said


def test_doctor_takes_a_metric_that_is_named_for_what_it_is_and_says_which_is_none(tmp_path: Path):
    (tmp_path / "scores.py").write_text(
        "from adk_nb.evaluation import metric\npolite = metric(lambda run: 1.0, name='polite')\n"
        "def short(run): return 1.0\nnone = None\n"
    )
    said = run(
        cells(
            "%load_ext adk_nb",
            NEW + "of = {name: f'scores:{name}' for name in ('polite', 'short', 'none')}",
            "register(Extension(name='scores', metrics=of))",
            "%doctor",
            "%%agent clerk -m offline\nBe kind.",
            "%%eval clerk --metrics none\n| message |\n| --- |\n| Hello |",
        ),
        tmp_path,
    )

    assert said.count("scores:none is not a Metric") > 1 and "scores:polite" not in said and "scores:short" not in said
    assert "metric 'none' cannot be used: " in said and "KeyError" not in said


def test_an_error_of_an_option_says_which_option_of_which_agent():
    said = run(
        cells(
            "%load_ext adk_nb",
            NEW + "def strict(agent, value): raise ValueError('boom')\n"
            "register(Extension(name='s', options={'agent': [AgentOption(option=Option('--strict', 'x'), "
            "apply=strict)]}))",
            "%%agent greet --strict -m offline\nHi.",
        )
    )

    assert "ValueError: boom\nin %%agent --strict of greet\n" in said


def test_an_export_says_which_options_it_leaves_out(tmp_path: Path):
    said = run(
        cells(
            "%load_ext adk_nb",
            NEW + "register(Extension(name='p', options={'agent': [AgentOption(option=Option('--polite', 'x'), "
            "apply=polite)]}))",
            "%%agent greet --polite -m offline\nHi.",
            f"%export {tmp_path / 'greet.py'}",
        )
    )

    assert "not exported: --polite of greet" in said


def test_each_module_of_the_extensions_can_be_imported_first():
    code = (
        "import importlib, pkgutil, adk_nb.notebook.extensions as root\n"
        "names = [found.name for found in pkgutil.walk_packages(root.__path__, root.__name__ + '.')]\n"
        "for name in names:\n"
        "    for loaded in [loaded for loaded in sys.modules if loaded.startswith('adk_nb.notebook')]:\n"
        "        del sys.modules[loaded]\n"
        "    importlib.import_module(name)\n"
        "print(len(names), 'modules')\n"
    )

    assert int(run(code).split()[0]) > 20
