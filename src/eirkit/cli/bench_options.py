"""What all commands that run agents share: the options of the runner, and the way from a plan to what is printed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from eirkit.agents.serving.prices import add_up
from eirkit.cli.engine_options import engine_options
from eirkit.cli.output import emit, table
from eirkit.cli.sweep_progress import SweepProgress
from eirkit.engine.mapping import Engine
from eirkit.errors import InputFileError, UsageError
from eirkit.records import read_document
from eirkit.runs.budget import Budget, SpendingLimits
from eirkit.runs.estimate import by_model, estimate_plan
from eirkit.runs.manifest import FILE, PLAN_SCHEMA
from eirkit.runs.plan import CellPlan
from eirkit.runs.plan_folder import open_plan, write_result
from eirkit.runs.results import Results
from eirkit.runs.summary import SPENDING_MEASURES
from eirkit.show.runs.command_line import evidence_command

Command = TypeVar("Command", bound=Callable[..., Any])
Rendering = Callable[[Console], None]
PATH = click.Path(path_type=Path)

control_option = click.option(
    "--control/--no-control",
    "control",
    default=None,
    help="Run each model at full information first; only what passes carries claims about lost information.  "
    "[default: reference agents alone]",
)


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command has found out."""

    document: Mapping[str, Any]
    render: Rendering
    code: int = 0


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """How the runs of a command are carried out, paid for and kept."""

    out: Path | None
    resume: Path | None
    limits: SpendingLimits
    dry_run: bool
    engine: Engine | None

    def run(self, plan: CellPlan, measure: Callable[[Results], CommandResult], as_json: bool) -> int:
        """Run what is left of a plan, print what its runs say and return the exit code."""
        if self.dry_run:
            return _print_estimate(plan, self.limits.prices, as_json)
        folder = self.resume or self.out
        try:
            found = self._find(plan, folder, measure)
        except KeyboardInterrupt:
            if folder is None:
                raise
            again = f"eirkit lacuna {plan.kind} --resume {folder}"
            click.echo(f"eirkit: interrupted; continue with `{again}`", err=True)
            return 130
        emit(found.document, as_json, found.render)
        return found.code

    def _find(self, plan: CellPlan, folder: Path | None, measure: Callable[[Results], CommandResult]) -> CommandResult:
        budget = Budget(self.limits, folder)
        with SweepProgress() as progress, closing(self.engine) if self.engine else nullcontext():
            with open_plan(plan, folder, budget, progress, self.engine) as runner:
                found = measure(runner.complete(plan))
            if folder is not None:
                write_result(plan, folder, found.document)
        return found


class ResumableCommand(click.Command):
    """A command whose `--resume DIR` stands for everything that was given when the folder was begun."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, [*_recorded_words(self.name or "", args), *args])


def _recorded_words(command: str, args: Sequence[str]) -> list[str]:
    """Return the options of the command that began the folder behind `--resume`; what is given besides comes after."""
    split = [part for word in args for part in (word.split("=", 1) if word.startswith("--resume=") else (word,))]
    folder = next((value for word, value in pairwise(split) if word == "--resume"), None)
    if folder is None:
        return []
    path = Path(folder) / FILE
    if not path.is_file():
        raise InputFileError(f"{folder} holds no {FILE}, so nothing was recorded there; start anew with --out {folder}")
    manifest = read_document(path, PLAN_SCHEMA)
    if manifest["command"] != command:
        remedy = f"continue with `eirkit lacuna {manifest['command']} --resume {folder}`"
        raise InputFileError(f"{folder} holds no {command}; {remedy}")
    return shlex.split(evidence_command(manifest))[3:]


KEPT = "Folder for runs and results; the same command with the same folder goes on there."


def runner_options(out_help: str = KEPT) -> Callable[[Command], Command]:
    """Add the options of every command that runs agents; the command receives them as `runner`.

    They are --out, --resume, --dry-run, --cap-usd, --prices, --cache, and --engine with what belongs to it.
    """

    def decorate(command: Command) -> Command:
        @wraps(command)
        def with_runner(
            out: Path | None,
            resume: Path | None,
            funds: SpendingLimits,
            dry_run: bool,
            engine: Engine | None,
            **given: Any,
        ) -> Any:
            if resume is not None and out is not None:
                raise UsageError("--resume writes where the runs were begun; leave out --out")
            return command(runner=RunnerOptions(out, resume, funds, dry_run, engine), **given)

        options = (
            click.option("--out", type=PATH, help=out_help),
            click.option("--resume", type=PATH, metavar="DIR", help="Finish what was begun in DIR; enough by itself."),
            funds_options,
            engine_options,
        )
        decorated: Any = with_runner
        for option in reversed(options):
            decorated = option(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate


def funds_options(command: Command) -> Command:
    """Add --dry-run, --cap-usd, --prices and --cache; the command receives `dry_run` and `funds`."""

    @wraps(command)
    def with_funds(cap_usd: float | None, prices: Path | None, cache: Path | None, **given: Any) -> Any:
        return command(funds=SpendingLimits(cap_usd, prices, cache), **given)

    options = (
        click.option("--dry-run", is_flag=True, help="Print calls, tokens and cost; run nothing."),
        click.option("--cap-usd", type=click.FloatRange(0), help="Stop cleanly before more than this is spent."),
        click.option("--prices", type=PATH, help="A price file over the built-in one."),
        click.option("--cache", type=PATH, help="A file that keeps replies; what it holds is not asked again."),
    )
    decorated: Any = with_funds
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def _print_estimate(plan: CellPlan, prices: Path | None, as_json: bool) -> int:
    estimates = estimate_plan(plan, prices, every_seed=True)
    rows = by_model(estimates)
    document = {"rows": rows, **asdict(add_up([one.expected for one in estimates])), "runs": len(plan)}
    emit(document, as_json, lambda console: _render_estimate(console, rows, document))
    return 0


def _render_estimate(console: Console, rows: Sequence[Mapping[str, Any]], document: Mapping[str, Any]) -> None:
    names = ("calls", "input_tokens", "output_tokens")
    columns = ("model", *(SPENDING_MEASURES[name].label for name in (*names, "cost_usd")), "at most")
    lines = [
        [row["model"], *(row[n] for n in names), dollars(row["cost_usd"]), dollars(row["most_usd"])] for row in rows
    ]
    console.print(table("Every run with a reference agent in the model's place", columns, lines))
    show_totals(console, document)


def show_totals(console: Console, document: Mapping[str, Any], of: str = "") -> None:
    """Print the sums of an estimate as one line, with what they are the sums of before it."""
    cost, most = dollars(document["cost_usd"]), dollars(document["most_usd"])
    calls, tokens = document["calls"], document["input_tokens"] + document["output_tokens"]
    line = f"{of}{document['runs']:,} runs, {calls:,} calls, {tokens:,} tokens, {cost}, at most {most}"
    console.print(line, markup=False)


def dollars(amount: float | None) -> str:
    return "unknown" if amount is None else f"${amount:,.2f}"
