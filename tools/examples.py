"""Writes a copy of the viewer that needs no server, with three example folders made by eirkit's own scripted agents.

`make docs` puts it into the site. All answers of the server are written beforehand into one script, so the copy opens
from a disk as well as from any web server.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Iterator, Mapping
from html import escape
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote_plus

from msgspec import Struct
from msgspec.structs import replace

from eirkit.cli import run
from eirkit.errors import EirkitError
from eirkit.report.viewer.documents import Folders, LacunaRun, Refusal
from eirkit.report.viewer.folders import ViewedFolder, find_places, open_root
from eirkit.report.viewer.logs import LogFolders
from eirkit.report.viewer.reported import report_html
from eirkit.report.viewer.routes import Viewer
from eirkit.report.viewer.server import encode
from eirkit.report.viewer.tables import Page
from eirkit.report.viewer.vestige_run import RunView

ROOT = Path(__file__).parents[1]
SESSION = ROOT / "examples" / "compacted_session.jsonl"
NOW = 1_772_442_000.0  # seconds: any moment will do, and the same one every time
NAME = "examples"
ABOUT = {
    "rescue": "A rescue: are steps right once the missing record is restored?",
    "session": "A recorded coding session: what did its compaction drop?",
    "words": "A sweep in words: two memories on the same conversations",
}
COMMANDS = {
    "words": (
        *("lacuna", "run", "words", "--preset", "small", "--seeds", "0:2", "--model", "scripted/reader"),
        *("--memory", "bm25,text", "--no-control"),
    ),
    "rescue": (
        *("lacuna", "rescue", "--workload", "stepwise-sum", "--model", "reference/calculator", "--n", "16"),
        *("--h", "3", "--seeds", "0:2", "--no-control"),
    ),
    "session": ("vestige", "analyze", str(SESSION)),
}


def write_metered(path: Path) -> Path:
    """Write the session with tokens beside each reply, as agents log them, so that its week has something to count."""
    lines = [json.loads(line) for line in SESSION.read_text("utf-8").splitlines()]
    replies = [line["message"] for line in lines if line["type"] == "assistant"]
    for number, message in enumerate(replies):
        read = 9_000 * (number % 9)
        usage = {"input_tokens": 40, "cache_read_input_tokens": read, "cache_creation_input_tokens": 9_000}
        message.update(id=f"m{number}", model="claude-sonnet-4-5", usage={**usage, "output_tokens": 300})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def make_folders(root: Path) -> None:
    """Make the example folders with the commands that a user would type."""
    for name, words in COMMANDS.items():
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            if run([*words, "--out", str(root / name), "--json"]):
                raise RuntimeError(f"the example {name} could not be made: eirkit {' '.join(words)}")


def address(path: str, **asked: str | int) -> str:
    """Return an address as the page writes it, with its parameters sorted."""
    # A browser writes ~ as %7E and leaves * as it is; Python does the opposite.
    pairs = [f"{name}={quote_plus(str(value), safe='*').replace('~', '%7E')}" for name, value in sorted(asked.items())]
    return f"api/{path}?{'&'.join(pairs)}"


def requests_of(viewer: Viewer, place: ViewedFolder) -> Iterator[tuple[str, dict[str, str | int]]]:
    """Yield every path and its parameters that the pages of a folder can ask for, apart from filtered rows."""
    at: dict[str, str | int] = {"at": place.key}
    yield from ((path, at) for path in ("changes", "overview", "grid"))
    if place.kind != "analysis":
        yield "possible" if place.kind == "sweep" else "evidence", at
    names = [str(row["run_id" if place.kind == "analysis" else "run"]) for row in all_rows(viewer, place).rows]
    for own in ({**at, "run": name} for name in names):
        document = answered(viewer, "run", own)
        yield "run", own
        if isinstance(document, RunView):
            turns = range(1, len(document.turns) + 1)
            yield from ((path, {**own, "turn": turn}) for turn in turns for path in ("turn", "source"))
        elif isinstance(document, LacunaRun):
            yield "pressure", own
            steps = range(1, len(document.steps) + 1)
            yield from ((path, {**own, "t": t}) for t in steps for path in ("step", "similar"))


def all_rows(viewer: Viewer, place: ViewedFolder) -> Page:
    return viewer.runs({"at": [place.key], "limit": ["500"]})


def answered(viewer: Viewer, path: str, asked: Mapping[str, str | int]) -> Struct:
    """Return what the server answers, also where it refuses."""
    try:
        return viewer.answer(f"/api/{path}", {name: [str(value)] for name, value in asked.items()})
    except EirkitError as error:
        return Refusal(str(error))


class StaticCopy(Struct, frozen=True):
    """All answers about some folders, as the page's script reads them."""

    answers: dict[str, Struct]  # by address
    runs: dict[str, Page]  # of each folder, all of its rows


def copy_of(root: Path) -> StaticCopy:
    """Return all answers about the folders below a folder."""
    viewer = Viewer(open_root(root), LogFolders((SESSION,)), lambda: NOW)
    places = find_places(viewer.root)
    listing = tuple(
        replace(folder, changed=NOW, about=f"{ABOUT[folder.key]} · {folder.about}")
        for folder in viewer.folders({}).folders
    )
    answers: dict[str, Struct] = {"api/folders?": Folders(NAME, listing)}
    for place in places:
        for path, asked in requests_of(viewer, place):
            answers[address(path, **asked)] = answered(viewer, path, asked)
    cut = [where for where, answer in answers.items() if b'"next":20000' in encode(answer)]
    if cut:
        raise RuntimeError(f"a text of {cut[0]} is too long for a copy without a server; make the example smaller")
    return StaticCopy(answers, {place.key: all_rows(viewer, place) for place in places})


def write_copy(root: Path, out: Path) -> list[Path]:
    """Write the page, its script, its data and the report of each folder; return what was written."""
    assets = files("eirkit.report") / "assets" / "viewer"
    data = encode(copy_of(root)).decode()
    texts = {
        "index.html": PAGE,
        "index.css": (assets / "index.css").read_text("utf-8"),
        # A module cannot be loaded from a disk; in a function of its own the script needs not be one.
        "index.js": f"(() => {{\n{(assets / 'index.js').read_text('utf-8')}\n}})();\n",
        "data.js": f"globalThis.eirkitStatic = {data};\n",
    }
    for place in find_places(root.resolve()):
        texts[f"report-{place.key}.html"] = report_html(place, plugins=False, viewer="index.html#")
    out.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (out / name).write_text(text, "utf-8")
    return [out / name for name in texts]


PAGE = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(NAME)} · eirkit</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="index.css">
<script defer src="data.js"></script>
<script defer src="index.js"></script>
</head>
<body>
<div id="page"><p class="quiet">Loading…</p></div>
<noscript>This page needs JavaScript; it asks no server for anything.</noscript>
</body>
</html>
"""


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python tools/examples.py OUT")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        make_folders(Path(folder))
        written = write_copy(Path(folder), Path(arguments[0]))
    print(f"{len(written)} files in {arguments[0]}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
