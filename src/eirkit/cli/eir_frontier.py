"""`eirkit eir frontier`: how often a memory with a given number of bits can be right about a contract or task."""

from __future__ import annotations

import click

from eirkit.cli.agent_options import with_preset
from eirkit.cli.command import Show, command, document_options, option
from eirkit.cli.eir import MOST_BITS, limit_option, retrievals_option
from eirkit.cli.options import preset_option, task_options
from eirkit.eir.contract import load_contract
from eirkit.eir.lossy import Frontier
from eirkit.errors import UsageError
from eirkit.lacuna.conversation.floor import world_frontier
from eirkit.lacuna.conversation.workload import WorldConversation
from eirkit.lacuna.tasks.frontier import frontier_of
from eirkit.lacuna.tasks.generation import generate
from eirkit.lacuna.tasks.task import TaskSpec
from eirkit.lacuna.tasks.workload import Workload, conversations, workloads
from eirkit.registry import load_object
from eirkit.report.frontier import frontier_document, task_frontier_document


@command(example="eirkit eir frontier examples/timezone.py:timezone --capacity 1")
@click.argument("workload", metavar="FILE.py:NAME|WORKLOAD")
@option("--capacity", type=click.FloatRange(0, MOST_BITS), metavar="BITS", help="Also judge a memory this large.")
@option(
    "--threshold",
    type=click.FloatRange(0, 1),
    default=0.95,
    show_default=True,
    help="Share of responses, or runs, that must be right.",
)
@limit_option
@retrievals_option()
@option("--all", "groups", is_flag=True, help="With --capacity, list which histories the encoder gives the same code.")
@preset_option
@task_options
@document_options
def frontier(
    spec: TaskSpec,
    preset: str | None,
    capacity: float | None,
    threshold: float,
    limit: int,
    retrievals: int,
    groups: bool,
    show: Show,
) -> None:
    """Compute how often the best memory with a given number of bits is right about a contract or a WORKLOAD.

    A response is right or wrong; a run is right if every response would be, whatever is asked. Histories, futures and
    moves of a contract are equally likely unless it has history_weight(history), future_weight(future) or
    move_weight(state, move). With --b-oracle, its retrievable(history) returns the results of which B may be fetched.
    The inputs of a workload are uniform, and its references are drawn as in generated tasks.
    """
    name, error = spec.workload, round(1 - threshold, 12)
    if preset is not None and name not in conversations:
        raise UsageError(f"{name} has no presets; leave out --preset, or use the workload conversation")
    if groups and (capacity is None or _is_workload(name)):
        raise UsageError("--all lists the codes of one encoder; give a contract and a size with --capacity BITS")
    if retrievals and _is_workload(name):
        raise UsageError(f"no ceiling with retrievals is known for {name}; see `eirkit eir curve --b-oracle B`")
    if name in conversations:
        conversation = generate(with_preset(spec, preset).with_seed(spec.seed))
        if not isinstance(conversation, WorldConversation):
            raise UsageError(f"no ceiling is known for {name}; use the workload conversation")
        document = task_frontier_document(conversation, world_frontier(conversation.world), error, capacity)
    elif _is_workload(name):
        task = generate(spec)
        document = task_frontier_document(task, frontier_of(task), error, capacity)
    else:
        document = frontier_document(
            name, Frontier(load_contract(name), limit=limit, retrievals=retrievals), error, capacity, groups
        )
    show(document)


def _is_workload(name: str) -> bool:
    if name in conversations:
        return True
    if ":" not in name:
        workloads.get(name)  # raises UnknownNameError with the names that are known
        return True
    found = load_object(name, "contract or workload")
    return isinstance(found, type) and issubclass(found, Workload)
