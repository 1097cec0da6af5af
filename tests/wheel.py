"""Build the distributions, install the wheel into a clean environment and run the demo there, outside the repository.

`make wheel-test` runs it. It is no part of the test suite because it needs a package index.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
# The core stays small: what `pip install eirkit` may bring, installers included.
EXPECTED = {
    "eirkit",
    "bm25s",
    "click",
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


def main() -> int:
    """Return 0 if the wheel does its work on its own; say what fell short otherwise."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        call(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT, cwd=folder)
        (wheel,) = (folder / "dist").glob("*.whl")
        python = install(wheel, folder)
        faults = [*content_faults(wheel), *dependency_faults(python, folder), *demo_faults(python, folder)]
        for fault in faults:
            print(f"FALLS SHORT {wheel.name}: {fault}", file=sys.stderr)
        if not faults:
            print(f"{wheel.name} ({wheel.stat().st_size:,} bytes) installs alone and runs outside the repository")
        return 1 if faults else 0


def install(wheel: Path, folder: Path) -> Path:
    """Install the wheel, with the tested versions, into an environment that has nothing else."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    call(python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt", wheel, cwd=folder)
    return python


def content_faults(wheel: Path) -> list[str]:
    """Return what should not be in the wheel, or is missing."""
    names = zipfile.ZipFile(wheel).namelist()
    foreign = [n for n in names if not n.startswith(("eirkit/", "eirkit-", "eirkit_pytest/")) or "__pycache__" in n]
    missing = {"eirkit/py.typed"} - set(names)
    found = [f"contains {n}" for n in foreign] + [f"lacks {n}" for n in missing]
    if not any(n.endswith("/LICENSE") for n in names):
        found.append("lacks the licence")
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
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"`{' '.join(map(str, command))}` exits with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
