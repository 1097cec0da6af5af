"""Whose fault an exception is: an error comes in, the side of the house whose code raised it goes out."""

from __future__ import annotations

from eirkit.errors import StoreError

# The harness's own modules, and whose code runs next where one of them is the last on the way to an error.
_HANDS_TO = {
    "sweeps.attempt": "memory",
    "consulting": "memory",
    "stores.pool": "memory",
    "stores.endpoint": "model",
    "driver": "model",
    "retention": "policy",
    "conditions": "policy",
    "condition": "workload",
    "session": "workload",
    "managed": "workload",
    "evidence.attribution": "workload",
}


def side_of(error: BaseException) -> str:
    """Return whose code raised an error: memory, model, policy, workload, or the harness itself."""
    if isinstance(error, StoreError):
        return "memory"
    side, trace = "harness", error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", "")).removeprefix("eirkit.lacuna.")
        if module in _HANDS_TO:
            side = "harness" if trace.tb_next is None else _HANDS_TO[module]
        trace = trace.tb_next
    return side
