"""The tool call with which each agent of the bench performs a step of the script."""

from __future__ import annotations

import json
from pathlib import Path

from tests.coding.bench.server import Call
from tests.coding.bench.session import Step


def _length(step: Step) -> int:
    return step.lines[1] - step.lines[0] + 1 if step.lines else 0


def claude_call(step: Step, project: Path) -> Call:
    """Return the call with which Claude performs a step."""
    path = str(project / step.path)
    if step.kind == "view":
        first, last = step.lines or (1, 2000)
        return "Read", {"file_path": path, **({"offset": first, "limit": last - first + 1} if step.lines else {})}
    if step.kind == "edit":
        return "Edit", {"file_path": path, "old_string": step.old, "new_string": step.new}
    if step.kind == "search":
        return "Grep", {"pattern": step.text, "path": path, "output_mode": "content", "-n": True}
    if step.kind == "delegate":
        return "Agent", {"description": "Look", "prompt": step.text, "subagent_type": "general-purpose"}
    return "Bash", {"command": step.text, "description": "Run it"}


def _shell_of(step: Step) -> str:
    if step.kind == "search":
        return f"grep -n {step.text} {step.path}"
    if step.kind != "view":
        return step.text
    return f"sed -n '{step.lines[0]},{step.lines[1]}p' {step.path}" if step.lines else f"cat {step.path}"


def _patch(step: Step) -> str:
    removed = "".join(f"-{line}\n" for line in step.old.splitlines()[1:])
    added = "".join(f"+{line}\n" for line in step.new.splitlines()[1:])
    kept = step.old.splitlines()[0]
    return f"*** Begin Patch\n*** Update File: {step.path}\n@@\n {kept}\n{removed}{added}*** End Patch\n"


def codex_call(step: Step, project: Path) -> Call:
    """Return the call with which Codex performs a step."""
    return ("apply_patch", _patch(step)) if step.kind == "edit" else ("exec_command", {"cmd": _shell_of(step)})


def codex_script_call(step: Step, project: Path) -> Call:
    """Return the call with which Codex script performs a step."""
    if step.kind == "edit":
        return "exec", f"const patch = `{_patch(step)}`;\ntext(await tools.apply_patch(patch));"
    return "exec", f"const r = await tools.exec_command({{cmd: {json.dumps(_shell_of(step))}}});\ntext(r.output);"


def opencode_call(step: Step, project: Path) -> Call:
    """Return the call with which Opencode performs a step."""
    path = str(project / step.path)
    if step.kind == "view":
        part = {"offset": step.lines[0], "limit": _length(step)} if step.lines else {}
        return "read", {"filePath": path, **part}
    if step.kind == "edit":
        return "edit", {"filePath": path, "oldString": step.old, "newString": step.new}
    if step.kind == "search":
        return "grep", {"pattern": step.text, "path": str(project), "include": step.path}
    return "bash", {"command": step.text, "description": "Run it"}


def gemini_call(step: Step, project: Path) -> Call:
    """Return the call with which Gemini performs a step."""
    path = str(project / step.path)
    if step.kind == "view":
        part = {"start_line": step.lines[0], "end_line": step.lines[1]} if step.lines else {}
        return "read_file", {"file_path": path, **part}
    if step.kind == "edit":
        return "replace", {
            "file_path": path,
            "instruction": "Change it",
            "old_string": step.old,
            "new_string": step.new,
        }
    if step.kind == "search":
        return "search_file_content", {"pattern": step.text, "include": step.path}
    return "run_shell_command", {"command": step.text, "description": "Run it"}


def qwen_call(step: Step, project: Path) -> Call:
    """Return the call with which Qwen performs a step."""
    path = str(project / step.path)
    if step.kind == "view":
        part = {"offset": step.lines[0] - 1, "limit": _length(step)} if step.lines else {}
        return "read_file", {"file_path": path, **part}
    if step.kind == "edit":
        return "edit", {"file_path": path, "old_string": step.old, "new_string": step.new}
    return "run_shell_command", {"command": step.text, "description": "Run it", "is_background": False}


def copilot_call(step: Step, project: Path) -> Call:
    """Return the call with which Copilot performs a step."""
    path = str(project / step.path)
    if step.kind == "view":
        return "view", {"path": path, **({"view_range": list(step.lines)} if step.lines else {})}
    if step.kind == "edit":
        return "edit", {"path": path, "old_str": step.old, "new_str": step.new}
    return "bash", {"command": step.text, "description": "Run it"}


def goose_call(step: Step, project: Path) -> Call:
    """Return the call with which Goose performs a step."""
    if step.kind == "edit":
        return "edit", {"path": step.path, "before": step.old, "after": step.new}
    return "shell", {"command": _shell_of(step)}


def cline_call(step: Step, project: Path) -> Call:
    """Return the call with which Cline performs a step."""
    path = str(project / step.path)
    if step.kind == "view":
        part = {"start_line": step.lines[0], "end_line": step.lines[1]} if step.lines else {}
        return "read_files", {"files": [{"path": path, **part}]}
    if step.kind == "edit":
        return "editor", {"path": path, "old_text": step.old, "new_text": step.new}
    return "run_commands", {"commands": [step.text]}


def kimi_call(step: Step, project: Path) -> Call:
    """Return the call with which Kimi performs a step."""
    path = str(project / step.path)
    if step.kind == "view":
        return "Read", {
            "path": path,
            **({"line_offset": step.lines[0], "n_lines": _length(step)} if step.lines else {}),
        }
    if step.kind == "edit":
        return "Edit", {"path": path, "old_string": step.old, "new_string": step.new}
    return "Bash", {"command": step.text}


def mini_call(step: Step, project: Path) -> Call:
    """Return the call with which Mini performs a step."""
    if step.kind == "edit":
        change = f"p = pathlib.Path({step.path!r}); p.write_text(p.read_text().replace({step.old!r}, {step.new!r}))"
        return "bash", {"command": f"python3 - <<'END'\nimport pathlib\n{change}\nEND"}
    return "bash", {"command": _shell_of(step)}


def openhands_call(step: Step, project: Path) -> Call:
    """Return the call with which Openhands performs a step."""
    path = str(project / step.path)
    if step.kind == "view":
        part = {"view_range": list(step.lines)} if step.lines else {}
        return "file_editor", {"command": "view", "path": path, **part}
    if step.kind == "edit":
        return "file_editor", {"command": "str_replace", "path": path, "old_str": step.old, "new_str": step.new}
    return "terminal", {"command": step.text}
