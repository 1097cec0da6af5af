"""Prints what a reader of the project meets: lines, types, patterns, options, imports, words. Nothing is enforced.

`python tools/counts.py [ROOT]` counts the repository in ROOT (default: this one), so that an earlier commit in another
folder can be counted in the same way. `--imports` lists the modules that each command imports.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Where models' replies, memories' passages and prompts are read; servers and environments read other things.
READING = {"agents", "conversation", "findings", "memories", "models", "scripted", "tasks"}
NOT_READING = {"serving", "stores", "environments", "chat_server", "scrubber"}
TASK = "--workload store-recall --m 8 --h 4 --seeds 0:2"
SWEEP = f"lacuna run {TASK} --no-control"
# Every command runs in one folder, in this order: later ones read what earlier ones wrote.
COMMANDS = {
    "--help": "--help",
    "eir curve": "eir curve stepwise-sum --m 8",
    "lacuna cones": "lacuna cones --m 12",
    "lacuna simulate": "lacuna simulate store-recall --m 20 --seeds 0:5",
    "lacuna run": f"{SWEEP} --model reference/calculator,reference/guesser --out first",
    "lacuna rescue": f"lacuna rescue {TASK} --model reference/calculator --out rescue",
    "report": "report first --out page.html",
    "choose": "choose first",
    "show": "show first",
    "watch": "watch first --once",
    "doctor": "doctor",
    "vestige analyze": "vestige analyze turn.jsonl --out analysis",
    "show of an analysis": "show analysis t1",
}
CALL = '{"command": ["cat", "a.py"]}'
# A Codex session of one turn, in which a file is read.
TURN = (
    ("session_meta", {"id": "t1", "cwd": "/repo", "originator": "codex_cli_rs", "cli_version": "0.60.0"}),
    ("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Solve it."}]}),
    ("response_item", {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": CALL}),
    ("response_item", {"type": "function_call_output", "call_id": "c1", "output": "x = 1"}),
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=ROOT)
    parser.add_argument("--imports", action="store_true", help="list the modules that each command imports")
    chosen = parser.parse_args()
    root = chosen.root.resolve()
    imported = imported_by_commands(root)
    rows = {**source_rows(root), **command_rows(root), **import_rows(imported), **text_rows(root)}
    for name, figure in rows.items():
        print(f"| {name} | {figure} |")
    for command, modules in imported.items() if chosen.imports else ():
        print(f"{command}:", *modules, sep="\n    ")
    return 0


def source_rows(root: Path) -> dict[str, str]:
    """Return lines per package, and counts of types, functions and patterns over all of `src`."""
    files = {path: path.read_text("utf-8") for path in sorted((root / "src").rglob("*.py"))}
    trees = {path: ast.parse(text) for path, text in files.items()}
    packages: dict[str, list[int]] = {}
    for path, text in files.items():
        parts = path.relative_to(root / "src").parts
        names = {parts[0], "/".join(parts[:2])} if len(parts) > 2 else {parts[0]}
        for name in names:
            packages.setdefault(name, []).append(text.count("\n"))
    modules = {".".join(path.relative_to(root / "src").with_suffix("").parts): tree for path, tree in trees.items()}
    aliases = dict_aliases(modules)
    functions = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, FUNCTIONS)]
    rows = [
        node
        for module, tree in modules.items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS) and any(is_dict_row(note, aliases[module]) for note in annotations(node))
    ]
    keys = sum(string_keys(tree) for tree in trees.values())
    private, single = private_functions(trees)
    lines = sum(text.count("\n") for text in files.values())
    patterns = {path: patterns_in(tree) for path, tree in trees.items()}
    return {
        "modules / lines in `src`": f"{len(files):,} / {lines:,}",
        **{
            f"modules / lines in `{name}`": f"{len(counts):,} / {sum(counts):,}"
            for name, counts in sorted(packages.items())
        },
        "functions with dict-typed rows, aliases resolved": share(len(rows), len(functions)),
        "names of dict types, imports included": str(sum(map(len, aliases.values()))),
        "string-key accesses per 1,000 lines": f"{1000 * keys / lines:.1f}",
        "median function, lines": f"{statistics.median((n.end_lineno or 0) - n.lineno + 1 for n in functions):g}",
        "private functions with one caller": share(single, private),
        "regex literals": f"{sum(patterns.values()):,}",
        "regex literals in what reads replies, passages, prompts": f"{readers_patterns(patterns):,}",
    }


def share(part: int, whole: int) -> str:
    """Return a count with its percentage of the whole."""
    return f"{part:,} ({100 * part / max(1, whole):.1f} %)"


def annotations(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    """Yield the annotations of the parameters and of the result."""
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if argument is not None and argument.annotation is not None:
            yield argument.annotation
    if function.returns is not None:
        yield function.returns


def dict_aliases(modules: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """Return for each module the names that mean a dict of anything there: its aliases, and those it imports."""
    found: dict[str, set[str]] = {module: set() for module in modules}
    while True:
        before = sum(map(len, found.values()))
        for module, tree in modules.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and node.module in found:
                    found[module] |= {
                        alias.asname or alias.name for alias in node.names if alias.name in found[node.module]
                    }
            for node in tree.body:
                # Only types: a constant such as `{"a": x}` or a call is no alias.
                if isinstance(node, (ast.Assign, ast.AnnAssign)) and isinstance(
                    node.value, (ast.Subscript, ast.Name, ast.BinOp)
                ):
                    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                    if is_dict_row(node.value, found[module]):
                        found[module] |= {target.id for target in targets if isinstance(target, ast.Name)}
        if sum(map(len, found.values())) == before:
            return found


def is_dict_row(annotation: ast.expr, aliases: set[str]) -> bool:
    """True if `[str, Any]` or `[str, object]`, or an alias of such a type, occurs in an annotation."""
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                inner = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                continue
            if is_dict_row(inner, aliases):
                return True
        if isinstance(node, ast.Name) and node.id in aliases:
            return True
        if isinstance(node, ast.Subscript) and re.fullmatch(r"\(?str, (Any|object)\)?", ast.unparse(node.slice)):
            return True
    return False


def string_keys(tree: ast.Module) -> int:
    """Return how often a value is taken by a literal key: `row["h"]` or `row.get("h")`."""
    count = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            count += isinstance(node.slice.value, str)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "get"
            and node.args
        ):
            count += isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)
    return count


def private_functions(trees: Mapping[Path, ast.Module]) -> tuple[int, int]:
    """Return the number of private module-level functions, and of those that their module names exactly once."""
    private = single = 0
    for tree in trees.values():
        uses = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
        own = [node.name for node in tree.body if isinstance(node, FUNCTIONS) and node.name.startswith("_")]
        private += len(own)
        single += sum(uses[name] == 1 for name in own)
    return private, single


def patterns_in(tree: ast.Module) -> int:
    """Return how many regular expressions are written in a module: every call of `re` with a literal pattern."""
    verbs = {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in ("re", "regex")
        and node.func.attr in verbs
        and bool(node.args)
        and not isinstance(node.args[0], ast.Name)
        for node in ast.walk(tree)
    )


def readers_patterns(patterns: Mapping[Path, int]) -> int:
    """Return the patterns of the packages that read replies, passages and prompts."""
    return sum(
        count
        for path, count in patterns.items()
        if READING & set(path.parts[:-1]) and not NOT_READING & {*path.parts[:-1], path.stem}
    )


def command_rows(root: Path) -> dict[str, str]:
    """Return counts of commands and options, asked of the tree of commands in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--observe-options"],
        env=environment(root),
        capture_output=True,
        text=True,
        check=True,
    )
    rows: dict[str, str] = json.loads(done.stdout)
    return rows


def observe_options() -> None:
    """Print the counts of commands and options of the package on the path of this process."""
    import click

    from eirkit import cli

    def walk(command: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                if below is not None:
                    yield from walk(below, click.Context(below, info_name=name, parent=context))
        else:
            yield context.command_path, command

    group = cli.ROOT
    top = click.Context(group, info_name="eirkit")
    commands = dict(walk(group, top))
    options = [
        name
        for command in commands.values()
        for parameter in command.params
        if isinstance(parameter, click.Option)
        for name in [max((*parameter.opts, *parameter.secondary_opts), key=len)]
    ]
    helps = {
        path: command.get_help(click.Context(command, info_name=path)).count("\n") + 1
        for path, command in commands.items()
    }
    longest = max(helps, key=lambda path: helps[path])
    keys = setting_keys(commands.values())
    print(
        json.dumps(
            {
                "commands / on the first screen": f"{len(commands)} / {sum(map(len, group.headings.values()))}",
                "options over all commands": str(len(options)),
                "distinct options": str(len(set(options))),
                "distinct keys of `--set` options": str(len(keys)),
                "longest help, lines": f"{helps[longest]} (`{longest}`)",
            }
        )
    )


def setting_keys(commands: Iterable[object]) -> set[str]:
    """Return the keys that options like `--set NAME=VALUE` take, as far as they name them."""
    found: set[str] = set()
    for command in commands:
        for parameter in getattr(command, "params", ()):
            if "=" in (getattr(parameter, "metavar", None) or ""):
                found |= set(re.findall(r"\b([a-z][a-z_.]*)(?==)", getattr(parameter, "help", None) or ""))
                found |= set((getattr(parameter, "known", None) and parameter.known()) or ())
    return found


def import_rows(imported: Mapping[str, list[str]]) -> dict[str, str]:
    """Return how many modules of ours each command has imported when it ends."""
    return {f"modules imported by `{name}`": str(len(modules)) for name, modules in imported.items()}


def imported_by_commands(root: Path) -> dict[str, list[str]]:
    """Run every command in one new folder and return what each imported."""
    lines = [{"timestamp": "2025-01-01T00:00:00Z", "type": kind, "payload": payload} for kind, payload in TURN]
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "turn.jsonl").write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
        for name, line in COMMANDS.items():
            result = Path(folder, "imported.json")
            command = [sys.executable, str(Path(__file__).resolve()), "--observe", str(result), *line.split()]
            done = subprocess.run(
                command, cwd=folder, env=environment(root), capture_output=True, text=True, check=False
            )
            if done.returncode:
                print(f"eirkit {line} failed: {done.stderr.strip() or done.stdout.strip()}", file=sys.stderr)
                continue
            found[name] = json.loads(result.read_text("utf-8"))
    return found


def observe(result: Path, arguments: list[str]) -> int:
    """Run one command in this process and write what it imported."""
    from eirkit import cli

    code: int = cli.run(arguments)
    imported = sorted(name for name in sys.modules if name.split(".")[0].startswith("eirkit"))
    result.write_text(json.dumps(imported), "utf-8")
    return code


def environment(root: Path) -> dict[str, str]:
    """Return the environment in which the package of a repository is imported, not the installed one."""
    return os.environ | {"PYTHONPATH": str(root / "src"), "COLUMNS": "80", "NO_COLOR": "1"}


def text_rows(root: Path) -> dict[str, str]:
    """Return words of documentation, targets of make, and lines of tests."""
    pages = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    words = sum(len(page.read_text("utf-8").split()) for page in pages)
    declared = re.findall(r"^([a-z][\w-]*):", (root / "Makefile").read_text("utf-8"), re.MULTILINE)
    tests = sum(path.read_text("utf-8").count("\n") for path in (root / "tests").rglob("*.py"))
    return {
        "words / pages of documentation": f"{words:,} / {len(pages)}",
        "make targets": str(len(set(declared))),
        "lines of tests": f"{tests:,}",
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--observe"]:
        sys.exit(observe(Path(sys.argv[2]), sys.argv[3:]))
    if sys.argv[1:2] == ["--observe-options"]:
        sys.exit(observe_options())
    sys.exit(main())
