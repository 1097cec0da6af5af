"""Environments of memory systems: where they lie, when they count as there, and what installing one says."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

from eirkit.errors import InfrastructureError, UnknownNameError, UsageError
from eirkit.folders import own_folder
from eirkit.lacuna.memories import environments
from eirkit.lacuna.memories.environments import install, is_importable, python_of, reason_not_installed
from eirkit.lacuna.memories.factory import check_plan, make_memory, reason_absent
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import Requirements, find_memory, memories, requirements_of
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit_coding.compactors.compactor import compactors, find_compactor
from tests.processes import completed


class Foreign(KeyValue):
    """Needs a package that nobody has."""

    requirements = Requirements(packages=("eirkit_nobody_has_this",), installs=(("eirkit-nobody-has-this",),))


class Native(KeyValue):
    """Needs a package that everybody has."""

    requirements = Requirements(packages=("json",))


FOREIGN, NATIVE = f"{__name__}:Foreign", f"{__name__}:Native"


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path))
    return tmp_path


def test_environments_lie_where_the_user_says_or_in_the_cache(elsewhere, monkeypatch):
    assert own_folder() == elsewhere
    monkeypatch.setenv("EIRKIT_HOME", "")
    assert own_folder() == Path.home() / ".cache" / "eirkit"


def test_what_needs_no_packages_is_always_here():
    assert is_importable(KeyValue.requirements)
    assert is_importable(Native.requirements)
    assert not is_importable(Foreign.requirements)
    assert reason_not_installed("key-value", KeyValue.requirements) is None


def test_a_system_that_is_nowhere_says_how_to_get_it(elsewhere):
    assert reason_absent(FOREIGN) == f"its packages are not installed; run eirkit doctor --install {FOREIGN}"
    with pytest.raises(UsageError, match=r"cannot run here: its packages are not installed; run eirkit doctor"):
        check_plan(MemoryPlan(FOREIGN, {}))


def test_an_environment_counts_once_it_is_complete(elsewhere):
    python = elsewhere / "environments" / "mine" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.touch()
    assert python_of("mine") is None, "an installation that broke off is none"
    (elsewhere / "environments" / "mine" / "complete").touch()
    assert python_of("mine") == python
    assert reason_not_installed("mine", Foreign.requirements) is None


def test_a_packaged_system_runs_in_a_process_of_its_own_even_where_its_packages_are_here(elsewhere):
    assert make_memory(MemoryPlan(NATIVE, {})).python == Path(sys.executable)


def test_only_what_needs_packages_can_be_installed(elsewhere):
    with pytest.raises(UsageError, match="needs no packages; use it as it is"):
        install("key-value")
    with pytest.raises(UnknownNameError):
        install("nonsense")
    assert list(elsewhere.iterdir()) == []


def test_the_last_word_of_a_failed_installation_is_passed_on():
    with pytest.raises(InfrastructureError, match=r"failed \(no such thing\); check the network and the disk"):
        environments._run([sys.executable, "-c", "import sys; sys.exit('no such thing')"], "pip")


BACKEND = """import json, os, zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    with open({noted!r}, "w") as stream:
        json.dump(dict(os.environ), stream)
    name, info = "eirkit_noting-1-py3-none-any.whl", "eirkit_noting-1.dist-info"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr(info + "/METADATA", "Metadata-Version: 2.1\\nName: eirkit-noting\\nVersion: 1\\n")
        wheel.writestr(info + "/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "/RECORD", "")
    return name
"""
PACKAGE = {
    "name": "eirkit-noting",
    "version": "1.0.0",
    "scripts": dict.fromkeys(("preinstall", "install", "postinstall", "prepare"), "env > NOTED"),
}
SECRETS = {
    "OPENAI_API_KEY": "sk-planted-0123456789",
    "AWS_SECRET_ACCESS_KEY": "planted-aws-0123456789",
    "DATABASE_URL": "postgres://someone:planted-url-0123456789@db",
    "MY_THING": "planted-nameless-0123456789",
}


@pytest.fixture
def secrets(monkeypatch):
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PIP_RETRIES", "3")
    monkeypatch.setenv("https_proxy", os.environ.get("https_proxy", ""))


def test_code_of_a_package_that_pip_runs_sees_no_secret(tmp_path, secrets):
    """The package brings its own build backend, which notes what it sees; nothing of an index is needed."""
    source, noted = tmp_path / "source", tmp_path / "noted.json"
    source.mkdir()
    (source / "noting.py").write_text(BACKEND.format(noted=str(noted)))
    system = '[build-system]\nrequires = []\nbuild-backend = "noting"\nbackend-path = ["."]\n'
    (source / "pyproject.toml").write_text(f'{system}[project]\nname = "eirkit-noting"\nversion = "1"\n')
    where = ["--target", tmp_path / "target", "--no-deps", "--no-index"]
    words = [sys.executable, "-m", "pip", "install", "--quiet", *where, source]
    environments._run([str(word) for word in words], "pip")
    seen = json.loads(noted.read_text())
    assert "planted" not in str(seen)
    assert seen["PIP_RETRIES"] == "3"
    assert seen["PATH"].endswith(os.environ["PATH"])
    assert {"HOME", "https_proxy"} & set(os.environ) <= set(seen)


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_npm_runs_no_script_of_a_package(tmp_path, secrets):
    source, noted, folder = tmp_path / "source", tmp_path / "noted", tmp_path / "folder"
    source.mkdir()
    folder.mkdir()
    (source / "package.json").write_text(json.dumps(PACKAGE).replace("NOTED", str(noted)))
    with tarfile.open(tmp_path / "package.tgz", "w:gz") as archive:
        archive.add(source, "package")
    environments._install_node(folder, Requirements(node=(f"file:{tmp_path}/package.tgz",)), lambda line: None)
    assert (folder / "node_modules" / "eirkit-noting").exists()
    assert not noted.exists()


@pytest.mark.parametrize("installer", ["pip", "npm"])
def test_an_installer_keeps_the_settings_of_its_own(installer):
    own = {"pip": "PIP_INDEX_URL", "npm": "npm_config_registry"}
    kept = {
        "PATH": "/bin",
        "HOME": "/home/me",
        "LC_ALL": "C",
        "no_proxy": "*",
        "HTTPS_PROXY": "http://proxy",
        "TMPDIR": "/t",
    }
    given = {**SECRETS, **kept, **dict.fromkeys(own.values(), "an index")}
    assert environments.installer_variables(given, installer) == {**kept, own[installer]: "an index"}


def test_every_package_that_is_installed_has_a_version():
    found = [arguments for name in memories.names() for arguments in requirements_of(find_memory(name)).installs]
    found += [arguments for name in compactors.names() for arguments in find_compactor(name).requirements.installs]
    packages = [word for arguments in (environments._OURS, *found) for word in arguments if not word.startswith("-")]
    assert len(packages) > 20
    assert [package for package in packages if not re.search(r"==|<\d", package)] == []
    node = [package for name in memories.names() for package in requirements_of(find_memory(name)).node]
    assert node
    assert [package for package in node if not re.search(r".@\d+\.\d+\.\d+$", package)] == []


@pytest.mark.slow
def test_installing_makes_an_environment_that_can_run_the_package(elsewhere):
    said: list[str] = []
    python = install(NATIVE, said.append)
    ours = "'bm25s>=0.2.14,<0.4' 'click>=8.2.1,<9' 'numpy>=1.26,<3' 'rich>=13.7,<16'"  # as a shell takes them
    assert said == [f"{NATIVE}: pip install {ours}"]
    code = "import eirkit_memories as memories; print(memories.__name__)"
    done = completed([str(python), "-c", code], env={"PYTHONPATH": str(Path(environments.__file__).parents[3])})
    assert done.stdout.strip() == "eirkit_memories", done.stderr
    assert python_of(NATIVE) == python
    assert install(NATIVE, said.append) == python
    assert len(said) == 1, "what is complete is left as it is"
    with pytest.raises(InfrastructureError, match="eirkit-nobody-has-this failed"):
        install(FOREIGN)
    assert python_of(FOREIGN) is None
