"""Shell commands that run others (interpreters, scripts, prefixes such as `sudo`), and `cd`, `echo` and `printf`."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module

from msgspec.structs import replace

from eirkit.vestige.shell import PROGRAMS
from eirkit.vestige.shell.grammar import parse
from eirkit.vestige.shell.powershell_commands import as_shell
from eirkit.vestige.shell.python_values import GLOB, ProgramEffects
from eirkit.vestige.shell.state import NOTHING, OTHER, Flow, chosen, merged
from eirkit.vestige.shell.syntax import Node
from eirkit.vestige.shell.walk import Handler, Invocation, Walk
from eirkit.vestige.shell.words import UNKNOWN, Glob

_STACK = "DIRSTACK"
_MOST_FOLDERS = 32  # folders on the `pushd` stack
_SCRIPT_CHARACTERS_PER_COMMAND = 200  # a script is parsed in the time of a command for so many characters
_CHARACTERS_PER_VALUE = 5  # of a program that looks at each of its values once
_VALUES_PER_COMMAND = 4  # a program's values are looked at in the time of a command
_ECHO_ESCAPE = re.compile(r"\\([nt\\\"'])")
_ECHO_MEANING = {"n": "\n", "t": "\t"}
_STDIN = "open('/dev/stdin')"  # replacement for a program's input that another command supplies
_RUNS_ANOTHER = ("exec", "run", "dlx", "x")  # subcommands of package managers and containers


def change_folder(walk: Walk, call: Invocation) -> Flow:
    """`cd` and `pushd`; if the target is unknown, the folder stays, unless it is made at run time."""
    ignored = ("-P", "-L", "--", "-e", "/d", "/D", "-Path", "-LiteralPath")
    words = [word for word in call.arguments if word not in ignored]
    if not words:
        _go(walk, "~")
    elif words[0] == "-":
        _go(walk, walk.variables.get("OLDPWD", walk.folder))
    elif UNKNOWN not in words[0] and words[0] and len(words[0]) < 1000 and f"cd: {words[0]}: " not in walk.output:
        _go(walk, walk.state.absolute(words[0], walk.folder))
    elif words[0][:1] == "/" and UNKNOWN in words[0]:
        walk.folder = words[0]  # files in it have no known path
    return NOTHING


def _go(walk: Walk, folder: str) -> None:
    walk.variables["OLDPWD"] = walk.folder
    walk.variables["PWD"] = folder if folder[:1] in ("/", "~") else UNKNOWN
    walk.folder = folder


def push_folder(walk: Walk, call: Invocation) -> Flow:
    """`pushd` pushes the current folder; without an operand it swaps with the last."""
    stack = [folder for folder in walk.variables.get(_STACK, "").split("\n") if folder]
    before = walk.folder
    if not call.arguments and stack:
        _go(walk, stack.pop())
    elif call.arguments and not re.fullmatch(r"[-+]\d+|-n", call.arguments[0]):
        change_folder(walk, call)
    walk.variables[_STACK] = "\n".join([*stack, before][-_MOST_FOLDERS:])
    return NOTHING


def pop_folder(walk: Walk, call: Invocation) -> Flow:
    """`popd` returns to the folder that `pushd` left."""
    stack = [folder for folder in walk.variables.get(_STACK, "").split("\n") if folder]
    if stack and not call.arguments:
        _go(walk, stack.pop())
        walk.variables[_STACK] = "\n".join(stack)
    return NOTHING


def echo(walk: Walk, call: Invocation) -> Flow:
    """`echo` prints its arguments."""
    words = list(call.arguments)
    ends, escapes = "\n", False
    while words and re.fullmatch(r"-[neE]+", words[0]):
        option = words.pop(0)
        ends = "" if "n" in option else ends
        escapes = escapes or "e" in option
    text = " ".join(words)
    if UNKNOWN in text:
        return OTHER
    if escapes:
        text = _ECHO_ESCAPE.sub(lambda found: _ECHO_MEANING.get(found[1], found[1]), text)
    return Flow("text", text=text + ends)


def printf(walk: Walk, call: Invocation) -> Flow:
    """`printf` of a text without directives, or with one `%s`."""
    if not call.arguments or UNKNOWN in "".join(call.arguments):
        return OTHER
    form = _ECHO_ESCAPE.sub(lambda found: _ECHO_MEANING.get(found[1], found[1]), call.arguments[0])
    rest = call.arguments[1:]
    if form.count("%") == 1 and "%s" in form and rest:
        return Flow("text", text="".join(form.replace("%s", word) for word in rest))
    return OTHER if "%" in form else Flow("text", text=form)


def prefix(valued: str = "", operands: int = 0) -> Handler:
    """Return a command that runs the command after its own options and operands."""

    def run(walk: Walk, call: Invocation) -> Flow:
        words, skipped = list(call.arguments), operands
        while words:
            if words[0].startswith("-") and len(words[0]) > 1:
                takes_value = len(words[0]) == 2 and words[0][1] in valued
                words = words[2 if takes_value else 1 :]
            elif re.fullmatch(r"[A-Za-z_]\w*=.*", words[0], re.DOTALL):
                words = words[1:]
            elif skipped:
                words, skipped = words[1:], skipped - 1
            else:
                break
        return walk.invoke(words, call.stdin) if words else OTHER

    return run


def run_elsewhere(walk: Walk, call: Invocation) -> Flow:
    """`docker exec`, `uv run`, `npm exec` and their like are not followed: such a call counts as not understood."""
    walk.state.leave_unnamed(any(word in _RUNS_ANOTHER for word in call.arguments))
    return OTHER


def unread_program(walk: Walk, call: Invocation) -> Flow:
    """`node` and `npx` run programs that are not read: a call of one counts as not understood."""
    is_given = any(not word.startswith("-") for word in call.arguments) or call.stdin != NOTHING
    walk.state.leave_unnamed(is_given)
    return OTHER


def shell(walk: Walk, call: Invocation) -> Flow:
    """`bash -c`, `bash script.sh`, or commands on the input."""
    words = list(call.arguments)
    while words and re.fullmatch(r"[-+][a-zA-Z]+|--\w+", words[0]) and "c" not in words[0].strip("-+"):
        words = words[2 if words[0] == "-o" else 1 :]
    if words and words[0].startswith("-") and len(words) > 1:
        return walk.within(_parsed(walk, words[1]))
    if words:
        return script(walk, replace(call, arguments=words))
    return walk.within(_parsed(walk, call.stdin.text)) if call.stdin.kind == "text" and call.stdin.text else OTHER


def _parsed(walk: Walk, text: str) -> Node:
    walk.state.effort.spend(len(text) // _SCRIPT_CHARACTERS_PER_COMMAND)  # a loop may run the same text each time
    return parse(text, walk.state.effort)


def script(walk: Walk, call: Invocation) -> Flow:
    """Run a file; its effects count if the run itself wrote it."""
    path = walk.state.resolve(call.arguments[0], walk.folder)
    text = walk.text_of(path) if path is not None else None
    if path is None or text is None:
        return OTHER
    first = text.split("\n", 1)[0]
    if path.endswith(".py") or (first.startswith("#!") and "python" in first):
        return _python(walk, call, text)
    if path.endswith((".sh", ".bash")) or first.startswith("#!") or call.name in _SHELLS:
        outer = walk.variables
        given = {str(index): word for index, word in enumerate(call.arguments[1:10], 1)}
        walk.variables = {**outer, **given, "@": " ".join(call.arguments[1:])}
        flow = walk.within(_parsed(walk, text))
        walk.variables = outer
        return flow
    return OTHER


def source(walk: Walk, call: Invocation) -> Flow:
    """`source` runs a script in the current shell."""
    path = walk.state.resolve(call.arguments[0], walk.folder) if call.arguments else None
    text = walk.text_of(path) if path is not None else None
    return walk.capture(_parsed(walk, text)) if text else NOTHING


def python(walk: Walk, call: Invocation) -> Flow:
    """Python with its program in an argument, on its input, or in a file."""
    words = list(call.arguments)
    while words and words[0].startswith("-") and words[0] not in ("-c", "-m", "-"):
        words = words[2 if words[0] in ("-W", "-X") else 1 :]
    if words[:1] == ["-c"]:
        return _python(walk, replace(call, arguments=words[1:]), words[1]) if len(words) > 1 else OTHER
    if words[:1] == ["-m"]:
        return _module(walk, replace(call, arguments=words[1:]))
    if words and words[0] != "-":
        return script(walk, replace(call, arguments=words))
    text = call.stdin.text
    if text is None and call.stdin.kind == "files" and len(call.stdin.files) == 1:
        text = walk.text_of(call.stdin.files[0])
    return _python(walk, replace(call, arguments=words or ["-"]), text) if text else OTHER


def _module(walk: Walk, call: Invocation) -> Flow:
    """`python -m`: formatters and the JSON viewer act as commands; other modules have no known effects."""
    if call.arguments[:1] == ["json.tool"]:
        return walk.invoke(["cat", *call.arguments[1:2]], call.stdin)
    known = call.arguments and call.arguments[0] in ("black", "isort", "autopep8", "yapf", "ruff")
    return walk.invoke(call.arguments, call.stdin) if known else OTHER


def _python(walk: Walk, call: Invocation, text: str) -> Flow:
    """Record the effects of a Python program; `arguments` begins with its own name."""
    piped = call.stdin.shows_files and "sys.stdin" in text
    arguments, effort = tuple(call.arguments[:10]), walk.state.effort
    if not walk.state.pay_for_program(text, arguments):
        return OTHER
    read = import_module(PROGRAMS["python"]).effects_of
    effects: ProgramEffects = read(text.replace("sys.stdin", _STDIN) if piped else text, arguments)
    repeated = max(0, effects.looked - len(text) // _CHARACTERS_PER_VALUE)  # in functions and loops
    effort.spend(repeated // _VALUES_PER_COMMAND + len(effects.writes))
    effort.is_cut = effort.is_cut or not effects.is_whole
    # Files in a temporary folder matter to nobody, and a program that failed may not have come so far.
    walk.state.leave_unnamed(effects.is_unnamed and "tempfile" not in text and not walk.exit_code)
    for change in effects.writes:
        if change.command:
            # The equivalent shell command does what the program does, as an act of the program.
            before, last_step = len(walk.written), walk.last_step
            walk.invoke([Glob(word.replace(GLOB, "")) if GLOB in word else word for word in change.command])
            walk.last_step = last_step
            acts = [
                replace(done, step=call.step, command=call.name, line=change.line) for done in walk.written[before:]
            ]
            walk.written[before:] = acts
        elif GLOB in change.path:
            walk.write(call, [Glob(change.path.replace(GLOB, ""))], change.kind, line=change.line)
        else:
            walk.write(call, [change.path], change.kind, content=change.content, line=change.line)
    flows = [walk.within(_parsed(walk, command)) for command in effects.commands]
    shows_input = piped and "/dev/stdin" in effects.shown
    return merged([*flows, chosen(call.stdin) if shows_input else _printed(walk, effects)])


def _printed(walk: Walk, effects: ProgramEffects) -> Flow:
    if not effects.shown:
        return OTHER
    # If the output consists of literal lines of the program, its prints of content were not executed.
    if walk.output and all(line in effects.said for line in walk.output.split("\n") if line.strip()):
        return OTHER
    files = walk.paths([Glob(word.replace(GLOB, "")) if GLOB in word else word for word in effects.shown])
    return Flow("files", files=files, chosen=True) if files else OTHER


def powershell(walk: Walk, call: Invocation) -> Flow:
    """`powershell -Command`: its rest is a line of commands."""
    words = list(call.arguments)
    while words and words[0].startswith(("-", "/")):
        if words[0].lower().lstrip("-/") in ("command", "c"):
            return walk.within(_parsed(walk, as_shell(" ".join(words[1:]), on_windows=True)))
        words = words[2 if words[0].lower() in ("-executionpolicy", "-ep", "-version") else 1 :]
    if not words or words[0].endswith(".ps1"):
        return OTHER
    return walk.within(_parsed(walk, as_shell(" ".join(words), on_windows=True)))


def command_prompt(walk: Walk, call: Invocation) -> Flow:
    """`cmd /c`: its rest is a line of commands."""
    at = next((place for place, word in enumerate(call.arguments) if word.lower() in ("/c", "/k", "//c")), None)
    return (
        OTHER
        if at is None
        else walk.within(_parsed(walk, as_shell(" ".join(call.arguments[at + 1 :]), on_windows=True)))
    )


_SHELLS = ("bash", "sh", "zsh", "dash", "ksh")
RUNNERS: dict[str, Callable[[Walk, Invocation], Flow]] = {
    "cd": change_folder,
    "pushd": push_folder,
    "popd": pop_folder,
    "echo": echo,
    "printf": printf,
    **dict.fromkeys(_SHELLS, shell),
    **dict.fromkeys(("powershell", "pwsh"), powershell),
    "cmd": command_prompt,
    **dict.fromkeys(("set-location", "sl", "chdir"), change_folder),
    "push-location": push_folder,
    "pop-location": pop_folder,
    "mktemp": lambda walk, call: Flow("text", text=f"/tmp/{UNKNOWN}\n"),  # a path that the log does not hold
    "./": script,
    "source": source,
    ".": source,
    "python": python,
    "python3": python,
    "env": prefix("uCS"),
    **dict.fromkeys(("node", "nodejs", "bun", "deno", "npx", "bunx", "pnpx", "uvx"), unread_program),
    **dict.fromkeys(("npm", "pnpm", "yarn", "poetry", "pipenv", "uv", "pipx", "bundle", "rye", "hatch"), run_elsewhere),
    **dict.fromkeys(("docker", "podman", "kubectl", "oc", "docker-compose"), run_elsewhere),
    "sudo": prefix("ugCp"),
    "nohup": prefix(),
    "time": prefix("fo"),
    "timeout": prefix("ks", operands=1),
    "nice": prefix("n"),
    "stdbuf": prefix("ioe"),
    "command": prefix(),
    "exec": prefix(),
    "eval": lambda walk, call: walk.capture(_parsed(walk, " ".join(call.arguments))),
    **dict.fromkeys(("true", "false", "test", "[", ":", "export", "set", "unset"), lambda walk, call: NOTHING),
    **dict.fromkeys(("sleep", "exit", "return", "read", "shift"), lambda walk, call: NOTHING),
}
