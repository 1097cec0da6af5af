"""What the pressure and retention studies share: running a reference agent over seeds, wording verdicts, printing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from eirkit.cli.output import WholeConsole, table
from eirkit.errors import InfrastructureError
from eirkit.lacuna.conditions import make_session
from eirkit.lacuna.evidence.attribution import RunScore, Verdict, judge, score
from eirkit.lacuna.evidence.behaviour import Behaviour, behave
from eirkit.lacuna.evidence.pooling import mean
from eirkit.lacuna.evidence.trial import run_trials
from eirkit.lacuna.generation import generate_many, graph_of, prepare
from eirkit.lacuna.model import ModelOptions
from eirkit.lacuna.sweeps.cells import Access
from eirkit.lacuna.task import TaskSpec
from studies.agent_rows import ROUNDING, WIDTH, Row, document
from studies.published import THREE, TOLERANCE

STRONG = "GPT-5.6, Claude Opus 4.6, Claude Haiku 4.5"
FOUR = f"{STRONG}, GPT-4.1 Mini"
REPRODUCED, SPREAD, DIFFERS = "reproduced", "within seed spread", "differs"
NEEDS_MODEL = "needs a model that is not configured"


@dataclass(frozen=True, slots=True)
class Run:
    """One agent on one task under one access."""

    score: RunScore
    verdicts: tuple[Verdict, ...]
    behaviour: Behaviour


def run_cell(spec: TaskSpec, access: Access, agent: str, seeds: Sequence[int], p: float | None = None) -> list[Run]:
    """Return the runs of one reference agent, in the order of the seeds.

    Args:
        p: the probability of the agent's trait, its own unless given.
    """
    workload, runs = prepare(spec), []
    options = ModelOptions() if p is None else ModelOptions(extra={"p": p})
    tasks = list(generate_many(spec, seeds))
    sessions = [make_session(access, task, workload) for task in tasks]
    for task, trace in zip(tasks, run_trials(f"reference/{agent}", options, sessions), strict=True):
        if isinstance(trace, InfrastructureError):
            raise trace
        verdicts = judge(task, workload, trace.decisions, trace.actions)
        scored = score(verdicts, trace.decisions, max_turn=trace.ending == "action-limit")
        runs.append(Run(scored, verdicts, behave(graph_of(task), trace.actions, trace.decisions, verdicts)))
    return runs


def in_threes(runs: Iterable[Run], figure: Callable[[Run], float | None]) -> list[float]:
    """Return means over consecutive threes of seeds; threes without a figure are left out."""
    values = [figure(run) for run in runs]
    means = [mean(values[start : start + THREE]) for start in range(0, len(values) - THREE + 1, THREE)]
    return [value for value in means if value is not None]


def pooled(cells: Iterable[Sequence[Run]], figure: Callable[[Run], float | None]) -> list[float]:
    """Return means over consecutive threes of seeds and over cells that share them."""
    return [sum(levels) / len(levels) for levels in zip(*(in_threes(runs, figure) for runs in cells), strict=False)]


def worded(row: Row) -> Row:
    """Return the row with its verdict in words; a difference keeps its reason."""
    equal = abs(row.published - row.ours) <= ROUNDING
    words = {"inside": REPRODUCED if equal else SPREAD, "outside": DIFFERS, "model": NEEDS_MODEL}
    return replace(row, verdict=words[row.verdict])


def in_words(identity: str, title: str, sections: Mapping[str, Sequence[Row]], **more: Any) -> dict[str, Any]:
    """Return a study as one document; rows that need a model do not decide its verdict."""
    rows = [worded(row) for section in sections.values() for row in section]
    judged = {row.verdict for row in rows} - {NEEDS_MODEL}
    verdict = next((word for word in (DIFFERS, SPREAD) if word in judged), REPRODUCED)
    made = document(identity, title, rows, **more)
    sizes = {name: len(section) for name, section in sections.items()}
    return {**made, "verdict": verdict, "sections": sizes}


Line = tuple[str, ...]


def pivot(made: dict[str, Any]) -> list[tuple[str, Line, list[Line]]]:
    """Return each section as title, columns and lines, with one column an agent."""
    rows, found = iter(made["rows"]), []
    for title, size in made["sections"].items():
        section = list(islice(rows, size))
        agents = list(dict.fromkeys(row["our_model"] for row in section))
        figures: dict[tuple[str, float, str], dict[str, dict[str, Any]]] = {}
        for row in section:
            figures.setdefault((row["label"], row["published"], row["published_model"]), {})[row["our_model"]] = row
        by = {published_by for _, _, published_by in figures}
        shared = by.pop() if len(by) == 1 else None
        heading = f"{title}; published figures by {shared}" if shared else title
        lines = [_line(key, of, agents, shared is None) for key, of in figures.items()]
        found.append((heading, ("figure", "published", *agents, "verdict"), lines))
    return found


def _line(key: tuple[str, float, str], of: dict[str, dict[str, Any]], agents: list[str], named: bool) -> Line:
    label, published, by = key
    shown = f"{published:.3f} ({by})" if named else f"{published:.3f}"
    verdicts = [of[agent]["verdict"] for agent in agents if agent in of]
    verdict = verdicts[0] if len(set(verdicts)) == 1 else " / ".join(verdicts)  # in the order of the columns
    return (label, shown, *(_figure(of.get(agent)) for agent in agents), verdict)


def _figure(row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    ours, spread = row["ours"] + 0.0, (row["high"] - row["low"]) / (2 * TOLERANCE)
    return f"{ours:.3f} ± {spread:.3f}"


def tables(made: dict[str, Any], further: Mapping[str, str]) -> list[tuple[str, Line, list[Line]]]:
    """Return all tables of a study: the compared ones, then those of figures that have no published partner."""
    found = pivot(made)
    for name, title in further.items():
        columns = tuple(made[name][0])
        found.append((title, columns, [tuple(map(_plain, entry.values())) for entry in made[name]]))
    return found


def _plain(value: object) -> str:
    if value is None:
        return "–"
    return f"{value + 0.0:.3f}" if isinstance(value, float) else str(value)


def markdown(made: dict[str, Any], further: Mapping[str, str]) -> list[str]:
    """Return the tables of a study as they stand in the documentation."""
    lines: list[str] = []
    for title, columns, rows in tables(made, further):
        lines += [f"**{title}**", "", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
        lines += [*(f"| {' | '.join(row)} |" for row in rows), ""]
    return lines


def show(made: dict[str, Any], further: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Print a study: as JSON, as Markdown, or for reading."""
    if "--json" in arguments:
        print(json.dumps(made, ensure_ascii=False, allow_nan=False))
        return
    if "--markdown" in arguments:
        print("\n".join(markdown(made, further)))
        return
    console = WholeConsole(width=WIDTH)
    console.print(f"{made['title']}; ± is one standard deviation of three-seed means", soft_wrap=True)
    for title, columns, rows in tables(made, further):
        console.print(table(title, columns, rows))
    for reason in dict.fromkeys(row["reason"] for row in made["rows"] if row["reason"]):
        console.print(f"Why: {reason}", soft_wrap=True)
