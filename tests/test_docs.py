"""Every command and Python block in README and docs runs and prints what the page shows; every relative link leads
somewhere. CONTRIBUTING.md says how such blocks are written."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests import warm
from tests.processes import completed, running

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# What a reader types that is not ours to try here: each needs a network, a checkout or a shell of its own.
LEFT_ALONE = {"pip", "git", "cd", "export", "source", "eval", "python3", "pytest"}
# The commands of these pages are processes of their own, as a reader starts them; others are forks (tests/warm.py).
COLD = {"README.md", "docs/compaction-costs.md"}
SHELL_BLOCKS = {"bash", "sh", "shell", "zsh"}
TRIED = {"console", "python", *SHELL_BLOCKS}
FENCE = re.compile(r"^(?P<indent> *)```(?P<info>[^\n]*)\n(?P<body>.*?)^(?P=indent)```\s*$", re.MULTILINE | re.DOTALL)
# A page about something that `make test` does not install says so, and which target tries it.
NEEDS = re.compile(r"^<!-- needs (\w+): `make ([\w= -]+)` -->$", re.MULTILINE)
LINK = re.compile(r"\[[^\]\[]*\]\(([^)\s]+)\)")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    line: int
    info: str  # what stands behind the fence, such as `python title="mine.py"`
    body: str

    @property
    def language(self) -> str:
        return self.info.split()[0] if self.info.split() else ""

    @property
    def title(self) -> str | None:
        found = re.search(r'title="([^"]+)"', self.info)
        return found[1] if found else None


@dataclass(frozen=True, slots=True)
class Command:
    """A line after `$ `, with the output that the page shows for it."""

    text: str
    code: int
    shown: tuple[str, ...]


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks in order."""
    found = []
    for match in FENCE.finditer(text):
        indent = len(match["indent"])
        body = "\n".join(line[indent:] for line in match["body"].split("\n"))
        found.append(Block(text.count("\n", 0, match.start()) + 1, match["info"].strip(), body))
    return found


def commands(body: str) -> Iterator[Command]:
    """Split a console block; `# exit N` after a command says that it must fail with this code."""
    for part in re.split(r"^\$ ", body.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
        text, *shown = part.rstrip().split("\n")
        expected = re.search(r"\s+# exit (\d+)$", text)
        yield Command(text[: expected.start()] if expected else text, int(expected[1]) if expected else 0, tuple(shown))


def matches(shown: tuple[str, ...], printed: str) -> bool:
    """True if the output is as shown: `…` stands for anything within a line, a line of `…` alone for any lines."""
    if not shown:
        return True
    parts = [
        r"(?:[^\n]*\n)*?" if line.strip() == "…" else ".*?".join(map(re.escape, line.rstrip().split("…"))) + "\n"
        for line in shown
    ]
    trimmed = "".join(f"{line.rstrip()}\n" for line in printed.rstrip().split("\n"))
    return re.fullmatch("".join(parts), trimmed) is not None


def workshop(folder: Path) -> Path:
    """Make a folder that looks like the checkout; what commands write stays in it."""
    for entry in ROOT.iterdir():
        if not entry.name.startswith(".") and entry.name not in ("build", "dist", "out", "site"):
            (folder / entry.name).symlink_to(entry)
    return folder


def environment(is_cold: bool) -> dict[str, str]:
    places = [*([] if is_cold else [warm.programs()]), Path(sys.executable).parent, os.environ["PATH"]]
    path = os.pathsep.join(map(str, places))
    kept = {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"}
    memories = {} if is_cold else {warm.MEMORIES: str(warm.programs() / "python")}
    return {**kept, **memories, "PATH": path, "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}


# One interpreter for the Python of a page: a block in, a traceback or nothing out.
INTERPRETER = """
import json, sys, traceback
answers, sys.stdout = sys.stdout, sys.stderr
space = {"__name__": "__main__"}
for line in sys.stdin:
    fault = ""
    try:
        exec(compile(json.loads(line), "page", "exec"), space)
    except BaseException:
        fault = traceback.format_exc()
    print(json.dumps(fault), file=answers, flush=True)
"""


def faults(page: Path, folder: Path) -> list[str]:
    """Return what does not hold on a page, taking its blocks in order."""
    variables = environment(is_cold=page.is_relative_to(ROOT) and str(page.relative_to(ROOT)) in COLD)
    found = blocks(page.read_text("utf-8"))
    if not any(block.title or block.language in TRIED for block in found):
        return []
    with running(
        ["env", "python", "-W", "error", "-c", INTERPRETER],
        cwd=folder,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as python:
        return [
            f"{page.name}:{block.line}: {fault}"
            for block in found
            for fault in _block_faults(block, folder, variables, python)
        ]


def _block_faults(
    block: Block, folder: Path, variables: dict[str, str], python: subprocess.Popen[str]
) -> Iterator[str]:
    if block.language in SHELL_BLOCKS and re.search(r"\b(eirkit|make) ", block.body):
        yield "write it as a `console` block with `$ ` so that it is tried"
    elif block.title and ROOT in (folder / block.title).resolve().parents:
        yield f"{block.title} is in the repository already; give the block another title, or none"
    elif block.title:
        (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
        (folder / block.title).write_text(block.body, "utf-8")
    elif block.language == "console":
        yield from _console_faults(block, folder, variables)
    elif block.language == "python":
        # Every line keeps its number on the page, so a traceback points into the page.
        print(json.dumps("\n" * block.line + block.body), file=python.stdin, flush=True)
        if fault := json.loads(python.stdout.readline()):
            yield fault.strip()[-300:]


def _console_faults(block: Block, folder: Path, variables: dict[str, str]) -> Iterator[str]:
    listed = list(commands(block.body))
    if not listed:
        yield "a console block without a `$ ` line"
    for command in listed:
        program = next(word for word in shlex.split(command.text) if "=" not in word)
        if program == "make":
            yield from _make_faults(command.text)
        elif program not in LEFT_ALONE:
            yield from _run_faults(command, folder, variables)


def _make_faults(text: str) -> Iterator[str]:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for target in shlex.split(text, comments=True)[1:]:
        if target not in targets and "=" not in target:
            yield f"no target {target!r} in the Makefile"


def _run_faults(command: Command, folder: Path, variables: dict[str, str]) -> Iterator[str]:
    done = completed(["bash", "-o", "pipefail", "-c", command.text], cwd=folder, env=variables)
    if done.returncode != command.code:
        yield f"`{command.text}` exits with {done.returncode}: {done.stderr.strip()[-300:]}"
    elif not matches(command.shown, done.stdout if command.code == 0 else done.stderr):
        yield f"`{command.text}` prints something else:\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_says(page, tmp_path):
    needed = NEEDS.search(page.read_text("utf-8"))
    if needed and find_spec(needed[1]) is None:
        pytest.skip(f"{needed[1]} is not installed; `make {needed[2]}` tries this page")
    assert faults(page, workshop(tmp_path)) == []


@pytest.mark.check
def test_every_page_that_needs_an_extra_is_tried_before_a_change_lands():
    tried = set(re.findall(r"[a-z-]+", (ROOT / ".ci" / "run").read_text("utf-8")))
    named = {target.rpartition("=")[2] for page in PAGES for _, target in NEEDS.findall(page.read_text("utf-8"))}
    assert named
    assert named <= tried


@pytest.mark.check
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    prose = FENCE.sub("", page.read_text("utf-8"))
    targets = [target.split("#")[0] for target in LINK.findall(prose) if "://" not in target and target[0] != "#"]
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.check
@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "docs/index.md"])
def test_the_pages_that_everybody_looks_for_are_there(name):
    assert (ROOT / name).is_file()


@pytest.mark.check
def test_every_page_is_on_the_map():
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    notes = (ROOT / "docs" / "design" / "README.md").read_text("utf-8")
    listed = {target.split("#")[0] for target in LINK.findall(index)}
    listed |= {f"design/{target.split('#')[0]}" for target in LINK.findall(notes)}
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert pages - listed - {"index.md"} == set()


PLANTED = [
    ("```console\n$ eirkit --version\neirkit 9.9\n```\n", "prints something else"),
    ("```console\n$ eirkit lacuna nothing\n```\n", "exits with 2: eirkit: no command named 'nothing'"),
    ("```console\n$ eirkit --version # exit 2\n```\n", "exits with 0"),
    ("```console\n$ erikit --help\n```\n", "exits with 127"),
    ("```console\n$ make nothing\n```\n", "no target 'nothing'"),
    ("```console\neirkit --help\n```\n", "without a `$ ` line"),
    ("```bash\neirkit --help\n```\n", "write it as a `console` block"),
    ("```python\nimport eirkit\neirkit.nothing\n```\n", "has no attribute 'nothing'"),
    ("```python\nx = 1\n```\n\n```python\nassert x == 2\n```\n", "line 6, in <module>\nAssertionError"),
    ("1. x\n\n   ```console\n   $ eirkit --nothing\n   ```\n", "exits with 2"),
]


def test_a_block_cannot_overwrite_a_file_of_the_repository(tmp_path):
    page = tmp_path / "page.md"
    page.write_text('```python title="examples/timezone.py"\n```\n')
    assert "in the repository already" in faults(page, workshop(tmp_path))[0]


@pytest.mark.parametrize(("text", "fault"), PLANTED)
def test_a_planted_fault_is_found(text, fault, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)
    (found,) = faults(page, tmp_path)
    assert fault in found


SOUND = """
```console
$ eirkit --version
eirkit …
$ eirkit --help | head -3
Usage: eirkit …
…
$ python mine.py
a
…
z
$ eirkit lacuna nothing # exit 2
eirkit: no command …
$ pip install eirkit
$ make test
```

```python title="other.py"
raise SystemExit("never run")
```

```python
x = 1
```

```python
assert x == 1
```
"""


def test_a_sound_page_has_no_faults(tmp_path):
    page = tmp_path / "page.md"
    page.write_text('```python title="mine.py"\nprint("a", 1, 2, "z", sep="\\n")\n```\n' + SOUND)
    assert faults(page, tmp_path) == []


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        (("a", "…", "d"), "a\nb\nc\nd\n", True),
        (("a", "…"), "a\n", True),
        (("…", "d"), "a\nb\nd\n", True),
        (("a",), "a\nb\n", False),
        (("a … c",), "a b c\n", True),
        (("a … c",), "a\nc\n", False),
        (("│ 1 │",), "│ 1 │   \n", True),
        (("a.c",), "abc\n", False),
    ],
)
def test_output_is_compared_to_the_letter_except_for_ellipses(shown, printed, expected):
    assert matches(shown, printed) is expected


@pytest.mark.check
def test_no_two_pages_write_to_one_folder():
    """A reader may follow several pages in one working folder; a folder that exists is refused."""
    pages: dict[str, set[str]] = {}
    for page in PAGES:
        shown = [block for block in blocks(page.read_text("utf-8")) if block.language == "console"]
        for command in (command for block in shown for command in commands(block.body) if command.code != 2):
            for out in re.findall(r"--out[ =](\S+)", command.text):
                pages.setdefault(out, set()).add(page.name)
    assert {out: names for out, names in pages.items() if len(names) > 1} == {}
