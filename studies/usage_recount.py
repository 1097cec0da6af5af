"""Counts the tokens of Claude Code sessions a second time, without eirkit's readers, beside `eirkit week`.

python -m studies.usage_recount FOLDER. A response is logged in several lines while it arrives, also those of sub-agents
that stand in lines of progress; each response counts once, with the largest number of each kind.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

KINDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


def recount(folder: Path) -> dict[tuple[str, str], list[int]]:
    """Return the tokens of each response, by its identifiers."""
    counted: dict[tuple[str, str], list[int]] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text("utf-8", errors="replace").splitlines():
            try:
                entry: Any = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict) and entry.get("type") == "progress":
                entry = (entry.get("data") or {}).get("message")
            message = entry.get("message") if isinstance(entry, dict) and entry.get("type") == "assistant" else None
            if isinstance(message, dict) and message.get("model") != "<synthetic>" and message.get("usage"):
                tokens = [message["usage"].get(kind) or 0 for kind in KINDS]
                key = str(message.get("id")), str(entry.get("requestId"))
                counted[key] = [max(pair) for pair in zip(tokens, counted.get(key, tokens), strict=True)]
    return counted


def main() -> None:
    folder = Path(sys.argv[1])
    counted = recount(folder)
    print(f"recount       {sum(map(sum, counted.values())):>13,} tokens in {len(counted):,} responses")
    week = [sys.executable, "-m", "eirkit", "week", str(folder), "--since", "2020-01-01", "--json"]
    total = json.loads(subprocess.run(week, capture_output=True, check=True).stdout)["total"]
    print(f"eirkit week   {total['tokens']:>13,} tokens in {total['responses']:,} responses, ${total['usd']:,.2f}")


if __name__ == "__main__":
    main()
