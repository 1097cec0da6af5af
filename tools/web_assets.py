"""Checks that the committed web assets were built from the present sources in web/; `--write` records their hash."""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOTE = ROOT / "src" / "eirkit" / "report" / "assets" / "sources.json"
SETTINGS = ("index.html", "package.json", "package-lock.json", "tsconfig.json")


def sources_sha256(web: Path) -> str:
    """Return one hash of every file that a build depends on, names included."""
    settings = [web / name for name in SETTINGS] + list(web.glob("vite*.config.ts"))
    files = sorted([*settings, *(path for path in (web / "src").rglob("*") if path.is_file())])
    lines = [f"{path.relative_to(web).as_posix()} {sha256(path.read_bytes()).hexdigest()}\n" for path in files]
    return sha256("".join(lines).encode()).hexdigest()


def main(arguments: list[str]) -> int:
    now = sources_sha256(ROOT / "web")
    if "--write" in arguments:
        NOTE.write_text(json.dumps({"sources_sha256": now}) + "\n", "utf-8")
        return 0
    if not NOTE.is_file() or json.loads(NOTE.read_text("utf-8"))["sources_sha256"] != now:
        print("src/eirkit/report/assets was not built from the present sources in web/; run `make web`")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
