"""Compares what VESTIGE makes of a played session with the script and with the request after the compaction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eirkit.vestige.actions.touches import coverage_of, interpret
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.sources.documents import Skipped
from eirkit.vestige.trajectory import RecordedTurn, Recording
from tests.coding.bench.agents import Agent
from tests.coding.bench.play import REQUESTS
from tests.coding.bench.session import FILES, PHASE_ONE, PHASE_TWO

_FIRST_LINES = 12  # characters from which on a line of the project is distinctive


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a log says, and what happened."""

    agent: str
    format: str
    version: str
    calls: tuple[int, int]  # understood, and made
    reads: tuple[tuple[str, ...], ...]  # files shown by each step
    expected_reads: tuple[tuple[str, ...], ...]
    writes: tuple[tuple[str, ...], ...]
    expected_writes: tuple[tuple[str, ...], ...]
    kept: dict[str, int] | None  # for each file, the lines that stayed; None: the log cannot tell
    expected_kept: dict[str, int]

    def row(self) -> str:
        """Return the comparison as a row of the table in docs/design/what-an-action-touched.md."""
        reads = _agreed(self.reads, self.expected_reads)
        writes = _agreed(self.writes, self.expected_writes)
        truth = ", ".join(map(str, self.expected_kept.values())) or "none was reached"
        said = "unknown" if self.kept is None else ", ".join(map(str, self.kept.values()))
        calls = f"{self.calls[0]} of {self.calls[1]}"
        return f"| {self.agent} {self.version} | {calls} | {reads} | {writes} | {truth} | {said} |"


def compare(agent: Agent, folder: Path) -> Comparison:
    """Return the comparison of a session that was played in a folder."""
    logs = sorted((folder / "home").glob(agent.log))
    (run,) = _runs(logs)
    trajectory = interpret(run, len)
    steps = [step for step in (*PHASE_ONE, *PHASE_TWO) if step.kind != "say"]
    turns = [turn for turn in trajectory.turns if turn.recorded.calls]
    turns = turns if agent.end is None else turns[:-1]
    assert len(turns) == len(steps), f"{len(turns)} turns with calls for {len(steps)} steps"
    tools = coverage_of(run)
    return Comparison(
        agent.name,
        run.format,
        run.agent_version,
        (sum(tool.understood for tool in tools), sum(tool.calls for tool in tools)),
        tuple(tuple(sorted({read.path for read in turn.reads})) for turn in turns),
        tuple(tuple(sorted(step.shows)) for step in steps),
        tuple(tuple(sorted({write.path for write in turn.writes})) for turn in turns),
        tuple(step.writes for step in steps),
        _kept(run) if agent.compacts else None,
        _held(_texts(_next_request(folder, run))) if agent.compacts else {},
    )


def _agreed(found: tuple[tuple[str, ...], ...], expected: tuple[tuple[str, ...], ...]) -> str:
    pairs = [(step, path) for step, paths in enumerate(expected) for path in paths]
    return f"{sum(path in found[step] for step, path in pairs)} of {len(pairs)}"


def _runs(logs: list[Path]) -> list[Recording]:
    found = [item for log in logs for item in read_corpus([log])]
    # Gemini CLI begins a file when it resumes a session in another minute, and goes on in the first one.
    damaged = [item for item in found if isinstance(item, Skipped) and "holds no reply" not in item.reason]
    assert not damaged, damaged
    return [item for item in found if isinstance(item, Recording)]


def _kept(run: Recording) -> dict[str, int] | None:
    (after,) = [turn for turn in run.turns if turn.broken is not None]
    assert after.kept is not None, "the log does not say what stayed"
    if after.kept.is_opaque:
        return None
    assert after.kept.is_complete, "the log does not say that this is all"
    stayed = [_said(run.turns[number - 1]) for number in after.kept.turns]
    return _held([after.carried, *after.kept.texts, *(text for texts in stayed for text in texts)])


def _said(turn: RecordedTurn) -> Iterator[str]:
    for call in turn.calls:
        yield call.output
        yield from (value for value in call.arguments.values() if isinstance(value, str))


def _next_request(folder: Path, run: Recording) -> Any:
    """Return the messages of the first request of the main agent with the new context."""
    requests = json.loads((folder / REQUESTS).read_text())
    (after,) = [number for number, turn in enumerate(run.turns) if turn.broken is not None]
    steps = [request for request in requests if request["kind"] == "step"]
    body = steps[after]["body"]
    return next(body[name] for name in ("input", "messages", "contents") if name in body)


def _texts(value: Any) -> list[str]:
    """Return all texts in a JSON value; arguments that are JSON themselves are parsed."""
    waiting, found = [value], list[str]()
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            found.append(one)
            if one.startswith("{"):
                try:
                    waiting.append(json.loads(one))
                except ValueError:
                    continue
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
    return found


def _held(texts: list[str]) -> dict[str, int]:
    """Return how many distinctive lines of each file are in some texts."""
    present = {_bare(line) for text in texts for line in text.split("\n")}
    wanted = {name: {line.strip() for line in text.split("\n")} for name, text in FILES.items()}
    return {
        name: sum(1 for line in lines if len(line) >= _FIRST_LINES and line in present)
        for name, lines in sorted(wanted.items())
    }


def _bare(line: str) -> str:
    """Return a line without the number that a viewer prints before it."""
    number, mark, rest = line.partition("\t") if "\t" in line else line.partition(": ")
    return rest.strip() if mark and number.strip().isdigit() else line.strip()
