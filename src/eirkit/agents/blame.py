"""Whose fault an exception is: an error comes in, the side of the house whose code raised it and its words go out."""

from __future__ import annotations

from eirkit.errors import EirkitError, StoreError

# The harness's own modules, and whose code runs next where one of them is the last on the way to an error.
_HANDS_TO = {
    "runs.attempt": "memory",
    "agents.memory_calls": "memory",
    "agents.stores.pool": "memory",
    "agents.stores.endpoint": "model",
    "agents.driver": "model",
    "tasks.retention": "policy",
    "runs.sessions": "policy",
    "agents.conditions": "workload",
    "agents.session": "workload",
    "agents.managed": "workload",
    "findings.causes": "workload",
}


def side_of(error: BaseException) -> str:
    """Return whose code raised an error: memory, model, policy, workload, or the harness itself."""
    if isinstance(error, StoreError):
        return "memory"
    side, trace = "harness", error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", "")).removeprefix("eirkit.")
        if module in _HANDS_TO:
            side = "harness" if trace.tb_next is None else _HANDS_TO[module]
        trace = trace.tb_next
    return side


def words_of(error: BaseException) -> str:
    """Return what an error says: ours and failed assertions by their message, others with their type and verb."""
    said = str(error)
    if isinstance(error, EirkitError | AssertionError) and said:
        return said
    notes = getattr(error, "__notes__", ())  # which verb of a memory system it was
    return " ".join(
        filter(None, [f"{type(error).__name__}{': ' if said else ''}{said}", *(f"({n})" for n in notes[:1])])
    )
