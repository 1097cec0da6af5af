"""The structure of the package, read from the source: imports and names, and the page that describes them."""

from __future__ import annotations

import ast
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import architecture  # noqa: E402 - a tool, not a part of the package
from architecture import SOURCE, arrows, folder_arrows, levels, modules, package_of, parsed  # noqa: E402

pytestmark = pytest.mark.check

# What may never be imported from a package, whatever the page says: the reasons are in docs/design/house.md.
FORBIDDEN = {
    "eir": ("tasks", "agents", "runs", "logs", "show", "cli"),
    "tasks": ("agents", "runs", "findings", "logs", "show", "cli"),
    "agents": ("runs", "experiments", "logs", "show", "cli"),
    "findings": ("runs", "experiments", "logs", "show", "cli"),
    "runs": ("experiments", "logs", "show", "paper", "cli"),
    "experiments": ("logs", "show", "paper", "cli"),
    "logs": ("tasks", "agents", "runs", "findings", "experiments", "show", "cli"),  # reads run folders as files
    "live": ("runs", "cli"),  # of show it needs only how a text is cleaned
    "show": ("paper", "bridges", "cli"),
    "bridges": ("show", "cli"),
}
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "handler", "misc", "data2", "making"}
BANNED_ENDINGS = ("_", "_v0", "_v1", "_v2", "_new", "_old")
LONGEST_LINE = 118  # characters that a module says about itself
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def forbidden_arrows(root: Path) -> list[str]:
    """Return imports against the direction that the design allows."""
    known, found = modules(root), []
    for arrow in arrows(root):
        source = package_of(arrow.source, known[arrow.source], root)
        target = package_of(arrow.target, known[arrow.target], root)
        barred = FORBIDDEN.get(source.partition("/")[0], ())
        outward = source == architecture.BASE_NAME != target
        if arrow.target != root.name and (target.partition("/")[0] in barred or outward):
            found.append(f"{arrow.source}:{arrow.line} imports {arrow.target}: {source} may not import {target}")
    return found


def surface_users(root: Path) -> list[str]:
    """Return modules that take a name from the package's own list, which is for users; the version is free to all."""
    found = []
    for module, path in modules(root).items():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module == root.name and not node.level:
                taken = [
                    alias.name
                    for alias in node.names
                    if alias.name != "__version__" and not (root / alias.name).is_dir()
                ]
                found += [
                    f"{module}:{node.lineno} takes {name} from the surface; import it from its module" for name in taken
                ]
    return found


def hidden_arrows(root: Path) -> list[str]:
    """Return imports of our own modules inside functions."""
    return [f"{a.source}:{a.line} hides an import of {a.target}" for a in arrows(root) if a.hidden]


def cycles(root: Path) -> list[str]:
    """Return one cycle of imports between modules, if there is any."""
    graph: dict[str, set[str]] = {}
    for arrow in arrows(root):
        graph.setdefault(arrow.source, set()).add(arrow.target)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" <- ".join(error.args[1])]
    return []


def folder_cycles(root: Path) -> list[str]:
    """Return the folders that import each other, over however many others."""
    try:
        levels(folder_arrows(root))
    except ValueError as error:
        return [str(error)]
    return []


def bad_names(root: Path) -> list[str]:
    """Return modules and folders whose name says nothing or says how old they are."""
    paths = [*root.rglob("*.py"), *(path for path in root.rglob("*") if path.is_dir())]
    return [
        f"{path.relative_to(root)}: name it after what it is about"
        for path in sorted(paths)
        if path.stem in BANNED_NAMES or (path.stem.endswith(BANNED_ENDINGS) and not path.stem.startswith("__"))
    ]


def shadowed_names(root: Path) -> list[str]:
    """Return names of a package that importing one of its modules would replace."""
    found = []
    for init in sorted(root.rglob("__init__.py")):
        inside = {path.stem for path in init.parent.glob("*.py")} | {path.name for path in init.parent.iterdir()}
        for node in parsed(init).body:
            defined = {node.name} if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else set()
            if isinstance(node, ast.Assign):
                defined = {target.id for target in node.targets if isinstance(target, ast.Name)}
            found += [f"{init.relative_to(root)}: importing the module {n} replaces {n}" for n in defined & inside]
    return found


RULES = [
    forbidden_arrows,
    surface_users,
    hidden_arrows,
    cycles,
    folder_cycles,
    bad_names,
    shadowed_names,
]


@pytest.mark.parametrize("rule", RULES)
def test_the_package_keeps_the_rule(rule):
    assert rule(SOURCE) == []


def test_there_is_something_to_check():
    # An empty tree has no faults; this one must have modules and arrows, or the test above proves nothing.
    assert len(modules(SOURCE)) > 20
    assert any(a.source.startswith("eirkit.lacuna.tasks") and a.target.startswith("eirkit.eir") for a in arrows(SOURCE))


def test_the_page_shows_packages_and_modules_as_they_are():
    text = architecture.PAGE.read_text("utf-8")
    assert architecture.updated(text, SOURCE) == text, "run `python tools/architecture.py --write`"


def test_the_page_leads_to_files_that_exist():
    rows = re.findall(
        r"^\| (.+) \| `(\S+)` \|$", architecture.PAGE.read_text("utf-8").partition("## What imports")[0], re.M
    )
    assert len(rows) > 30
    roots = (SOURCE, ROOT)
    named = [path for what, opened in rows for path in (opened, *re.findall(r"`(\w+/[\w/]+\.\w+)`", what))]
    assert [path for path in named if not any((root / path).is_file() for root in roots)] == []


def test_the_page_names_the_options_and_time_limits_of_a_module(tmp_path: Path):
    text = '"""Runs it."""\nSTART_SECONDS = 2.5\nLOOK_SECONDS = 0.1\nadd(option("--fast"), repeated("--slow"))\n'
    (tmp_path / "run.py").write_text(text)
    assert architecture.module_list(tmp_path).endswith(
        "- `run.py`: Runs it. Options: `--fast`. Seconds: `START_SECONDS` = 2.5."
    )


def test_every_module_says_in_one_line_what_it_does():
    lines = {name: architecture.first_line(path) for name, path in modules(SOURCE).items()}
    assert [name for name, line in lines.items() if not line or len(line) > LONGEST_LINE] == []


PLANTED = [
    (forbidden_arrows, {"eir/a.py": "from eirkit.lacuna.agents import b", "agents/b.py": ""}, "eir may not import agents"),
    (forbidden_arrows, {"logs/a.py": "import eirkit.lacuna.runs.b", "runs/b.py": ""}, "logs may not import runs"),
    (forbidden_arrows, {"agents/x/a.py": "from ...logs.b import x", "logs/b.py": ""}, "agents/x may not import logs"),
    (forbidden_arrows, {"seeds.py": "from .eir import a", "eir/a.py": ""}, "(base) may not import eir"),
    (forbidden_arrows, {"show/a.py": "from eirkit.cli import x", "cli/__init__.py": ""}, "show may not import cli"),
    (
        forbidden_arrows,
        {"eir/a.py": "if TYPE_CHECKING:\n    from eirkit.lacuna.agents.b import x", "agents/b.py": ""},
        "eirkit.eir.a:2 imports eirkit.lacuna.agents.b",
    ),
    (
        forbidden_arrows,
        {"eir/a.py": "def f():\n    return importlib.import_module('eirkit.lacuna.agents.b')", "agents/b.py": ""},
        "eir may not import agents",
    ),
    (surface_users, {"eir/a.py": "from eirkit import TaskSpec, __version__"}, "eirkit.eir.a:1 takes TaskSpec"),
    (
        folder_cycles,
        {"eir/a.py": "from eirkit.x import b", "x/b.py": "from eirkit.y import c", "y/c.py": "import eirkit.eir.d",
         "eir/d.py": "", "z/e.py": ""},
        "import each other: eir, x, y",
    ),
    (hidden_arrows, {"eir/a.py": "def f():\n    from eirkit.eir import b", "eir/b.py": ""}, "eirkit.eir.a:2 hides"),
    (hidden_arrows, {"eir/a.py": "class C:\n  async def f(self):\n    import eirkit.eir.b", "eir/b.py": ""}, "hides"),
    (cycles, {"eir/a.py": "from eirkit.eir import b", "eir/b.py": "from eirkit.eir.a import x"}, "eirkit.eir.a"),
    (cycles, {"eir/a.py": "from .b import x", "eir/b.py": "def f():\n    from . import a"}, "eirkit.eir.b"),
    (bad_names, {"eir/utils.py": ""}, "eir/utils.py"),
    (bad_names, {"runs/helpers/x.py": ""}, "runs/helpers"),
    (bad_names, {"eir/count_v2.py": ""}, "eir/count_v2.py"),
    (shadowed_names, {"cli/__init__.py": "def run(): pass", "cli/run.py": ""}, "the module run replaces run"),
    (shadowed_names, {"__init__.py": "eir = 1", "eir/a.py": ""}, "the module eir replaces eir"),
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
        "tasks/b.py": "from eirkit.eir.a import f",
        "tasks/plugins/__init__.py": "PLUGINS = {'one': 'eirkit.lacuna.tasks.plugins.one'}",
        "tasks/plugins/one.py": "from eirkit.lacuna.tasks.b import f",
        "cli/c.py": "from eirkit import __version__\nfrom eirkit.lacuna.tasks import b",
    }
    root = plant(tmp_path, files)
    assert [fault for rule in RULES for fault in rule(root)] == []
