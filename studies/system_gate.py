"""Puts memory systems through `check_memory` in each of their profiles, and keeps what held and what did not.

Results are added to a file, so that a study can be continued; scripts answer in the place of every model.
python -m studies.system_gate FILE NAME[:PROFILE] …
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from eirkit.lacuna.memories.factory import make_memory, reason_absent
from eirkit.lacuna.memories.memory import find_memory
from eirkit.lacuna.memories.plan import MemoryPlan
from eirkit.lacuna.memories.questions import settings_of
from eirkit.testing import check_memory

SECONDS = 600.0  # of one call, which on a busy machine may take many
LIMIT = 1800.0  # seconds of all requirements of one system; those that are left are named


def profiles_of(name: str) -> list[tuple[str, str | None]]:
    """Return the name of each profile of a system, and its setting; a system without profiles is plain."""
    kind = find_memory(name)
    named = list(kind.profiles) or ["plain"]
    return [(one, one if "profile" in settings_of(kind) else None) for one in named]


def try_system(name: str, profile: str) -> dict[str, Any]:
    """Return what of the requirements was not tested with a system, and what does not hold."""
    setting = dict(profiles_of(name))[profile]  # None where there is nothing to choose
    settings = {} if setting is None else {"profile": setting}
    before = _processor_seconds()
    notes: tuple[str, ...] = ()
    broken = ""
    try:
        make = partial(make_memory, MemoryPlan(name, settings))
        notes = check_memory(make, seconds=SECONDS, reuse=True, limit=LIMIT).notes
    except AssertionError as error:
        broken, notes = str(error), tuple(getattr(error, "__notes__", ()))
    used = round(_processor_seconds() - before)
    return {"memory": name, "profile": profile, "notes": list(notes), "broken": broken, "cpu s": used}


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main(arguments: Sequence[str]) -> None:
    file, *systems = arguments
    path = Path(file)
    kept: list[dict[str, Any]] = json.loads(path.read_text("utf-8")) if path.exists() else []
    for one in systems:
        name, _, given = one.partition(":")
        if (why := reason_absent(name, {})) is not None:
            print(f"{name} is left out: {why}", file=sys.stderr)
            continue
        profile = given or profiles_of(name)[0][0]
        result = try_system(name, profile)
        others = [row for row in kept if (row["memory"], row["profile"]) != (name, profile)]
        kept = sorted([*others, result], key=lambda row: (row["memory"], row["profile"]))
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(f"{one}: {result['broken'] or '; '.join(['nothing is broken', *result['notes']])}")


if __name__ == "__main__":
    main(sys.argv[1:])
