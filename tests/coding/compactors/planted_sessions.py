"""Sessions of mini-SWE-agent whose needed lines are known by construction, as its logs record them.

Two files are read; a scratch file is written, which ends what the reads were for; tests print output; at the end one of
the two files is edited. Between the scratch file and that edit, exactly the lines of the edited file are needed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

NEEDED, NOISE = "pkg/needed.py", "pkg/noise.py"


def file_lines(name: str, lines: int) -> list[str]:
    """Return the lines of a file, each different from every other and from those of other files."""
    return [f"{name}_value_{number} = compute({number}, step={number * 7})" for number in range(1, lines + 1)]


def session(name: str, *, lines: int = 20, fillers: int = 4) -> dict[str, Any]:
    """Return the log of one run."""
    needed, noise = "\n".join(file_lines(f"{name}_needed", lines)), "\n".join(file_lines(f"{name}_noise", 2 * lines))
    steps = [
        (f"cat {NOISE}", noise),
        (f"cat {NEEDED}", needed),
        ("cat > scratch.txt <<'EOF'\nonly a note to myself here\nEOF", ""),
        *((f"python -m pytest tests/test_{number}.py", _tests(name, number)) for number in range(fillers)),
        (f"sed -i 's/{name}_needed_value_3 = .*/{name}_needed_value_3 = 0/' {NEEDED}", ""),
        ("echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT && git diff --cached", ""),
    ]
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You work in a shell."},
        {"role": "user", "content": "Set the third value of pkg/needed.py to 0."},
    ]
    for command, output in steps:
        messages.append({"role": "assistant", "content": f"THOUGHT: next step.\n\n```bash\n{command}\n```"})
        messages.append({"role": "user", "content": f"<returncode>0</returncode>\n<output>\n{output}\n</output>"})
    config = {"model": {"model_name": "maker/model-1"}, "environment": {"cwd": "/testbed"}}
    info = {"exit_status": "Submitted", "submission": "", "mini_version": "1.15.0", "config": config}
    return {"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1", "instance_id": name}


def _tests(name: str, number: int) -> str:
    cases = (f"tests/test_{number}.py::test_case_{case}_{name} PASSED in {case * 13} ms" for case in range(25))
    return "\n".join(cases)


def write_sessions(folder: Path, names: list[str], **how: int) -> Path:
    """Write the logs of several runs and return their folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.traj.json").write_text(json.dumps(session(name, **how)))
    return folder
