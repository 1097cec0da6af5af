"""How many bits a memory held at most before any step of a cell's runs; unknown where nothing says so.

A record counts as the bits of its value. Which records are held is taken not to depend on the values, as no policy of
eirkit looks at them. A store that reports fewer bytes than its records would take counts as its bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Held:
    """What is known of the size of a memory; `bits` is None where it is unknown, and `why` then says why."""

    bits: float | None
    why: str = ""


def held_in_context(h: int, record_bits: float) -> Held:
    """Return the size of a memory of at most h records, all of them in context."""
    return Held(h * record_bits)


def held_by_store(
    floors: Iterable[Mapping[str, Any] | None], in_sight: int, made: Sequence[int], record_bits: float
) -> Held:
    """Return the largest size over all cuts of some runs with a memory system.

    Floors count a record in sight once if the store may hold it too. Nobody says that it does, so those in sight are
    added, up to the number of records that there are.

    Args:
        floors: what each run held, as `floor_record` writes it; None where nothing was recorded.
        in_sight: records that were in context beside the store, at most.
        made: how many records there are after each step.
    """
    found = list(floors)
    if not found or any(one is None for one in found):
        return Held(None, "what was held was not recorded, as it is only for workloads whose EIR has a closed form")
    known = [one for one in found if one is not None]
    if any(one["counted"] != "system" for one in known):
        return Held(None, "how many records are held is not reported")
    return Held(max(_largest(one, in_sight, made, record_bits) for one in known))


def _largest(floor: Mapping[str, Any], in_sight: int, made: Sequence[int], record_bits: float) -> float:
    cuts = zip(floor["held_records"], floor["held_bytes"], made, strict=True)
    seen = in_sight * record_bits
    return max(
        min(min(int(count) + in_sight, most) * record_bits, math.inf if size is None else 8 * float(size) + seen)
        for count, size, most in cuts
    )
