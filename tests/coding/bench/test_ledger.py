"""Real agents play a session with three compactions: after every request the ledger equals what the server received."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from eirkit.vestige.actions.touches import interpret
from eirkit.vestige.audits.compaction import dropped_states
from eirkit.vestige.corpus.reader import read_corpus
from eirkit.vestige.ledger import Ledger, Source
from eirkit.vestige.trajectory import Recording, Trajectory
from tests.coding.bench.agents import AGENTS
from tests.coding.bench.install import packages_of
from tests.coding.bench.play import can_play, play
from tests.coding.bench.session import FILES, LONG
from tests.coding.bench.truth import seen_by_request, telling

INSTALLED = os.environ.get("EIRKIT_AGENTS", "")
SHOWN: tuple[Source, ...] = ("shown", "echoed", "put back", "quoted")
NAMES = ("claude-code", "codex", "codex-classic", "opencode", "gemini-cli")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not INSTALLED, reason="EIRKIT_AGENTS names no folder with agents; run `make session NAME=agents`"
    ),
]


def before_requests(trajectory: Trajectory) -> Iterator[Ledger]:
    """Yield the ledger as it stands when each request is sent."""
    ledger = Ledger(root=trajectory.root)
    for turn in trajectory.turns:
        if turn.recorded.broken is not None:
            ledger.renew(turn.recorded)
            ledger.break_off(turn.number, turn.recorded)
        yield ledger
        ledger.take(turn)


def lines_of(ledger: Ledger, path: str, sources: tuple[Source, ...] | None = None) -> set[str]:
    return telling([line.text for line in ledger.held(path, sources)])


@pytest.mark.parametrize("name", NAMES)
def test_after_every_request_the_ledger_equals_its_body(name: str, tmp_path: Path) -> None:
    agent = AGENTS[name]
    packages = packages_of(agent, Path(INSTALLED))
    if not (packages / agent.program).exists():
        pytest.skip(f"{agent.packages[0]} is not installed in {INSTALLED}")
    if not can_play():
        pytest.skip("this machine allows no network namespaces")
    folder = tmp_path / name
    play(agent, packages, folder, session="long")
    check(name, folder)


def check(name: str, folder: Path) -> None:
    logs = sorted((folder / "home").glob(AGENTS[name].log))
    (run,) = [item for log in logs for item in read_corpus([log]) if isinstance(item, Recording)]
    trajectory, requests = interpret(run, len), seen_by_request(folder, LONG)
    assert len(trajectory.turns) == len(requests)
    assert requests[-1].phase == 3
    dropped: dict[tuple[int, str], set[str]] = {}
    held: dict[str, set[str]] = {}
    for number, (ledger, request) in enumerate(zip(before_requests(trajectory), requests, strict=True), 1):
        for path in FILES:
            assert lines_of(ledger, path, SHOWN) == request.shown[path], f"{path} in request {number}"
            # A patch has lines around a change, which its call does not change and the ledger does not take from it.
            assert lines_of(ledger, path) <= request.held[path], f"{path} in request {number}, own calls included"
        if number > 1 and request.phase > requests[number - 2].phase:
            for path in FILES:
                dropped[number, path] = set(requests[number - 2].held[path] | held[path]) - request.held[path]
        held = {path: set(request.held[path]) for path in FILES}
    # The lines of what each compaction dropped, of which each counts as one here.
    live = {number: dict.fromkeys(FILES, 1) for number in {number for number, _ in dropped}}
    rows = dropped_states(trajectory, live, lambda text: len(telling(text.splitlines())))
    assert {(row.cut, row.path): row.dropped_tokens for row in rows} == {key: len(of) for key, of in dropped.items()}
