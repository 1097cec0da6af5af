"""Takes pictures of every kind of page at the widths of a phone and of a window, in light and in dark.

`python -m tools.screens OUT` writes all of them, and of each page a sheet with all four; `--docs` writes those that
docs/images keeps. It needs Chromium (EIRKIT_BROWSER names it) and playwright, as `session browser` installs them.
The front page of the site and its board are among them after `make docs`.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright
from tools.examples import SESSION, make_folders, write_copy, write_metered

from eirkit.cli import run
from eirkit.records.database import SweepDatabase

ROOT = Path(__file__).parents[1]
WIDTHS, THEMES = (400, 1280), ("light", "dark")
HEIGHT = 860  # pixels of a window
KEPT = (("turn", 1280, "light"), ("board", 1280, "dark"))  # what pages of the documentation show
SHEETS = (
    "demo",
    "conversations",
    "pressure",
    "choose",
    "week",
    "recorded",
)  # of which they show how they look at first
SITE = ROOT / "site"  # as `make docs` writes it
SHARE, BETWEEN, COLORS = 0.5, 16, 32  # of a sheet: the size of its pictures, pixels between them, and its colors


def make_pages(root: Path) -> dict[str, str]:
    """Make every kind of page with the product; return the address of each by name."""
    make_folders(root / "examples")
    viewer = write_copy(root / "examples", root / "viewer")[0].as_uri()
    words, rescue = root / "examples" / "words", root / "examples" / "rescue"
    commands = {
        "demo": ("demo", "--out", root / "demonstration"),
        "curve": ("lacuna", "run", "store-recall", "--h", "16,12,8,4", "--seeds", "0:12",
                  "--model", "reference/calculator,reference/guesser", "--out", root / "curve"),
        "pressure": ("report", root / "curve", "--out", root / "pressure.html"),
        "asked": ("lacuna", "run", "--workload", "conversation", "--memory", "text,bm25,key-value",
                  "--model", "scripted/reader", "--seeds", "0:8", "--out", root / "asked"),
        "conversations": ("report", root / "asked", "--out", root / "conversations.html"),
        "choose": ("choose", root / "asked", "--out", root / "choose.html"),
        "submit": ("submit", words, "--out", root / "submission", "--name", "Examples"),
        "board": ("board", root / "submission", "--out", root / "board"),
        "compact": ("vestige", "compact", SESSION, "--compactor", "keep-last", "--context-tokens", "400",
                    "--at", "every:6", "--out", root / "compact"),
        "compact-page": ("report", root / "compact", "--out", root / "compact.html"),
        "week": ("week", write_metered(root / "logs" / "metered.jsonl"), "--until", "2026-03-03",
                 "--out", root / "week.html"),
        "compare": ("compare", words, shutil.copytree(words, root / "again"), "--out", root / "compare.html"),
        "rescue-page": ("report", rescue, "--out", root / "rescue-report.html"),
    }  # fmt: skip
    for name, given in commands.items():
        with contextlib.redirect_stdout(io.StringIO()):
            if run([str(word) for word in given]):
                raise RuntimeError(f"the page {name} could not be made; run `eirkit {' '.join(map(str, given))}`")
    pages = {path.stem: path.as_uri() for path in root.glob("*.html")}
    turn, run_id = "#at=session&run=opening-hours&turn=14", next(iter(_runs(words)))
    return {
        "folders": viewer,
        "words": f"{viewer}#at=words",
        "rescue": f"{viewer}#at=rescue",
        "session": f"{viewer}#at=session",
        "recorded": f"{viewer}#at=session&run=opening-hours",
        "turn": viewer + turn,
        "step": f"{viewer}#at=words&run={run_id}&t=1",
        "terms": f"{viewer}#at=words&terms=accuracy",
        "demo": (root / "demonstration" / "report.html").as_uri(),
        "report": viewer.replace("index.html", "report-words.html"),
        "report-session": viewer.replace("index.html", "report-session.html"),
        "board": (root / "board" / "index.html").as_uri(),
        "entry": next((root / "board" / "entries").glob("*.html")).as_uri(),
        **pages,
        **{name: path.as_uri() for name, path in _of_site().items() if path.is_file()},
    }


def _of_site() -> dict[str, Path]:
    return {"front": SITE / "docs" / "index.html", "board-of-studies": SITE / "board" / "index.html"}


def write_sheet(pictures: list[Path], path: Path) -> None:
    """Write the pictures of a page beside each other, with a row for each theme."""
    opened = [Image.open(picture).convert("RGB") for picture in pictures]
    reduced = [
        image.resize((int(SHARE * image.width), int(SHARE * image.height)), Image.Resampling.LANCZOS)
        for image in opened
    ]
    rows = [reduced[place : place + len(WIDTHS)] for place in range(0, len(reduced), len(WIDTHS))]
    width = sum(image.width + BETWEEN for image in rows[0])
    sheet = Image.new("RGB", (width, sum(row[0].height + BETWEEN for row in rows)), "grey")
    for number, row in enumerate(rows):
        left = 0
        for image in row:
            sheet.paste(image, (left, number * (image.height + BETWEEN)))
            left += image.width + BETWEEN
    sheet.quantize(COLORS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(path, optimize=True)


def _runs(folder: Path) -> list[str]:
    with SweepDatabase(folder) as database:
        return [record.run for record in database.records()]


def take(page: Page, address: str, path: Path) -> int:
    """Take a picture of a page as one sees it first, and return by how many pixels it is too wide."""
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.wait_for_selector("main *, article *")
    page.screenshot(path=str(path))
    # Few colors: a page of text needs no more, and a repository keeps every picture for ever.
    few = Image.open(path).convert("RGB").quantize(64, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
    few.save(path, optimize=True)
    return int(page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def picture_in(folder: Path, name: str, width: int, theme: str) -> Path:
    return folder / f"screen-{name}-{width}-{theme}.png"


def write_sheets(folder: Path, pages: Iterable[str]) -> None:
    """Write a sheet of each page beside its pictures."""
    for name in pages:
        pictures = [picture_in(folder, name, width, theme) for theme in THEMES for width in WIDTHS]
        write_sheet(pictures, folder / f"sheet-{name}.png")


def main(arguments: list[str]) -> int:
    docs = "--docs" in arguments
    named = [argument for argument in arguments if argument != "--docs"]
    out = ROOT / "docs" / "images" if docs else Path(named[0]) if named else None
    if out is None:
        print("usage: python tools/screens.py OUT | --docs")
        return 2
    out.mkdir(parents=True, exist_ok=True)
    wide = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        pages = make_pages(Path(folder))
        taken = Path(folder) / "pictures" if docs else out
        taken.mkdir(exist_ok=True)
        chromium = os.environ.get("EIRKIT_BROWSER", "/usr/bin/chromium")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for width in WIDTHS:
            for theme in THEMES:
                context = browser.new_context(
                    viewport={"width": width, "height": HEIGHT}, color_scheme=theme, reduced_motion="reduce"
                )
                page = context.new_page()
                for name, address in pages.items():
                    over = take(page, address, picture_in(taken, name, width, theme))
                    wide += [f"{name} at {width} pixels: {over} too wide"] if over > 0 else []
                context.close()
        browser.close()
        write_sheets(taken, pages)
        if docs:
            kept = [picture_in(taken, *picture) for picture in KEPT]
            for picture in [*kept, *(taken / f"sheet-{name}.png" for name in SHEETS)]:
                shutil.copyfile(picture, out / picture.name)
    print("\n".join([f"{len(pages)} pages, pictures in {out}", *wide]))
    return bool(wide)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
