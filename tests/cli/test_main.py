"""The command line as a person or a script meets it: in processes of its own, with real pipes and real terminals."""

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

import eirkit
from eirkit.cli import ACCEPTED, ROOT, LazyGroup, run
from tests import warm
from tests.processes import PATIENCE_SECONDS, completed, running, shown_in_terminal, wait_until

EIRKIT = str(Path(sys.executable).with_name("eirkit"))
COLOR = re.compile(r"\x1b\[[0-9;]*(3[0-8]|9[0-7])[0-9;]*m")
LONG = ("lacuna", "generate", "stepwise-sum", "--seeds", "0:10000000", "--out")


def call(*arguments: object, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    # A fork has its streams from us, so a setting of the interpreter for them needs a real start.
    program = EIRKIT if environment else warm.programs() / "eirkit"
    return completed([program, *map(str, arguments)], env={**os.environ, **environment}, cwd=cwd)


def walk(group: LazyGroup, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the path of every command; only groups are imported, so that a broken command fails its own test."""
    found = []
    for name, entry in group.table.items():
        here = (*path, name)
        found += [here, *(walk(entry, here) if isinstance(entry, LazyGroup) else [])]
    return found


def load(path: tuple[str, ...]) -> click.Command:
    command: click.Command = ROOT
    for name in path:
        command = command.get_command(click.Context(command), name)
    return command


COMMANDS = walk(ROOT)


def naming(item: object) -> str | None:
    return " ".join(item) if isinstance(item, tuple) else ""


@pytest.mark.parametrize("path", COMMANDS, ids=naming)
def test_every_command_has_its_name_a_help_text_and_json(path):
    command = load(path)
    assert command.name == path[-1]
    assert command.help, "a command without a docstring"
    assert "Usage:" in command.get_help(click.Context(command, info_name=" ".join(("eirkit", *path))))
    takes_json = any("--json" in parameter.opts for parameter in command.params)
    assert takes_json or isinstance(command, LazyGroup)


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("path", [(), ("lacuna",), ("lacuna", "generate"), ("eir", "curve")], ids=naming)
def test_help_has_two_spellings_everywhere(path, flag):
    done = call(*path, flag)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: {' '.join(('eirkit', *path))}")


def test_version():
    assert completed([EIRKIT, "--version"], check=True).stdout == f"eirkit {eirkit.__version__}\n"


def test_module_is_the_same_command_line():
    done = completed([sys.executable, "-m", "eirkit", "--version"], check=True)
    assert done.stdout == f"eirkit {eirkit.__version__}\n"


@pytest.mark.parametrize("path", [(), ("lacuna",)], ids=naming)
def test_a_group_alone_shows_its_help_on_stderr_and_fails(path):
    done = call(*path)
    assert (done.returncode, done.stdout) == (2, "")
    assert ("Commands:" if path else "Measure:") in done.stderr


COMPLAINTS = [
    (("lacun",), "no command named 'lacun'; did you mean `eirkit lacuna`? see `eirkit --help`"),
    (("zzz",), r"no command named 'zzz'; known: demo, eir, lacuna, .*; see `eirkit --help`"),
    (
        ("lacuna", "genrate"),
        "no command named 'genrate'; did you mean `eirkit lacuna generate`? see `eirkit lacuna --help`",
    ),
    (("lacuna", "generate"), "Missing argument 'WORKLOAD'; see `eirkit lacuna generate --help`"),
    (("lacuna", "generate", "stepwise-sum", "--sed", 3), r"--sed.*Did you mean.*--seed.* see `eirkit lacuna gen"),
    (("lacuna", "generate", "stepwise-smu"), "no workload named 'stepwise-smu'; did you mean 'stepwise-sum'"),
    (("lacuna", "generate", "stepwise-sum", "--n", "many"), "'many' is not a valid integer; see `eirkit lacuna"),
    (("lacuna", "generate", "stepwise-sum", "--n", 0), "n = 0 is out of range; choose 1 "),
    (("lacuna", "generate", "stepwise-sum", "--graph", "no.json"), "cannot read no.json: No such file.*; check the"),
    (("lacuna", "generate", "no.py:Mine"), r"cannot read no\.py; give an existing path/file\.py:Name"),
    (("eir", "curve", "stepwise-sum", "--cuts", "1,x"), "'1,x' is not a list such as 16,12,8; see"),
    (("lacuna", "generate", "stepwise-sum", "--seeds", 1, "--out", "/dev/null/x"), "Not a directory; check the path"),
    (("lacuna", "generate", "stepwise-sum", "--graph", ""), "'--graph': a name is missing; see"),
    (("eir", "frontier", "running-max", "--capacity", "nan"), "'--capacity': 'nan' is not a finite number; see"),
    (("lacuna", "run", "stepwise-sum", "--h", 2, "--model", "nobody/x"), "no model provider named 'nobody'; "),
    (("completion", "tcsh"), "'tcsh' is not one of 'bash', 'zsh', 'fish'; see"),
]


@pytest.mark.parametrize(("arguments", "message"), COMPLAINTS, ids=lambda item: "")
@pytest.mark.parametrize("extra", [(), ("--json",)], ids=["plain", "json"])
def test_wrong_usage_is_one_line_on_stderr_that_ends_in_a_remedy(arguments, message, extra):
    done = call(*arguments, *extra)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"eirkit: .*{message.replace('? ', '[?] ')}.*\n", done.stderr), done.stderr


def test_json_is_one_document_and_nothing_else():
    done = call("lacuna", "generate", "store-recall", "--json")
    assert done.stderr == ""
    assert json.loads(done.stdout)["spec"]["workload"] == "store-recall"
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize("encoding", ["ascii", "ascii:surrogateescape"])  # of a terminal, and of the C locale
@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["table", "json"])
def test_a_terminal_without_unicode_gets_an_answer_not_a_traceback(flags, encoding):
    done = call("eir", "curve", "store-recall", *flags, PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    if flags:
        assert "–" in json.loads(done.stdout)["method"]


def test_brackets_in_a_name_are_text_not_markup(tmp_path):
    folder = tmp_path / "[red]"
    folder.mkdir()
    (folder / "w.py").write_text("from eirkit.lacuna.tasks.workloads import StepwiseSum\n")
    done = call("lacuna", "generate", f"{folder}/w.py:StepwiseSum", "--n", 2)
    assert "[red]" in done.stdout


def test_tables_keep_all_their_digits_in_a_pipe():
    done = call("lacuna", "generate", "stepwise-sum", "--slots", 12, "--fan-in", 1, "--n", 3)
    assert "…" not in done.stdout


# --- pipes, signals, terminals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", ["", "--json"])
@pytest.mark.parametrize("reader", ["head -n 1", "true"])
def test_a_reader_that_leaves_early_is_no_error(flags, reader):
    # 3,000 steps are more than any pipe's buffer holds, so the writer meets the closed end.
    command = f"{EIRKIT} lacuna generate stepwise-sum --n 3000 {flags} | {reader} > /dev/null"
    done = completed(["bash", "-o", "pipefail", "-c", command])
    assert (done.returncode, done.stderr) == (0, "")


def test_a_failure_in_the_middle_leaves_no_half_of_a_file(tmp_path, monkeypatch, capsys):
    def full(world, *_):
        raise OSError(errno.ENOSPC, "No space left on device", "elsewhere")

    monkeypatch.setattr("eirkit.cli.conversation.label_world", full)
    assert run(["lacuna", "words", "--seeds", "0:2", "--out", str(tmp_path / "worlds")]) == 2
    assert capsys.readouterr().err == (
        f"eirkit: cannot write {tmp_path}/worlds: No space left on device; choose another file\n"
    )
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("eirkit.cli.conversation.generate_world", full)
    assert run(["lacuna", "words"]) == 1
    assert capsys.readouterr().err.endswith("; free some space or try again\n")


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "0<&- >&- 2>&-"])
def test_closed_streams_are_no_error(closed, tmp_path):
    done = completed(
        ["sh", "-c", f"exec {EIRKIT} lacuna generate stepwise-sum --seeds 0:2 --out {tmp_path}/tasks {closed}"]
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "tasks").read_text().count("\n") == 2


def test_a_full_disk_is_one_line():
    if not Path("/dev/full").exists():
        pytest.skip("no full device on this system")
    with Path("/dev/full").open("w") as full:
        done = completed([EIRKIT, "lacuna", "generate", "stepwise-sum", "--json"], stdout=full)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_interrupting_gives_130_without_a_traceback(tmp_path):
    out = tmp_path / "tasks.jsonl"
    with running([EIRKIT, *LONG, out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: any(file.stat().st_size for file in tmp_path.iterdir()), "it writes", process)
        process.send_signal(signal.SIGINT)
        output, complaint = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, output) == (130, "")
    assert complaint.strip().endswith("eirkit: interrupted")
    assert "Traceback" not in complaint
    assert list(tmp_path.iterdir()) == [], "nothing half-made stays"


def in_terminal(*arguments: str, **environment: str) -> str:
    """Return what the command writes to a real pseudo-terminal."""
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    return shown_in_terminal([EIRKIT, *arguments], "stdout", env={**clean, **environment}).decode()


def test_colors_follow_the_terminal():
    arguments = ("lacuna", "generate", "stepwise-sum", "--n", "3")
    assert "\x1b[" in in_terminal(*arguments, TERM="xterm-256color")
    assert not COLOR.search(in_terminal(*arguments, TERM="xterm-256color", NO_COLOR="1"))
    assert "\x1b" not in in_terminal(*arguments, TERM="dumb")
    assert "\x1b" not in call(*arguments).stdout


# --- completion ------------------------------------------------------------------------------------------------------


def complete(*words: str) -> list[str]:
    """Drive the protocol that the completion script speaks: the words so far, and which one is being typed."""
    done = call(_EIRKIT_COMPLETE="bash_complete", COMP_WORDS=" ".join(("eirkit", *words)), COMP_CWORD=str(len(words)))
    assert done.stderr == ""
    return [line.split(",")[1] for line in done.stdout.splitlines() if "," in line]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("lacuna", "gen"), ["generate"]),
        (("la",), ["lacuna"]),
        (("lacuna", "generate", "stepwise-s"), ["stepwise-sum"]),
        (("lacuna", "generate", "stepwise-sum", "--fan"), ["--fan-in"]),
        (("completion", "z"), ["zsh"]),
        (("nothing", "x"), []),
        (("--ver",), ["--version"]),
    ],
)
def test_completes(words, expected):
    assert complete(*words) == expected


def test_bash_really_completes():
    body = (
        f'export PATH="{Path(EIRKIT).parent}:$PATH"; eval "$(eirkit completion bash)"; '
        "COMP_WORDS=(eirkit lacuna gen); COMP_CWORD=2; _eirkit_completion eirkit gen lacuna; "
        'echo "${COMPREPLY[@]}"; complete -p eirkit'
    )
    done = completed(["bash", "-c", body])
    assert done.stderr == ""
    reply, registered = done.stdout.splitlines()
    assert reply == "generate"
    assert "_eirkit_completion" in registered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid_shell(shell, tmp_path):
    script = call("completion", shell).stdout
    assert "_EIRKIT_COMPLETE" in script
    assert json.loads(call("completion", shell, "--json").stdout) == {"shell": shell, "script": script}
    if shutil.which(shell):
        file = tmp_path / "script"
        file.write_text(script)
        assert completed([shell, "-n", file], text=False).stderr == b""


def test_the_first_screen_has_few_commands_and_help_all_has_every_one(capsys):
    assert run(["-h"]) == 0
    first = capsys.readouterr().out
    assert run(["--help-all"]) == 0
    whole = capsys.readouterr().out
    assert len([name for name in ROOT.table if f"\n  {name} " in first]) == 12
    assert [name for name in ROOT.table if f"\n  {name} " not in whole] == []
    assert "eirkit doctor" in first.splitlines()[-2]


@pytest.mark.parametrize(("typed", "meant"), ACCEPTED.items(), ids=naming)
def test_another_spelling_is_accepted_and_not_shown(typed, meant):
    assert typed not in COMMANDS
    assert call(*typed, "-h").stdout == call(*meant, "-h").stdout != ""


@pytest.mark.parametrize("path", COMMANDS, ids=naming)
def test_short_help_fits_a_screen_and_says_what_it_leaves_out(path):
    command = load(path)
    short = call(*path, "-h").stdout
    assert len(short.splitlines()) <= 60
    if isinstance(command, LazyGroup):
        return
    assert "Example:" in short
    whole = call(*path, "--help-all").stdout
    shown = [max(one.opts, key=len) for one in command.params if isinstance(one, click.Option) and not one.hidden]
    assert [name for name in shown if name not in whole] == []
    left = [name for name in shown if not re.search(rf"^ .*{name}\b", short, re.MULTILINE)]
    assert (f"{len(left)} more option" in short) == bool(left)


@pytest.mark.parametrize("command", ["simulate", "rescue", "probe", "capability"])
def test_an_option_that_is_refused_is_not_offered(capsys, command):
    assert run(["lacuna", command, "--help"]) == 0
    shown = capsys.readouterr().out
    assert "--seeds" in shown
    assert "--seed " not in shown


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("run", ["stepwise-topk", "reference/calculator", "openai/…", "belady", "scratch-lru"]),
        ("rescue", ["store-recall", "reference/sloppy", "belady"]),
        ("probe", ["stepwise-max", "reference/recoverer", "lfu"]),
        ("capability", ["full-lookup", "local/…"]),
        ("simulate", ["running-max", "theory"]),
        ("generate", ["running-max"]),
    ],
)
def test_help_lists_the_names_that_may_be_given(capsys, command, names):
    assert run(["lacuna", command, "--help-all"]) == 0
    shown = "".join(capsys.readouterr().out.split())  # lines break within names
    assert [name for name in names if name not in shown] == []


def test_an_interrupt_while_the_command_line_is_imported_shows_no_traceback():
    program = """
import builtins, os, signal
real = builtins.__import__
def interrupted(name, *arguments, **named):
    if name == "click":
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *arguments, **named)
builtins.__import__ = interrupted
from eirkit.__main__ import main
main()
"""
    done = completed([sys.executable, "-c", program])
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
