"""Runs every benchmark, or those named, and prints their tables; each is one file with a `main()`.

A benchmark whose `main()` returns a number other than 0 missed its target; the others still run.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path

import benchmarks


def known() -> list[str]:
    """Return the names of all benchmarks: the modules that define `main`."""
    folder = Path(benchmarks.__path__[0])
    return sorted(file.stem for file in folder.glob("[!_]*.py") if "\ndef main(" in file.read_text("utf-8"))


def run(names: list[str]) -> int:
    """Run the named benchmarks; return 1 if one of them missed its target."""
    missed = []
    for name in names:
        print(f"\n— {name}", flush=True)
        # Each in its own process: what one imports, compiles or allocates must not flatter or burden the next.
        code = f"import sys; from benchmarks.{name} import main; sys.exit(main())"
        if subprocess.run([sys.executable, "-c", code], check=False).returncode:
            missed.append(name)
    if missed:
        print(f"\nbelow target: {', '.join(missed)}", file=sys.stderr)
    return 1 if missed else 0


def main(names: list[str]) -> int:
    """Check the names, say what is measured on, and run."""
    listed = known()
    for name in names:
        if name not in listed:
            near = get_close_matches(name, listed, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            print(f"no benchmark named {name!r}; {hint}known: {', '.join(listed)}", file=sys.stderr)
            return 2
    machine = f"{platform.machine()} with {os.cpu_count()} cores, {platform.system()}"
    print(f"Python {platform.python_version()}, NumPy {version('numpy')}, {machine}; load {_load()}")
    return run(names or listed)


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
