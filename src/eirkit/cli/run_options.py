"""Options of the grid of `lacuna run`, `mcp serve` and `export harbor`: axes that may have several values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from eirkit.cli.agent_options import (
    WorkloadNames,
    budget_option,
    call_options,
    known_models,
    panel_option,
    read_settings,
)
from eirkit.cli.command import NameList, Option, option, options
from eirkit.cli.options import SEEDS_HELP, IntegerList, SeedList, task_option
from eirkit.errors import UsageError
from eirkit.lacuna.agents.conditions import CONVERSATION_CONDITIONS
from eirkit.lacuna.runs.sessions import CONDITIONS
from eirkit.lacuna.runs.suite import AXES
from eirkit.lacuna.tasks.policy import policies
from eirkit.records.settings import CONTROLLED, DIALS

Command = TypeVar("Command", bound=Callable[..., Any])


def suite_argument(command: Command) -> Command:
    """Add WORKLOAD or SUITE.toml as an argument; the command receives `suite`, and `workload` among its options."""

    @wraps(command)
    def with_task(task: str | None, workload: list[str] | None, **given: Any) -> Any:
        if task is not None and (task.endswith(".toml") or Path(task).is_file()):
            return command(workload=workload, suite=Path(task), **given)
        return command(workload=_named(task, workload), suite=None, **given)

    return click.argument("task", metavar="[WORKLOAD | SUITE.toml]", required=False)(with_task)  # type: ignore[return-value]


def serve_argument(command: Command) -> Command:
    """Add WORKLOAD as an argument; the command receives it as `workload` among its options."""

    @wraps(command)
    def with_task(task: str | None, workload: list[str] | None, **given: Any) -> Any:
        return command(workload=_named(task, workload), **given)

    return click.argument("task", metavar="[WORKLOAD]", required=False)(with_task)  # type: ignore[return-value]


def _named(task: str | None, workload: list[str] | None) -> list[str] | None:
    """Return the workloads of the argument, or else of the option."""
    if task is None:
        return workload
    names = WorkloadNames().convert(task, None, click.get_current_context())
    if workload is not None and workload != names:
        raise UsageError(f"two workloads are given, {task} and --workload {','.join(workload)}; give one of them")
    return names


def axis_options(command: Command) -> Command:
    """Add every axis, --seeds and the model options; whatever is not given arrives as None, () or False."""
    fields = ("n", "m", "lookback", "fan_in", "digits", "slots", "k", "queries", "warm_up", *DIALS)
    names = NameList()
    tasks = (
        option("--workload", type=WorkloadNames(), group="Task", hidden=True, help="The same as WORKLOAD."),
        *(task_option(name, names if name == "queries" else IntegerList(0)) for name in fields),
        option(
            "--preset",
            type=names,
            group="Task",
            help="Conversations: a size, as small+level=3, or a file.",
        ),
    )
    agents = (
        option(
            "--model",
            known=known_models,
            type=names,
            multiple=True,
            group="Agent",
            help="Models, as provider/name; separated by commas or repeated.",
        ),
        option(
            "--actions",
            type=IntegerList(1),
            common=False,
            group="Agent",
            help="Most actions in a managed run.  [default: 200]",
        ),
    )
    memories = (
        option("--h", type=IntegerList(1), group="Memory", help="Records that stay visible.  [default: m]"),
        option(
            "--condition",
            known=known_conditions,
            type=names,
            group="Memory",
            help="How the agent gets earlier results.  [default: controlled; in conversations whole]",
        ),
        option(
            "--policy",
            known=policies.names,
            type=names,
            group="Memory",
            help="Which records are kept.  [default: window]",
        ),
        option(
            "--memory",
            type=names,
            group="Memory",
            help="Memory systems; `eirkit doctor` lists them.",
        ),
        panel_option(names),
        budget_option(names),
        *(
            option(
                name,
                common=False,
                type=names,
                group="Memory",
                help=f"{what} that a run may {verb}: a number or unlimited.  [default: 0]",
            )
            for name, what, verb in (("--b-oracle", "Results", "retrieve"), ("--b", "Steps", "recompute"))
        ),
        option(
            "--context-tokens",
            common=False,
            type=IntegerList(1),
            group="Memory",
            help="Context limit of --condition compaction, and in conversations of truncated and server-compaction.",
        ),
        option(
            "--summary-prompt",
            common=False,
            multiple=True,
            group="Memory",
            help="Prompt for the summary of --condition compaction; {characters} stands for the space that is left. In "
            "conversations also plain, facts or instructions. Can be repeated.",
        ),
    )
    runs = (
        option("--seeds", type=SeedList(), group="Runs", help=f"{SEEDS_HELP}  [default: 0:3]"),
        option("--repeats", type=click.IntRange(1), common=False, group="Runs", help="Runs of a task.  [default: 1]"),
        option(
            "--no-texts",
            is_flag=True,
            common=False,
            group="Runs",
            help="Record hashes, not texts, of prompts and replies.",
        ),
    )
    return options(*tasks, *agents, *memories, *runs, *call_options)(command)  # type: ignore[no-any-return]


def known_conditions() -> list[str]:
    """Return how agents may get earlier results, and what conversations take instead."""
    told = [name for name in CONVERSATION_CONDITIONS if name not in CONDITIONS]
    return [CONTROLLED, *CONDITIONS, "any policy", *(f"{name} (in conversations)" for name in told)]


def given_keys(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given, as the keys of a suite."""
    given = {name: options[name] for name in (*AXES, "seeds", "repeats") if options.get(name) not in (None, (), False)}
    if "model" in given:
        given["model"] = list(dict.fromkeys(name for listed in given["model"] for name in listed))
    if "summary_prompt" in given:
        given["summary_prompt"] = list(given["summary_prompt"])
    if options["no_texts"]:
        given["texts"] = False
    asked, kept = read_settings(options["settings"], options["base_url"], options["protocol"])
    return {**given, **({"memory_options": kept} if kept else {}), **({"model_options": asked} if asked else {})}


def describe_external(command: click.Command, model: str, condition: str, seeds: str) -> None:
    """Let the help of a command whose agents eirkit does not call omit how models are called, and name its defaults."""
    helps = {
        "model": f"Name of the agent in the records, as agent/NAME.  [default: {model}]",
        "condition": f"How the agent gets earlier results.  [default: {condition}]",
        "seeds": f"{SEEDS_HELP}  [default: {seeds}]",
    }
    for parameter in command.params:
        if not isinstance(parameter, Option):
            continue
        parameter.hidden |= parameter.name in ("base_url", "protocol", "repeats", "preset")
        parameter.help = helps.get(parameter.name or "", parameter.help)
        if parameter.name == "model":
            parameter.known = None
        elif parameter.name == "condition":
            parameter.known = lambda: (name for name in known_conditions() if not name.endswith(")"))
