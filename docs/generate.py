"""Write what the docs take from the code: `python docs/generate.py`.

`pages/magics.md` comes from the grammars that the magics parse their lines with, `pictures/floors.svg` from the import
contract in `pyproject.toml`. Both are committed, so that they can be read without building the site. So do editors: the
names that they highlight come from the same grammars. `pages/missing_modules.md` is the table that imports read, and
`pages/names.md` what the stubs and docstrings say.
"""

import re
import sys
import tomllib
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from adk_nb.google_adk import INSTEAD  # noqa: E402
from adk_nb.notebook.magics import catalog  # noqa: E402
from adk_nb.notebook.magics.config import AdkNb  # noqa: E402
from adk_nb.notebook.magics.grammar import Grammar  # noqa: E402
from docs.editor_grammars import cells_tmlanguage, magics_json  # noqa: E402
from docs.names import PACKAGES, PublicName, public_names  # noqa: E402

PURPOSES = {
    "extensions": "the doors for packages of your own",
    "notebook": "magics, chats, the live view",
    "serving": "an agent as an HTTP service",
    "evaluation": "cases and scores; HTTP workflows; spans",
    "engines": "runs shared by several workers; agents of other processes",
    "runners": "the front door: one message in, events out",
    "apps": "agents with plugins; graphs of agents",
    "agents": "LlmAgent and teams",
    "flow": "ask the model, run its calls, ask again",
    "tools": "all that a model can call",
    "runtime": "one run's context, history, interrupts",
    "sessions": "events and state, in memory and SQL",
    "memory": "what outlives a session; files",
    "events": "a message, a call, a result, a change of the state",
    "models": "one pipeline, an adapter a vendor",
    "sync": "errors, content types, sync over async",
}
"""What a floor is for, in the words of its picture. Floors without an entry show their names alone."""
WIDTH, ROW, GAP = 760, 34, 8


def magics_page() -> str:
    """Return the page of the magics: a table to look things up in, the help of each, and the settings."""
    grammars = catalog.grammars().values()
    lines = [
        "# Magics",
        "",
        "All that `%load_ext adk_nb` brings. A notebook shows the same help with `%%agent?`, `%chat?` and so on; Tab "
        "completes names, options and values.",
        "",
        "| magic | |",
        "|---|---|",
        *(f"| [`{grammar.mark}`](#{grammar.name}) | {_table_cell(grammar.purpose)} |" for grammar in grammars),
        "| [`%config AdkNb`](#config-adknb) | Show or change the settings. |",
        "",
        "`{{name}}` in the text of a cell is the value of a notebook variable; `{key}` in an agent's instruction is a "
        "value of the session's state.",
        "",
    ]
    lines += [line for grammar in grammars for line in _magic(grammar)]
    lines += [
        "## %config AdkNb",
        "",
        "`%config AdkNb` lists them, `%config AdkNb.timeout = 60` sets one for this notebook.",
        "",
        "| setting | default | |",
        "|---|---|---|",
        *(f"| `{name}` | `{trait.default()!r}` | {_table_cell(trait.help)} |" for name, trait in _settings()),
        "",
    ]
    return "\n".join(lines)


def _magic(grammar: Grammar) -> list[str]:
    """The help of a magic: its purpose, its form, an example a block, and a table of its options."""
    rows = [(argument.name, argument.help) for argument in grammar.arguments]
    rows += [(option.usage, option.help) for option in grammar.all_options]
    lines = [f"## {grammar.mark}", "", grammar.purpose, "", "```", grammar.usage, "```", ""]
    lines += ["Examples:", "", *(line for example in grammar.examples for line in ("```", example, "```", ""))]
    if rows:
        lines += ["| argument or option | |", "|---|---|"]
        # A bar in backticks ends the cell on GitHub, and keeps its backslash on the site.
        codes = [f"<code>{escape(usage).replace('|', '&#124;')}</code>" for usage, _ in rows]
        lines += [f"| {code} | {_table_cell(text)} |" for code, (_, text) in zip(codes, rows, strict=True)] + [""]
    return [*lines, *([f"In Python: `{grammar.twin}`", ""] if grammar.twin else [])]


def names_page() -> str:
    """Return the page of the public names, a line each, under the package that they are imported from."""
    lines = [
        "# Names to import",
        "",
        "Every public name, with what it is for. What most notebooks need comes from `adk_nb` itself and stands first; "
        "a name that several packages hand out stands at the first of them. What google-adk has as well can be "
        "imported from google-adk's own paths, with `adk_nb` in place of `google.adk`.",
        "",
    ]
    seen: set[str] = set()
    for package in PACKAGES:
        by_import: dict[str, list[PublicName]] = {}
        for public in public_names(package):
            if public.name not in seen:
                by_import.setdefault(public.package, []).append(public)
                seen.add(public.name)
        for imported, names in by_import.items():
            lines += [f"## {imported}", "", f"| `from {imported} import …` | |", "|---|---|"]
            lines += [f"| `{public.name}` | {_table_cell(public.line)} |" for public in names] + [""]
    return "\n".join(lines)


def missing_modules_page() -> str:
    """Return the page of ADK's modules that are missing, with what to use."""
    return "\n".join(
        [
            "# Modules that are missing",
            "",
            "google-adk 2.13 has these modules and names, and adk_nb does not. Their import fails and says the same. A "
            "row holds for all modules below it, too; all other public modules of google-adk can be imported.",
            "",
            "| below `google.adk` | instead |",
            "|---|---|",
            *(f"| `{name}` | {_table_cell(instead)} |" for name, instead in sorted(INSTEAD.items())),
            "",
        ]
    )


def floors_picture() -> str:
    """Return the floors of the package as SVG, the highest first; a file imports only from rows below its own."""
    floors = [_rooms(layer) for layer in _contract()["layers"]]
    height = len(floors) * (ROW + GAP) + GAP
    shapes = [_floor(rooms, GAP + row * (ROW + GAP)) for row, rooms in enumerate(floors)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img" aria-label="The floors of adk_nb">\n'
        "<style>\n"
        "rect { fill: #eef3fa; stroke: #9db3d1 }\n"
        "text { font: 13px system-ui, sans-serif; fill: #1c2733 } .name { font-weight: 600 }\n"
        "@media (prefers-color-scheme: dark) { rect { fill: #1d2733; stroke: #4a6078 } text { fill: #dbe4ee } }\n"
        "</style>\n" + "\n".join(shapes) + "\n</svg>\n"
    )


def _contract() -> dict[str, Any]:
    """Return the contract that holds the floors of the whole package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return settings["tool"]["importlinter"]["contracts"][0]


def _rooms(layer: str) -> list[str]:
    """Return the rooms of one floor; what is not built yet stays out."""
    names = [name.strip().strip("()") for name in re.split("[|:]", layer)]
    package = ROOT / "adk_nb"
    return [name for name in names if (package / name).is_dir() or (package / f"{name}.py").is_file()]


def _floor(rooms: list[str], top: int) -> str:
    purposes = [PURPOSES[room] for room in rooms if room in PURPOSES]
    names = ", ".join(rooms if len(rooms) < 8 else [*rooms[:5], f"and {len(rooms) - 5} more"])
    purpose = (
        f'<text x="{WIDTH - 24}" y="{top + 22}" text-anchor="end">{escape(purposes[0])}</text>' if purposes else ""
    )
    return (
        f'<rect x="8" y="{top}" width="{WIDTH - 16}" height="{ROW}" rx="5"/>'
        f'<text class="name" x="24" y="{top + 22}">{escape(names)}</text>{purpose}'
    )


def _settings() -> list[tuple[str, Any]]:
    """Return the settings of `%config AdkNb`, by name."""
    return sorted(AdkNb().traits(config=True).items())


def _table_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


GENERATED = {
    "docs/pages/magics.md": magics_page,
    "docs/pages/names.md": names_page,
    "docs/pages/missing_modules.md": missing_modules_page,
    "docs/pictures/floors.svg": floors_picture,
    "editors/jupyterlab/src/magics.json": magics_json,
    "editors/vscode/syntaxes/cells.tmLanguage.json": cells_tmlanguage,
}
"""Path from the root of the repository -> the function that returns what the file holds."""

if __name__ == "__main__":
    for path, content in GENERATED.items():
        (ROOT / path).write_text(content(), encoding="utf-8")
