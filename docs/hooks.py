"""Hooks of the site: add the README, the tutorials, the pictures, a reference page for each public package, and
JupyterLite, which runs the tutorials.
"""

import re
import shutil
import sys
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url
from pygments.lexers import LEXERS

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from docs import cells_lexer, tutorials  # noqa: E402
from docs.names import PACKAGES, public_names  # noqa: E402

_LITE = ROOT / "build" / "lite"
_FIRST = "00_start_here.ipynb"
_WEIGHTS = {"magics.md": 3.0, "CHANGELOG.md": 0.2, "missing_modules.md": 0.2}
"""Page -> its weight in the search, beside 1; a page of the reference has a half."""
_PICTURE = re.compile(r'<picture>\s*<source[^>]* srcset="([^"]+)">\s*<img src="([^"]+)"([^>]*)>\s*</picture>')
_CODE = re.compile(
    r"^(?P<fence>`{3,}).*?^(?P=fence)$|^#[^\n]*|\[[^\]\n]*\]\([^)\n]*\)|`([A-Z][A-Za-z0-9]+)`", re.M | re.S
)
_LEAD = re.compile(r"^(?![#|<`!>\s:]|- )(.+)$", re.MULTILINE)
_pages: list[Page] = []
_outputs: dict[str, list[str]] = {}
"""Page of a tutorial -> what its cells showed."""
_entries: dict[str, str] = {"adk_nb.types": ""}
"""Where a public name is defined -> the name, for those that have an entry in the reference; the types have none."""

for lexer in (cells_lexer.CellLexer, cells_lexer.BlockLexer):
    LEXERS[lexer.__name__] = (cells_lexer.__name__, lexer.name, tuple(lexer.aliases), (), ())


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what lies elsewhere in the repository, and what is made here."""
    for pattern in ("notebooks/*.ipynb", "docs/pictures/*.*", "C*.md", "SECURITY.md"):
        for path in sorted(ROOT.glob(pattern)):
            relative = path.relative_to(ROOT).as_posix()
            files.append(File(relative, str(ROOT), config.site_dir, config.use_directory_urls))
    for path in sorted(ROOT.glob("notebooks/*.ipynb")):
        name = f"notebooks/{path.stem}.md"
        content, _outputs[name] = tutorials.page_of(path)
        files.append(File.generated(config, name, content=content))
    picture = r'<img src="\1#only-dark"\3><img src="\2#only-light"\3>'
    front = _PICTURE.sub(picture, (ROOT / "README.md").read_text(encoding="utf-8"))
    files.append(File.generated(config, "index.md", content=front))
    for package in (*PACKAGES[1:], PACKAGES[0]):  # a name that adk_nb hands on has its entry where it belongs
        files.append(File.generated(config, f"reference/{package}.md", content=reference(package)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Mend links, which are written as they work in the repository; colour cells, and link public names."""
    address = page.file.src_uri
    weight = 0.5 if address.startswith("reference/") else _WEIGHTS.get(address, 1.0)
    page.meta.setdefault("search", {"boost": weight})
    for there, here in (("docs/pages/", ""), ("../../", ""), ("../pictures/", "docs/pictures/")):
        markdown = markdown.replace(f"]({there}", f"]({here}")
    markdown = re.sub(r"(\]\((?:notebooks/|\d)[\w/]*)\.ipynb([)#])", r"\1.md\2", markdown)
    markdown = re.sub(r"^```python$", "```adk-nb", markdown, flags=re.MULTILINE)
    if lead := _LEAD.search(markdown):
        page.meta.setdefault("description", plain(lead[1]))
    if address == "names.md":  # each name once: its entry is that of the first package that hands it out
        rows = re.compile(r"^\| `(\w+)` \|", re.MULTILINE)
        return rows.sub(lambda row: f"| {_link(row[1], _paths()[row[1]])} |", markdown)
    is_guide = not address.startswith(("reference/", "notebooks/", "CHANGELOG"))
    return _CODE.sub(_linked, markdown) if is_guide else markdown


def _linked(found: re.Match[str]) -> str:
    """A public name in backticks, with a link to its entry; code, headings and links as they are."""
    return _link(found[2], _paths().get(found[2], "")) if found[2] else found[0]


def _link(name: str, path: str) -> str:
    """A name in backticks, linked to its entry in the reference if it has one."""
    return f"[`{name}`][{path}]" if _entries.get(path) else f"`{name}`"


@cache
def _paths() -> dict[str, str]:
    """Public name -> where it is defined. Of a name that several packages have, the first counts."""
    return {public.name: public.path for package in reversed(PACKAGES) for public in reversed(public_names(package))}


def bare(markdown: str) -> str:
    """A page without what only the site understands: links to entries, and marks for outputs."""
    return re.sub(r'<div data-output="\d+"></div>\n*', "", re.sub(r"\[(`[^`\n]*`)\]\[[^\]\n]*\]", r"\1", markdown))


def plain(markdown: str) -> str:
    """The first sentence of a paragraph without its marks, for what has no markup."""
    text = re.sub(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])", r"\1", markdown)
    return re.split(r"(?<=[.?])\s", re.sub(r"[`*]", "", text))[0]


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """On the first page and each tutorial, what to open it with; in a tutorial, what its cells showed."""
    address = page.file.src_uri
    if address == "index.md":
        return html.replace("</p>", f"</p>\n{_try_it(page, _FIRST, 'Try it now, in this browser')}", 1)
    if address not in _outputs:
        return html
    name = f"{Path(address).stem}.ipynb"
    download = f'<a class="md-button" href="{name}" download>Download the notebook</a>'
    buttons = f'<div class="nb-buttons">{_try_it(page, name, "Run it in this browser")} {download}</div>'
    return tutorials.with_outputs(html.replace("</h1>", f"</h1>\n{buttons}", 1), _outputs[address])


def on_nav(nav: Navigation, **_: Any) -> None:
    """Keep the pages in their order."""
    _pages[:] = nav.pages


def on_post_build(config: MkDocsConfig) -> None:
    """Put the pages for language models beside the pages, and JupyterLite with the tutorials, if it has been built."""
    site = Path(config.site_dir)
    texts = [page for page in _pages if not page.file.src_uri.startswith("reference/")]
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for group, pages in groupby(texts, lambda page: " / ".join(above.title for above in reversed(page.ancestors))):
        links = [f"- [{page.title}]({page.url}): {page.meta.get('description', '')}" for page in pages]
        lines += [f"## {group}", "", *links, ""]
    (site / "llms.txt").write_text("\n".join(lines), encoding="utf-8")
    (site / "llms-full.txt").write_text("\n\n".join(bare(page.markdown or "") for page in texts), encoding="utf-8")
    if _LITE.is_dir():
        shutil.copytree(_LITE, Path(config.site_dir) / _LITE.name, dirs_exist_ok=True)


def _try_it(page: Page, notebook: str, label: str) -> str:
    """The button that opens a notebook in the browser alone; nothing where JupyterLite is not built."""
    if not _LITE.is_dir():
        return ""
    address = get_relative_url(f"{_LITE.name}/lab/index.html", page.url)
    hint = "No server, no installation, no key: Python itself is loaded, some 45 MB the first time."
    return f'<a class="md-button md-button--primary" href="{address}?path={notebook}" title="{hint}">{label}</a>'


def reference(package: str) -> str:
    """The page of one package: a table of its public names, then the entry of each that has none yet."""
    dotted = "adk_nb" if package == "adk_nb" else f"adk_nb.{package}"
    lines = [f"# {dotted}", "", f"| `from {dotted} import …` | |", "|---|---|"]
    entries: list[str] = []
    for public in public_names(package):
        if public.path not in _entries:
            _entries[public.path] = public.name
            entries += ["", f"::: {public.path}"]
        lines.append(f"| {_link(public.name, public.path)} | {public.line} |")
    return "\n".join([*lines, *entries]) + "\n"
