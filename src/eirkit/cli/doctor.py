"""`eirkit doctor` (what is usable here, `--install`), `vestige formats` and `completion`.

Nothing is opened, contacted or installed. Packages are located without importing them where adapters allow it.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import click
from click.shell_completion import get_completion_class
from msgspec import Struct

import eirkit
from eirkit import extensions
from eirkit.cli.command import Show, command, document_options, option, say
from eirkit.errors import EirkitError, UsageError, install_command
from eirkit.lacuna.memories.environments import install as install_memory
from eirkit.lacuna.memories.environments import reason_without_node_packages
from eirkit.lacuna.memories.factory import kind_of, reason_absent
from eirkit.lacuna.memories.memory import Profile, Requirements, memories, requirements_of
from eirkit.lacuna.models.factory import preflight
from eirkit.lacuna.models.model import ModelOptions, models
from eirkit.report.document import Document, Listing, Section
from eirkit.report.table import Cell, Column, Table, counted
from eirkit.vestige.trajectory import formats

# An example name, for providers that do not accept arbitrary names.
_SAMPLES = {
    "bundled": "lacuna-tiny",
    "reference": "calculator",
    "scripted": "extractor",
    "local": "smollm2",
    "inspect": "mockllm/model",
}
_MODELS = {
    "bundled": "bundled/lacuna-tiny: a small trained agent whose weights ship with the package",
    "reference": "scripted agents with known behaviour, such as reference/recoverer; no model is called",
    "replay": "replay/DIR: the replies of a recorded run",
    "scripted": "scripted/extractor: answers the model calls of memory systems without a model",
}  # for providers whose factory is a function, where no class docstring describes the model
_READING = ("orjson", "pyarrow", "splintr", "tree_sitter", "tree_sitter_bash", "zstandard")


@dataclass(frozen=True, slots=True)
class Availability:
    """One plug-in or engine and whether it can be used here."""

    name: str
    usable: bool
    reason: str  # what is missing and how to install it; a description if nothing is
    requirements: Requirements | None = None  # of a memory system, met or not
    profiles: Mapping[str, Profile] | None = None  # of a memory system


class DoctorDocument(Struct, frozen=True):
    """What is usable here, by family."""

    python: str
    eirkit: str
    memories: list[Availability]
    models: list[Availability]
    formats: list[Availability]
    engines: list[Availability]


def list_availability() -> DoctorDocument:
    """Return the findings of each family."""
    return DoctorDocument(
        platform.python_version(),
        eirkit.__version__,
        [_try(_memory, name) for name in memories.names()],
        [_try(_model, name) for name in models.names()],
        [_try(_format, name) for name in formats.names()],
        _engines(),
    )


def _try(look: Callable[[str], Availability], name: str) -> Availability:
    try:
        return look(name)
    except EirkitError as error:
        return Availability(name, False, str(error))
    except Exception as error:  # noqa: BLE001 - one broken third-party plug-in must not hide the others
        return Availability(
            name, False, f"its own check failed ({type(error).__name__}: {error}); report it to its author"
        )


def _memory(name: str) -> Availability:
    kind = kind_of(name)
    needed = requirements_of(kind)
    profiles = dict(kind.profiles) or None
    if (why := reason_absent(name)) is not None:
        return Availability(name, False, why, needed, profiles)
    lacks = reason_without_node_packages(name, needed)  # with default settings
    more = f"; with default settings it needs an npm package: {lacks}" if lacks else ""
    return Availability(name, True, _purpose(kind) + more, needed, profiles)


def _model(name: str) -> Availability:
    factory = models.get(name)
    what = _MODELS.get(name) or _purpose(factory)
    if name == "replay":
        return Availability(name, True, what)
    preflight(factory(_SAMPLES.get(name, "any"), ModelOptions()))
    return Availability(name, True, what)


def _format(name: str) -> Availability:
    lacking = [package for package in _READING if find_spec(package) is None]
    why = f"{lacking[0]} is not installed; {install_command('vestige')}" if lacking else None
    what = _purpose(formats.get(name)) if formats.is_foreign(name) else "built in; see `eirkit vestige formats`"
    return Availability(name, why is None, why or what)


def _engines() -> list[Availability]:
    extras = (
        ("numba", "fast", "compiled counting and simulation"),
        ("cupy", "gpu", "the bundled network on a GPU"),
        ("duckdb", "query", "`eirkit vestige query`: SQL over analyzed runs"),
    )
    found = [Availability("numpy", True, "counting and simulation; always installed")]
    for package, extra, what in extras:
        usable = find_spec(package) is not None
        found.append(Availability(package, usable, what if usable else install_command(extra)))
    return found


def _purpose(plugin: object) -> str:
    """Return the first sentence of a plug-in's docstring."""
    return " ".join((getattr(plugin, "__doc__", None) or "").split("\n\n")[0].split()).rstrip(".")


COLUMNS = (
    Column("name", "name", role="text"),
    Column("usable", "usable"),
    Column("reason", "what is missing, or what it does", role="text"),
)


@command(example="eirkit doctor")
@option(
    "--install",
    metavar="NAMES",
    multiple=True,
    help="Create environments for these memory systems or compactors: mem0,inspect-trim. Can be repeated.",
)
@document_options
def doctor(install: tuple[str, ...], show: Show) -> None:
    """List the memory systems, models, log formats and engines that are usable here, and how to get the others."""
    for name in filter(None, ",".join(install).split(",")):
        others = (extensions.load(reference) for reference in extensions.INSTALLED)
        plugin = next((family.get(name.strip()) for family in others if family.is_at_hand(name.strip())), None)
        install_memory(name.strip(), say, None if plugin is None else plugin.requirements)
    show(_document(list_availability()))


def _document(data: DoctorDocument) -> Document:
    families = {"memories": data.memories, "models": data.models, "formats": data.formats, "engines": data.engines}
    tables = tuple(Table(name, name.capitalize(), COLUMNS, _grouped(found)) for name, found in families.items())
    tables = (*tables, _profiles(data.memories))
    counts = ", ".join(
        f"{sum(one.usable for one in found)} of {len(found)} {family}" for family, found in families.items()
    )
    answer = f"eirkit {data.eirkit} on Python {data.python}: {counts} are usable."
    missing = [one.name for one in data.memories if not one.usable and "--install" in one.reason]
    then = f"eirkit doctor --install {','.join(missing)}" if missing else "eirkit demo"
    return Document("doctor", "What is usable here", (answer,), data, (Section("", (), tables),), next=then)


def _grouped(found: Sequence[Availability]) -> tuple[dict[str, Cell], ...]:
    """Return one line for all names of which the same is said."""
    names: dict[tuple[bool, str], list[str]] = {}
    for one in found:
        names.setdefault((one.usable, one.reason), []).append(one.name)
    return tuple({"name": ", ".join(those), "usable": usable, "reason": why} for (usable, why), those in names.items())


def _profiles(memories: Sequence[Availability]) -> Table:
    lines = tuple(
        {"name": one.name, "profile": name, "on": profile.on, "off": profile.off}
        for one in memories
        for name, profile in (one.profiles or {}).items()
    )
    columns = (
        Column("name", "memory", role="name"),
        Column("profile", "profile"),
        Column("on", "what is used", role="text"),
        Column("off", "what is not, and why", role="text"),
    )
    return Table("profiles", "Profiles of memory systems; the first is the default", columns, lines)


PLAIN = """\
{"run_id","task_id","model","resolved","goal_files":[…],
 "turns":[{"reads":[{"path","tokens"}],"writes":[{"path","tokens"}],"tokens"}]}"""
ABOUT_PLAIN = (
    "For logs that no other format fits, write one JSON object per line in the format plain; goal_files [] means that "
    "there are none, a missing goal_files that they are unknown:"
)
CONTAINERS = "Files, folders, .gz, .zst, .zip and Parquet are read in place; the format is detected from the content."
FORMAT_COLUMNS = (Column("name", "name"), Column("description", "what it reads", role="text"))


@command("formats", example="eirkit vestige formats")
@document_options
def list_formats(show: Show) -> None:
    """List the log formats that can be read."""
    rows = tuple({"name": name, "description": _first_line(formats.get(name))} for name in formats.names())
    data = {"formats": list(rows), "containers": ["folder", ".gz", ".zst", ".zip", "parquet"]}
    sections = (
        Section("", (), (Table("formats", "Formats", FORMAT_COLUMNS, rows),)),
        Section("", (ABOUT_PLAIN,), (Listing("plain", "", PLAIN),)),
    )
    answer = (f"{counted(len(rows), 'log format')} can be read.", CONTAINERS)
    then = "eirkit vestige analyze PATH --out out/analysis"
    show(Document("vestige-formats", "Log formats", answer, data, sections, next=then))


def _first_line(plugin: object) -> str:
    return (plugin.__doc__ or "").strip().split("\n")[0]


@command(example='eval "$(eirkit completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@document_options
def completion(shell: str, show: Show) -> None:
    """Print the completion script for SHELL: bash, zsh or fish."""
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageError(f"no completion for {shell!r}; use bash, zsh or fish")
    root = click.get_current_context().find_root().command
    script = kind(root, {}, "eirkit", "_EIRKIT_COMPLETE").source()
    listing = Section("", (), (Listing("script", "", script),))
    # The shell evaluates the text, so the script is all of it: no sentence before and no line after it.
    show(Document("completion", f"Completion for {shell}", (), {"shell": shell, "script": script}, (listing,)))
