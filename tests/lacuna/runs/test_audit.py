"""The channel audit: nothing is found in the shipped interface, all that is planted is, and counts are relations."""

from __future__ import annotations

import json
import os
import sys

import pytest

from eirkit.errors import SpecError, UnknownNameError
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.models.model import Request
from eirkit.lacuna.runs.audit import CHANNELS, WORKLOADS, digests, instances, read_shown, run_audit, shipped_interface
from eirkit.lacuna.runs.leaks import LEAKS, audit, leaky_interface
from eirkit.lacuna.tasks.generation import generate, prepare
from eirkit.lacuna.tasks.view import publish
from eirkit.lacuna.tasks.workload import workloads
from tests.lacuna.running import eirkit
from tests.processes import completed

PUBLISHED_CHECKS = 18_068


def here(count, plant=None):
    """Audit within this process: quick, and blind only for what differs between processes."""
    listed, interface = instances(count), leaky_interface(plant) if plant else shipped_interface
    return run_audit(listed, digests(listed, interface), interface)


def findings(found):
    return {row.channel: row.findings for row in found.rows if row.findings}


@pytest.fixture(scope="module")
def whole():
    return audit(100)


def test_a_hundred_instances_make_at_least_the_published_number_of_checks_and_no_finding(whole):
    assert tuple(row.channel for row in whole.rows) == CHANNELS
    assert whole.checks >= PUBLISHED_CHECKS
    assert whole.findings == 0


def test_the_counts_follow_from_slots_decisions_and_saturation(whole):
    checks = {row.channel: row.checks for row in whole.rows}
    assert checks.pop("payload-width") == whole.value_slots
    assert checks.pop("message-length") == whole.saturated
    assert set(checks.values()) == {whole.decisions}
    assert whole.checks == whole.value_slots + whole.saturated + 5 * whole.decisions


def test_the_counts_follow_from_the_instances_alone(whole):
    decisions = saturated = slots = 0
    for instance in instances(100):
        workload = prepare(instance.spec)
        for t in range(1, instance.spec.n + 1):
            stored = sum(workload.stores(instance.spec, s) for s in range(1, t))
            decisions += 1
            saturated += stored >= instance.h
            slots += min(stored, instance.h) * workload.width(instance.spec)
    assert (whole.decisions, whole.saturated, whole.value_slots) == (decisions, saturated, slots)


def test_instances_vary_in_everything_and_begin_alike():
    listed = instances(100)
    assert (
        {instance.spec.workload for instance in listed} == set(WORKLOADS) == set(workloads.names()) - {"record-store"}
    )
    assert {instance.h for instance in listed} == {1, 2, 3, 4}
    assert {instance.spec.slots for instance in listed} == {1, 2, 3}
    assert len({instance.spec.n for instance in listed}) > 5
    assert instances(5) == listed[:5]
    with pytest.raises(SpecError, match="--instances"):
        instances(0)


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("count", [1, 5])
def test_a_planted_leak_is_found_every_time(channel, count):
    found = audit(count, channel) if channel == "serialization" else here(count, channel)
    assert findings(found)[channel] > 0
    example = next(row.examples[0] for row in found.rows if row.channel == channel)
    assert example.startswith(WORKLOADS)


@pytest.mark.parametrize("channel", ["identifiers", "ordering", "message-length", "reset-isolation"])
def test_a_leak_in_one_channel_is_not_blamed_on_another(channel):
    assert set(findings(here(5, channel))) == {channel}


def test_a_leak_that_only_another_process_sees_is_not_seen_in_this_one():
    assert findings(here(5, "serialization")) == {}
    assert set(findings(audit(5, "serialization"))) == {"serialization"}


def test_every_channel_has_a_leak_and_every_leak_a_channel():
    assert tuple(LEAKS) == CHANNELS
    with pytest.raises(UnknownNameError, match="known:"):
        leaky_interface("telepathy")


def test_the_second_process_has_another_hash_seed_whatever_ours_is():
    code = "from eirkit.lacuna.runs.leaks import audit; print(audit(2, 'serialization').findings, audit(2).findings)"
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = completed([sys.executable, "-c", code], env=environment, check=True)
        caught, clean = map(int, done.stdout.split())
        assert caught > 0 == clean


def test_what_is_shown_is_read_from_the_text():
    text = "RETAINED 2\nA_03 = 0001 0002\nA_04 = 9 x\nSTEP 05 compute\nREFS A_01 A_04\nGONE A_02"
    found = read_shown(Request((Message("system", "A_09"), Message("user", text))))
    assert found.announced == 2
    assert found.records == ((3, ("0001", "0002")), (4, ("9", "x")))
    assert found.labels == {2, 3, 4, 9}
    assert read_shown(Request((Message("user", "hello"),))).announced is None


def test_the_audit_asks_through_the_session_that_experiments_use():
    instance = instances(1)[0]
    public = publish(generate(instance.spec), prepare(instance.spec))
    request = shipped_interface(public, instance.h).request()
    assert read_shown(request).announced == 0


def test_the_command(capsys):
    assert eirkit("lacuna", "audit", "--instances", "3", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["findings"], [row["channel"] for row in document["rows"]]) == (0, list(CHANNELS))
    assert document["checks"] == sum(row["checks"] for row in document["rows"])
    assert eirkit("lacuna", "audit", "--instances", "3", "--plant", "ordering") == 1
    assert "leak planted in ordering" in capsys.readouterr().out
    assert eirkit("lacuna", "audit", "--plant", "telepathy") == 2
