"""Options of the commands that may cost money, and the way they share: rehearse, or ask and keep what is said."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.progress import Progress

from eirkit.agents.serving.prices import Estimate, add_up
from eirkit.cli.output import emit, table
from eirkit.runs.budget import Budget, SpendingLimits
from eirkit.runs.rehearsal import Rehearsal
from eirkit.runs.summary import SPENDING_MEASURES
from eirkit.runs.trial import Bench, Workbench
from eirkit.runs.trial_store import TrialStore

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
class Errand:
    """How the trials of one command are run, paid for and kept."""

    out: Path | None
    funds: SpendingLimits
    dry_run: bool

    def run(
        self,
        command: str,
        settings: Mapping[str, Any],
        names: Iterable[str | None],
        work: Callable[[Bench], CommandResult],
        as_json: bool,
    ) -> int:
        """Do the work on a bench, print what it found and return the exit code.

        Args:
            settings: everything that decides what is run, for the manifest.
            names: of workloads, models and policies.
        """
        if self.dry_run:
            rehearsal = Rehearsal(self.funds.prices)
            work(rehearsal)
            return _print_estimate(rehearsal, as_json)
        try:
            found = self._find(command, settings, names, work)
        except KeyboardInterrupt:
            if self.out is None:
                raise
            click.echo(f"eirkit: interrupted; the same command goes on where it was, in {self.out}", err=True)
            return 130
        emit(found.document, as_json, found.render)
        return found.code

    def _find(
        self,
        command: str,
        settings: Mapping[str, Any],
        names: Iterable[str | None],
        work: Callable[[Bench], CommandResult],
    ) -> CommandResult:
        purse = Budget(self.funds, self.out)
        with trial_progress() as observe:
            if self.out is None:
                return work(Workbench(purse, observe=observe))
            with TrialStore(self.out, command, settings, names=names, prices=self.funds.prices) as store:
                purse.ledger.read()
                found = work(Workbench(purse, store, observe))
                store.summarise(found.document)
                return found


def errand_options(command: Command) -> Command:
    """Add --out and what `funds_options` adds; the command receives `errand`."""

    @wraps(command)
    def with_errand(out: Path | None, funds: SpendingLimits, dry_run: bool, **given: Any) -> Any:
        return command(errand=Errand(out, funds, dry_run), **given)

    out = click.option("--out", type=PATH, help="A folder for all that is said; given again, the command goes on.")
    return out(funds_options(with_errand))  # type: ignore[return-value]


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


@contextmanager
def trial_progress() -> Iterator[Callable[[int, int], None]]:
    """Show on a terminal how many trials of the current model have ended."""
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("asking", total=None)
        yield lambda ended, planned: bar.update(task, completed=ended, total=planned)


def _print_estimate(rehearsal: Rehearsal, as_json: bool) -> int:
    totals = add_up([part for _, part in rehearsal.estimates])
    by_model: dict[str, list[Estimate]] = {}
    for model, part in rehearsal.estimates:
        by_model.setdefault(model, []).append(part)
    rows = [{"model": model, **asdict(add_up(parts))} for model, parts in by_model.items()]
    document = {"rows": rows, **asdict(totals), "runs": rehearsal.runs}
    emit(document, as_json, lambda console: _render_estimate(console, rows, document))
    return 0


def _render_estimate(console: Console, rows: Sequence[Mapping[str, Any]], document: Mapping[str, Any]) -> None:
    names = ("calls", "input_tokens", "output_tokens")
    columns = ("model", *(SPENDING_MEASURES[name].label for name in (*names, "cost_usd")), "at most")
    lines = [
        [row["model"], *(row[n] for n in names), dollars(row["cost_usd"]), dollars(row["most_usd"])] for row in rows
    ]
    console.print(table("Every trial with a reference agent in the model's place", columns, lines))
    show_totals(console, document)


def show_totals(console: Console, document: Mapping[str, Any], of: str = "") -> None:
    """Print the sums of an estimate as one line, with what they are the sums of before it."""
    cost, most = dollars(document["cost_usd"]), dollars(document["most_usd"])
    calls, tokens = document["calls"], document["input_tokens"] + document["output_tokens"]
    line = f"{of}{document['runs']:,} runs, {calls:,} calls, {tokens:,} tokens, {cost}, at most {most}"
    console.print(line, markup=False)


def dollars(amount: float | None) -> str:
    return "unknown" if amount is None else f"${amount:,.2f}"
