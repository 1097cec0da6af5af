"""Check that all files name the version of a release, and write the entry for the registry of MCP servers.

`--check 0.2.0` fails with one line for each file that names another version. `--server-json OWNER` prints
`server.json`; the registry accepts it only from the owner of the GitHub account it names, so the owner is an argument.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"


def version() -> str:
    """Return the version of the package."""
    text = (ROOT / "src" / "eirkit" / "__init__.py").read_text("utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.M)
    if found is None:
        sys.exit("src/eirkit/__init__.py has no __version__; add it")
    return found[1]


def faults(wanted: str) -> list[str]:
    """Return one sentence for each file that does not name the wanted version."""
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    named = {
        "src/eirkit/__init__.py": version() == wanted,
        "CHANGELOG.md": f"\n## [{wanted}]" in changelog,
        "CITATION.cff": f"\nversion: {wanted}\n" in citation,
        "packaging/conda/recipe.yaml": f'\n  version: "{wanted}"\n'
        in (ROOT / "packaging/conda/recipe.yaml").read_text("utf-8"),
    }
    return [f"{file} does not name version {wanted}; correct it" for file, holds in named.items() if not holds]


def server_json(owner: str) -> dict[str, object]:
    """Return the entry of `eirkit mcp serve` for the registry of MCP servers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {
        "$schema": SCHEMA,
        "name": f"io.github.{owner}/eirkit",
        "title": "eirkit",
        "description": "A task of known length and dependencies that measures what an agent's memory keeps.",
        "version": version(),
        "packages": [
            {
                "registryType": "pypi",
                "identifier": project["name"],
                "version": version(),
                "runtimeHint": "uvx",
                "runtimeArguments": [{"type": "named", "name": "--from", "value": f"eirkit[mcp]=={version()}"}],
                "packageArguments": [
                    {"type": "positional", "value": "mcp"},
                    {"type": "positional", "value": "serve"},
                    {"type": "positional", "value": "store-recall"},
                    {"type": "named", "name": "--h", "value": "4"},
                ],
                "transport": {"type": "stdio"},
            }
        ],
    }


def main() -> int:
    """Return 0 if what was asked for could be done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", metavar="VERSION")
    parser.add_argument("--server-json", metavar="OWNER")
    wanted = parser.parse_args()
    if wanted.server_json:
        print(json.dumps(server_json(wanted.server_json), indent=2))
    found = faults(wanted.check) if wanted.check else []
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
