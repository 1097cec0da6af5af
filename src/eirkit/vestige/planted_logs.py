"""The same planted truth as logs of mini-SWE-agent 1: shell commands, clipped views, a reference patch for each task.

Written are one folder of `*.traj.json` with its `results.json` for each trial, `gold/<task>/gold.patch`, and
`base-lines.json`. Demand here is whatever the files cost; planted are clipping, recovery, rework and their effects.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from eirkit.vestige.planting import GOAL, Block, Planted, draw_blocks

CLIP_CHARACTERS = 10_000  # of an output, beyond which the scaffold shows its two halves
_AROUND = 5  # lines before and after the changed one, in a view of that place
_PADDING = 250  # tokens of a planted length for each line of another file
_WARNING = "<warning>\nThe output of your last command was too long.\n</warning>"


def write_logs(corpus: Planted, seed: int, out: Path) -> Path:
    """Write the corpus below a folder and return the folder of its logs."""
    logs = out / "logs"
    patched: dict[str, int] = {}
    results: dict[Path, list[dict[str, Any]]] = {}
    for block in draw_blocks(corpus, seed):
        for place in range(len(block.number)):
            task = f"{corpus.name}-{int(block.task[place])}"
            folder = logs / f"trial-{int(block.number[place]) // corpus.tasks:03d}"
            (folder / "trajs").mkdir(parents=True, exist_ok=True)
            (folder / "trajs" / f"{task}.traj.json").write_text(json.dumps(_document(block, place, task)), "utf-8")
            resolved = not block.is_failed[place]
            results.setdefault(folder, []).append({"instance_id": task, "resolved": resolved})
            patched[task] = int(block.base_lines[place])
    for folder, instances in results.items():
        (folder / "results.json").write_text(json.dumps({"instances": instances}), "utf-8")
    for task, lines in patched.items():
        (out / "gold" / task).mkdir(parents=True, exist_ok=True)
        (out / "gold" / task / "gold.patch").write_text(_patch(lines), "utf-8")
    (out / "base-lines.json").write_text(json.dumps(patched), "utf-8")
    return logs


def _document(block: Block, place: int, task: str) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You work in a shell."},
        {"role": "user", "content": f"Solve {task}."},
    ]
    for command, output in _steps(block, place):
        messages.append({"role": "assistant", "content": f"THOUGHT: go on.\n\n```bash\n{command}\n```"})
        messages.append({"role": "user", "content": output})
    config = {"model": {"model_name": f"planted/{int(block.model[place])}"}, "environment": {"cwd": "/testbed"}}
    info = {"exit_status": "Submitted", "submission": "", "mini_version": "1.15.0", "config": config}
    return {"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1", "instance_id": task}


def _steps(block: Block, place: int) -> Iterator[tuple[str, str]]:
    lines = int(block.base_lines[place])
    changed = lines // 2
    # Of a length of its own, so that a run's tokens do not give away what else it did.
    yield "cat src/one.py", _whole(int(block.length_tokens[place]) // _PADDING)
    if block.is_rework[place]:
        yield "cat README.md", _shown("read me\n")
        yield "cat README.md", _shown("read me\n")
    if block.is_clipped[place]:
        yield f"cat {GOAL}", _whole(lines)
    if not block.is_never[place]:
        first, last = changed - _AROUND, changed + _AROUND
        yield f"sed -n '{first},{last}p' {GOAL}", _shown("".join(map(_source, range(first, last + 1))))
    yield f"sed -i '{changed}s/value/other/' {GOAL}", _shown("")
    yield "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", ""


@lru_cache(maxsize=1 << 10)
def _whole(lines: int) -> str:
    return _shown("".join(map(_source, range(1, lines + 1))))


def _shown(text: str) -> str:
    """Return an output as the scaffold shows it."""
    if len(text) <= CLIP_CHARACTERS:
        return f"<returncode>0</returncode>\n<output>\n{text}</output>"
    half = CLIP_CHARACTERS // 2
    head, tail, hidden = text[:half], text[-half:], len(text) - CLIP_CHARACTERS
    elided = f"<elided_chars>\n{hidden} characters elided\n</elided_chars>"
    return (
        f"<returncode>0</returncode>\n{_WARNING}<output_head>\n{head}\n</output_head>\n{elided}\n"
        f"<output_tail>\n{tail}\n</output_tail>"
    )


def _source(number: int) -> str:
    return f"value_{number:05d} = compute({number}, 'a planted line')\n"


def _patch(lines: int) -> str:
    changed = lines // 2
    old = _source(changed)
    new = old.replace("value", "other", 1)
    return (
        f"diff --git a/{GOAL} b/{GOAL}\n--- a/{GOAL}\n+++ b/{GOAL}\n"
        f"@@ -{changed - 1},3 +{changed - 1},3 @@\n {_source(changed - 1)}-{old}+{new} {_source(changed + 1)}"
    )
