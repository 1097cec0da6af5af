"""The options of `eirkit lacuna run`: each axis of a grid, and how models are asked; only what is given counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

from eirkit.agents.prompt import DIALECTS
from eirkit.cli.agent_options import WorkloadNames, known_models, read_setting
from eirkit.cli.memory_options import memory_set_option, read_memory_settings
from eirkit.cli.options import IntegerList, NameList, NamingOption, SeedList
from eirkit.runs.cells import CONTROLLED
from eirkit.runs.sessions import CONDITIONS
from eirkit.runs.suite import AXES
from eirkit.tasks.policy import policies
from eirkit.tasks.workload import workloads

Command = TypeVar("Command", bound=Callable[..., Any])

_MODEL = ("base_url", "temperature", "max_tokens", "timeout_seconds", "retries", "connections", "dialect")


def axis_options(command: Command) -> Command:
    """Add every axis, --seeds and the model options; whatever is not given arrives as None, () or False."""
    decorated: Any = command
    for option in reversed((*_axes(), *_how_models_are_asked())):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]


def _axes() -> tuple[Callable[[Any], Any], ...]:
    count, names = IntegerList(0), NameList()
    return (
        _naming(
            "--workload", workloads.names, "One, or several separated by commas; so for all lists.", WorkloadNames()
        ),
        _naming("--model", known_models, "provider/name; may be given again.", names, multiple=True),
        click.option("--seeds", type=SeedList(), help="3, 0,4,9 or 0:300 (300 excluded).  [default: 0:3]"),
        click.option("--h", type=IntegerList(1), help="Records held.  [default: m]"),
        _naming("--condition", known_conditions, "How earlier answers are had.  [default: controlled]", names),
        _naming("--policy", policies.names, "Which records are held under control.  [default: window]", names),
        click.option("--memory", type=names, help="External memory systems; `eirkit doctor` lists them."),
        click.option("--panel", type=names, help="native, or strict: the memory holds h records, nothing is visible."),
        click.option("--b-oracle", type=names, help="Direct retrievals a run: a number or unlimited.  [default: 0]"),
        click.option("--b", type=names, help="Recomputed steps a run: a number or unlimited.  [default: 0]"),
        click.option("--actions", type=IntegerList(1), help="Actions a managed run.  [default: 200]"),
        click.option("--tool-calls", is_flag=True, help="Offer actions as tools."),
        click.option("--context-tokens", type=IntegerList(1), help="The limit of the compaction condition."),
        click.option("--summary-prompt", help="What compaction asks for; {characters} stands for the room there is."),
        click.option("--n", type=count, help="Steps.  [default: 64]"),
        click.option("--m", type=count, help="Dependency window.  [default: 16]"),
        click.option("--lookback", type=count, help="How far back references reach.  [default: m]"),
        click.option("--fan-in", type=count, help="References a step.  [default: 2]"),
        click.option("--digits", type=count, help="Digits a value.  [default: 4]"),
        click.option("--slots", type=count, help="Values a record.  [default: 1]"),
        click.option("--k", type=count, help="Values a frontier (top-k).  [default: 2]"),
        click.option("--queries", type=names, help="Full Lookup: uniform or zipf."),
        click.option("--warm-up", type=count, help="Leading steps left unscored."),
        click.option("--no-texts", is_flag=True, help="Keep hashes of prompts and replies, not their texts."),
    )


def _naming(
    name: str, known: Callable[[], Iterable[str]], text: str, kind: Any, *, multiple: bool = False
) -> Callable[[Any], Any]:
    return click.option(name, cls=NamingOption, known=known, type=kind, multiple=multiple, help=text)


def known_conditions() -> list[str]:
    return [CONTROLLED, *CONDITIONS, "any policy"]


def _how_models_are_asked() -> tuple[Callable[[Any], Any], ...]:
    return (
        memory_set_option,
        click.option("--base-url", help="An OpenAI-compatible server."),
        click.option("--temperature", type=float, help="Where it is taken.  [default: 0]"),
        click.option("--max-tokens", type=int, help="A reply.  [default: 1024]"),
        click.option("--timeout-seconds", type=float, help="[default: 60]"),
        click.option("--retries", type=int, help="[default: 4]"),
        click.option("--connections", type=int, help="Runs at a time.  [default: 8]"),
        click.option("--model-seed", type=int, help="For models that draw at random."),
        click.option(
            "--dialect", type=click.Choice(list(DIALECTS)), help="Of the prompts.  [default: the model's own]"
        ),
        click.option(
            "--set", "extra", multiple=True, metavar="NAME=VALUE", help="A setting of the model, such as p=0.2."
        ),
    )


def given_keys(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given, as the keys of a suite."""
    given = {name: options[name] for name in (*AXES, "seeds") if options.get(name) not in (None, (), False)}
    if "model" in given:
        given["model"] = list(dict.fromkeys(name for listed in given["model"] for name in listed))
    if options["no_texts"]:
        given["texts"] = False
    asked = {name: options[name] for name in _MODEL if options[name] is not None}
    if options["model_seed"] is not None:
        asked["seed"] = options["model_seed"]
    if options["extra"]:
        asked["extra"] = dict(map(read_setting, options["extra"]))
    if options["memory_set"]:
        given["memory_options"] = read_memory_settings(options["memory_set"])
    return {**given, "model_options": asked} if asked else given


def hide_model_options(command: click.Command) -> None:
    """Keep out of a command's help how models are asked: there the agent comes by itself."""
    for option in command.params:
        if isinstance(option, click.Option) and option.name in (*_MODEL, "model_seed", "extra", "tool_calls"):
            option.hidden = True
