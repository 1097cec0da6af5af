"""Write the reference pages of the site: every command with its help, and every public name with its docstring.

`make docs` runs it before Sphinx. The pages are made from the package at that moment, so they cannot be out of date.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import click

from eirkit.cli import ROOT as TREE

ROOT = Path(__file__).parents[1]
COLUMNS = 88  # what fits a page of the site without scrolling
PUBLIC = ("eirkit", "eirkit.testing")


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


def write(folder: Path) -> None:
    """Write both pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "commands.md").write_text(commands_page(), "utf-8")
    (folder / "api.md").write_text(api_page(), "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "reference")
