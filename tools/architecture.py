"""Generates the tables of docs/design/house.md: imports between packages, and a line for each module and script.

`python tools/architecture.py` exits with 1 if the page is out of date; `--write` updates it. tests/test_architecture.py
checks the same page.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "eirkit"
SCRIPTS = ROOT / "web" / "src"
PAGE = ROOT / "docs" / "design" / "house.md"
# Top-level modules that every package may import; the other top-level modules import from the packages.
BASE = (
    "errors",
    "event_files",
    "facts",
    "folders",
    "limits",
    "measures",
    "packages",
    "records",
    "registry",
    "seeds",
    "streams",
    "validity",
)
BASE_NAME, SURFACE_NAME = "eirkit (base)", "eirkit (surface)"
_DECLARING = ("option", "_task", "_agent", "_naming")  # functions of cli that make an option from its name
_SECONDS = r"^(_?[A-Z_]*SECONDS) = ([0-9_.]+(?: \* [0-9_.]+)?)"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Arrow:
    """One import between modules of the package, in any scope."""

    source: str
    target: str
    line: int
    hidden: bool  # inside a function


def modules(root: Path) -> dict[str, Path]:
    """Return every module of the package under its dotted name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"))


@cache
def arrows(root: Path) -> list[Arrow]:
    """Return all imports between modules of the package: in any scope, type-checking ones included."""
    known = modules(root)
    return [arrow for module, path in known.items() for arrow in _arrows_of(module, path, known)]


def _arrows_of(module: str, path: Path, known: dict[str, Path]) -> Iterator[Arrow]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    top = next(iter(known)).split(".")[0]
    for node, hidden in _walk(parsed(path), False):
        for name in _imported(node, package, known):
            if name.split(".")[0] == top:
                yield Arrow(module, _nearest(name, known), getattr(node, "lineno", 0), hidden)


def _walk(node: ast.AST, hidden: bool) -> Iterator[tuple[ast.AST, bool]]:
    yield node, hidden
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, hidden or isinstance(node, _FUNCTIONS))


def _imported(node: ast.AST, package: str, known: dict[str, Path]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        origin = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            yield f"{origin}.{alias.name}" if f"{origin}.{alias.name}" in known else origin
    elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        # import_module("eirkit.…") with a literal counts as an import.
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
            yield node.args[0].value


def _nearest(name: str, known: dict[str, Path]) -> str:
    while name not in known and "." in name:
        name = name.rpartition(".")[0]
    return name


def package_of(module: str, path: Path, root: Path) -> str:
    """Return the package of a module as the page names it; top-level modules form two groups."""
    if path.stem == "__main__":
        return "cli"  # `python -m eirkit` starts the command line
    if path.parent != root:
        return path.parent.relative_to(root).as_posix()
    return BASE_NAME if module.rpartition(".")[2] in BASE else SURFACE_NAME


def folder_arrows(root: Path) -> dict[str, set[str]]:
    """Return which packages the modules of each package import."""
    known = modules(root)
    found: dict[str, set[str]] = {package_of(module, path, root): set() for module, path in known.items()}
    for arrow in arrows(root):
        source = package_of(arrow.source, known[arrow.source], root)
        target = package_of(arrow.target, known[arrow.target], root)
        # `from eirkit import __version__` does not count as an import of the public surface.
        if source != target and arrow.target != root.name:
            found[source].add(target)
    return found


def levels(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return packages from the bottom up: each level imports only from those below it.

    Raises:
        ValueError: some packages import each other.
    """
    left, done, found = dict(graph), set[str](), list[list[str]]()
    while left:
        ready = sorted(name for name, targets in left.items() if targets <= done)
        if not ready:
            raise ValueError(f"packages import each other: {', '.join(sorted(left))}")
        found.append(ready)
        done.update(ready)
        for name in ready:
            del left[name]
    return found


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring."""
    return (ast.get_docstring(parsed(path)) or "").partition("\n")[0]


def imports_table(root: Path) -> str:
    """Return the table of packages, from the bottom up, with what each imports."""
    graph = folder_arrows(root)
    lines = ["| package | imports |", "|---|---|"]
    for level in levels(graph):
        lines += [f"| `{name}` | {', '.join(f'`{one}`' for one in sorted(graph[name])) or '–'} |" for name in level]
    return "\n".join(lines)


def module_list(root: Path) -> str:
    """Return every module under its package with its first line, the options that it declares and its time limits."""
    by_package: dict[str, list[Path]] = {}
    for module, path in modules(root).items():
        by_package.setdefault(package_of(module, path, root), []).append(path)
    lines = []
    for package, paths in sorted(by_package.items()):
        listed = [path for path in paths if path.name != "__init__.py" or _has_code(path)]
        about = first_line(root / package / "__init__.py") if (root / package).is_dir() else ""
        lines += [
            f"### `{package}`",
            "",
            *([about, ""] if root / package / "__init__.py" not in listed and about else []),
        ]
        lines += [f"- `{path.name}`: {' '.join([first_line(path), *_declared(path)])}" for path in listed]
        lines.append("")
    return "\n".join(lines).rstrip()


def _has_code(path: Path) -> bool:
    return any(not isinstance(node, ast.Import | ast.ImportFrom) for node in parsed(path).body[1:])


def _declared(path: Path) -> Iterator[str]:
    """Yield a sentence with the options that a module declares, and one with its time limits, where it has any."""
    options = dict.fromkeys(
        str(given.value)
        for call in ast.walk(parsed(path))
        if isinstance(call, ast.Call) and getattr(call.func, "attr", getattr(call.func, "id", "")) in _DECLARING
        for given in call.args
        if isinstance(given, ast.Constant) and str(given.value).startswith("--")
    )
    if options:
        yield f"Options: {', '.join(f'`{one}`' for one in options)}."
    limits = [
        f"`{name}` = {value}"
        for name, value in re.findall(_SECONDS, path.read_text("utf-8"), flags=re.M)
        if not value.startswith("0")  # the rest are pauses between two looks
    ]
    if limits:
        yield f"Seconds: {', '.join(limits)}."


def script_list(root: Path) -> str:
    """Return every script and stylesheet of web/src with the comment in its first line."""
    lines = []
    for folder in sorted({path.parent for path in root.rglob("*.ts*")}):
        lines += [f"### `web/src/{folder.relative_to(root).as_posix()}`".replace("/.", ""), ""]
        for path in sorted(path for path in folder.iterdir() if path.suffix in (".ts", ".tsx", ".css")):
            about = path.read_text("utf-8").partition("\n")[0].removeprefix("//").strip(" /*")
            lines.append(f"- `{path.name}`: {about}")
        lines.append("")
    return "\n".join(lines).rstrip()


PARTS = {"imports": imports_table, "modules": module_list, "scripts": script_list}


def updated(text: str, root: Path) -> str:
    """Return the page with its generated parts up to date."""
    for name, make in PARTS.items():
        pattern = rf"(<!-- {name}: generated by tools/architecture.py -->\n).*?(<!-- end -->)"
        made = make(SCRIPTS if make is script_list else root)
        text, count = re.subn(pattern, lambda m, made=made: f"{m[1]}\n{made}\n\n{m[2]}", text, flags=re.S)
        if count != 1:
            raise ValueError(f"{PAGE} has no part named {name}")
    return text


def main() -> int:
    text = PAGE.read_text("utf-8")
    new = updated(text, SOURCE)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(new, "utf-8")
        return 0
    if new != text:
        print(f"{PAGE.relative_to(ROOT)} is out of date; run `python tools/architecture.py --write`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
