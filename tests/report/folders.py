"""Folders to look at, made by the library itself: a sweep, a managed run, a rescue, an analysis of recorded logs."""

from __future__ import annotations

import json
from pathlib import Path

from eirkit.cli import run
from eirkit.vestige.corpus.planted_corpus import PlantedCorpus, write_logs

HOSTILE = (
    "<script>document.title='taken'</script>\x1b[31mred\x1b[0m \u202egnp.exe\u202c "
    "<img src=x onerror=alert(1)>\u2028document.title='taken'\u2029"
)


def command(*words: object) -> None:
    """Run one of our commands; what it prints is nobody's concern here."""
    assert run([str(word) for word in words]) == 0


def make_sweep(folder: Path, *more: object, n: int = 16, seeds: str = "0:2") -> Path:
    models = ("--model", "reference/calculator", "--model", "reference/sloppy")
    grid = ("--workload", "stepwise-sum,stepwise-max", "--h", "8,4,2", "--m", 8, "--n", n, "--seeds", seeds)
    command("lacuna", "run", *grid, *models, "--no-control", "--out", folder, "--json", *more)
    return folder


def make_managed(folder: Path) -> Path:
    how = ("--condition", "kv", "--h", 3, "--m", 8, "--n", 12, "--b-oracle", "unlimited", "--seeds", "0:2")
    command(
        "lacuna", "run", "--workload", "stepwise-sum", "--model", "reference/recoverer", *how, "--out", folder, "--json"
    )
    return folder


def make_rescue(folder: Path, *more: object, model: str = "reference/calculator") -> Path:
    how = ("--model", model, "--seeds", "0:2", "--n", 16, "--h", 3, "--no-control")
    command("lacuna", "rescue", "--workload", "stepwise-sum", *how, "--out", folder, "--json", *more)
    return folder


def make_remembered(folder: Path, memory: str, *more: object) -> Path:
    """Rescue an agent with a memory."""
    return make_rescue(folder, "--memory", memory, *more, model="reference/recoverer")


def make_told(folder: Path, seed: int) -> Path:
    """Tell a text file one world in words."""
    how = ("--preset", "small", "--memory", "text", "--model", "scripted/reader", "--seeds", seed, "--no-control")
    command("lacuna", "run", "words", *how, "--out", folder, "--json")
    return folder


def make_probe(folder: Path) -> Path:
    how = ("--model", "reference/recoverer", "--seeds", "0:1", "--workload", "stepwise-sum")
    command("lacuna", "probe", *how, "--out", folder, "--json")
    return folder


def write_log(folder: Path, name: str = "session.jsonl", output: str = HOSTILE) -> Path:
    """Write a session of Claude Code that reads a file twice, edits it, and saw something hostile."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        _said("user", "Fix src/a.py", 0),
        *_call("Read", {"file_path": "/repo/src/a.py"}, "1\tx = 1\n2\ty = 2", 1),
        *_call("Bash", {"command": "cat /repo/notes.txt"}, output, 3),
        *_call("Read", {"file_path": "/repo/src/a.py"}, "1\tx = 1\n2\ty = 2", 5),
        *_call("Edit", {"file_path": "/repo/src/a.py", "old_string": "x = 1", "new_string": "x = 2"}, "edited", 7),
    ]
    path = folder / name
    for line in lines:
        line["sessionId"] = path.stem  # the run's name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def write_compacted(folder: Path, name: str = "long.jsonl") -> Path:
    """Write a longer session: files that are needed, read again and read in vain, with a compaction in the middle."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = {place: "\n".join(f"{n}\tline {n} of {place}" for n in range(1, 60)) for place in "abcd"}
    doings = [("Read", "a"), ("Read", "b"), ("Read", "c"), ("Edit", "a"), ("Read", "b"), ("Read", "d"), ("Edit", "a")]
    lines = [_said("user", "Make a.py and b.py agree", 0)]
    for round_ in range(2):
        if round_:
            summary = _said("user", "a.py and b.py are half done; line 5 of b is still wrong", len(lines))
            lines.append({**summary, "isCompactSummary": True})
        for tool, place in [*doings, *(("Read", place) for place in "bab"[round_:]), ("Edit", "b"), ("Edit", "a")]:
            given = {"file_path": f"/repo/src/{place}.py"}
            if tool == "Edit":
                given |= {"old_string": f"line 5 of {place}", "new_string": f"line 5 of {place}, round {round_}"}
            lines += _call(tool, given, whole[place] if tool == "Read" else "edited", len(lines))
    path = folder / name
    for line in lines:
        line["sessionId"] = path.stem
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def make_aimless(folder: Path) -> Path:
    """Write a session that touches no file and is compacted on the way."""
    folder.mkdir(parents=True, exist_ok=True)
    summary = {**_said("user", "nothing was found yet", 3), "isCompactSummary": True}
    lines = [
        _said("user", "What time is it?", 0),
        *_call("Bash", {"command": "date"}, "noon", 1),
        summary,
        *_call("Bash", {"command": "date"}, "one", 4),
    ]
    path = folder / "aimless.jsonl"
    path.write_text("".join(json.dumps({**line, "sessionId": path.stem}) + "\n" for line in lines), "utf-8")
    return path


def make_planted(folder: Path) -> Path:
    """Write logs of shell commands whose views were clipped, with reference patches, and analyze them."""
    logs = write_logs(PlantedCorpus(24, 8, clipped=1.0), 3, folder)
    command("vestige", "analyze", logs, "--gold", folder / "gold", "--out", folder / "clipped", "--json")
    return folder / "clipped"


def _said(role: str, content: object, number: int) -> dict[str, object]:
    return {
        "type": role,
        "uuid": f"u{number}",
        "parentUuid": f"u{number - 1}" if number else None,
        "cwd": "/repo",
        "timestamp": f"2026-01-01T00:00:{number:02d}Z",
        "message": {"role": role, "content": content, **({"model": "m", "id": f"r{number}"} if role != "user" else {})},
    }


def _call(tool: str, given: dict[str, str], output: str, number: int) -> list[dict[str, object]]:
    use = {"type": "tool_use", "id": f"c{number}", "name": tool, "input": given}
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": output}
    return [_said("assistant", [use], number), _said("user", [result], number + 1)]


def make_analysis(folder: Path, logs: Path) -> Path:
    command("vestige", "analyze", logs, "--out", folder, "--json")
    return folder


def make_plain(folder: Path, runs: int = 40) -> Path:
    """Write runs in our own format, whose touches are known."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(runs):
        turns = [
            {"reads": [{"path": "src/goal.py", "tokens": 100 + number}], "writes": [], "tokens": 50},
            {"reads": [{"path": f"src/f{number % 3}.py", "tokens": 10}], "writes": [], "tokens": 50},
            {"reads": [], "writes": [{"path": "src/goal.py", "tokens": 120}], "tokens": 50},
        ] * (1 + number % 2)
        named = {"run_id": f"run-{number:03d}", "task_id": f"task-{number % 5}", "model": f"m{number % 2}"}
        fate = {"resolved": number % 3 == 0, "goal_files": ["src/goal.py"]}
        lines.append(json.dumps({**named, **fate, "turns": turns}))
    (folder / "runs.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return folder
