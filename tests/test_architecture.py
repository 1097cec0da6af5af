"""The tree is the argument: arrows of import, cycles, hidden imports, names and sizes, read from the source alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.check

SOURCE = Path(__file__).parents[1] / "src" / "eirkit"

BASE = {"compilation", "engine", "errors", "extras", "facts", "records", "registry", "seeds"}
# Which rooms a room may look into. "surface" is the package's own __init__, whose names the README uses.
ROOMS = {
    "base": {"base"},
    "eir": {"base", "eir"},
    "lacuna": {"base", "eir", "lacuna"},
    "vestige": {"base", "eir", "vestige"},
    "surface": {"base", "eir", "lacuna", "vestige"},
    "testing": {"base", "eir", "lacuna", "vestige"},  # conformance suites for authors of plug-ins
    "diagnosis": {"base", "eir", "lacuna", "vestige"},  # what `eirkit doctor` says
    "report": {"base", "eir", "lacuna", "vestige", "report", "bridges", "surface"},
    "bridges": {"base", "eir", "lacuna", "vestige", "report", "bridges", "surface", "testing"},
    "studies": {"base", "eir", "lacuna", "vestige", "report", "bridges", "surface", "studies"},
    "cli": {
        "base", "eir", "lacuna", "vestige", "report", "bridges", "studies", "surface", "testing", "diagnosis", "cli",
    },
}  # fmt: skip
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "handler", "misc", "data2"}
BANNED_ENDINGS = ("_", "_v0", "_v1", "_v2", "_new", "_old")
LONGEST_FILE = 400  # lines
LONGEST_FUNCTION = 60  # lines with signature and docstring
LONGEST_BODY = 40  # lines after the docstring
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Arrow:
    """One import of one of our modules by another, wherever it stands."""

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


def arrows(root: Path) -> list[Arrow]:
    """Return all imports between modules of the package: in any scope, type-checking ones included."""
    known = modules(root)
    return [arrow for module, path in known.items() for arrow in _arrows_of(module, path, known)]


def _arrows_of(module: str, path: Path, known: dict[str, Path]) -> Iterator[Arrow]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node, hidden in _walk(ast.parse(path.read_text("utf-8")), False):
        for name in _imported(node, package, known):
            if name.split(".")[0] == path_root(known):
                yield Arrow(module, _nearest(name, known), getattr(node, "lineno", 0), hidden)


def path_root(known: dict[str, Path]) -> str:
    return next(iter(known)).split(".")[0]


def _walk(node: ast.AST, hidden: bool) -> Iterator[tuple[ast.AST, bool]]:
    yield node, hidden
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, hidden or isinstance(node, (*FUNCTIONS, ast.Lambda)))


def _imported(node: ast.AST, package: str, known: dict[str, Path]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        origin = ".".join([*above, *([node.module] if node.module else [])])
        for alias in node.names:
            yield f"{origin}.{alias.name}" if f"{origin}.{alias.name}" in known else origin
    elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        # import_module("eirkit.…") with a literal is an import by another name.
        called = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if called in ("import_module", "__import__") and isinstance(node.args[0].value, str):
            yield node.args[0].value


def _nearest(name: str, known: dict[str, Path]) -> str:
    while name not in known and "." in name:
        name = name.rpartition(".")[0]
    return name


def room(module: str) -> str:
    """Return the room that a module belongs to; a module at the top that is not base has none."""
    parts = module.split(".")
    if len(parts) == 1:
        return "surface"
    if parts[1] == "__main__":
        return "cli"
    return "base" if parts[1] in BASE else parts[1]


def forbidden_arrows(root: Path) -> list[str]:
    """Return imports against the direction that the design allows."""
    found = [f"{module}: no such room; see docs/design" for module in modules(root) if room(module) not in ROOMS]
    return found + [
        f"{a.source}:{a.line} imports {a.target}: {room(a.source)} may not see {room(a.target)}"
        for a in arrows(root)
        if room(a.target) not in ROOMS.get(room(a.source), {room(a.target)})
    ]


def hidden_arrows(root: Path) -> list[str]:
    """Return imports of our own modules inside functions."""
    return [f"{a.source}:{a.line} hides an import of {a.target}" for a in arrows(root) if a.hidden]


def cycles(root: Path) -> list[str]:
    """Return one cycle of imports, if there is any."""
    graph: dict[str, set[str]] = {}
    for arrow in arrows(root):
        graph.setdefault(arrow.source, set()).add(arrow.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" <- ".join(error.args[1])]
    return []


def bad_names(root: Path) -> list[str]:
    """Return modules and folders whose name says nothing or says how old they are."""
    paths = [*root.rglob("*.py"), *(path for path in root.rglob("*") if path.is_dir())]
    return [
        f"{path.relative_to(root)}: name it after what it is about"
        for path in sorted(paths)
        if path.stem in BANNED_NAMES or (path.stem.endswith(BANNED_ENDINGS) and not path.stem.startswith("__"))
    ]


def too_long(root: Path) -> list[str]:
    """Return files and functions beyond the ceilings."""
    found = []
    for path in sorted(root.rglob("*.py")):
        text, name = path.read_text("utf-8"), path.relative_to(root)
        if (lines := text.count("\n")) > LONGEST_FILE:
            found.append(f"{name}: {lines} lines, the ceiling is {LONGEST_FILE}")
        functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTIONS))
        found += [f"{name}:{f.lineno} {f.name}: {fault}" for f in functions for fault in _size_faults(f)]
    return found


def _size_faults(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    statements = function.body[1:] if ast.get_docstring(function) is not None else function.body
    whole = (function.end_lineno or 0) - function.lineno + 1
    body = (function.end_lineno or 0) - statements[0].lineno + 1 if statements else 0
    if whole > LONGEST_FUNCTION:
        yield f"{whole} lines, the ceiling is {LONGEST_FUNCTION}"
    if body > LONGEST_BODY:
        yield f"{body} lines of body, the ceiling is {LONGEST_BODY}"


def shadowed_names(root: Path) -> list[str]:
    """Return names of a package that importing one of its modules would replace."""
    found = []
    for init in sorted(root.rglob("__init__.py")):
        inside = {path.stem for path in init.parent.glob("*.py")} | {path.name for path in init.parent.iterdir()}
        for node in ast.parse(init.read_text("utf-8")).body:
            defined = {node.name} if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else set()
            if isinstance(node, ast.Assign):
                defined = {target.id for target in node.targets if isinstance(target, ast.Name)}
            found += [f"{init.relative_to(root)}: importing the module {n} replaces {n}" for n in defined & inside]
    return found


RULES = [forbidden_arrows, hidden_arrows, cycles, bad_names, shadowed_names, too_long]


@pytest.mark.parametrize("rule", RULES)
def test_the_house_is_in_order(rule):
    assert rule(SOURCE) == []


def test_there_is_a_house_to_check():
    # An empty tree has no faults; this one must have modules and arrows, or the test above proves nothing.
    assert len(modules(SOURCE)) > 20
    assert any(a.source.startswith("eirkit.lacuna") and a.target.startswith("eirkit.eir") for a in arrows(SOURCE))


PLANTED = [
    (forbidden_arrows, {"eir/a.py": "from eirkit.lacuna import b", "lacuna/b.py": ""}, "eir may not see lacuna"),
    (forbidden_arrows, {"vestige/a.py": "import eirkit.lacuna.b", "lacuna/b.py": ""}, "vestige may not see lacuna"),
    (forbidden_arrows, {"lacuna/a.py": "from ..vestige.b import x", "vestige/b.py": ""}, "lacuna may not see vestige"),
    (forbidden_arrows, {"seeds.py": "from .eir import a", "eir/a.py": ""}, "base may not see eir"),
    (forbidden_arrows, {"report/a.py": "from eirkit.cli import x", "cli/__init__.py": ""}, "report may not see cli"),
    (forbidden_arrows, {"eir/a.py": "from eirkit import TaskSpec"}, "eir may not see surface"),
    (forbidden_arrows, {"attic.py": ""}, "eirkit.attic: no such room"),
    (
        forbidden_arrows,
        {"eir/a.py": "if TYPE_CHECKING:\n    from eirkit.lacuna.b import x", "lacuna/b.py": ""},
        "eirkit.eir.a:2 imports eirkit.lacuna.b",
    ),
    (
        forbidden_arrows,
        {"eir/a.py": "def f():\n    return importlib.import_module('eirkit.lacuna.b')", "lacuna/b.py": ""},
        "eir may not see lacuna",
    ),
    (hidden_arrows, {"eir/a.py": "def f():\n    from eirkit.eir import b", "eir/b.py": ""}, "eirkit.eir.a:2 hides"),
    (hidden_arrows, {"eir/a.py": "class C:\n  async def f(self):\n    import eirkit.eir.b", "eir/b.py": ""}, "hides"),
    (cycles, {"eir/a.py": "from eirkit.eir import b", "eir/b.py": "from eirkit.eir.a import x"}, "eirkit.eir.a"),
    (cycles, {"eir/a.py": "from .b import x", "eir/b.py": "def f():\n    from . import a"}, "eirkit.eir.b"),
    (bad_names, {"eir/utils.py": ""}, "eir/utils.py"),
    (bad_names, {"lacuna/helpers/x.py": ""}, "lacuna/helpers"),
    (bad_names, {"eir/count_v2.py": ""}, "eir/count_v2.py"),
    (shadowed_names, {"cli/__init__.py": "def run(): pass", "cli/run.py": ""}, "the module run replaces run"),
    (shadowed_names, {"__init__.py": "eir = 1", "eir/a.py": ""}, "the module eir replaces eir"),
    (too_long, {"eir/a.py": "x = 1\n" * 401}, "eir/a.py: 401 lines"),
    (too_long, {"eir/a.py": "def f():\n" + "    x = 1\n" * 41}, "eir/a.py:1 f: 41 lines of body"),
    (too_long, {"eir/a.py": f'def f():\n    """{"x" * 9}{chr(10) * 60}"""\n    return 1\n'}, "f: 63 lines"),
]  # fmt: skip


def plant(tmp_path: Path, files: dict[str, str]) -> Path:
    root = tmp_path / "eirkit"
    for name, text in {"__init__.py": "", **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if path.parent != root:
            (path.parent / "__init__.py").touch()
    return root


@pytest.mark.parametrize(("rule", "files", "fault"), PLANTED)
def test_a_planted_fault_is_found(tmp_path, rule, files, fault):
    found = rule(plant(tmp_path, files))
    assert len(found) == 1
    assert fault in found[0]


def test_a_tree_in_order_has_no_faults(tmp_path):
    files = {
        "errors.py": "class Error(Exception): pass",
        "eir/a.py": "from eirkit.errors import Error\ndef f():\n    import json\n    return json",
        "lacuna/b.py": "from eirkit.eir.a import f",
        "lacuna/plugins/__init__.py": "from eirkit.lacuna.plugins import one",
        "lacuna/plugins/one.py": "from eirkit.lacuna.b import f",
        "cli/c.py": "from eirkit import x\nfrom eirkit.lacuna import b",
    }
    root = plant(tmp_path, files)
    assert [fault for rule in RULES for fault in rule(root)] == []
