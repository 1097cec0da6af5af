"""Write the reference pages of the site: commands with their help, public names, columns of tables, the glossary.

`make docs` runs it before Sphinx. The pages are made from the package at that moment, so they cannot be out of date.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click
from msgspec import Struct

from eirkit.cli import ROOT as TREE
from eirkit.records import events, runs, settings, sweeps
from eirkit.records.analysis import TABLES
from eirkit.report.glossary import glossary_page
from eirkit.report.table import markdown_text

ROOT = Path(__file__).parents[1]
COLUMNS = 88  # what fits a page of the site without scrolling
PUBLIC = ("eirkit", "eirkit.testing")
FIELD = re.compile(r"^    (?P<name>[a-z]\w*): (?P<type>[^=#]+?)(?: = [^#]*?)?(?:  # (?P<comment>.*))?$")


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield every command below this one: what one types, and its help."""
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None and not found.hidden:
                child = click.Context(
                    found, info_name=name, parent=context, max_content_width=COLUMNS, terminal_width=COLUMNS
                )
                yield from commands(found, child)


def commands_page() -> str:
    """Return the page of all commands."""
    context = click.Context(TREE, info_name="eirkit", max_content_width=COLUMNS, terminal_width=COLUMNS)
    parts = ["# Commands", "The help of every command, as `-h` prints it. Every command also takes `--json`."]
    for path, text in commands(TREE, context):
        parts += [f"## {path}", f"```text\n{text.rstrip()}\n```"]
    return "\n\n".join(parts) + "\n"


def api_page() -> str:
    """Return the page of all public names."""
    parts = [
        "# Python interface",
        "The public names, with their signatures. Everything else may change without notice.",
    ]
    for name in PUBLIC:
        module = import_module(name)
        parts += [f"## {name}", (module.__doc__ or "").strip()]
        parts += [part for public in module.__all__ for part in entry(module, public)]
    return "\n\n".join(parts) + "\n"


def entry(module: ModuleType, name: str) -> list[str]:
    """Return the heading, signature and docstring of a public name."""
    found = getattr(module, name)
    described = found if inspect.isclass(found) or inspect.isfunction(found) else type(found)
    parts = [f"### {name}"]
    if described is found:
        parts.append(f"```python\n{signature(name, found)}\n```")
    if text := inspect.getdoc(described):
        parts.append(f"```text\n{text}\n```")
    if inspect.isclass(found):
        parts += [
            f"```python\n{signature(f'{name}.{method}', value)}\n```\n\n{(inspect.getdoc(value) or '').splitlines()[0]}"
            for method, value in vars(found).items()
            if inspect.isfunction(value) and not method.startswith("_") and inspect.getdoc(value)
        ]
        properties = {name: inspect.getdoc(one) for name, one in vars(found).items() if isinstance(one, property)}
        parts += [f"- `{name}`: {text}" for name, text in properties.items() if text]
    return parts


def signature(name: str, found: object) -> str:
    """Return how something is called, on several lines if it is long."""
    try:
        told = unquoted(inspect.signature(found))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return name
    short = f"{name}{told}"
    if len(short) <= COLUMNS:
        return short
    ends = "" if told.return_annotation is told.empty else f" -> {told.return_annotation!r}"
    lines, kind = [], None
    for one in told.parameters.values():
        if one.kind is one.KEYWORD_ONLY and kind not in (one.KEYWORD_ONLY, one.VAR_POSITIONAL):
            lines.append("    *,")
        kind = one.kind
        lines.append(f"    {one},")
    return "\n".join([f"{name}(", *lines, f"){ends}"])


class Annotation:
    """An annotation as it stands in the source, which `inspect` would put in quotes."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def unquoted(told: inspect.Signature) -> inspect.Signature:
    """Return a signature whose annotations are shown without quotes."""

    def clean(found: object) -> object:
        return Annotation(found) if isinstance(found, str) else found

    parameters = [one.replace(annotation=clean(one.annotation)) for one in told.parameters.values()]
    return told.replace(parameters=parameters, return_annotation=clean(told.return_annotation))


def fields(kind: type) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and comment of the fields that a class declares, as they stand in its source."""
    for line in inspect.getsource(kind).splitlines():
        if found := FIELD.match(line):
            yield found["name"], found["type"], (found["comment"] or "").strip()


def tables_page() -> str:
    """Return the page of the fields of stored results and the columns of an analysis."""
    parts = [
        "# Fields and columns",
        "Those of the records of a sweep, and of the tables that `eirkit vestige analyze` writes.",
    ]
    stored = {
        name: kind
        for module in (settings, runs, events, sweeps)
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and issubclass(kind, Struct) and kind.__module__ == module.__name__ and name[0] != "_"
    }
    for name, kind in {**stored, **{f"Table `{name}`": row for name, row in TABLES.items()}}.items():
        parts += [
            f"## {name}",
            (inspect.getdoc(kind) or "").partition("\n\n")[0],
            "| field | type | meaning |\n|---|---|---|",
        ]
        lines = [
            f"| `{field}` | `{text.replace('|', chr(92) + '|')}` | {markdown_text(note)} |"
            for field, text, note in fields(kind)
        ]
        parts[-1] = "\n".join([parts[-1], *lines])
    return "\n\n".join(parts) + "\n"


def write(folder: Path) -> None:
    """Write all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tables.md").write_text(tables_page(), "utf-8")
    (folder / "glossary.md").write_text(glossary_page(), "utf-8")
    (folder / "commands.md").write_text(commands_page(), "utf-8")
    (folder / "api.md").write_text(api_page(), "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "reference")
