"""Generates the files derived from the declared measures; without `--write` it checks that they are up to date.

These are the measures and colors of the front end; `make docs` writes the glossary of the site.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import msgspec

from eirkit.report.colors import stylesheet
from eirkit.report.glossary import glossary_measures

ROOT = Path(__file__).parents[1]


def generated(root: Path = ROOT) -> dict[Path, str]:
    """Return the generated files with their contents."""
    web = root / "web" / "src"
    return {
        web / "measures.json": json.dumps(msgspec.to_builtins(glossary_measures()), indent=1, ensure_ascii=False)
        + "\n",
        web / "measures.css": stylesheet(),
    }


def main(arguments: list[str], root: Path = ROOT) -> int:
    found = 0
    for path, text in generated(root).items():
        if "--write" in arguments:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        elif not path.is_file() or path.read_text("utf-8") != text:
            print(f"{path.relative_to(root)} is out of date; run `python tools/glossary.py --write`")
            found = 1
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
