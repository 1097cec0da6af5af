"""Record Store: records are written, overwritten, deleted and expire, and queries ask for what holds now.

The first m steps store a record each. After them, overwrites and deletes are spread evenly among the queries. A query
names any of the m records; one that was deleted or whose time is over has the answer 0. Overwrites and deletes name
records that are not deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eirkit.eir.demand import DemandCurve
from eirkit.errors import SpecError
from eirkit.lacuna.tasks.standing import UNTIL
from eirkit.lacuna.tasks.task import CHANGING, Kind, Payload, TaskSpec
from eirkit.lacuna.tasks.workload import Draw, Graph, Lookup, References, Values, curve_of, workloads
from eirkit.seeds import below, words


@workloads.add("record-store")
class RecordStore(Lookup):
    """What holds now, of records that are overwritten, deleted and expire."""

    changes = True
    leaves_out_unscored = True

    def check(self, spec: TaskSpec) -> None:
        if "query" not in self.kinds(spec):
            raise SpecError(f"n = {spec.n} leaves no query after m = {spec.m} stores; use --n well above --m")

    def rule(self, spec: TaskSpec) -> str:
        said = (
            "A step with an input: the answer is the input. An overwrite makes it the new value of the record that it "
            "CHANGES. A delete ends the record that it CHANGES: the answer is 0. A query: the answer is the value that "
            "the record in REFS has now, or 0 if it was deleted"
        )
        if not spec.expiry:
            return f"{said}."
        return (
            f"{said} or its time is over: a value holds for {spec.expiry} steps, and its record in memory ends in"
            f"{UNTIL}t, the last one."
        )

    def kinds(self, spec: TaskSpec) -> tuple[Kind, ...]:
        return _kinds(spec.n, spec.m, spec.overwrites, spec.deletes)

    def operate_batch(
        self, spec: TaskSpec, kind: Kind, fresh: Values, operands: Values, present: NDArray[Any]
    ) -> Values:
        return fresh if kind in ("store", "overwrite") else operands[:, 0]

    def operate(self, spec: TaskSpec, fresh: Payload | None, operands: Sequence[Payload]) -> Payload:
        if fresh is not None:
            return fresh
        return operands[0] if operands else (0,) * self.width(spec)

    def references(self, spec: TaskSpec, seeds: Sequence[int] | NDArray[Any]) -> References:
        drawn = words(seeds, spec.n, "record")
        labels = np.zeros((len(drawn), spec.n), dtype=np.int32)
        alive = np.ones((len(drawn), spec.m), dtype=bool)
        rows, asked, first = np.arange(len(drawn)), 0, 0
        for t, kind in enumerate(self.kinds(spec), 1):
            if kind == "store":
                continue
            if kind == "query":
                first = t if asked % spec.rereads == 0 else first
                labels[:, t - 1] = below(drawn[:, first - 1], spec.m) + 1
                asked += 1
                continue
            place = below(drawn[:, t - 1], alive.sum(axis=1))
            chosen = np.argmax(alive.cumsum(axis=1) > place[:, None], axis=1)
            labels[:, t - 1] = chosen + 1
            if kind == "delete":
                alive[rows, chosen] = False
        return labels[:, :, None]

    def stores(self, spec: TaskSpec, t: int) -> bool:
        return t <= spec.m

    def last_use(self, spec: TaskSpec, t: int) -> int:
        return max(s for s, kind in enumerate(self.kinds(spec), 1) if kind == "query") if t <= spec.m else 0

    def draws(self, spec: TaskSpec) -> Sequence[Draw | None]:
        found: list[Draw | None] = []
        asked = 0
        for kind in self.kinds(spec):
            found.append(None if kind != "query" else Draw(spec.m) if asked % spec.rereads == 0 else Draw(1))
            asked += kind == "query"
        return found

    def demand(self, spec: TaskSpec, graph: Graph, cuts: Sequence[int] | None = None) -> DemandCurve:
        kinds = self.kinds(spec)
        changing = [t for t, kind in enumerate(kinds, 1) if kind in CHANGING]
        asking = [t for t, kind in enumerate(kinds, 1) if kind == "query" and t > spec.warm_up]

        def classes(t: int) -> int:
            later = [s for s in asking if s > t]
            if spec.m == 1:  # nothing but the record itself can be changed before it is asked for
                later = [s for s in later if not any(t < change < s for change in changing)]
            made = _made(kinds, graph, t)
            return int(spec.q ** sum(bool(later) and (not spec.expiry or later[0] <= at + spec.expiry) for at in made))

        return curve_of(spec, cuts, classes, "closed form: Record Store, every value that a query may still ask for")


def _made(kinds: Sequence[Kind], graph: Graph, t: int) -> list[int]:
    """Return when the records that are not deleted after step t were last written."""
    at: dict[int, int] = {}
    for s, (kind, refs) in enumerate(zip(kinds[:t], graph, strict=False), 1):
        if kind == "store":
            at[s] = s
        elif kind == "overwrite":
            at[refs[0]] = s
        elif kind == "delete":
            del at[refs[0]]
    return list(at.values())


@lru_cache(maxsize=256)
def _kinds(n: int, m: int, overwrites: int, deletes: int) -> tuple[Kind, ...]:
    kinds: list[Kind] = ["store"] * min(m, n)
    deleted = 0
    for i in range(max(0, n - m)):
        if (i + 1) * overwrites // 100 > i * overwrites // 100:
            kinds.append("overwrite")
        elif deleted < m - 1 and (i + 1) * deletes // 100 > deleted:
            kinds.append("delete")
            deleted += 1
        else:
            kinds.append("query")
    return tuple(kinds)
