"""Counts the tokens and dollars of Claude Code sessions a second time, without eirkit's code, beside `eirkit week`.

python -m studies.usage_recount FOLDER. A response is logged in several lines while it arrives, also those of sub-agents
that stand in lines of progress; each response counts once, with the largest number of each kind. Dollars are exact.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

PRICES = Path(__file__).parent.parent / "src" / "eirkit" / "lacuna" / "models" / "prices.toml"
KINDS = {  # of tokens, by the name that the bill gives them: the price
    "cache reads": "cached",
    "cache writes, minutes": "cache_write",
    "cache writes, an hour": "cache_write_1h",
    "input, not cached": "input",
    "output": "output",
}
SUB_AGENTS = "sub-agents"  # a part of the others
LONG = "above 100,000"  # likewise: requests with longer prompts


def recount(folder: Path) -> dict[str, tuple[int, Decimal]]:
    """Return tokens and dollars by kind."""
    found: dict[str, list[int]] = {}
    about: dict[str, tuple[str, bool]] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        for text in path.read_text("utf-8", errors="replace").splitlines():
            try:
                entry: Any = json.loads(text)
            except ValueError:
                continue
            is_inside = isinstance(entry, dict) and entry.get("type") == "progress"
            line = (entry.get("data") or {}).get("message") if is_inside else entry
            message = line.get("message") if isinstance(line, dict) and line.get("type") == "assistant" else None
            if not isinstance(message, dict) or message.get("model") == "<synthetic>" or not message.get("usage"):
                continue
            usage, key = message["usage"], f"{message.get('id')} {line.get('requestId')}"
            hour = (usage.get("cache_creation") or {}).get("ephemeral_1h_input_tokens") or 0
            written = usage.get("cache_creation_input_tokens") or 0
            read, fresh = usage.get("cache_read_input_tokens") or 0, usage.get("input_tokens") or 0
            tokens = [read, written - hour, hour, fresh, usage.get("output_tokens") or 0]
            found[key] = [max(pair) for pair in zip(tokens, found.get(key, tokens), strict=True)]
            about.setdefault(key, (message["model"], is_inside or line.get("isSidechain") is True))
    listed: Any = tomllib.loads(PRICES.read_text(), parse_float=Decimal)["prices"]
    sums: defaultdict[str, tuple[int, Decimal]] = defaultdict(lambda: (0, Decimal(0)))
    for key, tokens in found.items():
        model, is_sub_agent = about[key]
        price = listed[f"anthropic/{re.sub(r'-20[0-9]{6}$', '', model)}"]
        dollars = [count * Decimal(price[name]) for count, name in zip(tokens, KINDS.values(), strict=True)]
        parts = [(kind, tokens[place], dollars[place]) for place, kind in enumerate(KINDS)]
        parts += [(SUB_AGENTS, sum(tokens), sum(dollars, Decimal(0)))] * is_sub_agent
        parts += [(LONG, sum(tokens), sum(dollars, Decimal(0)))] * (sum(tokens[:4]) > 100_000)
        for kind, count, usd in parts:
            sums[kind] = (sums[kind][0] + count, sums[kind][1] + usd / 1_000_000)
    return dict(sums)


def main() -> None:
    folder = Path(sys.argv[1])
    for kind, (tokens, usd) in (counted := recount(folder)).items():
        print(f"{kind:22}{tokens:>13,}  ${usd:,.10f}")
    tokens, usd = (sum(counted[kind][place] for kind in KINDS) for place in (0, 1))
    print(f"{'recount':22}{tokens:>13,}  ${usd:,.10f}")
    week = [sys.executable, "-m", "eirkit", "week", str(folder), "--since", "2020-01-01", "--json"]
    answer = json.loads(subprocess.run(week, capture_output=True, check=True).stdout)
    (claude,) = [row for row in answer["agents"] if row["agent"] == "claude-code"]
    print(f"{'eirkit week':22}{claude['tokens']:>13,}  ${claude['usd']:,.10f}")


if __name__ == "__main__":
    main()
