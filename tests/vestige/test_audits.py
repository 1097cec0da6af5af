"""Every audit takes whatever a log may hold, and a run of a hundred thousand turns in linear time."""

from __future__ import annotations

from time import process_time

from hypothesis import given
from hypothesis import strategies as st

from eirkit.vestige.audits.anomalies import anomalies
from eirkit.vestige.audits.clipping import clipped_views, clipping_group, hidden_lines
from eirkit.vestige.audits.compaction import break_costs, break_cuts, dropped_states
from eirkit.vestige.audits.occupancy import occupancy, read_windows
from eirkit.vestige.audits.reread import cells, gaps, intervals
from eirkit.vestige.demand.entities import entity_demand, entity_touches
from eirkit.vestige.tokens import estimating_counter
from eirkit.vestige.trajectory import (
    Call,
    FileRead,
    FileWrite,
    Lines,
    LoggedUsage,
    RecordedTurn,
    Recording,
    Trajectory,
    Turn,
)

WINDOWS, COUNT = read_windows(), estimating_counter()
# Four times the turns may take four times the time, sixteen if an audit were quadratic; the rest is for a busy machine.
LINEAR_GROWTH = 10.0

texts = st.text(max_size=20) | st.sampled_from(
    ["1 failed in 3s", "<response clipped>", "\ud800", "[" * 50, '{"user_id": 1}']
)
values: st.SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
keys = st.sampled_from(["command", "path", "user_id", "item_ids", "payment_methods"])
calls = st.builds(
    Call,
    tool=st.sampled_from(["bash", "finish", "modify_user_address", "str_replace_editor", ""]),
    arguments=st.dictionaries(keys, values, max_size=2),
    output=texts,
    exit_code=st.none() | st.integers(-1, 2),
    failed=st.booleans(),
    full_output=st.none() | texts,
)
paths = st.sampled_from(["a.py", "b/c.py", ""])
spans = st.none() | st.builds(Lines, st.integers(-1, 5), st.integers(-1, 5))
reads = st.builds(
    FileRead,
    path=paths,
    content=st.none() | texts,
    lines=st.none() | st.dictionaries(st.integers(-1, 5), texts, max_size=3),
    requested=spans,
    clipped=st.booleans(),
)
writes = st.builds(
    FileWrite,
    path=paths,
    kind=st.sampled_from(["whole", "edit", "delete"]),
    content=st.none() | texts,
    added=st.none() | texts,
)
recorded = st.builds(
    RecordedTurn,
    calls=st.lists(calls, max_size=2).map(tuple),
    text=texts,
    usage=st.none() | st.builds(LoggedUsage, st.integers(0, 9), st.integers(0, 9)),
    broken=st.sampled_from([None, "compaction", "clear"]),
    carried=texts,
    rejected=st.booleans(),
)


@st.composite
def trajectories(draw: st.DrawFn) -> Trajectory:
    turns = draw(st.lists(recorded, max_size=5))
    recording = Recording(
        "r", "t", "plain", "x", tuple(turns), draw(texts), details=draw(st.dictionaries(texts, values))
    )
    made = [
        Turn(n, tuple(draw(st.lists(reads, max_size=2))), tuple(draw(st.lists(writes, max_size=2))), n, turn)
        for n, turn in enumerate(turns, 1)
    ]
    return Trajectory(recording, tuple(made), None)


def audit(run: Trajectory) -> None:
    goal = {"a.py"}
    clipped_views(run, goal)
    clipping_group(hidden_lines(run, {"a.py": {1: "x", 2: ""}}))
    waits = intervals(run, goal)
    cells(waits)
    gaps(run, waits)
    anomalies(run)
    dropped = dropped_states(run, {cut: {"a.py": 3} for cut in break_cuts(run)}, COUNT)
    break_costs(run, dropped, COUNT)
    entity_touches(run.recording)
    entity_demand(run.recording)
    occupancy(run.recording, WINDOWS)


@given(trajectories())
def test_no_log_makes_an_audit_fail(run: Trajectory) -> None:
    audit(run)
    turns = {turn.number for turn in run.turns}
    assert {view.turn for view in clipped_views(run, {"a.py"})} <= turns
    assert {event.turn for event in anomalies(run)} <= turns
    waits = intervals(run, {"a.py"})
    found = cells(waits)
    assert sum(cell.exposure_tokens for cell in found) == sum(wait.distance_tokens for wait in waits)
    assert sum(cell.rereads for cell in found) == sum(wait.ending == "reread" for wait in waits)


def long_run(turns: int) -> Trajectory:
    made = []
    for n in range(1, turns + 1):
        path = f"{n % 50}.py"
        call = Call("bash", {"command": f"cat {path}"}, f"text {n % 7}\n<response clipped>")
        recorded = RecordedTurn((call,), usage=LoggedUsage(n, 1), broken="compaction" if n % 1_000 == 0 else None)
        changed = (FileWrite(path),) if n % 5 == 0 else ()
        made.append(Turn(n, (FileRead(path, content=call.output, clipped=True),), changed, 100, recorded))
    recording = Recording("r", "t", "plain", "x", tuple(turn.recorded for turn in made))
    return Trajectory(recording, tuple(made), None)


def audit_seconds(run: Trajectory) -> float:
    start = process_time()
    audit(run)
    return process_time() - start


def test_the_audits_take_linear_time() -> None:
    short, long = (min(audit_seconds(long_run(turns)) for _ in range(2)) for turns in (5_000, 20_000))
    assert long < LINEAR_GROWTH * short
