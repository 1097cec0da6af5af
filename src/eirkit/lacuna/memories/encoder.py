"""`encoder`: the memory that `eirkit eir frontier WORKLOAD` constructs, held to a number of bits.

It keeps as many records whole as fit. With the states that are left it tells apart some values of one more record; all
others of that record are kept as the last of them. Nothing else survives a write, so that what it can be asked for is
one of 2^bits states. `UniformRecords.kept` says what it reaches, and tests run it.
"""

from __future__ import annotations

import math

from eirkit.eir.step_bounds import divide_bits
from eirkit.errors import UsageError
from eirkit.lacuna.memories.in_process import KeyValue
from eirkit.lacuna.memories.memory import Item, MemoryUsage, memories

KEEPS = ("newest", "oldest")


@memories.add("encoder")
class BoundedEncoder(KeyValue):
    """Keeps what fits into a number of bits: whole records, and with what is left some values of one more.

    Args:
        bits: of the state that it keeps; without a limit by default.
        keep: newest, or oldest where the first records are asked for most (Full Lookup under a Zipf law).
    """

    def __init__(self, *, bits: float = math.inf, keep: str = "newest") -> None:
        super().__init__()
        if not bits >= 0:
            raise UsageError(f"bits = {bits} is no size; give 0 or more")
        if keep not in KEEPS:
            raise UsageError(f"keep = {keep!r} is unknown; known: {', '.join(KEEPS)}")
        self.bits, self.keep = bits, keep

    async def write(self, item: Item) -> None:
        await super().write(item)
        if self.bits == math.inf:
            return
        label, separator, values = item.text.partition(" = ")
        fields = values.split()
        if not (separator and fields and all(field.isdigit() for field in fields)):
            raise UsageError(f"the memory encoder holds records like A_7 = 0042, not {label[:40]!r}; leave out bits")
        alphabet = 10 ** sum(map(len, fields))  # records of a task have the same width
        whole, states = divide_bits(self.bits, alphabet, len(self._kept))
        order = list(self._kept) if self.keep == "oldest" else list(reversed(self._kept))
        for place, held in enumerate(order):
            if place == whole and states > 1:
                self._kept[held] = _among(self._kept[held], states)
            elif place >= whole:
                del self._kept[held]

    async def usage(self) -> MemoryUsage:
        used = await super().usage()
        return used if self.bits == math.inf else MemoryUsage(used.records, math.ceil(self.bits / 8))


def _among(text: str, states: int) -> str:
    """Return a record with its value if that is one of the first `states` values, else with the last of these."""
    label, _, values = text.partition(" = ")
    fields = values.split()
    number = min(int("".join(fields)), states - 1)
    digits, width = f"{number:0{sum(map(len, fields))}d}", len(fields[0])
    return f"{label} = {' '.join(digits[i : i + width] for i in range(0, len(digits), width))}"
