"""What became of a missing result, by hand: one case for every fate, and every diagnosis in its own words."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from eirkit.lacuna.agents.telemetry import Consultation
from eirkit.lacuna.findings.causes import Verdict
from eirkit.lacuna.findings.fates import count_fates, memory_record
from eirkit.lacuna.findings.summary import diagnose
from eirkit.lacuna.memories.memory import FLOOD, MemoryCall, MemoryUsage
from eirkit.records.events import Decision
from eirkit.records.runs import OUTCOMES, RETURNED, Outcome
from tests.lacuna.running import eirkit

STEP, WANTED = 9, 3


def decision(missing: tuple[int, ...] = (WANTED,), fetched: tuple[int, ...] = ()) -> Decision:
    return Decision(STEP, missing, (), missing, (), (), (1,), None, fetched)


def verdict(follows: bool) -> Verdict:
    return Verdict(STEP, True, True, True, True, follows, follows)


def written(step: int = WANTED, t: int = WANTED, seconds: float = 0.5, value: object = 7) -> Consultation:
    return Consultation(t, MemoryCall("write", f"A_{step} = {value}", (step,)), (), seconds)


def returned(digits: str) -> Consultation:
    """A search that returned the wanted label with other digits."""
    return searched(lacking=(WANTED,), stated=((WANTED, (digits,)),))


def searched(
    *,
    sought: tuple[int, ...] = (WANTED,),
    lacking: tuple[int, ...] = (),
    held: tuple[int, ...] = (),
    stated: tuple[tuple[int, tuple[str, ...]], ...] = (),
    uncertain: tuple[int, ...] = (),
    passages: tuple[str, ...] = (),
    characters: int = 0,
) -> Consultation:
    call = MemoryCall("search", "A_3", sought)
    return Consultation(STEP, call, passages, 0.25, characters, lacking, held, stated, uncertain=uncertain)


CASES: list[tuple[Outcome, list[Consultation], tuple[int, ...], bool]] = [
    ("unwritten", [], (), True),
    ("unwritten", [written(t=STEP + 1)], (), True),  # written after it was needed
    ("unwritten", [searched(lacking=(WANTED,))], (), True),  # sought in vain: nobody had stored it
    ("not_sought", [written()], (), True),
    ("not_sought", [written(), searched(sought=(4,))], (), True),  # a search for something else
    ("not_stored", [written(), searched(lacking=(WANTED,))], (), True),
    ("not_found", [written(), searched(lacking=(WANTED,), held=(WANTED,))], (), True),
    ("not_found", [written(), searched(lacking=(WANTED,)), searched(lacking=(WANTED,), held=(WANTED,))], (), True),
    ("other_value", [written(), searched(lacking=(WANTED,), stated=((WANTED, ("8",)),))], (), True),
    ("other_value", [written(), searched(lacking=(WANTED,), held=(WANTED,), stated=((WANTED, ("8",)),))], (), True),
    ("swapped_value", [written(), written(5, 5, value=8), returned("8")], (), True),
    (
        "other_value",
        [written(), written(5, 5, value=9), written(5, 6, value=1), returned("9")],
        (),
        True,
    ),  # no longer its value
    ("cut_value", [written(value="0734"), returned("07")], (), True),
    ("cut_value", [written(value="0734"), returned("73")], (), True),  # written without zeros, then cut
    ("not_overwritten", [written(value=1), written(t=4), returned("1")], (), True),
    (
        "stale_value",
        [written(value=1), written(t=4), searched(lacking=(WANTED,), held=(WANTED,), stated=((WANTED, ("1",)),))],
        (),
        True,
    ),
    ("unclear", [written(), searched(uncertain=(WANTED,))], (), False),
    ("used", [written(), searched(uncertain=(WANTED,))], (), True),  # the answer follows from it, so it was there
    ("used", [written(), searched()], (WANTED,), True),
    ("not_used", [written(), searched()], (WANTED,), False),
    ("unwritten", [], (WANTED,), True),  # had by a READ, in which the memory has no part
    ("not_stored", [written(), searched(lacking=(WANTED,))], (WANTED,), True),  # likewise, after a vain search
]


@pytest.mark.parametrize(("fate", "consultations", "fetched", "follows"), CASES)
def test_every_missing_result_has_one_fate(fate, consultations, fetched, follows):
    found = count_fates([decision(fetched=fetched)], [verdict(follows)], consultations)
    assert {name: count for name, count in found.fates.items() if count} == {fate: 1}


@pytest.mark.parametrize(
    ("fate", "later"),
    [
        ("not_found", [replace(searched(), t=STEP + 2)]),  # came back without a new write: late, not lost
        ("not_found", [replace(searched(lacking=(WANTED,), held=(WANTED,)), t=STEP + 2)]),
        ("not_stored", [replace(searched(lacking=(WANTED,)), t=STEP + 2)]),
        ("not_stored", [replace(searched(uncertain=(WANTED,)), t=STEP + 2)]),
        ("not_stored", [replace(searched(sought=(4,)), t=STEP + 2)]),
        ("not_stored", [written(t=STEP + 1), replace(searched(), t=STEP + 2)]),  # written again meanwhile
    ],
)
def test_a_record_that_comes_back_later_was_late_and_not_lost(fate, later):
    calls = [written(), searched(lacking=(WANTED,)), *later]
    assert count_fates([decision()], [verdict(False)], calls).fates[fate] == 1


def test_every_fate_has_a_case():
    told = {fate for fate, *_ in CASES} | {fate for fate, *_ in UNNAMED} | {"returned"}
    assert told | OF_CHANGES == set(OUTCOMES)


def test_what_was_made_of_a_record_is_unknown_without_the_other_inputs_or_without_an_answer():
    """An answer from one of two inputs follows from neither of them alone, and no answer follows from nothing."""
    came = [written(3), written(4), searched(sought=(3, 4), lacking=(4,))]
    two = decision((3, 4), fetched=(3,))
    silent = replace(decision(fetched=(3,)), submitted=None, fault="malformed")
    had = replace(two, missing=(3,), retained=(4,))  # the other input was in context
    for one, fate in ((two, "returned"), (silent, "returned"), (had, "not_used")):
        found = count_fates([one], [verdict(False)], came).fates
        assert {name: found[name] for name in RETURNED} == {**dict.fromkeys(RETURNED, 0), fate: 1}


EARLIER = Decision(WANTED, (), (), (), (), (), (7,), None)  # what was answered there, and a right record says
# Of tasks whose records change; tests/testing/contracts/test_record_memories.py has memories that cause them.
OF_CHANGES = {"gone", "foreign_value", "deleted_value", "expired_value", "lost"}
UNNAMED = [
    ("other_value", (), ("A_3 = 8",), True),  # a query without a number
    ("other_value", (4,), ("A_4 = 1", "A_3 = 8"), True),  # a query for another label
    ("contradicted_value", (), ("A_3 = 7", "A_3 = 8"), True),
    ("other_value", (), ("A_3 = 8", "A_3 = 7"), False),
    ("used", (), ("A_3 = 7", "A_3: rank 12"), True),  # not as long as a value
    ("used", (), ("The answer of A_03 is 7.",), True),
    ("unclear", (), ("7",), False),
    ("used", (), ("A_3 = 7",), True),
    ("used", (4,), ("A_4 = 1", "A_03: 7"), True),
    ("not_used", (), ("A_3 = 7",), False),
    ("not_sought", (), ("A_4 = 7",), True),
]


@pytest.mark.parametrize(("fate", "sought", "passages", "follows"), UNNAMED)
def test_what_comes_back_unasked_is_right_only_with_its_value(fate, sought, passages, follows):
    consultations = [written(), searched(sought=sought, passages=passages)]
    found = count_fates([EARLIER, decision()], [verdict(follows)], consultations)
    assert {name: count for name, count in found.fates.items() if count} == {fate: 1}


def test_one_search_for_each_label_is_not_excused_by_the_wrong_values_of_the_others():
    vain = searched(lacking=(WANTED,), held=(WANTED,), passages=("A_4 = 7",))
    other = searched(sought=(4,), passages=("A_3 = 8",))
    found = count_fates([EARLIER, decision()], [verdict(False)], [written(), vain, other])
    assert {name: count for name, count in found.fates.items() if count} == {"other_value": 1}


def test_references_of_one_step_are_counted_apart():
    consultations = [written(3), written(4), searched(sought=(3, 4, 5), lacking=(4, 5), held=(4,))]
    found = count_fates([decision((3, 4, 5), fetched=(3,))], [verdict(True)], consultations)
    assert {name: count for name, count in found.fates.items() if count} == {"used": 1, "not_found": 1, "unwritten": 1}


@pytest.mark.parametrize(
    ("one", "confused"),
    [
        (searched(lacking=(3,), held=(3,), passages=("A_30 = 7",)), 1),  # others in place of one that was stored
        (searched(lacking=(3,), held=(3,)), 0),  # nothing came back at all
        (searched(lacking=(3,), passages=("A_30 = 7",)), 0),  # it was not there to be found
        (
            searched(lacking=(3,), held=(3,), stated=((3, ("8",)),), passages=("A_3 = 8",)),
            0,
        ),  # its own label: another fate
        (searched(passages=("A_3 = 7",)), 0),
    ],
)
def test_a_search_that_takes_one_label_for_another_is_confused(one, confused):
    assert count_fates([], [], [one]).confused == confused


def test_floods_are_counted_above_ten_times_what_can_be_shown():
    assert count_fates([], [], [searched(characters=FLOOD), searched(characters=FLOOD + 1)]).flooded == 1


def fates(**counts: int) -> dict[Outcome, int]:
    return {fate: counts.get(fate, 0) for fate in OUTCOMES}


@pytest.mark.parametrize(
    ("counts", "flooded", "failures", "said"),
    [
        ({"used": 4}, 0, {}, []),
        ({"unwritten": 3, "not_sought": 2}, 0, {}, []),  # the agent's own doing
        ({"used": 4, "not_used": 1, "not_stored": 2}, 0, {}, ["loses what is written (2 of 7 lookups)"]),
        ({"used": 4, "not_found": 2}, 0, {}, ["does not find what it holds (2 of 6 lookups)"]),
        ({"unwritten": 9, "other_value": 1}, 0, {}, ["returns a wrong value (1 of 1 lookups)"]),
        ({"swapped_value": 1, "used": 1}, 0, {}, ["returns another label's value (1 of 2 lookups)"]),
        ({"cut_value": 1}, 0, {}, ["returns a cut value (1 of 1 lookups)"]),
        ({"stale_value": 1}, 0, {}, ["returns an outdated value, though it holds the new one (1 of 1 lookups)"]),
        ({"unclear": 1}, 0, {}, ["leaves it unclear whether the value was returned (1 of 1 lookups)"]),
        ({}, 2, {}, ["returns far more than can be read (2 searches above 100,000 characters)"]),
        ({}, 0, {"it did not finish search within 1 s; wait": 3}, ["answers late (3 runs lost)"]),
        ({}, 0, {"ConnectionError: gone": 2, "KeyError: x": 1}, ["raises (3 runs lost)"]),
        ({}, 0, {"did not finish": 1, "gone": 1}, ["answers late (1 run lost)", "raises (1 run lost)"]),
    ],
)
def test_a_system_is_told_what_is_wrong_with_it(counts, flooded, failures, said):
    assert list(diagnose(fates(**counts), flooded, failures)) == said


def test_a_system_that_is_held_to_h_records_is_not_blamed_for_what_had_to_leave():
    (said,) = diagnose(fates(not_stored=2, used=1), 0, {}, limited=True)
    assert said == "no longer has what is written, held to h records (2 of 3 lookups)"


def test_a_record_of_a_run_adds_up_its_calls():
    consultations = [written(seconds=0.5), written(4, 4, seconds=1.5), searched()]
    used = MemoryUsage(records=2, bytes=16, model_calls=3, input_tokens=40, output_tokens=5, cost_usd=None)
    record = memory_record(used, consultations, count_fates([], [], consultations))
    assert (record.writes, record.searches) == (2, 1)
    assert (record.write_seconds, record.search_seconds, record.slowest_seconds) == (2.0, 0.25, 1.5)
    assert (record.records, record.bytes, record.model_calls, record.cost_usd) == (2, 16, 3, None)


TASKS = ("--workload", "store-recall", "--n", "16", "--m", "8", "--h", "2", "--seeds", "0:2")
RUN = ("lacuna", "run", *TASKS, "--model", "reference/recoverer", "--no-control")
DIAGNOSES = {
    "broken-drops": "loses what is written",
    "broken-labels": "returns another label's value",
    "broken-floods": "returns far more than can be read",
    "broken-late": "answers late",
    "broken-raises": "raises",
}


def test_every_broken_memory_is_called_by_its_name(tmp_path, capsys):
    names = ",".join(["key-value", *DIAGNOSES])
    late = "broken-late.timeout_seconds=0.05"
    code = eirkit(*RUN, "--memory", names, "--set", late, "--out", str(tmp_path / "out"), "--json")
    rows = {row["memory"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert code == 1, "runs that a memory broke are failures, not scores"
    assert rows["key-value"]["memory_system"]["diagnosis"] == []
    assert rows["key-value"]["accuracy"] == 1
    for name, words in DIAGNOSES.items():
        (said,) = rows[name]["memory_system"]["diagnosis"]
        assert said.startswith(words), name
    lost = {name for name, row in rows.items() if row["failures"] == {"memory": 2} and row["scored"] == 0}
    assert lost == {"broken-late", "broken-raises"}


def test_the_table_says_what_is_wrong(tmp_path, capsys):
    assert eirkit(*RUN, "--memory", "broken-labels", "--out", str(tmp_path / "out")) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "memory broken-labels, store-recall, h = 2: returns another label's value" in printed
    assert "native panel" in printed
