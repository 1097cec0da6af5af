"""Build the distributions, install the wheel into a clean environment and run the demo there, outside the repository.

`session wheel` runs it with one interpreter; `make session NAME=wheels` names several and also resolves all extras
together (`--extras`). It is no part of the test suite because it needs a package index.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The core stays small: what `pip install eirkit` may bring, installers included.
EXPECTED = {
    "eirkit",
    "bm25s",
    "click",
    "msgspec",
    "zstandard",
    "numpy",
    "rich",
    "markdown-it-py",
    "mdurl",
    "pygments",
    "threadpoolctl",
    "pip",
    "setuptools",
}
FEWEST_STUDIES = 25  # tables and figures
LARGEST_WHEEL_BYTES = 6_000_000  # the weights of bundled/lacuna-tiny are most of it


# Extras that need hardware or gigabytes that few have; each has a target of its own.
APART = {"gpu", "training"}


def main() -> int:
    """Return 0 if the wheel does its work on its own; say what fell short otherwise."""
    parser = argparse.ArgumentParser()
    parser.add_argument("interpreters", nargs="*", default=[sys.executable])
    parser.add_argument("--extras", action="store_true", help="also resolve all extras together")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        call(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT, cwd=folder)
        (wheel,) = (folder / "dist").glob("*.whl")
        faults = content_faults(wheel)
        for number, interpreter in enumerate(wanted.interpreters):
            faults += interpreter_faults(interpreter, wheel, folder / str(number))
        if wanted.extras:
            faults += extras_faults(folder / "0" / "venv" / "bin" / "python", wheel, folder)
        for fault in faults:
            print(f"FALLS SHORT {wheel.name}: {fault}", file=sys.stderr)
        if not faults:
            print(f"{wheel.name} ({wheel.stat().st_size:,} bytes) installs alone and runs outside the repository")
        return 1 if faults else 0


def interpreter_faults(interpreter: str, wheel: Path, folder: Path) -> list[str]:
    """Return what falls short with one Python."""
    folder.mkdir()
    version = call(interpreter, "-c", "import platform; print(platform.python_version())", cwd=folder).strip()
    python = install(interpreter, wheel, folder)
    found = [*dependency_faults(python, folder), *demo_faults(python, folder)]
    print(f"Python {version}: {'falls short' if found else 'ok'}")
    return [f"Python {version}: {fault}" for fault in found]


def install(interpreter: str, wheel: Path, folder: Path) -> Path:
    """Install the wheel, with the tested versions, into an environment that has nothing else."""
    call(interpreter, "-m", "venv", folder / "venv", cwd=folder)
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    call(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel, cwd=folder)
    return python


def extras_faults(python: Path, wheel: Path, folder: Path) -> list[str]:
    """Return why the extras cannot be installed together, with the versions of the tools of development."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = ",".join(sorted(set(project["optional-dependencies"]) - APART))
    options = ["--dry-run", "--quiet", "-c", ROOT / "constraints.txt", "-r", ROOT / "requirements-dev.txt"]
    done = run(python, "-m", "pip", "install", *options, f"{wheel}[{extras}]", cwd=folder)
    return [f"the extras {extras} cannot be installed together: {done.stderr.strip()}"] if done.returncode else []


def content_faults(wheel: Path) -> list[str]:
    """Return what should not be in the wheel, or is missing."""
    names = zipfile.ZipFile(wheel).namelist()
    packages = sorted(path.name for path in (ROOT / "src").iterdir() if path.is_dir())
    ours = ("eirkit-", *(f"{package}/" for package in packages))
    foreign = [name for name in names if not name.startswith(ours) or "__pycache__" in name]
    missing = {f"{package}/py.typed" for package in packages if package != "eirkit_pytest"} - set(names)
    found = [f"contains {n}" for n in foreign] + [f"lacks {n}" for n in missing]
    if not any(n.endswith("/LICENSE") for n in names):
        found.append("lacks the license")
    if (size := wheel.stat().st_size) > LARGEST_WHEEL_BYTES:
        found.append(f"{size} bytes, the limit is {LARGEST_WHEEL_BYTES}")
    return found


def dependency_faults(python: Path, folder: Path) -> list[str]:
    """Return packages that the core should not bring."""
    listed = json.loads(call(python, "-m", "pip", "list", "--format=json", cwd=folder))
    return [f"brings {name}" for name in {package["name"].lower() for package in listed} - EXPECTED]


def demo_faults(python: Path, folder: Path) -> list[str]:
    """Return what does not work from the wheel alone."""
    here = folder / "elsewhere"
    here.mkdir()
    eirkit = python.with_name("eirkit")
    place = call(python, "-c", "import eirkit; print(eirkit.__file__)", cwd=here)
    if ROOT in Path(place.strip()).parents:
        return [f"imports {place.strip()}, not the installed package"]
    shown = call(eirkit, "demo", "--out", "result", cwd=here)
    written = json.loads((here / "result" / "demo.json").read_text("utf-8"))
    printed = json.loads(call(eirkit, "demo", "--json", cwd=here))
    studies = json.loads(call(eirkit, "reproduce", "--list", "--json", cwd=here))["studies"]
    (study,) = json.loads(call(eirkit, "reproduce", "eir-histories", "--json", cwd=here))["studies"]
    checks = {
        "the demo prints nothing": bool(shown.strip()),
        "two runs of the demo differ": written == printed,
        "studies of the paper are missing": len(studies) >= FEWEST_STUDIES,
        "a study that draws nothing does not reproduce": study["verdict"] == "reproduced",
        "the demo's documented contrast is off": round(written["contrast"]["every_step_bits"], 3) == 212.603,
    }
    return [fault for fault, holds in checks.items() if not holds]


def call(*command: object, cwd: Path) -> str:
    """Run a command away from the repository and return what it prints; leave with its message if it fails."""
    done = run(*command, cwd=cwd)
    if done.returncode:
        sys.exit(f"`{' '.join(map(str, command))}` exits with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in an environment that knows nothing of this Python."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    words = list(map(str, command))
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


if __name__ == "__main__":
    sys.exit(main())
