"""What counts as a rule of the user, against 100 messages of real sessions, drawn by lot and labeled by hand.

`instruction_labels.jsonl` has a hash of each message, and whether the user rules in it what holds beyond that turn.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from eirkit.vestige.audits.instructions import instructions_in
from tests.vestige.recorded import recorded

LABELS = Path(__file__).with_name("instruction_labels.jsonl")
LEAST_PRECISION = 0.9


def messages(folder: Path) -> Iterator[str]:
    """Yield the texts of the lines of type `user` that hold no result of a tool."""
    for path in sorted(folder.glob("*.jsonl")):
        for text in path.read_text("utf-8", errors="replace").splitlines():
            entry = json.loads(text) if text.startswith("{") and '"user"' in text else {}
            content = (entry.get("message") or {}).get("content") if entry.get("type") == "user" else None
            if isinstance(content, list):
                content = "\n".join(block.get("text", "") for block in content if block.get("type") == "text")
            if content:
                yield content


def test_what_is_listed_are_rules(capsys: pytest.CaptureFixture[str]) -> None:
    labels = {row["sha256"]: row["rules"] for row in map(json.loads, LABELS.read_text().splitlines())}
    found = {hashlib.sha256(text.encode()).hexdigest()[:16]: text for text in messages(recorded("claude-code-real"))}
    assert len(labels) == 100
    assert labels.keys() <= found.keys()
    listed = [labels[key] for key in labels if any(instructions_in(found[key], 1))]
    with capsys.disabled():
        print(f"\nof 100 messages {sum(labels.values())} rule, {len(listed)} are listed, {sum(listed)} rightly")
    assert sum(listed) >= LEAST_PRECISION * len(listed)
