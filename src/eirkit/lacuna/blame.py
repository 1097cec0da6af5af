"""Whose fault an exception is: an error comes in, the side of the house whose code raised it goes out."""

from __future__ import annotations

# The harness's own modules, and whose code runs next where one of them is the last on the way to an error.
_HANDS_TO = {
    "sweeps.attempt": "memory",
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
    side, trace = "harness", error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", "")).removeprefix("eirkit.lacuna.")
        if module in _HANDS_TO:
            asks_memory = trace.tb_frame.f_code.co_name == "_remember"
            side = "harness" if trace.tb_next is None else "memory" if asks_memory else _HANDS_TO[module]
        trace = trace.tb_next
    return side
