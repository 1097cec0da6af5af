"""The types of a reproduction: study, setting, findings, rows, and the list of verdicts with their meanings.

Findings are stored as JSON, so that a study is computed once. The studies are in `eirkit_paper/studies`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import asdict, replace

from eirkit.errors import UsageError
from eirkit.lacuna.models.model import ModelOptions
from eirkit.lacuna.runs.budget import Budget
from eirkit.lacuna.runs.runner import Runner
from eirkit.records.settings import TEXT, ModelSettings
from eirkit.report.document import Figure
from eirkit.report.table import Table
from eirkit_paper.published import figures_by_id
from eirkit_paper.verdicts import AGREES, DIFFERS, ERROR, FEWER_SEEDS, NOT_SAME, TOO_WIDE

NEEDS_MODEL = "needs a model that is not configured"
NEEDS_RUNS = "needs recorded runs that are not given"
NEEDS_MEMORY = "needs a memory system that is not installed"
REPRODUCED = "reproduced"  # a whole study: its judged figures agree, and its own checks hold
OWN_HOLD, OWN_FAIL = "own checks hold", "own checks fail"  # a whole study of which the paper prints no figure
NO_REASON = "no reason known"  # of a difference, unless a number of the same run gives one

JUDGED = (DIFFERS, AGREES)
VERDICTS = (AGREES, DIFFERS, TOO_WIDE, NOT_SAME, FEWER_SEEDS, NEEDS_MODEL, NEEDS_RUNS, NEEDS_MEMORY)
MEANINGS = {
    AGREES: "both figures can come from the same truth; the test would call 5% of such pairs different",
    DIFFERS: "they cannot, as far as the test can tell; the row gives a reason only if one was computed",
    TOO_WIDE: "they can, but if the truth differed by 0.1 (of a figure that is no share: by a tenth) the test would "
    "find so in less than half of the cases",
    NOT_SAME: "ours comes from something else than the published figure: a reference agent, another model, other runs",
    FEWER_SEEDS: "ours has fewer seeds than the paper",
    NEEDS_MODEL: "the figure is a trait of the models that were tested",
    NEEDS_RUNS: "the figure comes from recorded runs, which are not shipped",
    NEEDS_MEMORY: "the figure comes from a memory system that is not installed here",
}


def overall(rows: Sequence[StudyRow]) -> str:
    """Return the verdict of many rows: reproduced, unless those that are judged differ.

    Of many figures with the same truth, one in twenty differs. Together they differ if one does that had so small a
    chance that it remains below 5% when multiplied by the number of figures (Bonferroni), or that has no chance at all.
    """
    judged = [row for row in rows if row.verdict in JUDGED]
    if not judged:
        return next(verdict for verdict in VERDICTS if verdict in {row.verdict for row in rows})
    differing = [row for row in judged if row.verdict == DIFFERS]
    beyond = [row for row in differing if row.p is None or row.p * len(judged) < ERROR]
    return DIFFERS if beyond else REPRODUCED


Kind = Literal["theory", "offline", "agents", "memories", "recorded"]
KINDS: dict[Kind, str] = {
    "theory": "exact counts; nothing is drawn",
    "offline": "generated graphs and tasks without agents",
    "agents": "reference agents, or the model given by --model",
    "memories": "reference agents with memory systems, as far as they are installed",
    "recorded": "recorded runs with reference patches, given by --data",
}


class StudyRow(Struct, frozen=True):
    """One published figure, ours, and the published figures with which ours would agree; or a check of our own."""

    label: str
    published: float | None  # None: the paper prints none, so that it is a check of our own
    ours: float | int | None  # None: what it needs is not here
    low: float | None
    high: float | None
    verdict: str
    why: str = ""  # of a difference, or what is needed
    section: str = ""  # the table in which it is shown
    published_by: str = ""  # the models behind it
    ours_by: str = ""
    source: str = ""  # where in the paper
    basis: str = ""  # what the verdict rests on
    figure: str = ""  # the id of the published figure; empty for a check of our own
    p: float | None = None  # how often figures with the same truth lie as far apart
    agrees_if_off: float | None = None  # probability of *agrees* if the truth differed by `off_by`
    off_by: float | None = None
    n: int | None = None  # runs behind the published figure
    unit: str = ""
    spread: float | None = None  # standard deviation of our means over three seeds
    same_as: str = ""  # the study that has the same figure; it is counted there
    expected: float | int | None = None  # of a check of our own: what ours must be

    @property
    def is_printed(self) -> bool:
        return bool(self.figure)


def distinct(rows: Iterable[StudyRow]) -> list[StudyRow]:
    """Return one row for each printed figure: several agents or studies may have the same one.

    Of several rows one of the study that has the figure is kept before one that draws it again, then one that differs
    before one that agrees, and either before one that is not judged.
    """
    kept: dict[str, StudyRow] = {}
    known = figures_by_id()
    for row in rows:
        if not row.is_printed:
            continue
        figure = (known[row.figure].same_as if row.figure in known else "") or row.figure
        if figure not in kept or _weight(row) > _weight(kept[figure]):
            kept[figure] = row
    return list(kept.values())


def _weight(row: StudyRow) -> tuple[bool, int]:
    return not row.same_as, {DIFFERS: 2, AGREES: 1}.get(row.verdict, 0)


class Findings(Struct, frozen=True):
    """What a study found."""

    rows: tuple[StudyRow, ...]
    tables: tuple[Table, ...] = ()  # figures without a published partner, shapes, tests
    figures: tuple[Figure, ...] = ()
    words: tuple[str, ...] = ()  # conventions and readings that a reader should know
    commands: tuple[str, ...] = ()  # what would compute the rows that are not judged

    @property
    def verdict(self) -> str:
        """That of the rows; a study of which the paper prints no figure has only its own checks."""
        made = {row.verdict for row in self.own_checks} & set(JUDGED)
        if made and not self.printed:
            return OWN_FAIL if DIFFERS in made else OWN_HOLD
        return overall(self.rows)

    @property
    def printed(self) -> list[StudyRow]:
        """One row for each printed figure."""
        return distinct(self.rows)

    @property
    def own_checks(self) -> list[StudyRow]:
        """The rows of which the paper prints nothing."""
        return [row for row in self.rows if not row.is_printed]

    @property
    def judged(self) -> int:
        """How many printed figures were judged; the others need something."""
        return sum(row.verdict in JUDGED for row in self.printed)

    @property
    def extent(self) -> str:
        """How many of the printed figures of the study were judged."""
        return f"{self.judged} of {len(self.printed)}"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why rows differ or are not judged, each reason once."""
        return tuple(dict.fromkeys(row.why for row in self.rows if row.why))


class RecordedSetting(Struct, frozen=True):
    """All of a setting that can change findings."""

    model: str | None
    options: ModelSettings | None  # None without a model
    data: str | None
    seeds: tuple[int, ...] | None
    memories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a study is computed with; None: its own."""

    model: str | None = None  # for studies with agents
    options: ModelOptions = field(default_factory=ModelOptions)
    data: Path | None = None  # analyzed runs
    seeds: Sequence[int] | None = None
    memories: tuple[str, ...] = ()  # external systems that are to be run
    budget: Budget | None = None  # pays for the model; None: nothing is capped
    runs: Path | None = None  # where the runs of agents are kept while a study is computed; None: nowhere
    runner: Runner | None = None  # carries them out, once a study is being computed

    def recorded(self) -> RecordedSetting:
        """Return all that can change findings."""
        return RecordedSetting(
            self.model,
            None if self.model is None else self.options.asked(TEXT),
            None if self.data is None else str(self.data.resolve()),
            None if self.seeds is None else tuple(map(int, self.seeds)),
            self.memories,
        )


class StudyEntry(Struct, frozen=True):
    """What a list of studies says about one."""

    id: str
    title: str
    kind: Kind
    labels: tuple[str, ...]
    place: str


class StudyResult(StudyEntry, frozen=True):
    """A study and what it found, as scripts read it."""

    verdict: str
    judged: int  # printed figures
    of: int  # printed figures of the study
    counts: dict[str, int]  # printed figures by verdict
    rows: tuple[StudyRow, ...]
    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Study:
    """One table, figure or paragraph of the paper."""

    id: str  # words joined by hyphens
    title: str
    kind: Kind
    labels: tuple[str, ...]  # of the paper's tables and figures; empty for a paragraph
    place: str  # where in the paper a reader finds it
    function: str  # `module:name` below eirkit_paper.studies; it takes a Setting and returns Findings
    cost: int = 1  # seconds on one core, roughly; the longest begin first
    least_seeds: int = 1  # without which it has no repetition of the published experiment
    repeats: str = ""  # the study whose figures it draws again

    def run(self, setting: Setting) -> Findings:
        """Return the findings; a row that does not say where its figure stands in the paper stands at the study's."""
        self.check(setting)
        module, _, function = self.function.partition(":")
        found: Findings = getattr(import_module(f"eirkit_paper.studies.{module}"), function)(setting)
        rows = tuple(replace(row, source=row.source or self.place, same_as=self.repeats) for row in found.rows)
        return replace(found, rows=rows)

    def check(self, setting: Setting) -> None:
        """Refuse seeds of which the study cannot make one repetition.

        Raises:
            UsageError: there are too few.
        """
        if setting.seeds is not None and len(setting.seeds) < self.least_seeds:
            least, given = self.least_seeds, len(setting.seeds)
            raise UsageError(
                f"{self.id} takes means over {least} seeds, as the paper does, and got {given}; "
                f"give --seeds 0:{least} or more, or leave --seeds out"
            )

    @property
    def has_agents(self) -> bool:
        return self.kind in ("agents", "memories")

    def own(self, setting: Setting) -> Setting:
        """Return the setting without what this study does not look at."""
        has_agents = self.has_agents
        model = setting.model if has_agents else None
        return Setting(
            model,
            setting.options if model is not None else ModelOptions(),
            setting.data if self.kind == "recorded" else None,
            setting.seeds if has_agents or self.kind == "offline" else None,
            setting.memories if self.kind == "memories" else (),
            setting.budget if model is not None else None,
        )

    @property
    def entry(self) -> StudyEntry:
        return StudyEntry(self.id, self.title, self.kind, self.labels, self.place)

    def result(self, findings: Findings) -> StudyResult:
        """Return the study and what it found as scripts read it."""
        return StudyResult(
            **asdict(self.entry),
            verdict=findings.verdict,
            judged=findings.judged,
            of=len(findings.printed),
            counts={verdict: sum(row.verdict == verdict for row in findings.printed) for verdict in VERDICTS},
            rows=findings.rows,
            commands=findings.commands,
        )
