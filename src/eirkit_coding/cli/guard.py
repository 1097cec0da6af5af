"""`eirkit guard …`: hooks of coding agents that restore what a compaction drops; `eirkit guard watch`: the proxy."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import click
from msgspec import Struct, to_builtins

from eirkit.cli.command import OUTPUT, Show, command, document_options, option, say
from eirkit.report.document import Document, Section
from eirkit.report.showing import json_text
from eirkit.report.table import Column, Table
from eirkit_coding.guard import hook as hooks
from eirkit_coding.guard.guard import Loss
from eirkit_coding.guard.installing import AGENTS, Installation, Installer
from eirkit_coding.guard.proxy import GuardProxy, Telling
from eirkit_coding.guard.trial import PLANNED, begin_trial, end_trial, trial_plan

_AGENT = click.Choice(tuple(AGENTS))
_COMPLAINTS = 3  # lines of the log that are shown


def _installer() -> Installer:
    return Installer(Path.home(), os.environ, hooks.guard_folder())


@command(example="eirkit guard install claude")
@click.argument("agent", metavar="AGENT", type=_AGENT)
@option(
    "--trial",
    is_flag=True,
    help="Run a trial: chance decides at each compaction to restore, to show a sham, or to do nothing.",
)
@option("--seed", type=click.IntRange(0), metavar="N", help="Seed of the trial.  [default: drawn and logged]")
@option(
    "--compactions",
    type=click.IntRange(3),
    default=PLANNED,
    show_default=True,
    metavar="N",
    help="Compactions after which the trial gives an answer.",
)
@document_options
def install(agent: str, trial: bool, seed: int | None, compactions: int, show: Show) -> None:
    """Install the guard into AGENT: claude, codex, gemini or opencode.

    After a compaction, it tells the agent in under 2 KB what was probably dropped and is still needed: instructions
    word for word, open to-dos, and files with line ranges. Install it again to update it. It sends nothing over the
    network.
    """
    if trial:
        begin_trial(hooks.guard_folder(), seed, compactions)
    found = _installer().install(agent)
    words = f"The guard of {found.agent.title} is in {found.place}. {found.agent.note}"
    show(_document("install", [found], (words, *_trial_words())))


@command(example="eirkit guard uninstall claude")
@click.argument("agent", metavar="AGENT", type=_AGENT)
@document_options
def uninstall(agent: str, show: Show) -> None:
    """Remove the guard from AGENT and restore the agent's own files byte for byte."""
    was_installed = _installer().status(agent).is_installed
    found = _installer().uninstall(agent)
    if not any(_installer().status(name).is_installed for name in AGENTS):
        end_trial(hooks.guard_folder())
    title = found.agent.title
    words = f"The guard of {title} is removed." if was_installed else f"{title} had no guard; nothing was changed."
    show(_document("uninstall", [found], (words,)))


@command(example="eirkit guard status claude")
@click.argument("agent", metavar="[AGENT]", type=_AGENT, required=False)
@document_options
def status(agent: str | None, show: Show) -> None:
    """Say where the guard is installed, whether it was changed, and what it recently failed to do."""
    found = [_installer().status(name) for name in ([agent] if agent else AGENTS)]
    there = [state.agent.title for state in found if state.is_installed]
    words = f"The guard is installed in {' and '.join(there)}." if there else "The guard is not installed."
    show(_document("status", found, (words, *_trial_words())))


def _trial_words() -> Iterator[str]:
    plan = trial_plan(hooks.guard_folder())
    if plan is not None:
        yield (
            f"A trial of {plan.compactions} compactions is under way with seed {plan.seed}: "
            "at each, chance decides to restore, to show a sham, or to do nothing."
        )


class AgentState(Struct, frozen=True):
    """Whether the guard is installed in one agent."""

    agent: str
    installed: bool
    changed: bool
    place: str


class GuardState(Struct, frozen=True):
    """What the commands that install and remove the guard print as JSON."""

    agents: tuple[AgentState, ...]
    trial_seed: int | None
    folder: str
    complaints: tuple[str, ...]


def _document(verb: str, found: Sequence[Installation], words: tuple[str, ...]) -> Document:
    folder = hooks.guard_folder()
    plan = trial_plan(folder)
    state = GuardState(
        tuple(AgentState(own.agent.name, own.is_installed, own.is_changed, str(own.place)) for own in found),
        None if plan is None else plan.seed,
        str(folder),
        tuple(_complaints(folder / "guard.log")) if verb == "status" else (),
    )
    columns = (
        Column("agent", "agent"),
        Column("installed", "installed"),
        Column("changed", "changed since", meaning="by somebody else"),
        Column("place", "where", role="name"),
    )
    agents = Table("agents", "", columns, to_builtins(state.agents))
    sections = [Section("", (), (agents,))] if verb == "status" else []
    sections += [Section("What the guard recently failed to do", state.complaints)] if state.complaints else []
    following = "eirkit guard results" if plan is not None and verb == "status" else ""
    return Document(f"guard-{verb}", "The guard", words, to_builtins(state), tuple(sections), next=following)


def _complaints(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", "replace").splitlines()[-_COMPLAINTS:]
    except OSError:
        return []


@command(example="eirkit guard hook claude PreCompact")
@click.argument("agent", metavar="AGENT")
@click.argument("event", metavar="EVENT")
@option("--json", "as_json", is_flag=True, group=OUTPUT, help="Has no effect: an answer is always JSON.")
def hook(agent: str, event: str, as_json: bool) -> int:
    """Answer one EVENT of AGENT, whose JSON is on standard input; always exits with 0.

    The installed hooks do the same, but call `python -m eirkit_coding.guard.hook`, which starts faster.
    """
    return hooks.main([agent, event])


@command(example="eirkit guard watch --base-url https://api.anthropic.com")
@option("--base-url", "upstream", required=True, metavar="URL", help="The model server that the agent would talk to.")
@option("--port", type=click.IntRange(0, 65535), default=0, help="Port on loopback.  [default: a free one]")
@option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    group=OUTPUT,
    help="Also append every loss to this file, as JSON lines.",
)
@option("--json", "as_json", is_flag=True, group=OUTPUT, help="Print JSON lines on stdout instead of warnings.")
def watch(upstream: str, port: int, out: Path | None, as_json: bool) -> None:
    """Watch an agent's requests and warn when they drop files that it is likely to need again.

    Give the agent the printed address in place of its model server's. Stop with Ctrl-C.
    """
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
    file = out.open("a", encoding="utf-8") if out is not None else None
    try:
        proxy = GuardProxy(upstream, _telling(as_json, file), port)
        if as_json:
            click.echo(json_text({"address": proxy.address, "upstream": proxy.shown_upstream}))
        else:
            say(f"Point the agent at {proxy.address} in place of {proxy.shown_upstream}.")
        proxy.serve()
    finally:
        if file is not None:
            file.close()


def _telling(as_json: bool, file: TextIO | None) -> Telling:
    lock = threading.Lock()

    def tell(losses: Sequence[Loss]) -> None:
        with lock:
            for loss in losses:
                document = to_builtins(loss)
                if file is not None:
                    file.write(json.dumps(document, ensure_ascii=False) + "\n")
                    file.flush()
                if loss.likely and as_json:
                    click.echo(json_text(document))
                elif loss.likely:
                    say(f"warning: {loss}")

    return tell
