"""Plug-ins by decorator, by entry point of a real distribution, by module:Name and by path/file.py:Name."""

import importlib
import os
import sys
from pathlib import Path

import pytest

from eirkit.errors import InputFileError, UnknownNameError, UsageError
from eirkit.registry import Registry, load_object, references_in


@pytest.fixture
def registry() -> Registry[type]:
    return Registry("policy", group="eirkit.test_policies", package="eirkit")


@pytest.fixture
def site(tmp_path, monkeypatch) -> Path:
    """A folder that Python searches, as site-packages is."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def install(site: Path, package: str, points: str, source: str | None = None) -> None:
    """Put a distribution with entry points where Python finds it."""
    info = site / f"{package}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[eirkit.test_policies]\n{points}\n")
    if source is not None:
        (site / f"{package}.py").write_text(source)
    importlib.invalidate_caches()


def test_decorator_registers_and_returns_the_class(registry):
    @registry.add("keep")
    class Keep:
        pass

    assert registry.get("keep") is Keep
    assert registry.names() == ["keep"]


def test_two_plugins_of_one_name_are_refused(registry):
    registry.add("keep")(type("First", (), {}))
    with pytest.raises(UsageError, match="another policy is already named 'keep'; rename"):
        registry.add("keep")(type("Second", (), {}))


def test_the_same_definition_may_come_again(registry):
    # A reloaded module defines its classes anew.
    first, second = type("Keep", (), {}), type("Keep", (), {})
    registry.add("keep")(first)
    registry.add("keep")(second)
    assert registry.get("keep") is second


def test_unknown_name_lists_the_known(registry):
    registry.add("fifo")(int)
    with pytest.raises(UnknownNameError, match="no policy named 'fifp'; did you mean 'fifo'"):
        registry.get("fifp")


def test_entry_point_of_another_package(registry, site):
    install(site, "outside_keep", "keep = outside_keep:Keep", "class Keep: pass\n")
    assert registry.names() == ["keep"]
    assert "outside_keep" not in sys.modules, "listing must not load"
    assert registry.get("keep").__name__ == "Keep"
    assert registry.get("keep") is registry.get("keep")


def test_builtin_wins_over_an_entry_point(registry, site):
    registry.add("keep")(int)
    install(site, "outside_other", "keep = outside_other:Keep", "class Keep: pass\n")
    assert registry.get("keep") is int


def test_entry_point_whose_module_uses_the_decorator_too(site):
    install(
        site,
        "outside_both",
        "keep = outside_both:Keep",
        "from eirkit.registry import Registry\n"
        "family = Registry('policy', group='eirkit.test_policies', package='eirkit')\n"
        "@family.add('keep')\nclass Keep: pass\n",
    )
    family = load_object("outside_both:family")
    assert family.get("keep") is load_object("outside_both:Keep")


def test_two_packages_with_one_name_are_refused(registry, site):
    install(site, "outside_a", "keep = outside_a:Keep", "class Keep: pass\n")
    install(site, "outside_b", "keep = outside_b:Keep", "class Keep: pass\n")
    with pytest.raises(UsageError, match=r"outside_a .* and outside_b .*; remove one"):
        registry.get("keep")


@pytest.mark.parametrize("source", ["raise RuntimeError('boom')\n", "import no_such_module\n", "class Other: pass\n"])
def test_entry_point_that_cannot_be_loaded_names_its_package(registry, site, source):
    name = f"outside_broken_{abs(hash(source))}"
    install(site, name, f"keep = {name}:Keep", source)
    with pytest.raises(UsageError, match=rf"policy 'keep' of {name} .*fix or uninstall it"):
        registry.get("keep")


def test_module_and_name(registry):
    assert registry.get("collections:OrderedDict").__name__ == "OrderedDict"


def test_file_and_name(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("from dataclasses import dataclass\n@dataclass\nclass Mine:\n    x: 'int' = 3\n")
    assert load_object(f"{file}:Mine")().x == 3


def test_file_runs_once_until_it_changes(tmp_path):
    file, log = tmp_path / "mine.py", tmp_path / "log"
    source = f"from pathlib import Path\nwith Path({str(log)!r}).open('a') as f: f.write('x')\nclass Mine: value = 1\n"
    file.write_text(source)
    first = load_object(f"{file}:Mine")
    assert load_object(f"{file}:Mine") is first
    assert log.read_text() == "x"
    file.write_text(source.replace("value = 1", "value = 20"))
    assert load_object(f"{file}:Mine").value == 20
    assert log.read_text() == "xx"


def test_files_of_one_name_in_two_folders_do_not_meet(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(f"name = {folder!r}\n")
    assert [load_object(f"{tmp_path}/{folder}/mine.py:name") for folder in ("a", "b", "a")] == ["a", "b", "a"]


def test_file_that_registers_may_be_edited_and_loaded_again(tmp_path):
    file = tmp_path / "plug.py"
    head = "from tests.test_registry import SHARED\n@SHARED.add('mine')\nclass Mine:\n"
    file.write_text(head + "    value = 1\n")
    load_object(f"{file}:Mine")
    file.write_text(head + "    value = 20\n")
    load_object(f"{file}:Mine")
    assert SHARED.get("mine").value == 20


SHARED: Registry[type] = Registry("policy", group="eirkit.test_policies", package="eirkit")


@pytest.mark.parametrize("reference", ["Name", ":Name", "module:", ""])
def test_not_a_reference(reference):
    with pytest.raises(UsageError, match=r"write package\.module:Name or path/file\.py:Name"):
        load_object(reference)


@pytest.mark.parametrize("reference", ["no_such_module:Name", ".relative:Name", "eirkit.nothing:Name", "a b:Name"])
def test_module_that_cannot_be_imported(reference):
    with pytest.raises(UsageError, match=r"cannot import .*; install or fix it, or give path/file\.py:Name"):
        load_object(reference)


def test_missing_name_lists_the_public_ones(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("timezone = 1\n_private = 2\n")
    with pytest.raises(UnknownNameError, match=r"no contract in .*mine\.py named 'nothing'; known: timezone$"):
        load_object(f"{file}:nothing", "contract")


def test_missing_file(tmp_path):
    with pytest.raises(InputFileError, match=r"cannot read .*nope\.py; give an existing"):
        load_object(f"{tmp_path}/nope.py:Name")


def test_name_of_a_file_that_no_system_accepts():
    with pytest.raises(InputFileError, match="give an existing"):
        load_object("\0.py:Name")


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("raise ValueError('boom')\n", "ValueError: boom"),
        ("def f(:\n", "SyntaxError"),
        ("import sys; sys.exit(0)\n", "SystemExit: 0"),
        ("x = '\udcff'.encode()\n", "Unicode"),
    ],
)
def test_file_that_fails_is_named_with_its_error(tmp_path, source, cause):
    file = tmp_path / "mine.py"
    file.write_bytes(source.encode("utf-8", "surrogateescape"))
    loaded = set(sys.modules)
    with pytest.raises(InputFileError, match=rf"mine\.py raised .*{cause}|mine\.py raised SyntaxError"):
        load_object(f"{file}:Name")
    assert not {name for name in set(sys.modules) - loaded if "mine" in name}


@pytest.mark.skipif(os.geteuid() == 0 if hasattr(os, "geteuid") else True, reason="the superuser reads everything")
def test_unreadable_folder_is_one_line(tmp_path):
    (tmp_path / "locked").mkdir(mode=0)
    with pytest.raises(InputFileError, match="give an existing"):
        load_object(f"{tmp_path}/locked/mine.py:Name")


def test_code_is_found_wherever_settings_name_it():
    named = {"workload": ["x/evil.py:W", "words"], "memory_options": {"vector": {"embedding": "x/evil.py:embed"}}}
    assert references_in(named) == ["x/evil.py:W", "x/evil.py:embed"]
    assert references_in({"memory": "bm25", "memory_options": {"mcp": {"url": "http://127.0.0.1:80/"}}}) == []
