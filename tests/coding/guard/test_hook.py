"""The guard as a hook: what it restores, how it keeps its place, and that no failure of it reaches the agent."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import to_builtins

from eirkit.cli import ROOT
from eirkit.errors import InputFileError
from eirkit.vestige.trajectory import FileRead, Lines
from eirkit_coding.guard import hook
from eirkit_coding.guard.hook import HookEvent, Sessions, guard_folder, keep_newest, respond
from eirkit_coding.guard.installing import AGENTS, Installer
from eirkit_coding.guard.trial import ARMS, DRAWS, Compaction, arm_at, begin_trial, draw_arm, end_trial, read_draws
from eirkit_coding.guard.working_set import MOST_BYTES, WorkingFile, WorkingSet, joined, restored_text
from tests.coding.week.week_home import RULE, ClaudeSession, source_text
from tests.processes import completed, running

TEXT = source_text(3_000)
AT = 1_794_000_000.0


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The guard's own folder."""
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path / "own"))
    return guard_folder()


def session(name: str = "s1", project: str = "/work/shop") -> ClaudeSession:
    """Return a session with a rule, to-dos, two files and an edit; Claude Code puts one of the files back itself."""
    made = ClaudeSession(name, project, AT)
    made.ask(f"Mend parser.py. {RULE}")
    made.read("parser.py", TEXT)
    made.print("lexer.py", source_text(900, "token"))
    todos = [{"content": "Mend the parser", "status": "completed"}, {"content": "Run the tests", "status": "pending"}]
    made.reply({"type": "tool_use", "id": "t9", "name": "TodoWrite", "input": {"todos": todos}})
    made.result("t9", "ok")
    made.write("parser.py", TEXT)
    return made


def payload(path: Path, name: str = "s1", **more: Any) -> dict[str, Any]:
    return {"session_id": name, "transcript_path": str(path), "cwd": "/work/shop", **more}


def compacted(folder: Path, path: Path, name: str = "s1") -> str:
    """Return what is said after a compaction of a session; "" for nothing."""
    assert respond(HookEvent.read("claude", "PreCompact", payload(path, name)), folder, AT) is None
    answer = respond(HookEvent.read("claude", "SessionStart", payload(path, name, source="compact")), folder, AT)
    return "" if answer is None else answer.hook_specific_output.additional_context


def test_it_says_what_is_likely_gone_and_needed(folder: Path, tmp_path: Path) -> None:
    said = compacted(folder, session().save(tmp_path / "t.jsonl"))
    assert f"- {RULE}" in said.splitlines()
    assert "- Run the tests" in said.splitlines()
    assert "Mend the parser" not in said
    assert "- lexer.py: read, used in 1 turn, last 2 turns ago;" in said
    assert "- parser.py" not in said, "Claude Code puts it back"
    assert len(said.encode()) <= MOST_BYTES


def test_what_was_put_back_by_one_compaction_may_be_gone_after_the_next(folder: Path, tmp_path: Path) -> None:
    # As on the bench: only files that its own tools used since the last compaction are put back, five at most.
    made = session()
    for number in range(5):
        made.read(f"f{number}.py", TEXT)
    path = made.save(tmp_path / "t.jsonl")
    named = [line for line in compacted(folder, path).splitlines() if ".py" in line and "config" not in line]
    assert [line.split(":")[0] for line in named] == ["- parser.py", "- lexer.py"]
    made.read("f0.py", TEXT)
    made.read("large.py", source_text(40_000))  # of which it puts back a part
    said = compacted(folder, made.save(path))
    named = [line for line in said.splitlines() if ".py" in line and "config" not in line]
    assert {line.split(":")[0] for line in named} == {"- large.py", "- f4.py", "- f3.py"}
    assert "- f0.py" not in said


def test_other_starts_of_a_session_get_no_answer(folder: Path, tmp_path: Path) -> None:
    path = session().save(tmp_path / "t.jsonl")
    event = HookEvent.read("claude", "SessionStart", payload(path, source="startup"))
    assert respond(event, folder, AT) is None
    assert not folder.exists()


def test_only_what_is_new_is_read_and_nothing_is_lost(folder: Path, tmp_path: Path) -> None:
    made = session()
    path = made.save(tmp_path / "t.jsonl")
    compacted(folder, path)
    first = Sessions(folder / "sessions").load("claude", "s1")
    made.read("till.py", source_text(500, "coin"))
    with path.open("a") as stream:
        stream.write(json.dumps(made.lines[-2]) + "\n" + json.dumps(made.lines[-1]) + "\n{unfinished")
    compacted(folder, path)
    later = Sessions(folder / "sessions").load("claude", "s1")
    assert (first.offset, later.offset) == (first.offset, path.read_bytes().rfind(b"\n") + 1)
    assert later.working.turns == first.working.turns + 1
    whole = WorkingSet()
    memory = hook.SessionMemory(working=whole)
    hook.catch_up(memory, "claude", path)
    for file in (*memory.working.files.values(), *later.working.files.values()):
        file.viewed, file.is_put_back = 0, False  # since the last compaction, which only one of them has seen
    assert memory.working == later.working


def test_another_file_under_the_same_name_is_read_from_its_beginning(folder: Path, tmp_path: Path) -> None:
    path = session().save(tmp_path / "t.jsonl")
    compacted(folder, path)
    other = ClaudeSession("s1", "/work/shop", AT + 9)
    other.ask("Always write tests.")
    other.read("new.py", TEXT)
    other.ask("x" * 5_000)
    other.read("new.py", TEXT)
    other.save(path)
    said = compacted(folder, path)
    assert "Always write tests." in said
    assert RULE not in said


def test_prompts_before_what_is_interpreted_still_count(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = session()
    for number in range(30):
        made.print(f"f{number}.py", TEXT)
    path = made.save(tmp_path / "t.jsonl")
    monkeypatch.setattr(hook, "MOST_BYTES", 20_000)
    said = compacted(folder, path)
    assert RULE in said
    assert "f29.py" in said
    assert "lexer.py" not in said


@pytest.mark.parametrize("count", [0, 1, 5, 60])
@pytest.mark.parametrize("length", [9, 120, 290])
def test_the_text_is_short_whatever_there_is_to_say(count: int, length: int) -> None:
    working = WorkingSet(turns=9)
    working.rules = {f"Never {'é' * (length // 2)} {number}.": 1 for number in range(count)}
    working.todos = [f"{number} {'t' * length}" for number in range(count)]
    working.files = {f"{'d' * length}/{n}.py": WorkingFile(f"{'d' * length}/{n}.py", 4, 9, True) for n in range(count)}
    found = restored_text(working, "", "/somewhere/rest.md")
    if count == 0:
        assert found is None
        return
    assert found is not None
    assert len(found.text.encode()) <= MOST_BYTES
    assert found.is_cut == ("/somewhere/rest.md" in found.text)
    assert all(part in found.whole for part in (*working.rules, *working.todos, *working.files))
    lines = found.text.splitlines()
    whole = {f"- {rule}" for rule in working.rules}
    assert all(line in whole for line in lines if line.startswith("- Never"))  # word for word, or not at all


def test_what_does_not_fit_is_in_the_file_it_names(folder: Path, tmp_path: Path) -> None:
    made = session()
    for number in range(40):
        made.ask(f"Never rename module number {number} of the old shop in any of its packages.")
        made.read(f"module_{number}.py", TEXT)
    said = compacted(folder, made.save(tmp_path / "t.jsonl"))
    named = Path(said.splitlines()[-1].partition(": ")[2])
    assert "module_3.py" in named.read_text()
    assert named.stat().st_mode & 0o077 == 0
    assert len(said.encode()) <= MOST_BYTES


def test_matches_of_a_search_are_no_range() -> None:
    file = WorkingFile("a.py")
    file.show(FileRead("a.py", content="x", requested=Lines(70, 90)), 5)
    file.show(FileRead("a.py", content="x", requested=Lines(1, 0)), 5)
    assert file.lines() == "lines 70–90"


def test_ranges_are_joined() -> None:
    assert joined([(5, 9), (1, 4), (20, 30), (25, 26)]) == [(1, 9), (20, 30)]
    assert joined([(n * 10, n * 10 + 1) for n in range(1, 40)]) == [(10, 391)]


def gemini_message(id: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": "2026-11-17T07:00:00.000Z", "type": kind, **more}


def test_gemini_is_told_once_after_a_summary(folder: Path, tmp_path: Path) -> None:
    read = {"id": "c1", "name": "read_file", "args": {"file_path": "/work/shop/parser.py"}, "status": "success"}
    read["result"] = [{"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": TEXT}}}]
    told = gemini_message("m2", "gemini", content="", model="gemini-2.5-pro")
    summary = [gemini_message("m9", "user", content=[{"text": "<state_snapshot>Mend it.</state_snapshot>"}])]
    lines = [
        {"sessionId": "s1", "projectHash": "x", "startTime": "2026-11-17T07:00:00.000Z", "kind": "main"},
        gemini_message("m1", "user", content=[{"text": f"Mend parser.py. {RULE}"}]),
        told,
        {**told, "toolCalls": [read]},
    ]
    path = tmp_path / "session-1.jsonl"

    def heard(name: str) -> str:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        answer = respond(HookEvent.read("gemini", name, payload(path)), folder, AT)
        return "" if answer is None else answer.hook_specific_output.additional_context

    assert heard("AfterTool") == ""
    assert not folder.exists()
    lines.append({"$set": {"messages": summary}})
    said = heard("AfterTool")
    assert RULE in said
    assert "- parser.py: read, used in 1 turn, last in the last turn;" in said
    assert heard("BeforeAgent") == ""
    lines += [lines[0], {"$set": {"messages": summary}}, gemini_message("m10", "user", content=[{"text": "Go on."}])]
    assert heard("BeforeAgent") == ""  # a resumed session tells its history again
    lines.append({"$set": {"messages": [{**summary[0], "id": "m20"}]}})
    assert RULE in heard("AfterTool")


def test_sessions_are_kept_up_to_a_number(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / str(number)).write_text("x")
        os.utime(tmp_path / str(number), (AT + number, AT + number))
    keep_newest(tmp_path, 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["6", "7", "8"]


def test_opencode_is_read_from_its_database(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE session (id, directory, version); CREATE TABLE message (id, session_id, data);"
            "CREATE TABLE part (id, message_id, data); INSERT INTO session VALUES ('s1', '/work/shop', '1.18.33');"
        )
        state = {"status": "completed", "input": {"filePath": "/work/shop/parser.py"}, "output": TEXT}
        for id, info, part in (
            ("m1", {"role": "user", "time": {"created": 1}}, {"type": "text", "text": f"Mend it. {RULE}"}),
            (
                "m2",
                {"role": "assistant", "time": {"created": 2, "completed": 3}},
                {"type": "tool", "tool": "read", "callID": "c1", "state": state},
            ),
            ("m3", {"role": "assistant", "time": {"created": 4}}, {"type": "text", "text": "unfinished"}),
        ):
            database.execute("INSERT INTO message VALUES (?, 's1', ?)", (id, json.dumps(info)))
            database.execute("INSERT INTO part VALUES (?, ?, ?)", (f"p{id}", id, json.dumps(part)))
        database.commit()
    respond(HookEvent.read("opencode", "PreCompact", payload(path)), folder, AT)
    assert Sessions(folder / "sessions").load("opencode", "s1").offset == 2
    start = HookEvent.read("opencode", "SessionStart", payload(path, source="compact"))
    said = respond(start, folder, AT)
    assert RULE in said.hook_specific_output.additional_context
    assert "- parser.py: read, used in 1 turn" in said.hook_specific_output.additional_context
    assert respond(HookEvent.read("opencode", "Resume", payload(path)), folder, AT) == said


def run_main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], text: bytes) -> str:
    """Run the hook in this process and return what it prints."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    monkeypatch.setattr(hook, "_limit_time", lambda: None)
    assert hook.main(words) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], b"{}"),
        (["claude"], b"{}"),
        (["claude", "PreCompact"], b""),
        (["claude", "PreCompact"], b"no json"),
        (["claude", "PreCompact"], b"[1]"),
        (["claude", "PreCompact"], b'{"session_id": "s", "transcript_path": "/nowhere/t.jsonl"}'),
        (["claude", "PreCompact"], b'{"session_id": "s", "transcript_path": "/"}'),
        (["nobody", "PreCompact"], b'{"session_id": "s", "transcript_path": "/dev/null"}'),
    ],
)
def test_a_failure_is_one_line_of_the_log(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], text: bytes
) -> None:
    assert run_main(monkeypatch, capsys, words, text) == ""
    assert len((folder / "guard.log").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"\0" * 3_000, b"{}\n[]\n3\n", b'{"type": "user"\n' * 9, b"\xff\xfe\n", b"{" * 9_000]
)
def test_a_broken_transcript_gets_no_answer_and_no_error(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes,
) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    for name in ("PreCompact", "SessionStart"):
        text = json.dumps(payload(path, source="compact")).encode()
        assert run_main(monkeypatch, capsys, ["claude", name], text) == ""


def test_damaged_lines_are_left_out_and_logged_once(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = session().save(tmp_path / "t.jsonl")
    path.write_bytes(path.read_bytes() + b'{"type": "user"\n\0\xff\n')
    said = [
        run_main(monkeypatch, capsys, ["claude", name], json.dumps(payload(path, source="compact")).encode())
        for name in ("PreCompact", "SessionStart")
    ]
    assert RULE in said[1]
    (line,) = (folder / "guard.log").read_text().splitlines()
    assert "damaged lines left out: 2; the first is not JSON" in line


def started(words: list[str], own: Path, *, is_full: bool = False) -> tuple[list[object], dict[str, Any]]:
    """Return the command and environment of the hook as agents start it; on a full disk no file can grow."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); " if is_full else ""
    code = f"{limit}import sys; from eirkit_coding.guard.hook import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "EIRKIT_HOME": str(own), "PYTHONDONTWRITEBYTECODE": "1"}
    return [sys.executable, "-c", code, *words], {"env": environment}


def test_a_full_disk_does_not_stop_the_answer(tmp_path: Path) -> None:
    path = session().save(tmp_path / "t.jsonl")
    for name, expected in (("PreCompact", ""), ("SessionStart", RULE)):
        command, options = started(["claude", name], tmp_path / "own", is_full=True)
        done = completed(command, input=json.dumps(payload(path, source="compact")), **options)
        assert expected in done.stdout
        assert bool(done.stdout) == bool(expected)
        assert done.stderr == ""


def test_sessions_at_the_same_time_do_not_meet(tmp_path: Path) -> None:
    own = tmp_path / "own"
    begin_trial(own / "guard", seed=7)
    events = []
    for number in range(3):
        made = session(f"s{number}")
        made.read(f"only_{number}.py", TEXT)
        events.append(payload(made.save(tmp_path / f"{number}.jsonl"), f"s{number}", source="compact"))
    for name in ("PreCompact", "SessionStart"):
        command, options = started(["claude", name], own)
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with ExitStack() as stack:
            hooks = [stack.enter_context(running(command, **pipes, **options)) for _ in events]
            for process, event in zip(hooks, events, strict=True):
                process.stdin.write(json.dumps(event).encode())  # each waits for the end of its event
            assert [process.communicate()[1] for process in hooks] == [b"", b"", b""]
        assert [process.returncode for process in hooks] == [0, 0, 0]
    drawn = [json.loads(line) for line in (own / "guard" / DRAWS).read_text().splitlines()]
    assert sorted(one["place"] for one in drawn) == [0, 1, 2]
    assert {one["arm"] for one in drawn} == set(ARMS)
    for number in range(3):
        kept = Sessions(own / "guard" / "sessions").load("claude", f"s{number}")
        assert [path for path in kept.working.files if path.startswith("only_")] == [f"only_{number}.py"]


def test_arms_are_drawn_in_blocks() -> None:
    for project in ("/a", "/b"):
        for ordinal in range(3):
            places = [arm_at(3, project, ordinal, place) for place in range(30)]
            assert all(set(places[block : block + 3]) == set(ARMS) for block in range(0, 30, 3))
    firsts = [arm_at(seed, "/a", 0, 0) for seed in range(600)]
    assert all(150 < firsts.count(arm) < 250 for arm in ARMS)  # 200 expected, with a standard deviation of 12


def test_arms_of_one_session_are_independent(tmp_path: Path) -> None:
    pairs = Counter((arm_at(seed, "/a", 0, 0), arm_at(seed, "/a", 1, 0)) for seed in range(1_800))
    assert len(pairs) == 9
    assert all(140 < count < 260 for count in pairs.values())  # 200 expected, with a standard deviation of 13
    begin_trial(tmp_path, seed=1)
    for _ in range(4):
        draw_arm(tmp_path, "/a", Compaction(at=AT, agent="claude", session="s", transcript="t"))
    assert [(one.ordinal, one.place) for one in read_draws(tmp_path)] == [(0, 0), (1, 0), (2, 0), (3, 0)]


def test_a_trial_decides_what_is_said(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "unused.py").write_text("x = 1\n")
    seed = begin_trial(folder, seed=11).seed
    assert begin_trial(folder).seed == seed
    said = {}
    for place in range(3):
        path = session(f"s{place}").save(tmp_path / f"{place}.jsonl")
        event = {**payload(path, f"s{place}", source="compact"), "cwd": str(tmp_path / "shop")}
        respond(HookEvent.read("claude", "PreCompact", event), folder, AT)
        answer = respond(HookEvent.read("claude", "SessionStart", event), folder, AT)
        said[arm_at(seed, str(tmp_path / "shop"), 0, place)] = json.dumps(to_builtins(answer))
    assert RULE in said["restore"]
    assert "unused.py" in said["sham"]
    assert RULE not in said["sham"]
    assert said["nothing"] == "null"
    end_trial(folder)
    assert RULE in compacted(folder, session("s9").save(tmp_path / "9.jsonl"), "s9")


FOREIGN = b'{"hooks":   {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}], "PreCompact": []},\n"mine": 1}'


@pytest.mark.parametrize("before", [None, FOREIGN, b"{}"])
@pytest.mark.parametrize("name", list(AGENTS))
def test_removing_the_guard_restores_every_byte(tmp_path: Path, name: str, before: bytes | None) -> None:
    home = tmp_path / "home"
    installer = Installer(home, {}, tmp_path / "own")
    place = AGENTS[name].place(home, {})
    is_file = name == "codex"
    if before is not None and is_file:
        place.parent.mkdir(parents=True)
        place.write_bytes(before)
    else:
        home.mkdir()
    kept = tree(home)
    assert installer.install(name).is_installed
    once = tree(home)
    assert installer.install(name).is_installed
    assert tree(home) == once
    assert not installer.status(name).is_changed
    assert not installer.uninstall(name).is_installed
    assert tree(home) == kept
    assert not installer.uninstall(name).is_installed  # once more changes nothing
    assert tree(home) == kept


def tree(folder: Path) -> dict[str, bytes | None]:
    """Return everything below a folder."""
    paths = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in paths}


def test_hooks_that_the_user_added_meanwhile_stay(tmp_path: Path) -> None:
    installer = Installer(tmp_path, {}, tmp_path / "own")
    place = installer.install("codex").place
    found = json.loads(place.read_text())
    found["hooks"]["Stop"] = [{"hooks": [{"type": "command", "command": "mine"}]}]
    place.write_text(json.dumps(found))
    assert installer.status("codex").is_changed
    installer.uninstall("codex")
    assert json.loads(place.read_text()) == {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}


def test_a_folder_of_somebody_else_is_not_touched(tmp_path: Path) -> None:
    place = AGENTS["claude"].place(tmp_path, {})
    place.mkdir(parents=True)
    with pytest.raises(InputFileError):
        Installer(tmp_path, {}, tmp_path / "own").install("claude")
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "hooks.json").write_text("no json")
    with pytest.raises(InputFileError):
        Installer(tmp_path, {}, tmp_path / "own").install("codex")
    assert (tmp_path / ".codex" / "hooks.json").read_text() == "no json"


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("EIRKIT_HOME", str(tmp_path / "own"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    runner = CliRunner()
    made = json.loads(runner.invoke(ROOT, ["guard", "install", "claude", "--trial", "--seed", "5", "--json"]).stdout)
    assert (made["agents"][0]["installed"], made["trial_seed"]) == (True, 5)
    command = json.loads((tmp_path / ".claude/skills/eirkit-guard/hooks/hooks.json").read_text())
    assert command["hooks"]["SessionStart"][0]["matcher"] == "compact"
    assert "The guard is installed in Claude Code." in runner.invoke(ROOT, ["guard", "status"]).stdout
    done = runner.invoke(ROOT, ["guard", "hook", "claude", "PreCompact"], input="no json")
    assert (done.exit_code, done.stdout) == (0, "")
    removed, again = (runner.invoke(ROOT, ["guard", "uninstall", "claude"]) for _ in range(2))
    assert (removed.exit_code, again.exit_code) == (0, 0)
    assert "The guard of Claude Code is removed." in removed.stdout
    assert "Claude Code had no guard; nothing was changed." in again.stdout
    left = json.loads(runner.invoke(ROOT, ["guard", "status", "--json"]).stdout)
    assert [one["installed"] for one in left["agents"]] == [False] * len(AGENTS)
    assert (left["trial_seed"], len(left["complaints"])) == (None, 1)
