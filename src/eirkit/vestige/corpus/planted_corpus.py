"""Generates corpora with known effects on failure, recovery and rereading, in the `plain` format or as shell logs.

Every demand, gap and outcome is drawn from a stated model, and the logs are written so that an analysis must find these
numbers again. Runs are drawn in blocks, so a corpus of any size can be streamed; equal seeds give equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from eirkit.errors import SpecError
from eirkit.seeds import name_key
from eirkit.vestige.audits.reread import BIN_TOKENS

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]

BLOCK = 4096  # runs drawn at a time
FILES = 4  # files that a run reads; the first is the goal
GOAL = "src/goal.py"
PATHS = (GOAL, "src/one.py", "src/two.py", "src/three.py")
CENTER_DEMAND, CENTER_GAP, CENTER_LINES = 11.0, 9.5, 9.6  # log2 values at which the intercept applies
_BASE_RATE = 1 / 5000  # rereads per token, at distances below a thousand
_DECAY, _NEEDED, _NEEDED_DECAY = -0.25, 0.3, 0.05  # log rate ratios
_BINS = 6  # up to 32k tokens, longer than every planted run
_LENGTH = (13.0, 14.9)  # log2 tokens of a run
_GAP = (6.0, 12.9)
_LINES = (8.3, 10.9)  # log2 lines of the goal file


@dataclass(frozen=True, slots=True)
class PlantedEffects:
    """The true effects, as ratios; 1 is no effect."""

    demand_odds: float = 1.0  # of failure, per doubling of 1 + peak demand
    gap_odds: float = 1.0  # of failure, per doubling of 1 + the longest gap over needed files
    never_odds: float = 1.0  # of success, never recovered against recovered
    rework_odds: float = 1.0  # of failure, any rework against none
    size_never_odds: float = 1.0  # of never recovering, per doubling of base lines
    reread_failed_ratio: float = 1.0  # failed, at all distances and files
    reread_ratio: float = 1.0  # failed × needed × doubling of distance
    reread_all_ratio: float = 1.0  # failed × doubling of distance


@dataclass(frozen=True, slots=True)
class PlantedCorpus:
    """The corpus to generate; trials of a task are `tasks` runs apart."""

    runs: int
    tasks: int
    models: int = 3
    name: str = "planted"
    intercept: float = -0.3  # log odds of failure
    task_sd: float = 0.8  # standard deviation of the tasks' log odds
    confounding: float = 0.0  # doublings of demand per unit of a task's log odds of failure
    coverage: float = 1.0  # share of runs that touch the goal file
    clipped: float = 0.6  # share of runs, in shell logs, whose first view is clipped
    needed_reads: Literal["rate", "gap"] = "rate"  # "gap": the goal file is read once, a planted gap before its edit
    effects: PlantedEffects = field(default_factory=PlantedEffects)

    def __post_init__(self) -> None:
        if self.runs < 0 or self.tasks < 1 or self.models < 1:
            raise SpecError("a corpus needs runs ≥ 0, tasks ≥ 1 and models ≥ 1; correct the numbers")


@dataclass(frozen=True, slots=True)
class PlantedRuns:
    """Some drawn runs: the truth about each."""

    number: Codes
    task: Codes
    model: Codes
    covered: Mask
    demand_tokens: Codes
    length_tokens: Codes
    gap_tokens: Codes
    base_lines: Codes
    is_clipped: Mask
    is_never: Mask
    is_rework: Mask
    is_failed: Mask
    rate: Floats  # of rereads, over the common one


# The sizes of the paper's three cohorts, with its shares of goal access.
PAPER: tuple[PlantedCorpus, ...] = (
    PlantedCorpus(4_988, 500, 10, "verified", coverage=0.92),
    PlantedCorpus(500, 500, 1, "coderforge", coverage=0.99),
    PlantedCorpus(67_074, 6_306, 1, "openhands", coverage=0.574),
)


def draw_blocks(corpus: PlantedCorpus, seed: int) -> Iterator[PlantedRuns]:
    """Yield the truth about all runs."""
    rng = _rng(corpus, seed, "tasks")
    log_odds, rates = rng.normal(0, 1, corpus.tasks) * corpus.task_sd, np.exp(rng.normal(0, 0.3, corpus.tasks))
    lines = np.exp2(rng.uniform(*_LINES, corpus.tasks)).astype(np.int64)
    tasks = _Tasks(log_odds, rates, lines, np.append(0.0, rng.normal(0, 0.3, corpus.models - 1)))
    for start in range(0, corpus.runs, BLOCK):
        number = np.arange(start, min(start + BLOCK, corpus.runs))
        yield _block(corpus, tasks, number, _rng(corpus, seed, start))


def plain_lines(corpus: PlantedCorpus, seed: int) -> Iterator[bytes]:
    """Yield the corpus in the `plain` format, one run per line."""
    for block in draw_blocks(corpus, seed):
        yield from _lines(corpus, block, _rng(corpus, seed, "reads", int(block.number[0])))


def write_plain(corpus: PlantedCorpus, seed: int, path: Path) -> Path:
    """Write the corpus as one file of JSON lines and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb", buffering=1 << 20) as stream:
        stream.writelines(plain_lines(corpus, seed))
    return path


def _rng(corpus: PlantedCorpus, seed: int, *names: str | int) -> np.random.Generator:
    return np.random.default_rng([seed, name_key("planted", corpus.name, *names)])


@dataclass(frozen=True, slots=True)
class _Tasks:
    """The truth about every task and model."""

    log_odds: Floats  # of failure
    rates: Floats  # of rereads, over the common one
    lines: Codes
    models: Floats  # log odds of failure; the first model's are 0


def _block(corpus: PlantedCorpus, tasks: _Tasks, number: Codes, rng: np.random.Generator) -> PlantedRuns:
    n, true = len(number), corpus.effects
    task, model = number % corpus.tasks, number // corpus.tasks % corpus.models
    log_odds, lines = tasks.log_odds[task] + tasks.models[model], tasks.lines[task]
    covered = rng.random(n) < corpus.coverage
    demand = np.exp2(rng.normal(CENTER_DEMAND, 1.2, n) + corpus.confounding * log_odds)
    demand = np.where(covered, np.clip(demand, 64, 1 << 17), 0).astype(np.int64)
    length = np.exp2(rng.uniform(*_LENGTH, n)).astype(np.int64)
    gap = np.minimum(np.exp2(rng.uniform(*_GAP, n)).astype(np.int64), length - FILES - 1)
    never_odds = -0.6 + np.log(true.size_never_odds) * (np.log2(1 + lines) - CENTER_LINES)
    is_clipped = rng.random(n) < corpus.clipped
    is_never = is_clipped & (rng.random(n) < _expit(never_odds))
    is_rework = rng.random(n) < 0.3
    odds = corpus.intercept + log_odds
    odds = odds + np.log(true.demand_odds) * (np.log2(1 + demand) - CENTER_DEMAND)
    if corpus.needed_reads == "gap":
        odds = odds + np.log(true.gap_odds) * (np.log2(1 + gap) - CENTER_GAP)
    odds = odds - np.log(true.never_odds) * is_never + np.log(true.rework_odds) * is_rework
    is_failed = rng.random(n) < _expit(odds)
    rate = np.exp(rng.normal(0, 0.2, n)) * tasks.rates[task]
    drawn = covered, demand, length, gap, lines, is_clipped, is_never, is_rework, is_failed
    return PlantedRuns(number, task, model, *drawn, rate)


def _expit(x: Floats) -> Floats:
    made: Floats = 1 / (1 + np.exp(-x))
    return made


def _lines(corpus: PlantedCorpus, block: PlantedRuns, rng: np.random.Generator) -> Iterator[bytes]:
    run, file, clock = _reads(corpus, block, rng)
    ends = np.searchsorted(run, np.arange(len(block.number)), "right").tolist()
    files, clocks = file.tolist(), clock.tolist()
    start = 0
    for place, end in enumerate(ends):
        yield _line(corpus, block, place, files[start:end], clocks[start:end])
        start = end


def _line(corpus: PlantedCorpus, block: PlantedRuns, place: int, files: list[int], clocks: list[int]) -> bytes:
    task, trial = int(block.task[place]), int(block.number[place]) // corpus.tasks
    demand, length = int(block.demand_tokens[place]), int(block.length_tokens[place])
    # Everything read is carried to the single edit, so the peak is the sum over the files.
    each = max(demand // FILES, 1)
    costs = [max(demand - (FILES - 1) * each, 1), each, each, each]
    turns, before = [], 0
    for file, clock in zip(files, clocks, strict=True):
        read = f'{{"path":"{PATHS[file]}","tokens":{costs[file]}}}'
        turns.append(f'{{"reads":[{read}],"tokens":{clock - before}}}')
        before = clock
    written = f'[{{"path":"{GOAL}","tokens":{costs[0]}}}]' if block.covered[place] else "[]"
    turns.append(f'{{"writes":{written},"tokens":{length - before}}}')
    resolved = "false" if block.is_failed[place] else "true"
    head = f'"run_id":"{corpus.name}-{task}-{trial}","task_id":"{corpus.name}-{task}"'
    model = f'"model":"planted/{int(block.model[place])}"'
    line = f'{{{head},{model},"resolved":{resolved},"goal_files":["{GOAL}"],"turns":[{",".join(turns)}]}}\n'
    return line.encode()


def _reads(corpus: PlantedCorpus, block: PlantedRuns, rng: np.random.Generator) -> tuple[Codes, Codes, Codes]:
    """Return run, file and clock of every read, in log order."""
    n = len(block.number)
    run, file = np.repeat(np.arange(n), FILES), np.tile(np.arange(FILES), n)
    clock = file + 1
    is_gap = (file == 0) & (corpus.needed_reads == "gap")
    clock = np.where(is_gap, block.length_tokens[run] - block.gap_tokens[run], clock)
    present = (file != 0) | block.covered[run]
    run, file, clock, is_gap = run[present], file[present], clock[present], is_gap[present]
    found = [(run, file, clock)]
    run, file, clock = run[~is_gap], file[~is_gap], clock[~is_gap]
    reach, hazards = _hazards(corpus.effects)
    while len(run):
        kind = 2 * block.is_failed[run] + (file == 0)
        wait = rng.exponential(1, len(run)) / (_BASE_RATE * block.rate[run])
        clock = clock + np.maximum(np.ceil(_distance(wait, reach[kind], hazards[kind])), 1).astype(np.int64)
        again = clock < block.length_tokens[run]
        run, file, clock = run[again], file[again], clock[again]
        found.append((run, file, clock))
    runs, files, clocks = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.lexsort((files, clocks, runs))
    return runs[order], files[order], clocks[order]


def _hazards(true: PlantedEffects) -> tuple[Floats, Floats]:
    """Return, by 2 × failed + needed and bin, the cumulative hazard before the bin and its relative rate."""
    ends = np.array([0, *(BIN_TOKENS << place for place in range(_BINS))], dtype=np.float64)
    x = np.log2((ends[:-1] + ends[1:]) / 2 / 500)
    rates = []
    for failed in (0, 1):
        for needed in (0, 1):
            slope = _DECAY + needed * _NEEDED_DECAY
            slope += failed * np.log(true.reread_all_ratio) + failed * needed * np.log(true.reread_ratio)
            rates.append(np.exp(needed * _NEEDED + failed * np.log(true.reread_failed_ratio) + slope * x))
    hazards = np.array(rates)
    reach = np.concatenate([np.zeros((4, 1)), np.cumsum(hazards * np.diff(ends), axis=1)[:, :-1]], axis=1)
    return reach, hazards


def _distance(wait: Floats, reach: Floats, hazards: Floats) -> Floats:
    """Return the distance at which the cumulative hazard reaches a value."""
    place = (wait[:, None] >= reach).sum(axis=1) - 1
    rows = np.arange(len(wait))
    starts = np.array([0, *(BIN_TOKENS << place for place in range(_BINS - 1))], dtype=np.float64)
    distance: Floats = starts[place] + (wait - reach[rows, place]) / hazards[rows, place]
    return distance


CLIP_CHARACTERS = 10_000  # characters of an output above which the scaffold elides its middle
_AROUND = 5  # lines before and after the changed one in a view around it
_PADDING = 250  # tokens of a planted length per line of another file
_WARNING = "<warning>\nThe output of your last command was too long.\n</warning>"


def write_logs(corpus: PlantedCorpus, seed: int, out: Path) -> Path:
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


def _document(block: PlantedRuns, place: int, task: str) -> dict[str, Any]:
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


def _steps(block: PlantedRuns, place: int) -> Iterator[tuple[str, str]]:
    lines = int(block.base_lines[place])
    changed = lines // 2
    # Its length is independent, so that a run's tokens do not reveal what else it did.
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
