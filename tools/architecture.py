"""Generates the tables of docs/design/house.md: the imports between packages and one line for each module.

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
    "validity",
)
BASE_NAME, SURFACE_NAME = "eirkit (base)", "eirkit (surface)"
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
    """Return every module under its package, each with its first line."""
    known = modules(root)
    by_package: dict[str, list[tuple[str, Path]]] = {}
    for module, path in known.items():
        by_package.setdefault(package_of(module, path, root), []).append((module, path))
    lines = []
    for package in sorted(by_package):
        about = first_line(root / package / "__init__.py") if (root / package).is_dir() else ""
        lines += [f"### `{package}`", "", *([about, ""] if about else [])]
        members = [(module, path) for module, path in by_package[package] if path.name != "__init__.py"]
        lines += [f"- `{path.name}`: {first_line(path)}" for _, path in members]
        lines.append("")
    return "\n".join(lines).rstrip()


PARTS = {"imports": imports_table, "modules": module_list}


def updated(text: str, root: Path) -> str:
    """Return the page with its generated parts up to date."""
    for name, make in PARTS.items():
        pattern = rf"(<!-- {name}: generated by tools/architecture.py -->\n).*?(<!-- end -->)"
        made = make(root)
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
