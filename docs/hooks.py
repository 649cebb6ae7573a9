"""Hooks of the site: add the README, the tutorials, the pictures, a reference page for each public package, and
JupyterLite, which runs the tutorials.
"""

import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "adk_nb"
_LITE = ROOT / "build" / "lite"
_FIRST = "00_start_here.ipynb"
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


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """On the first page and each tutorial, a button that opens it in the browser alone."""
    name = page.file.src_uri.removeprefix("notebooks/")
    if name == "index.md":
        return html.replace("</p>", f"</p>\n{_button(page, _FIRST, 'Try it now, in this browser')}", 1)
    if page.file.src_uri.endswith(".ipynb"):
        return f'<div style="padding-left: 15px">{_button(page, name, "Run it in this browser")}</div>{html}'
    return html


def on_post_build(config: MkDocsConfig) -> None:
    """Put JupyterLite with the tutorials beside the pages."""
    if not _LITE.is_dir():
        raise PluginError("build/lite is missing, which the buttons open; type: make lite")
    shutil.copytree(_LITE, Path(config.site_dir) / _LITE.name, dirs_exist_ok=True)


def _button(page: Page, notebook: str, label: str) -> str:
    address = get_relative_url(f"{_LITE.name}/lab/index.html", page.url)
    hint = "No server, no installation, no key: Python itself is loaded, some 45 MB the first time."
    return f'<p><a class="md-button md-button--primary" href="{address}?path={notebook}" title="{hint}">{label}</a></p>'


def packages() -> list[str]:
    """The packages whose names a user imports."""
    return sorted(path.parent.name for path in PACKAGE.glob("*/__init__.pyi"))


def reference(name: str) -> str:
    """The page of one package: each public name, from its docstring."""
    names = _NAME.findall((PACKAGE / name / "__init__.pyi").read_text(encoding="utf-8"))
    purpose = (PACKAGE / name / "__init__.py").read_text(encoding="utf-8").split('"""')[1].strip()
    head = [f"# adk_nb.{name}", purpose.partition("\n")[0], f"`from adk_nb.{name} import …`"]
    return "\n\n".join([*head, *(f"::: {module}.{public}" for module, public in names)]) + "\n"
