"""Make the moving picture of the README, light and dark, from a real run in JupyterLab: `python docs/film.py`.

Needs the development environment and Chromium, as the browser tests do (`make chromium`). The cells are typed and run
for real, the approval is a click on its card, and the model is `offline`, so the film needs no key and no network.
"""

import io
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "browser")]

from lab import Lab, Page  # noqa: E402
from lab_server import LabServer, chromium  # noqa: E402

CELLS = (
    "%load_ext adk_nb",
    '%%tool --confirm "amount > 100"\n'
    "def pay(to: str, amount: float) -> str:\n"
    '    """Pay a person an amount in euros."""\n'
    '    return f"paid {amount:g} euros to {to}"',
    "%%agent clerk -t pay\nYou pay what is agreed, and nothing twice.",
    '%chat clerk Pay 250 euros to "Anna"',
)
PREPARE = """
    for (const cell of panel.content.widgets) cell.node.style.display = "none";
    document.head.append(Object.assign(document.createElement("style"), {textContent: `
        .jp-Notebook-footer, .jp-Toolbar, .jp-cell-toolbar { display: none !important; }
        .jp-WindowedPanel-outer { padding-bottom: 0 !important; scrollbar-width: none; }
        .jp-WindowedPanel-outer::after { display: none !important; }`}));
"""
WIDTH, HEIGHT = 860, 660
COLOURS = 128
FRAME, STEP, END = 90, 700, 5000
"""Milliseconds that a typed piece, a finished cell, and the last picture stay."""


@dataclass
class Film:
    """The pictures so far, each with its milliseconds; a picture equal to the last one only lengthens it."""

    page: Page
    pictures: list[Image.Image] = field(default_factory=list[Image.Image])
    times: list[int] = field(default_factory=list[int])

    def shoot(self, milliseconds: int) -> None:
        """Add what the notebook shows now."""
        self.page.js("""const { node } = panel.content, cell = panel.content.activeCell.node;
            const scroller = node.querySelector('.jp-WindowedPanel-outer') || node;
            const below = cell.getBoundingClientRect().bottom - scroller.getBoundingClientRect().bottom;
            scroller.scrollTop += below + 8;""")
        box = self.page.js(
            "const { x, y, width, height } = panel.content.node.getBoundingClientRect();"
            "return [x, y, x + width, y + height]"
        )
        picture = Image.open(io.BytesIO(self.page.browser.get_screenshot_as_png())).convert("RGB").crop(tuple(box))
        if self.pictures and picture.tobytes() == self.pictures[-1].tobytes():
            self.times[-1] += milliseconds
        else:
            self.pictures.append(picture)
            self.times.append(milliseconds)

    def save(self, path: Path) -> None:
        """Write a GIF that runs for ever, in one palette, so that what stands still does not flicker."""
        # The colours of what stays longest: the card and the answer.
        longest = sorted(range(len(self.times)), key=self.times.__getitem__)[-3:]
        strip = Image.new("RGB", (self.pictures[0].width, self.pictures[0].height * 3))
        for place, index in enumerate(longest):
            strip.paste(self.pictures[index], (0, place * strip.height // 3))
        palette = strip.quantize(COLOURS, dither=Image.Dither.NONE)
        first, *rest = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in self.pictures]
        first.save(path, save_all=True, append_images=rest, duration=self.times, loop=0, optimize=True)


def pieces(source: str) -> Iterator[str]:
    """The source as it grows while it is typed, three characters at a time."""
    yield from (source[:end] for end in range(3, len(source), 3))
    yield source


def record(page: Page) -> Film:
    """Type and run the cells, approve the payment, and wait for the answer."""
    film = Film(page)
    for index, source in enumerate(CELLS):
        page.js(
            "panel.content.activeCellIndex = arguments[0]; panel.content.activeCell.node.style.display = '';", index
        )
        for piece in pieces(source):
            page.js("panel.content.widgets[arguments[0]].model.sharedModel.setSource(arguments[1])", index, piece)
            film.shoot(FRAME)
        page.run_cell(index, wait=index < len(CELLS) - 1)
        film.shoot(STEP)
    page.wait(".adknb-button", "Approve")
    film.shoot(3 * STEP)
    page.click(".adknb-button", "Approve")
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        film.shoot(FRAME)
    film.shoot(END)
    return film


def main() -> None:
    """Record both themes into docs/pictures."""
    with (
        tempfile.TemporaryDirectory() as home,
        tempfile.TemporaryDirectory() as profile,
        LabServer(Path(home)).running() as server,
        chromium(Path(profile)) as browser,
    ):
        for theme, name in (("JupyterLab Light", "run_light"), ("JupyterLab Dark", "run_dark")):
            folder = server.root / name
            folder.mkdir()
            lab = Lab(server, browser, folder)
            page = lab.open(lab.write("run.ipynb", *([""] * len(CELLS))))
            page.theme(theme)
            page.resize(WIDTH, HEIGHT)
            page.js(PREPARE)
            path = ROOT / "docs" / "pictures" / f"{name}.gif"
            film = record(page)
            film.save(path)
            lab.close()
            sys.stdout.write(f"{path.name}: {len(film.pictures)} pictures, {path.stat().st_size // 1000} kB\n")


if __name__ == "__main__":
    main()
