"""`import eirkit`: a small, sorted, honest list of names, and nothing heavy or noisy behind it."""

import ast
import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import eirkit
from tests.processes import completed

pytestmark = pytest.mark.check

MOST_NAMES = 30
HEAVY = {"click", "rich", "numba", "torch", "matplotlib", "pandas", "pytest"}
ROOT = Path(__file__).parents[1]


def test_the_list_is_sorted_and_short():
    assert eirkit.__all__ == sorted(set(eirkit.__all__))
    assert len(eirkit.__all__) <= MOST_NAMES


def test_the_list_is_what_the_file_imports_for_type_checkers():
    tree = ast.parse(Path(eirkit.__file__).read_text("utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.name: node.module for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert sorted(imported) == eirkit.__all__
    assert imported == eirkit._HOMES


def test_importing_loads_a_name_when_it_is_used():
    done = probe(
        "import eirkit, sys; before = len([m for m in sys.modules if m.startswith('eirkit.')]); "
        "eirkit.TaskSpec; print(before, 'eirkit.lacuna.tasks.task' in sys.modules, 'TaskSpec' in dir(eirkit))"
    )
    assert done.stdout.split() == ["0", "True", "True"]


@pytest.mark.parametrize("name", eirkit.__all__)
def test_every_name_is_there_and_documented(name):
    assert getattr(eirkit, name).__doc__


@pytest.mark.parametrize("name", eirkit.__all__)
def test_every_name_is_ours(name):
    public = getattr(eirkit, name)
    assert (getattr(public, "__module__", None) or type(public).__module__).startswith("eirkit.")


def probe(code: str) -> subprocess.CompletedProcess[str]:
    return completed([sys.executable, "-W", "error", "-c", code], check=True)


def test_importing_brings_nothing_heavy_and_says_nothing():
    done = probe("import eirkit, sys, json; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))")
    assert done.stderr == ""
    assert HEAVY & set(json.loads(done.stdout)) == set()


def test_importing_touches_no_file_and_no_random_state(tmp_path):
    code = (
        "import os, random, numpy\n"
        f"os.chdir({str(tmp_path)!r})\n"
        "before = (random.getstate(), str(numpy.random.get_state()), dict(os.environ))\n"
        "import eirkit\n"
        "assert before == (random.getstate(), str(numpy.random.get_state()), dict(os.environ))\n"
    )
    probe(code)
    assert list(tmp_path.iterdir()) == []


def test_star_import_gives_the_list():
    done = probe("from eirkit import *; print(sorted(n for n in dir() if not n.startswith('_')))")
    assert ast.literal_eval(done.stdout) == eirkit.__all__


def test_the_package_says_that_it_is_typed():
    assert (Path(eirkit.__file__).parent / "py.typed").is_file()


def test_the_version_is_that_of_the_installed_distribution_and_the_next_one_is_open():
    assert version("eirkit") == eirkit.__version__
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines() if line.startswith("## [")]
    assert headings[0] == "## [Unreleased]"
