"""`plain`: two runs."""

from __future__ import annotations

from tests.vestige.formats.samples import as_lines

TURN = {"reads": [{"path": "a.py", "tokens": 10}], "writes": [{"path": "a.py", "tokens": 12}], "tokens": 30}

FILES = {
    "runs.jsonl": as_lines(
        {"run_id": "one", "task_id": "t", "model": "m", "resolved": True, "goal_files": ["a.py"], "turns": [TURN]},
        {"run_id": "two", "turns": []},
    )
}
