"""The `eirkit eir` group."""

from eirkit.cli.lazy import LazyGroup

group = LazyGroup(
    "eir",
    help="Exact bits that must survive a point in a task, at the very least.",
    commands={
        "curve": ("eirkit.cli.eir_curve:curve", "Bits after each step of a generated task."),
        "count": ("eirkit.cli.eir_count:count", "Classes of a contract that you wrote."),
    },
)
