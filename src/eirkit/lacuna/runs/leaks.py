"""Runs the channel audit, on the shipped interface or on one with a planted leak.

There is a leak for each channel, to verify that the audit finds it (`eirkit lacuna audit --plant CHANNEL`).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256

from msgspec.structs import replace

from eirkit.errors import InfrastructureError, UnknownNameError
from eirkit.lacuna.agents.prompt import Renderer, render
from eirkit.lacuna.agents.session import ControlledSession, Session
from eirkit.lacuna.models.message import Message
from eirkit.lacuna.runs.audit import Audit, Digests, Interface, digests, instances, run_audit, shipped_interface
from eirkit.lacuna.tasks.policies import Fifo
from eirkit.lacuna.tasks.policy import Retention
from eirkit.lacuna.tasks.task import Payload, show_label
from eirkit.lacuna.tasks.view import PublicTask, Visible

Messages = tuple[Message, ...]


def unpadded(visible: Visible) -> Messages:
    """Leak through payload width: values without leading zeros, so that small ones are short."""
    system, state = render(visible)
    shortened = re.sub(r"^A_\d+ = .*$", lambda line: re.sub(r"(?<= )0+(?=\d)", "", line[0]), state.content, flags=re.M)
    return system, Message("user", shortened)


def names_evicted(visible: Visible) -> Messages:
    """Leak through identifiers: name the record that was evicted last."""
    oldest = min((t for t, _ in visible.records), default=1)
    return _append(visible, f"GONE {show_label(visible.task.spec, oldest - 1)}" if oldest > 1 else "")


def hides_odd(visible: Visible) -> Messages:
    """Leak through occupancy: leave out records with an odd value."""
    return render(replace(visible, records=tuple(r for r in visible.records if r[1][0] % 2 == 0)))


def sorted_by_value(visible: Visible) -> Messages:
    """Leak through ordering: show the largest value first."""
    return render(replace(visible, records=tuple(sorted(visible.records, key=lambda r: r[1], reverse=True))))


def tagged_with_hash(visible: Visible) -> Messages:
    """Leak through serialization: add a tag from Python's hash, which differs between processes."""
    return _append(visible, f"TAG {hash(str(visible.records)) & 0xFFFFFFFF:08x}")


def pads_by_value(visible: Visible) -> Messages:
    """Leak through message length: add dots in proportion to the newest value."""
    return _append(visible, "." * (visible.records[-1][1][0] % 7) if visible.records else "")


class Remembers:
    """Leak through reset isolation: add a checksum over all records shown so far, including evicted ones."""

    def __init__(self) -> None:
        self.seen: dict[int, Payload] = {}

    def __call__(self, visible: Visible) -> Messages:
        self.seen |= dict(visible.records)
        return _append(visible, f"SESSION {sha256(repr(sorted(self.seen.items())).encode()).hexdigest()[:8]}")


def _append(visible: Visible, line: str) -> Messages:
    system, state = render(visible)
    return (system, Message("user", f"{state.content}\n{line}")) if line else (system, state)


# A renderer may have state, so every session gets a new one.
LEAKS: dict[str, Callable[[], Renderer]] = {
    "payload-width": lambda: unpadded,
    "identifiers": lambda: names_evicted,
    "occupancy": lambda: hides_odd,
    "ordering": lambda: sorted_by_value,
    "serialization": lambda: tagged_with_hash,
    "message-length": lambda: pads_by_value,
    "reset-isolation": Remembers,
}


def leaky_interface(channel: str) -> Interface:
    """Return the shipped interface with a leak in one channel."""
    if channel not in LEAKS:
        raise UnknownNameError("channel", channel, LEAKS)

    def leaky(task: PublicTask, h: int) -> Session:
        return ControlledSession(task, Retention(Fifo(), h), renderer=LEAKS[channel]())

    return leaky


def audit(count: int, plant: str | None = None) -> Audit:
    """Audit the shipped interface, or one with a planted leak, over `count` instances."""
    interface = shipped_interface if plant is None else leaky_interface(plant)
    return run_audit(instances(count), _elsewhere(count, plant), interface)


def _elsewhere(count: int, plant: str | None) -> Digests:
    """Return the digests of all requests from another process with another hash seed."""
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    code = "from eirkit.lacuna.runs.leaks import print_digests; print_digests()"
    done = subprocess.run(
        [sys.executable, "-c", code, str(count), plant or ""],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise InfrastructureError(f"the second process failed ({done.stderr.strip()[-200:]}); run the audit again")
    found: Digests = json.loads(done.stdout)
    return found


def print_digests() -> None:
    """Print the digests as JSON, in the second process."""
    count, plant = int(sys.argv[1]), sys.argv[2]
    sys.stdout.write(json.dumps(digests(instances(count), leaky_interface(plant) if plant else shipped_interface)))
