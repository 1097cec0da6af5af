"""Options of the grid of `lacuna run`, `mcp serve` and `export harbor`: axes that may have several values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from eirkit.cli.agent_options import WorkloadNames, call_options, known_models, panel_option, read_settings
from eirkit.cli.command import NameList, Option, option, options
from eirkit.cli.options import SEEDS_HELP, IntegerList, SeedList, task_option
from eirkit.errors import UsageError
from eirkit.lacuna.agents.conditions import CONVERSATION_CONDITIONS
from eirkit.lacuna.runs.sessions import CONDITIONS
from eirkit.lacuna.runs.suite import AXES
from eirkit.lacuna.tasks.policy import policies
from eirkit.records.settings import CONTROLLED

Command = TypeVar("Command", bound=Callable[..., Any])


def suite_argument(command: Command) -> Command:
    """Add WORKLOAD or SUITE.toml as an argument; the command receives `suite`, and `workload` among its options."""
    return _positional(command, "[WORKLOAD | SUITE.toml]", suites=True)


def serve_argument(command: Command) -> Command:
    """Add WORKLOAD as an argument; the command receives it as `workload` among its options."""
    return _positional(command, "[WORKLOAD]", suites=False)


def _positional(command: Command, metavar: str, *, suites: bool) -> Command:
    @wraps(command)
    def with_task(task: str | None, workload: list[str] | None, **given: Any) -> Any:
        file = None
        if task is not None and suites and (task.endswith(".toml") or Path(task).is_file()):
            file = Path(task)
        elif task is not None:
            names = WorkloadNames().convert(task, None, click.get_current_context())
            if workload is not None and workload != names:
                raise UsageError(
                    f"two workloads are given, {task} and --workload {','.join(workload)}; give one of them"
                )
            workload = names
        return command(workload=workload, **({"suite": file} if suites else {}), **given)

    return click.argument("task", metavar=metavar, required=False)(with_task)  # type: ignore[return-value]


def axis_options(command: Command) -> Command:
    """Add every axis, --seeds and the model options; whatever is not given arrives as None, () or False."""
    return options(*_axes(), *call_options)(command)  # type: ignore[no-any-return]


def _axes() -> tuple[Callable[[Any], Any], ...]:
    return (*_task_axes(), *_agent_axes(), *_memory_axes(), *_compaction_axes(), *_run_axes())


def _task_axes() -> tuple[Callable[[Any], Any], ...]:
    fields = ("n", "m", "lookback", "fan_in", "digits", "slots", "k", "queries", "warm_up")
    return (
        option("--workload", type=WorkloadNames(), group="Task", hidden=True, help="The same as WORKLOAD."),
        *(task_option(name, NameList() if name == "queries" else IntegerList(0)) for name in fields),
        option(
            "--preset",
            type=NameList(),
            group="Task",
            help="Worlds of conversations: a size such as small+level=3, or a file.",
        ),
    )


def _agent_axes() -> tuple[Callable[[Any], Any], ...]:
    return (
        _naming(
            "--model",
            known_models,
            "Models, as provider/name; separated by commas or repeated.",
            "Agent",
            NameList(),
            multiple=True,
        ),
        option(
            "--actions",
            type=IntegerList(1),
            common=False,
            group="Agent",
            help="Most actions in a managed run.  [default: 200]",
        ),
    )


def _memory_axes() -> tuple[Callable[[Any], Any], ...]:
    names = NameList()
    return (
        option("--h", type=IntegerList(1), group="Memory", help="Records that stay visible.  [default: m]"),
        _naming(
            "--condition",
            known_conditions,
            "How the agent gets earlier results.  [default: controlled; in conversations whole]",
            "Memory",
            names,
        ),
        _naming("--policy", policies.names, "Which records are kept.  [default: window]", "Memory", names),
        option("--memory", type=names, group="Memory", help="Memory systems; `eirkit doctor` lists them."),
        panel_option(names),
        option(
            "--b-oracle",
            common=False,
            type=names,
            group="Memory",
            help="Results that a run may retrieve: a number or unlimited.  [default: 0]",
        ),
        option(
            "--b",
            common=False,
            type=names,
            group="Memory",
            help="Steps that a run may recompute: a number or unlimited.  [default: 0]",
        ),
    )


def _compaction_axes() -> tuple[Callable[[Any], Any], ...]:
    return (
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


def _run_axes() -> tuple[Callable[[Any], Any], ...]:
    return (
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


def _naming(
    name: str, known: Callable[[], Iterable[str]], text: str, group: str, kind: Any, *, multiple: bool = False
) -> Callable[[Any], Any]:
    return option(name, known=known, type=kind, multiple=multiple, group=group, help=text)


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
    for one in command.params:
        if not isinstance(one, Option):
            continue
        one.hidden |= one.name in ("base_url", "protocol", "repeats", "preset")
        one.help = helps.get(one.name or "", one.help)
        if one.name == "model":
            one.known = None
        elif one.name == "condition":
            one.known = lambda: (name for name in known_conditions() if not name.endswith(")"))
