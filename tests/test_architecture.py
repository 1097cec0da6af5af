"""The structure of the packages, read from the source: layers, cycles, what extensions may use, and names."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from tools.counts import annotations, dict_aliases, is_dict_row

from tests.processes import completed

pytestmark = pytest.mark.check

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
# The parts of the core from the bottom up, as docs/architecture.md draws them. A part may import those before it,
# except that LACUNA and VESTIGE do not know each other.
LAYERS = (
    *("base", "records", "eir", "engine"),
    *("lacuna.tasks", "lacuna.models", "lacuna.memories", "lacuna.agents"),
    *("lacuna.findings", "lacuna.conversation", "lacuna.scripted", "lacuna.runs"),
    *("vestige", "report", "testing", "api", "surface", "cli"),
)
EXTENSIONS = ("eirkit_bridges", "eirkit_coding", "eirkit_memories", "eirkit_paper")
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "handler", "misc", "data2", "making"}
BANNED_ENDINGS = ("_", "_v0", "_v1", "_v2", "_new", "_old")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Arrow:
    """One import between modules of ours, in any scope."""

    source: str
    target: str
    line: int
    hidden: bool  # inside a function


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text("utf-8"))


def modules(source: Path) -> dict[str, Path]:
    """Return every module below a folder of packages under its dotted name."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def arrows(source: Path) -> list[Arrow]:
    """Return all imports between our modules: in any scope, type-checking ones included."""
    known = modules(source)
    tops = {name.split(".")[0] for name in known}
    found = []
    for module, path in known.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for node, hidden in _walk(parsed(path), False):
            for name in _imported(node, package, known):
                if name.split(".")[0] in tops:
                    found.append(Arrow(module, _nearest(name, known), getattr(node, "lineno", 0), hidden))
    return found


def _walk(node: ast.AST, hidden: bool) -> Iterator[tuple[ast.AST, bool]]:
    yield node, hidden
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, hidden or isinstance(node, FUNCTIONS))


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


def part_of(module: str, source: Path) -> str:
    """Return the layer of a module of the core, or its extension."""
    top, *inside = module.split(".")
    if top != "eirkit":
        return top
    if not inside:
        return "surface"
    if inside == ["__main__"]:
        return "cli"  # `python -m eirkit` starts the command line
    if inside[0] == "lacuna":
        return ".".join(inside[:2])
    return inside[0] if (source / "eirkit" / inside[0]).is_dir() else "base"


def parts_imported(source: Path) -> Iterator[tuple[Arrow, str, str]]:
    """Yield the imports between parts; `from eirkit import __version__` is free to all."""
    for arrow in arrows(source):
        parts = part_of(arrow.source, source), part_of(arrow.target, source)
        if parts[0] != parts[1] and parts[1] != "surface":
            yield arrow, *parts


def upward_arrows(source: Path) -> list[str]:
    """Return imports of the core against its layers."""
    found = []
    for arrow, own, other in parts_imported(source):
        if own not in LAYERS or other not in LAYERS:
            continue
        apart = other.startswith("lacuna") and own == "vestige"
        if LAYERS.index(other) > LAYERS.index(own) or apart:
            found.append(f"{arrow.source}:{arrow.line} imports {arrow.target}: {own} may not import {other}")
    return found


def unknown_parts(source: Path) -> list[str]:
    """Return modules outside the layers and extensions."""
    known = {*LAYERS, *EXTENSIONS, "eirkit_pytest", "lacuna"}
    return [f"{module} belongs to no layer" for module in modules(source) if part_of(module, source) not in known]


def arrows_to_extensions(source: Path) -> list[str]:
    """Return imports of an extension by the core or by another extension."""
    return [
        f"{arrow.source}:{arrow.line} imports {arrow.target}, of an extension"
        for arrow, own, other in parts_imported(source)
        if other in EXTENSIONS and own != "eirkit_pytest"
    ]


def hidden_arrows(source: Path) -> list[str]:
    """Return imports of our own modules inside functions."""
    return [
        f"{arrow.source}:{arrow.line} hides an import of {arrow.target}" for arrow in arrows(source) if arrow.hidden
    ]


def module_cycles(source: Path) -> list[str]:
    """Return one cycle of imports between modules, if there is any."""
    graph: dict[str, set[str]] = {}
    for arrow in arrows(source):
        graph.setdefault(arrow.source, set()).add(arrow.target)
    return _cycle(graph)


def folder_cycles(source: Path) -> list[str]:
    """Return one cycle of imports between folders, if there is any."""
    known = modules(source)
    graph: dict[str, set[str]] = {}
    for arrow in arrows(source):
        own, other = (known[module].parent.relative_to(source).as_posix() for module in (arrow.source, arrow.target))
        if own != other and arrow.target != "eirkit" and arrow.source not in ("eirkit", "eirkit.__main__"):
            graph.setdefault(own, set()).add(other)
    return _cycle(graph)


def _cycle(graph: dict[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" <- ".join(error.args[1])]
    return []


def surface_users(source: Path) -> list[str]:
    """Return modules of the core that take a name from the package's own list, which is for users."""
    found = []
    for module, path in modules(source).items():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module == "eirkit" and not node.level:
                inside = source / "eirkit"
                taken = [
                    alias.name
                    for alias in node.names
                    if alias.name != "__version__"
                    and not (inside / alias.name).is_dir()
                    and not (inside / f"{alias.name}.py").exists()
                ]
                found += [f"{module}:{node.lineno} takes {name} from the surface" for name in taken]
    return found


def bad_names(source: Path) -> list[str]:
    """Return modules and folders whose name says nothing or says how old they are."""
    paths = [*source.rglob("*.py"), *(path for path in source.rglob("*") if path.is_dir())]
    return [
        f"{path.relative_to(source)}: name it after what it is about"
        for path in sorted(paths)
        if path.stem in BANNED_NAMES or (path.stem.endswith(BANNED_ENDINGS) and not path.stem.startswith("__"))
    ]


def shadowed_names(source: Path) -> list[str]:
    """Return names of a package that importing one of its modules would replace."""
    found = []
    for init in sorted(source.rglob("__init__.py")):
        inside = {path.stem for path in init.parent.glob("*.py")} | {path.name for path in init.parent.iterdir()}
        for node in parsed(init).body:
            defined = {node.name} if isinstance(node, (*FUNCTIONS, ast.ClassDef)) else set()
            if isinstance(node, ast.Assign):
                defined = {target.id for target in node.targets if isinstance(target, ast.Name)}
            found += [
                f"{init.relative_to(source)}: importing the module {name} replaces {name}" for name in defined & inside
            ]
    return found


RULES = [
    upward_arrows,
    unknown_parts,
    arrows_to_extensions,
    hidden_arrows,
    module_cycles,
    folder_cycles,
    surface_users,
    bad_names,
    shadowed_names,
]


@pytest.mark.parametrize("rule", RULES)
def test_the_packages_keep_the_rule(rule):
    assert rule(SOURCE) == []


def test_there_is_something_to_check():
    # An empty tree has no faults; this one must have modules and arrows, or the test above proves nothing.
    assert len(modules(SOURCE)) > 20
    parts = {(own, other) for _, own, other in parts_imported(SOURCE)}
    assert {("lacuna.tasks", "eir"), ("eirkit_memories", "lacuna.memories")} <= parts


def test_memory_adapters_use_only_public_modules():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    public = set(re.findall(r"^- `([\w.]+)`:", page, re.M))
    assert public <= set(modules(SOURCE)), "docs/architecture.md lists modules that do not exist"
    used = {
        arrow.target: arrow.source
        for arrow in arrows(SOURCE)
        if arrow.source.startswith("eirkit_memories") and not arrow.target.startswith("eirkit_memories")
    }
    assert {module: by for module, by in used.items() if module not in public} == {}


def test_what_the_process_of_a_memory_imports_does_without_msgspec():
    """Its environment gets eirkit by PYTHONPATH, and may be another Python than that of msgspec."""
    adapters = [f"eirkit_memories.{path.stem}" for path in sorted((SOURCE / "eirkit_memories").glob("*.py"))]
    names = ", ".join(["eirkit.lacuna.memories.host", *(name for name in adapters if "__" not in name)])
    code = f"import sys; sys.modules.update(msgspec=None); import {names}"
    done = completed([sys.executable, "-c", code])
    assert done.returncode == 0, done.stderr


def test_every_module_says_in_its_first_line_what_it_does():
    said = {name: (ast.get_docstring(parsed(path)) or "").partition("\n")[0] for name, path in modules(SOURCE).items()}
    assert [name for name, line in said.items() if not line] == []


PLANTED = [
    (upward_arrows, {"eirkit/eir/a.py": "from eirkit.lacuna.agents import b", "eirkit/lacuna/agents/b.py": ""},
     "eir may not import lacuna.agents"),
    (upward_arrows, {"eirkit/vestige/a.py": "import eirkit.lacuna.runs.b", "eirkit/lacuna/runs/b.py": ""},
     "vestige may not import lacuna.runs"),
    (upward_arrows, {"eirkit/lacuna/runs/x/a.py": "from ....vestige.b import x", "eirkit/vestige/b.py": ""},
     "lacuna.runs may not import vestige"),
    (upward_arrows, {"eirkit/seeds.py": "from .eir import a", "eirkit/eir/a.py": ""}, "base may not import eir"),
    (upward_arrows, {"eirkit/report/a.py": "from eirkit.cli import x", "eirkit/cli/__init__.py": ""},
     "report may not import cli"),
    (
        upward_arrows,
        {"eirkit/eir/a.py": "if TYPE_CHECKING:\n    from eirkit.vestige.b import x", "eirkit/vestige/b.py": ""},
        "eirkit.eir.a:2 imports eirkit.vestige.b",
    ),
    (
        upward_arrows,
        {"eirkit/eir/a.py": "def f():\n    return importlib.import_module('eirkit.vestige.b')",
         "eirkit/vestige/b.py": ""},
        "eir may not import vestige",
    ),
    (unknown_parts, {"eirkit/elsewhere/a.py": "", "eirkit/elsewhere/__init__.py": ""}, "eirkit.elsewhere"),
    (arrows_to_extensions, {"eirkit/cli/a.py": "import eirkit_paper.b", "eirkit_paper/b.py": ""}, "of an extension"),
    (arrows_to_extensions, {"eirkit_coding/a.py": "from eirkit_paper import b", "eirkit_paper/b.py": ""},
     "eirkit_coding.a:1 imports eirkit_paper.b"),
    (surface_users, {"eirkit/eir/a.py": "from eirkit import TaskSpec, __version__"}, "eirkit.eir.a:1 takes TaskSpec"),
    (
        folder_cycles,
        {"eirkit/eir/a.py": "from eirkit.x import b", "eirkit/x/b.py": "from eirkit.y import c",
         "eirkit/y/c.py": "import eirkit.eir.d", "eirkit/eir/d.py": "", "eirkit/z/e.py": ""},
        "eirkit/x",
    ),
    (hidden_arrows, {"eirkit/eir/a.py": "def f():\n    from eirkit.eir import b", "eirkit/eir/b.py": ""}, "hides"),
    (hidden_arrows, {"eirkit/eir/a.py": "class C:\n  async def f(self):\n    import eirkit.eir.b",
                     "eirkit/eir/b.py": ""}, "hides"),
    (module_cycles, {"eirkit/eir/a.py": "from eirkit.eir import b", "eirkit/eir/b.py": "from eirkit.eir.a import x"},
     "eirkit.eir.a"),
    (module_cycles, {"eirkit/eir/a.py": "from .b import x", "eirkit/eir/b.py": "def f():\n    from . import a"},
     "eirkit.eir.b"),
    (bad_names, {"eirkit/eir/utils.py": ""}, "eir/utils.py"),
    (bad_names, {"eirkit/records/helpers/x.py": ""}, "records/helpers"),
    (bad_names, {"eirkit/eir/count_v2.py": ""}, "eir/count_v2.py"),
    (shadowed_names, {"eirkit/cli/__init__.py": "def run(): pass", "eirkit/cli/run.py": ""}, "run replaces run"),
    (shadowed_names, {"eirkit/__init__.py": "eir = 1", "eirkit/eir/a.py": ""}, "the module eir replaces eir"),
]  # fmt: skip


def plant(source: Path, files: dict[str, str]) -> Path:
    for name, text in {"eirkit/__init__.py": "", **files}.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for folder in path.relative_to(source).parents:
            if folder.name:
                (source / folder / "__init__.py").touch()
    return source


@pytest.mark.parametrize(("rule", "files", "fault"), PLANTED)
def test_a_planted_fault_is_found(tmp_path, rule, files, fault):
    found = rule(plant(tmp_path, files))
    assert found
    assert any(fault in sentence for sentence in found)


def test_a_tree_in_order_has_no_faults(tmp_path):
    files = {
        "eirkit/errors.py": "class Error(Exception): pass",
        "eirkit/eir/a.py": "from eirkit.errors import Error\ndef f():\n    import json\n    return json",
        "eirkit/lacuna/tasks/b.py": "from eirkit.eir.a import f",
        "eirkit/lacuna/tasks/plugins/__init__.py": "PLUGINS = {'one': 'eirkit.lacuna.tasks.plugins.one'}",
        "eirkit/cli/c.py": "from eirkit import __version__, errors\nfrom eirkit.lacuna.tasks import b",
        "eirkit_coding/d.py": "from eirkit.lacuna.tasks import b",
    }
    source = plant(tmp_path, files)
    assert [fault for rule in RULES for fault in rule(source)] == []


# Modules, and packages as a whole, in which foreign JSON enters or a foreign format leaves, by the reason for it.
# Everywhere else a result has a type: no function takes or returns `dict[str, Any]` or the like.
BORDER = {
    "logs of agents and their tools": (
        *("eirkit.vestige.formats", "eirkit.vestige.sources", "eirkit.vestige.actions"),
        *("eirkit_coding.sessions", "eirkit_coding.week.responses", "eirkit.report.demo.questions"),
    ),
    "messages of agents' requests": (
        *("eirkit_coding.guard.conversation", "eirkit_coding.guard.other_transcripts"),
        *("eirkit_coding.compactors.compactor", "eirkit_coding.compactors.host", "eirkit_coding.compactors.strands"),
    ),
    "traces of OpenTelemetry, LangSmith and Langfuse": (
        *("eirkit_bridges.otel", "eirkit_bridges.otlp", "eirkit_bridges.otlp_spans", "eirkit_bridges.trace_rows"),
    ),
    "requests and replies of model servers": (
        *("eirkit.lacuna.models.batches", "eirkit.lacuna.models.chat_completion", "eirkit.lacuna.models.chat_server"),
        *("eirkit.lacuna.models.native_servers", "eirkit.lacuna.memories.endpoint"),
        *("eirkit.lacuna.memories.openai_dialect", "eirkit.lacuna.memories.embeddings"),
        *("eirkit.testing.selftest.models", "eirkit.testing.selftest.planted", "eirkit.testing.selftest.server"),
    ),
    "schemas and arguments of tools": (
        *("eirkit.lacuna.agents.protocol", "eirkit.lacuna.memories.agent_managed"),
        *("eirkit.lacuna.memories.tool_agent", "eirkit_bridges.episode", "eirkit_bridges.mcp_server"),
        *("eirkit.lacuna.agents.telemetry", "eirkit_bridges.external_runs"),
    ),
    "answers that memory systems' own prompts ask for": (
        *("eirkit.lacuna.scripted.extractor", "eirkit.lacuna.scripted.notes"),
        "eirkit.lacuna.scripted.system_requests",
    ),
    "settings of models, which their plug-ins define": (
        *("eirkit.lacuna.agents.bundled", "eirkit.lacuna.agents.local", "eirkit.lacuna.agents.reference"),
        *(
            "eirkit.lacuna.models.hosted",
            "eirkit.lacuna.models.inspect_ai",
            "eirkit.lacuna.models.local",
            "eirkit.lacuna.models.metered",
        ),
        *("eirkit.lacuna.models.model", "eirkit.lacuna.models.replay"),
        *("eirkit.lacuna.runs.play", "eirkit.lacuna.runs.replay"),
    ),
    "settings of memory systems, which their plug-ins define": (
        *("eirkit.lacuna.memories.child_process", "eirkit.lacuna.memories.environments"),
        *("eirkit.lacuna.memories.factory", "eirkit.lacuna.memories.host", "eirkit.lacuna.memories.memory"),
        *("eirkit.lacuna.memories.plan", "eirkit.lacuna.memories.questions", "eirkit_bridges.pytest_plugin"),
        "eirkit_memories",
    ),
    "options of commands and keys of suites": (
        *("eirkit.cli.agent_options", "eirkit.cli.lacuna_run", "eirkit.cli.run_options"),
        *(
            "eirkit.lacuna.findings.command_line",
            "eirkit.lacuna.runs.family",
            "eirkit.lacuna.runs.numbers",
            "eirkit.lacuna.runs.suite",
        ),
        *("eirkit.lacuna.tasks.workload", "eirkit.lacuna.conversation.labeled", "eirkit.lacuna.conversation.workload"),
        *("eirkit_bridges.cli.export", "eirkit_bridges.cli.mcp_serve", "eirkit_paper.suites"),
        *("eirkit.api.running", "eirkit.cli.lacuna_run", "eirkit.lacuna.findings.command_line"),
        *("eirkit.lacuna.runs.cells", "eirkit.lacuna.runs.conversations", "eirkit.lacuna.runs.values"),
        *("eirkit.testing.selftest.endpoint", "eirkit_bridges.inspect_ai"),
        *("eirkit_bridges.memory_suite", "eirkit_paper.cli.reproduce_models"),
    ),
    "tables of TOML": (
        *("eirkit.lacuna.conversation.language", "eirkit.lacuna.conversation.vocabulary"),
        "eirkit.lacuna.models.prices",
    ),
    "files of published benchmarks": (
        *("eirkit.lacuna.conversation.published", "eirkit.vestige.demand.gold_patches"),
        "eirkit.vestige.corpus.outcomes",
    ),
    "logs that a planted corpus or the demo writes": (
        *("eirkit.vestige.corpus.planted_corpus", "eirkit.report.demo.questions"),
    ),
    "documents in the form of others: Inspect, OpenTelemetry, Croissant": (
        *("eirkit_bridges.inspect_export", "eirkit_bridges.otel_runs", "eirkit_paper.archive"),
    ),
    "tables of pyarrow and pandas": ("eirkit.api.sweep",),
    "the header of weights": ("eirkit.lacuna.models.network.layout",),
    "what asyncio reports of an error": ("eirkit.lacuna.memories.calls",),
    "grids and coordinates that are searched for code before they are trusted": ("eirkit.registry",),
    "lines of JSON, before they are decoded": ("eirkit.records.lines",),
}


# Modules whose results have no types yet: the list must shrink.
def modules_with_dict_rows(source: Path) -> set[str]:
    """Return the modules in which a function takes or returns a dict of anything, aliases resolved."""
    trees = {module: parsed(path) for module, path in modules(source).items()}
    aliases = dict_aliases(trees)
    return {
        module
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS) and any(is_dict_row(note, aliases[module]) for note in annotations(node))
    }


def at_the_border(module: str) -> list[str]:
    """Return the entries of the border to which a module belongs."""
    listed = [entry for entries in BORDER.values() for entry in entries]
    return [entry for entry in listed if module == entry or module.startswith(f"{entry}.")]


def test_results_have_types_except_at_the_border():
    found = modules_with_dict_rows(SOURCE)
    untyped = {module for module in found if not at_the_border(module)}
    assert untyped == set(), "give these results types, or say in BORDER which foreign JSON it is"


def test_every_module_at_the_border_is_needed_there():
    needed = {entry for module in modules_with_dict_rows(SOURCE) for entry in at_the_border(module)}
    assert {entry for entries in BORDER.values() for entry in entries} - needed == set()


def test_dict_rows_are_found_behind_aliases(tmp_path):
    files = {
        "eirkit/a.py": "Row = Mapping[str, Any]\ndef f(given: int) -> int: ...",
        "eirkit/b.py": "from eirkit.a import Row\nRows = list[Row]\nclass C:\n    def f(self, rows: 'Rows'): ...",
        "eirkit/c.py": "async def f() -> dict[str, object] | None: ...",
        "eirkit/d.py": "def f(cells: dict[str, int]) -> list[str]: ...",
    }
    assert modules_with_dict_rows(plant(tmp_path, files)) == {"eirkit.b", "eirkit.c"}
