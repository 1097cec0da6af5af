"""A submission that was changed in any of these ways is refused, also by somebody who writes all checksums anew."""

import os
import shutil
from contextlib import suppress

import msgspec
import pytest
import zstandard

from eirkit.lacuna.runs.suite import read_suite
from eirkit.lacuna.runs.sweep import start_sweep
from eirkit.records.documents import MANIFEST, RUNS_SCHEMA, write_struct
from eirkit.records.events import pack
from eirkit.records.export import EVENTS as EVENTS_FILE
from eirkit.records.export import RUNS, write_export
from eirkit.records.listing import describe_files, listed_files
from eirkit.records.settings import Setting
from eirkit_bridges.board.checking import LARGEST_EVENTS, LARGEST_LIST, CheckRequest, check
from eirkit_bridges.board.submission import CONTROLS, DOCUMENT, OWN, SCHEMA, claimed_scores, make_submission, read_parts

SUITE = {
    "workload": "store-recall",
    "model": "reference/recoverer",
    "memory": "key-value",
    "n": 10,
    "m": 4,
    "h": 2,
    "seeds": "0:2",
}


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    base = tmp_path_factory.mktemp("board")
    start_sweep(read_suite(SUITE), base / "run", control=False)
    make_submission(base / "run", base / "submission", "honest")
    return base / "submission"


@pytest.fixture
def submission(honest, tmp_path):
    shutil.copytree(honest, tmp_path / "submission")
    return tmp_path / "submission"


def refused(folder, rerun=0):
    found = check(CheckRequest(folder, rerun=rerun))
    assert not found.parts or found.holds
    return " | ".join(found.problems)


def hide(folder, **changes):
    """Write scores, checksums and the list of files anew, as a careful cheat would."""
    document = plain(folder / DOCUMENT)
    with suppress(Exception):  # what cannot be read keeps its scores
        document["scores"] = claimed_scores(read_parts(folder))
    write_struct(folder / DOCUMENT, SCHEMA, {**document, "files": describe_files(folder, DOCUMENT), **changes})


def plain(path):
    """Return a document as JSON, without its schema and checksum."""
    document = msgspec.json.decode(path.read_bytes())
    return {key: value for key, value in document.items() if key not in ("schema", "crc32")}


def parts_of(folder):
    """Return the records of a sweep with their events, as JSON."""
    packed, found = (folder / EVENTS_FILE).read_bytes(), []
    for line in (folder / RUNS).read_bytes().splitlines():
        frame = zstandard.ZstdDecompressor().decompressobj()
        events = [msgspec.json.decode(event) for event in frame.decompress(packed).splitlines()]
        found.append((msgspec.json.decode(line), events))
        packed = frame.unused_data
    return found


def store(folder, parts):
    """Write records and events, both in the order of an export."""
    (folder / RUNS).write_bytes(b"".join(msgspec.json.encode(record) + b"\n" for record, _ in parts))
    frames = (b"".join(msgspec.json.encode(event) + b"\n" for event in events) for _, events in parts)
    (folder / EVENTS_FILE).write_bytes(b"".join(pack(lines) for lines in frames))


def put(record, path, value):
    """Set a field of a record, given as `score.correct`; a function changes it."""
    *above, last = path.split(".")
    for name in above:
        record = record[name]
    record[last] = value(record.get(last, 0)) if callable(value) else value


def more(value):
    return value + 1


FIELDS = {
    "score.correct": more, "score.steps": more, "score.missed": more, "score.final_correct": lambda old: not old,
    "score.errors": {}, "score.blind": 5, "seed": more, "run": "000000000000-0", "cell": "000000000000",
    "setting.task.n": more, "setting.task.m": more, "setting.task.digits": more,
    "setting.model": "reference/calculator", "setting.settings.temperature": 0.5, "setting.settings.seed": 3,
    "setting.access.h": more, "setting.access.memory": "bm25", "setting.access.panel": "strict",
    "setting.access.reads": 2,
    "fingerprint": "0" * 64, "rules_sha256": "0" * 64, "ending": "action-limit", "faults": {"malformed": 1},
    "refusals": {"unknown": 1}, "constant": [7], "behavior": {}, "usage.calls": more, "usage.input_tokens": 7,
    "usage.cost_usd": 1.5, "usage.latency_seconds": 2.0, "usage.memory_calls": more, "memory.writes": more,
    "memory.searches": more, "memory.outcomes": {}, "memory.confused": more, "memory.floor": None,
    "memory.search_seconds": lambda old: old + 1, "memory.limit": 3, "control": True,
    "setting.repeat": {"number": 1, "of": "000000000000"}, "setting.intervention": {"kind": "calculator"},
}  # fmt: skip


@pytest.mark.parametrize("path", FIELDS)
def test_a_field_of_a_record_that_does_not_follow_is_found(submission, path):
    parts = parts_of(submission / OWN)
    put(parts[1][0], path, FIELDS[path])
    store(submission / OWN, parts)
    hide(submission)
    assert f"{OWN}/{RUNS}: " in refused(submission)


EVENTS = {
    "reply": ("exchange", lambda one: one.update(reply="ANSWER 1 0001")),
    "prompt": ("exchange", lambda one: one.update(prompt=one["prompt"] + " A_01 = 0001")),
    "hash of a prompt": ("exchange", lambda one: one.update(prompt_sha256="0" * 64)),
    "tokens": ("exchange", lambda one: one.update(input_tokens=9)),
    "price": ("exchange", lambda one: one.update(cost_usd=0.01)),
    "answer": ("decision", lambda one: one.update(submitted=[(one["submitted"][0] + 1) % 10_000])),
    "what was in sight": ("decision", lambda one: one.update(retained=[*one.get("retained", ()), 9])),
    "what was missing": ("decision", lambda one: one.update(missing=[9])),
    "passages": ("memory", lambda one: one.update(found=[*one.get("found", ()), "A_01 = 0001"])),
    "what was written": ("memory", lambda one: one.update(text="A_01 = 9999")),
    "length of passages": ("memory", lambda one: one.update(returned_characters=one.get("returned_characters", 0) + 1)),
    "what was lacking": ("memory", lambda one: one.update(lacking=[1])),
    "action": ("action", lambda one: one.update(outcome="refused")),
    "verdict": ("verdicts", lambda one: one.update(wrong=[[1, "computation", None]])),
}


@pytest.mark.parametrize("name", EVENTS)
def test_an_event_that_does_not_follow_is_found(submission, name):
    kind, change = EVENTS[name]
    parts = parts_of(submission / OWN)
    change(next(one for one in parts[0][1] if one["type"] == kind))
    store(submission / OWN, parts)
    hide(submission)
    assert f"{OWN}/{RUNS}: " in refused(submission)


SEQUENCES = {
    "an event removed": lambda parts: parts[0][1].pop(2),
    "an event twice": lambda parts: parts[0][1].insert(2, parts[0][1][2]),
    "events exchanged": lambda parts: parts[0][1].insert(0, parts[0][1].pop(3)),
    "replies after the end": lambda parts: parts[0][1].append(parts[0][1][0]),
    "events of another run": lambda parts: parts.__setitem__(0, (parts[0][0], parts[1][1])),
    "a run removed": lambda parts: parts.pop(),
    "a run twice": lambda parts: parts.append(parts[0]),
    "no run": lambda parts: parts.clear(),
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_removed_added_or_moved_part_is_found(submission, name):
    parts = parts_of(submission / OWN)
    SEQUENCES[name](parts)
    store(submission / OWN, parts)
    hide(submission)
    assert f"{OWN}/" in refused(submission)


SETTINGS = {
    "eirkit": "0.0.1", "python": "2.7", "platform": "elsewhere", "dependencies": {}, "plan_sha256": "0" * 64,
    "cells": 9, "runs": 9, "prompt_sha256": "0" * 64, "rules": {}, "sources": {"a.py": "0" * 64},
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_or_version_that_does_not_follow_is_found(submission, name):
    path = submission / OWN / MANIFEST
    write_struct(path, RUNS_SCHEMA, {**plain(path), name: SETTINGS[name]})
    hide(submission)
    assert f"{OWN}/{MANIFEST}: " in refused(submission)


@pytest.mark.parametrize(("key", "value"), [("seeds", "0:3"), ("h", [3]), ("n", [9]), ("model", ["reference/guesser"])])
def test_a_changed_suite_is_found(submission, key, value):
    changed = plain(submission / OWN / MANIFEST)
    changed["settings"]["grid"][0][key] = value
    write_struct(submission / OWN / MANIFEST, RUNS_SCHEMA, changed)
    hide(submission)
    assert refused(submission)


def test_a_version_that_is_changed_everywhere_is_found(submission):
    for part in (OWN, CONTROLS):
        path = submission / part / MANIFEST
        write_struct(path, RUNS_SCHEMA, {**plain(path), "eirkit": "9.9"})
    hide(submission, eirkit="9.9")
    assert "check it with that version" in refused(submission)


CLAIMS = {
    "accuracy": lambda scores: scores[0].update(accuracy=0.999),
    "cost": lambda scores: scores[0].update(cost_usd=0.5),
    "outcomes": lambda scores: scores[0].update(outcomes=None),
    "floor": lambda scores: scores[0].update(floor=None),
    "runs": lambda scores: scores[0].update(scored=99),
    "a row less": lambda scores: scores.pop(),
    "a row more": lambda scores: scores.append(scores[0]),
    "a further figure": lambda scores: scores[0].update(stars=5),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_that_the_records_do_not_support_is_found(submission, name):
    scores = msgspec.to_builtins(list(claimed_scores(read_parts(submission))))
    CLAIMS[name](scores)
    hide(submission, scores=scores)
    assert refused(submission).startswith(f"{DOCUMENT}: ")


@pytest.mark.parametrize("seeds", ["0:1", "5,6", ""])
def test_other_seeds_than_those_of_the_runs_are_found(submission, seeds):
    hide(submission, seeds=seeds)
    assert "seeds" in refused(submission)


@pytest.mark.parametrize("name", [f"{OWN}/{RUNS}", f"{OWN}/{MANIFEST}", f"{CONTROLS}/{RUNS}", DOCUMENT])
def test_a_changed_byte_is_found(submission, name):
    path = submission / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    assert refused(submission)


def test_missing_added_and_linked_files_are_found(submission, tmp_path):
    (submission / "more.txt").write_text("more")
    assert "more.txt: is no file of a submission" in refused(submission)
    (submission / "more.txt").unlink()
    events = submission / OWN / EVENTS_FILE
    events.rename(tmp_path / "events")
    assert f"{OWN}/{events.name}: is missing" in refused(submission)
    events.symlink_to(tmp_path / "events")
    assert f"{OWN}/{events.name}: is no ordinary file" in refused(submission)
    events.unlink()
    os.mkfifo(events)  # opening it would wait for ever
    assert f"{OWN}/{events.name}: is no ordinary file" in refused(submission)


def test_nothing_is_opened_that_is_no_ordinary_file(submission, tmp_path):
    (submission / DOCUMENT).rename(tmp_path / "list")
    os.mkfifo(submission / DOCUMENT)
    assert "is missing" in refused(submission)
    (submission / DOCUMENT).unlink()
    (submission / DOCUMENT).symlink_to(tmp_path / "list")
    assert f"{DOCUMENT}: is no ordinary file" in refused(submission)
    (submission / DOCUMENT).unlink()
    (tmp_path / "list").rename(submission / DOCUMENT)
    (submission / "loop").symlink_to(submission)
    assert "loop: is no ordinary file" in refused(submission)


def test_a_small_file_that_becomes_large_is_refused_before_it_does(submission):
    with (submission / DOCUMENT).open("r+b") as stream:
        stream.truncate(LARGEST_LIST + 1)
    assert f"no more than {LARGEST_LIST:,} bytes" in refused(submission)


@pytest.mark.parametrize("size", [LARGEST_EVENTS + 1, 1 << 28])
def test_a_block_that_expands_is_refused_before_it_does(submission, size):
    """Some KB of zeros would be parsed as events."""
    parts = parts_of(submission / OWN)
    run = parts[0][0]["run"].encode()
    frame = pack(b'{"run":"%s","type":"exchange","reply":[' % run + b"[]," * (size // 3) + b"[]]}\n")
    assert len(frame) < 100_000
    store(submission / OWN, parts)
    (submission / OWN / EVENTS_FILE).write_bytes(frame)
    hide(submission)
    assert f"more than {LARGEST_EVENTS:,} bytes" in refused(submission)


def test_rows_of_references_cannot_be_left_out_or_made_worse(submission):
    parts = [part for part in parts_of(submission / CONTROLS) if part[0]["setting"]["access"]["memory"] == "null"]
    store(submission / CONTROLS, parts)
    hide(submission)
    assert "planned runs are missing" in refused(submission)
    shutil.rmtree(submission / CONTROLS)
    hide(submission)
    assert "has no null row" in refused(submission)


def relabeled(folder, memory):
    """Rewrite the records of one memory as if they were of another, ids included."""
    parts = []
    for record, events in parts_of(folder):
        record["setting"]["access"]["memory"] = memory
        record["cell"] = msgspec.convert(record["setting"], Setting).id()
        record["run"] = f"{record['cell']}-{record['seed']}"
        parts.append((record, [{**event, "run": record["run"]} for event in events]))
    return parts


def test_runs_of_another_memory_are_found_by_running_them_again(submission, tmp_path):
    """Nothing in the records shows it; the memory that they name returns something else."""
    suite = read_suite({**SUITE, "memory": "oracle"})
    start_sweep(suite, tmp_path / "oracle", control=False)
    claimed = read_suite({**SUITE, "memory": "broken-drops"})
    start_sweep(claimed, tmp_path / "drops", control=False)
    make_submission(tmp_path / "drops", tmp_path / "forged", "forged")
    write_export(tmp_path / "oracle", tmp_path / "lines")
    store(tmp_path / "forged" / OWN, relabeled(tmp_path / "lines", "broken-drops"))
    hide(tmp_path / "forged")
    assert refused(tmp_path / "forged", rerun=2).count("when it is run again")


@pytest.mark.parametrize("path", ["memory.bytes", "memory.records", "memory.model_calls"])
def test_what_a_memory_says_of_itself_is_checked_by_running_it_again(submission, path):
    parts = parts_of(submission / OWN)
    put(parts[0][0], path, lambda old: (old or 0) + 1)
    store(submission / OWN, parts)
    hide(submission)
    assert not refused(submission)
    assert path in refused(submission, rerun=2)


def test_an_honest_submission_holds(honest):
    found = check(CheckRequest(honest, rerun=2))
    assert (found.problems, found.runs, found.anew.runs.total(), found.anew.references) == ((), 6, 2, 2)
    assert {path.name for path in listed_files(honest, DOCUMENT)} == {MANIFEST, RUNS, EVENTS_FILE}
    assert found.document is not None
    assert found.document.seeds == "0:2"


def test_storing_what_was_read_changes_nothing(submission):
    """The tools of these tests alter only what they are told to."""
    store(submission / OWN, parts_of(submission / OWN))
    hide(submission)
    assert not refused(submission, rerun=2)


def test_there_are_more_than_fifty_ways():
    assert sum(map(len, (FIELDS, EVENTS, SEQUENCES, SETTINGS, CLAIMS))) >= 75
