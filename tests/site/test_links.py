"""A reader who follows links through the site always arrives, and finds each page."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from lxml import html

from docs.names import PACKAGES, public_names

pytestmark = pytest.mark.docs
LINKS = "//@href | //@src | //@srcset | //@poster"


@cache
def read(page: Path) -> tuple[list[str], frozenset[str]]:
    """The links of a page, and the places in it that a link can name."""
    tree = html.parse(str(page), parser=html.HTMLParser(encoding="utf-8"))
    return [str(link) for link in tree.xpath(LINKS)], frozenset(map(str, tree.xpath("//@id | //a/@name")))


def targets(site: Path, page: Path) -> list[tuple[str, Path, str]]:
    """Each internal link of a page: as it is written, its file, and the place in it."""
    found: list[tuple[str, Path, str]] = []
    for link in read(page)[0]:
        parts = urlsplit(link)
        if not parts.scheme and not parts.netloc:
            file = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            found.append((link, file / "index.html" if file.is_dir() else file, unquote(parts.fragment)))
    return found


@pytest.fixture(scope="module")
def pages(site: Path) -> set[Path]:
    """The pages that links lead to, from the first one on. JupyterLite is no page of ours: `make lite-test`."""
    first = site / "index.html"
    found, todo = {first}, [first]
    while todo:
        for _, file, _ in targets(site, todo.pop()):
            is_page = file.suffix == ".html" and file.exists() and site / "lite" not in file.parents
            if is_page and file not in found:
                found.add(file)
                todo.append(file)
    return found


def test_every_link_leads_to_a_file_and_a_place_that_exist(site: Path, pages: set[Path]):
    dead = [
        f"{page.relative_to(site)}: {link}"
        for page in sorted(pages)
        for link, file, place in targets(site, page)
        if link.startswith("/")  # the site may lie in any folder
        or not file.is_file()
        or (place and file.suffix == ".html" and site / "lite" not in file.parents and place not in read(file)[1])
    ]

    assert not dead, "\n".join(dead)


def test_every_page_is_reached_from_the_first_one(site: Path, pages: set[Path]):
    built = {page for page in site.rglob("*.html") if site / "lite" not in page.parents} - {site / "404.html"}

    assert built - pages == set() and len(built) > 60


def test_every_page_leads_on_to_the_next_and_back(site: Path, pages: set[Path]):
    page, path = site / "index.html", list[Path]()
    while page not in path:
        path.append(page)
        tree = html.parse(str(page))
        following = tree.xpath("//a[contains(@class, 'md-footer__link--next')]/@href")
        if not following:
            break
        page = (page.parent / str(following[0])).resolve()
        back = html.parse(str(page)).xpath("//a[contains(@class, 'md-footer__link--prev')]/@href")
        assert (page.parent / str(back[0])).resolve() == path[-1]

    assert {*path} == pages


def test_every_public_name_has_an_entry_in_the_reference(site: Path):
    entries = {place for page in (site / "reference").glob("*.html") for place in read(page)[1]}
    names = [public for package in PACKAGES for public in public_names(package)]

    assert [public.path for public in names if public.path not in entries] == ["adk_nb.types"]
    assert len(names) > 250


def test_the_text_for_language_models_lists_pages_that_exist_and_has_their_words(site: Path):
    listed = re.findall(r"^- \[.+\]\((.+)\): .+$", (site / "llms.txt").read_text(encoding="utf-8"), re.MULTILINE)
    words = (site / "llms-full.txt").read_text(encoding="utf-8")

    assert len(listed) > 30 and [page for page in listed if not (site / page).is_file()] == []
    assert "%%agent stargazer" in words and "data-output" not in words and "][adk_nb" not in words
