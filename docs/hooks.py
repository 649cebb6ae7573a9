"""Hooks of the site: add the README, the tutorials, the pictures, and a reference page for each public package."""

import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "adk_nb"
_NAME = re.compile(r"^from ([\w.]+) import (\w+) as \w+$", re.MULTILINE)


@event_priority(100)  # before the plugin that turns notebooks into pages
def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies elsewhere in the repository, and what is made here."""
    for pattern in ("notebooks/*.ipynb", "docs/pictures/*.*", "CHANGELOG.md"):
        for path in sorted(ROOT.glob(pattern)):
            relative = path.relative_to(ROOT).as_posix()
            files.append(File(relative, str(ROOT), config.site_dir, config.use_directory_urls))
    front = (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/pages/", "](")
    files.append(File.generated(config, "index.md", content=front))
    for name in packages():
        files.append(File.generated(config, f"reference/{name}.md", content=reference(name)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links are written as they work in the repository: from `docs/pages` to what lies beside `docs`."""
    return markdown.replace("](../../", "](").replace("](../pictures/", "](docs/pictures/")


def packages() -> list[str]:
    """The packages whose names a user imports."""
    return sorted(path.parent.name for path in PACKAGE.glob("*/__init__.pyi"))


def reference(name: str) -> str:
    """The page of one package: each public name, from its docstring."""
    names = _NAME.findall((PACKAGE / name / "__init__.pyi").read_text(encoding="utf-8"))
    purpose = (PACKAGE / name / "__init__.py").read_text(encoding="utf-8").split('"""')[1].strip()
    head = [f"# adk_nb.{name}", purpose.partition("\n")[0], f"`from adk_nb.{name} import …`"]
    return "\n\n".join([*head, *(f"::: {module}.{public}" for module, public in names)]) + "\n"
