"""`eirkit show`: the runs of a folder, the wrong steps of a run, and why one step is wrong."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from shlex import quote

import click
from msgspec.structs import asdict

from eirkit.cli.analyzed_run import analyzed_run
from eirkit.cli.command import NameList, Show, command, document_options, option, plugins_option
from eirkit.cli.options import SeedList
from eirkit.cli.report import FOLDER
from eirkit.errors import InputFileError, UsageError
from eirkit.lacuna.agents.protocol import show_form
from eirkit.lacuna.findings.conversation_measures import ANSWER_CAUSE_MEASURES, SYMPTOM_MEASURES
from eirkit.lacuna.findings.measures import CAUSE_MEASURES, KIND_MEASURES, OUTCOME_MEASURES
from eirkit.lacuna.findings.why import WhyCard, way_measure
from eirkit.lacuna.models.model import ActionForm, NumberForm, TextForm
from eirkit.lacuna.tasks.task import TaskInstance
from eirkit.lacuna.tasks.workload import units_of
from eirkit.records.events import ModelExchange
from eirkit.records.settings import DOCUMENTED, TEXT
from eirkit.report.document import Document, Item, Listing, Section
from eirkit.report.folders import kind_of, maker_of, records_of
from eirkit.report.table import Cell, Column, Table, counted, listed
from eirkit.report.terminal import ELLIPSIS, may_be
from eirkit.report.viewer.documents import SimilarFailures
from eirkit.report.viewer.lacuna_run import LacunaRun, similar_to, wrong_steps
from eirkit.report.viewer.run_table import FAILURE, FolderRuns
from eirkit.report.viewer.tables import number

SUGGESTED = 5  # names of runs in a message
LISTED = 20  # rows of a table for reading; --json has them all
_HEADINGS = {FAILURE: "main failure", "failures": "of these"}
_PRIORITY = {"condition": 3, "model": 2, "h": 1}  # a narrow terminal leaves them out, the highest first
KEPT = ("memory", "condition")  # columns that name a memory system, or how earlier results are had without one
WAYS = (*SYMPTOM_MEASURES, *ANSWER_CAUSE_MEASURES, *OUTCOME_MEASURES, *KIND_MEASURES)


@command(example="eirkit show out/run-1 RUN_ID 12")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("run_id", metavar="[RUN_ID]", required=False)
@click.argument("step", metavar="[STEP]", type=click.IntRange(1), required=False)
@option("--memory", type=NameList(), help="List only runs with these memory systems, or conditions such as whole.")
@option("--budget", type=NameList(), help="List only runs with these budgets, as documented or tokens=2000.")
@option("--model", type=NameList(), help="List only runs with these models.")
@option("--seeds", type=SeedList(), help="List only runs with these seeds, as 3, 0,4,9 or 0:300 (300 excluded).")
@option(
    "--only",
    "fates",
    multiple=True,
    metavar="FATE",
    help="List only failures of this kind, as tables name it or by its identifier in the glossary. Can be repeated.",
)
@option("--all", "every", is_flag=True, help=f"List all runs, not only the {LISTED} least accurate.")
@plugins_option
@document_options
def show(
    folder: Path,
    run_id: str | None,
    step: int | None,
    memory: list[str] | None,
    budget: list[str] | None,
    model: list[str] | None,
    seeds: Collection[int] | None,
    fates: tuple[str, ...],
    every: bool,
    plugins: bool,
    show: Show,
) -> None:
    """Show why STEP of the run RUN_ID in DIR is wrong; without STEP, list its wrong steps; without both, list the runs.

    Of an analysis, show what the run RUN_ID needed at each cut; cut t lies just before turn t. Without it, list the
    runs, that with the costliest compaction first.

    In conversations a step is a question. RUN_ID may be the beginning of a name, or a seed, if only one run fits. For
    everything that the answer needed, it says when that was given and written, whether the store had it, what it was
    sought with, at which rank and how it came back, and whether it was used. What the records do not tell is unknown.
    """
    kind = kind_of(folder)
    if kind == "vestige-analysis":
        show(analyzed_run(folder, run_id, every))
        return
    if kind not in ("lacuna-run", "lacuna-evidence"):
        raise InputFileError(f"{folder} is of `{maker_of(folder)}`; give a folder of `lacuna run` or `lacuna rescue`")
    with records_of(folder, plugins=plugins):
        runs = FolderRuns(folder)
        chosen = RunFilter(memory, budget, model, seeds, tuple(_way(name, runs) for name in fates))
        if run_id is None:
            show(_runs(folder, runs, chosen, every))
            return
        run = LacunaRun(folder, runs.record(_chosen(runs, run_id, chosen)), plugins=plugins)
        if run.task.instance is None:
            raise InputFileError(f"run {run.record.run} cannot be explained: {run.task.reason}")
        if run.record.lost is not None:
            raise InputFileError(f"run {run.record.run} is a probe, which answers no steps; choose another")
        document = _listing(folder, run, chosen) if step is None else _explanation(folder, runs, run, step)
    show(document)


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs of a folder are listed; None and no fates: all."""

    memories: Collection[str] | None = None
    budgets: Collection[str] | None = None
    models: Collection[str] | None = None
    seeds: Collection[int] | None = None
    ways: tuple[str, ...] = ()  # identifiers of fates or kinds of failures, one of which a run must have

    def rows(self, runs: FolderRuns) -> list[int]:
        """Return the numbers of the rows that fit.

        Raises:
            UsageError: a name fits no run of the folder.
        """
        found = list(range(runs.rows))
        settings = runs.cells((*KEPT, "budget", "model", "seed"), found)
        kept = [row["memory"] or row["condition"] for row in settings]
        for option_name, wanted, column in (
            ("--memory", self.memories, kept),
            ("--budget", self.budgets, [row["budget"] for row in settings]),
            ("--model", self.models, [row["model"] for row in settings]),
            ("--seeds", self.seeds, [row["seed"] for row in settings]),
        ):
            if wanted is None:
                continue
            known = sorted({value for value in column if value is not None})
            if unknown := [value for value in islice(wanted, SUGGESTED) if value not in known]:
                which = listed([str(one) for one in known], SUGGESTED + 1)
                raise UsageError(f"no run of {runs.folder} has {option_name} {unknown[0]}; known: {which}")
            found = [row for row in found if column[row] in wanted]
        return [row for row in found if not self.ways or any(runs.ways[row].get(way) for way in self.ways)]


def _way(name: str, runs: FolderRuns) -> str:
    """Return the identifier of a fate or kind of failure that is given by its label or identifier."""
    plain = name.strip().casefold()
    for measure in WAYS:
        if plain in (measure.id, measure.label.casefold()):
            return str(measure.id)
    seen = {way for ways in runs.ways for way in ways}
    known = [repr(measure.label) for measure in WAYS if measure.id in seen]
    raise UsageError(f"no outcome is named {name!r}; runs of {runs.folder} have {listed(known, 12) or 'no failures'}")


def _runs(folder: Path, runs: FolderRuns, chosen: RunFilter, every: bool) -> Document:
    """Return the runs of a folder that were asked for, those with the most errors first."""
    keys = ("run", "memory", "condition", "policy", "budget", "model", "h", "seed", "accuracy", FAILURE)
    places = chosen.rows(runs)
    rows = runs.cells(keys, places)
    failed = sum(row[FAILURE] is not None for row in rows)
    if chosen.ways:
        for row, place in zip(rows, places, strict=True):
            row["failures"] = sum(runs.ways[place].get(way, 0) for way in chosen.ways)
    rows.sort(key=lambda row: (-number(row.get("failures", 0)), row["accuracy"] is None, row["accuracy"]))
    outcome = units_of(runs.coded("workload").labels).outcome
    fits = "" if len(places) == runs.rows else f" that fit, of {runs.rows:,} in all,"
    answer = f"{failed:,} of {counted(len(rows), 'run')}{fits} {'has' if failed == 1 else 'have'} wrong {outcome}s."
    always = ("run", "accuracy", FAILURE, "failures")
    varying = [key for key in (*keys, "failures") if key in always or len({row[key] for row in rows}) > 1]
    varying = [key for key in varying if key in (rows[0] if rows else keys)]
    columns = tuple(
        Column(key, _HEADINGS.get(key, key), role="name" if key == "run" else "value", priority=_PRIORITY.get(key, 0))
        for key in varying
    )
    shown = rows if every else rows[:LISTED]
    part = "" if len(shown) == len(rows) else f"; {len(shown)} of {len(rows):,}, --all lists every one"
    most = "those with most of these failures first" if chosen.ways else "the least accurate first"
    items = (Table("runs", f"Runs, {most}{part}", columns, tuple(shown)),) if rows else ()
    data = {"folder": str(folder), "runs": rows, "of": runs.rows, "listed": len(shown)}
    where = quote(str(folder))
    then = f"eirkit show {where} {quote(str(rows[0]['run']))}" if failed else f"eirkit view {where}"
    then += "".join(f" --only {quote(way_measure(way).label)}" for way in chosen.ways) if failed else ""
    return Document("show", f"Runs of {folder}", (answer,), data, (Section("", (), items),) if items else (), next=then)


def _chosen(runs: FolderRuns, run_id: str, chosen: RunFilter) -> str:
    """Return the run with a name, given in full, by its beginning, as shortened in tables, or by its seed."""
    rows = runs.cells(("run", "seed", "memory", "budget"), chosen.rows(runs))
    names, seeds = ([str(row[key]) for row in rows] for key in ("run", "seed"))
    if run_id in names:
        return run_id
    by_seed = [name for name, seed in zip(names, seeds, strict=True) if seed == run_id]
    meant = [name for name in names if name.startswith(run_id) or (ELLIPSIS in run_id and may_be(run_id, name))]
    for found in (by_seed, meant):
        if len(found) == 1:
            return found[0]
    several = by_seed or meant
    which = f"several runs of {runs.folder} fit" if several else f"no run of {runs.folder} is named"
    remedy = f"name one of {listed(several or names, SUGGESTED + 1)}" if names else "leave out --memory and --only"
    apart = [name for name in ("memory", "budget") if len({row[name] for row in rows}) > 1]
    more = f", or add --{apart[0]} NAME" if by_seed and apart else ""
    raise UsageError(f"{which} {run_id!r}; {remedy}{more}")


def _listing(folder: Path, run: LacunaRun, chosen: RunFilter) -> Document:
    name, wrong, view = run.record.run, wrong_steps(run), run.view
    cards = [card for t in wrong if (card := run.card(t)) is not None]
    cards = [
        card for card in cards if not chosen.ways or {card.way, card.wrong and card.wrong.symptom} & {*chosen.ways}
    ]
    rows: list[dict[str, Cell]] = [
        {
            "t": card.t,
            **({"ability": ability} if (ability := None if view is None else view.ability(card.t)) else {}),
            "submitted": card.submitted,
            "answer": card.answer,
            **_why(card),
        }
        for card in cards
    ]
    units, is_asked = run.units, any("ability" in row for row in rows)
    columns = (
        Column("t", units.step),
        *([Column("ability", "ability")] if is_asked else []),
        Column("submitted", "submitted", role="name"),
        Column("answer", "right", role="name"),
        *([Column("symptom", "symptom", role="text")] if is_asked else []),
        Column("cause", "cause", role="text"),
        *([] if is_asked else [Column("way", "what became of the input, or kind", role="text")]),
    )
    counts = f"{counted(len(wrong), units.outcome)} of {len(run.verdicts)}"
    fits = f", {len(rows)} of them in this way" if chosen.ways else ""
    access = run.record.setting.access
    whose = access.memory or access.policy or access.condition
    whose += "" if access.budget == DOCUMENTED else f", {access.budget}"
    answer = f"{counts} {'is' if len(wrong) == 1 else 'are'} wrong in run {name} ({whose}){fits}."
    items = (Table("wrong-steps", f"Wrong {units.outcome}s", columns, tuple(rows)),) if rows else ()
    data = {"folder": str(folder), "run": name, "steps": len(run.verdicts), "wrong": rows}
    first = rows[0]["t"] if rows else next(iter(wrong), None)
    then = f"eirkit {'view' if first is None else 'show'} {quote(str(folder))}"
    then += "" if first is None else f" {quote(name)} {first}"
    return Document("show", f"Run {name}", (answer,), data, (Section("", (), items),) if items else (), next=then)


def _why(card: WhyCard) -> dict[str, Cell]:
    """Return why a step is wrong, in the terms of its family of tasks."""
    if card.wrong is not None:
        wrong = card.wrong
        symptom, cause = SYMPTOM_MEASURES[wrong.symptom], ANSWER_CAUSE_MEASURES[wrong.cause]
        return {"symptom": symptom.label, "cause": cause.label}
    return {
        "cause": CAUSE_MEASURES[card.cause].label if card.cause else None,
        "way": way_measure(card.way).label if card.way else None,
    }


def _explanation(folder: Path, runs: FolderRuns, run: LacunaRun, step: int) -> Document:
    name = run.record.run
    card = run.card(step)
    if card is None:
        last, noun = len(run.verdicts), run.units.step
        raise UsageError(
            f"run {name} has no {noun} {step}; give one from 1 to {last}" if last else f"{name} has no answers"
        )
    alike = similar_to(runs, run, card)
    first, *more = card.sentences()
    words = (*([f"Question: {card.asked}"] if card.asked else []), *more)
    if alike is not None:
        words = (*words, alike.sentence)
    columns = (Column("about", "fact"), Column("text", "what is known", role="text"))
    tables = (
        Table(
            f"input-{needed.step or 'statement'}",
            needed.name,
            columns,
            tuple({"about": about, "text": text} for about, text in needed.lines),
        )
        for needed in card.inputs
    )
    sections = [*([Section("", words)] if words else []), *(Section("", (), (table,)) for table in tables)]
    replies = [] if card.correct or card.submitted is not None else list(_replies(run, step))
    if replies:
        asked = Listing("asked-form", "The form asked for", _asked_form(run, step))
        shown = dict.fromkeys(replies)  # asked again, a model may say the same again
        sections.append(Section("", (), (asked, Listing("replies", "What was replied", "\n\n".join(shown)))))
    links = tuple(_links(folder, name, card, alike))
    sections += [Section("", (), links)] if links else []
    then = "" if links else f"eirkit show {quote(str(folder))} {quote(name)}"
    data = {"folder": str(folder), "run": name, **asdict(card.figures()), "replies": replies, "similar": alike}
    title = f"{run.units.step.capitalize()} {step} of {name}"
    return Document("show", title, (first,), data, tuple(sections), next=then)


def _asked_form(run: LacunaRun, step: int) -> str:
    """Return the form in which a reply to a step was asked for."""
    setting, task = run.record.setting, run.task.instance
    protocol = setting.settings.protocol or TEXT
    if not isinstance(task, TaskInstance):
        return show_form(TextForm(), protocol)
    width, q = len(task.step(step).answer), task.spec.q
    is_controlled = setting.access.is_controlled
    return show_form(NumberForm(step, width, q) if is_controlled else ActionForm((), width, q), protocol)


def _replies(run: LacunaRun, step: int) -> Iterator[str]:
    """Yield the exact replies to a step without a valid answer, as far as they were kept."""
    for event in run.events:
        if isinstance(event, ModelExchange) and event.t == step and event.reply is not None:
            calls = [f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)})" for call in event.calls]
            yield "\n".join([*([event.reply] if event.reply or not calls else []), *calls]) or "(empty)"


def _links(folder: Path, name: str, card: WhyCard, alike: SimilarFailures | None) -> Iterator[Item]:
    """Yield the commands that show the other steps of the story."""
    where = f"eirkit show {quote(str(folder))}"
    lost = [needed for needed in card.inputs if needed.step is not None and needed.fate is not None]
    steps = {needed.step: f"where {needed.name} was given" for needed in lost}
    steps |= {t: "where the error began" for t in card.spread.origins if t != card.t}
    lines = [f"{where} {quote(name)} {t}  # {why}" for t, why in steps.items()]
    examples = alike.examples if alike else ()
    lines += [f"{where} {quote(example.run)} {example.t}  # a similar failure" for example in examples]
    if lines:
        yield Listing("links", "Look at", "\n".join(lines))
