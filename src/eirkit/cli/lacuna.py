"""The `eirkit lacuna` group."""

from eirkit.cli.lazy import LazyGroup

group = LazyGroup(
    "lacuna",
    help="Generated multi-step tasks in which access to earlier results is controlled.",
    commands={
        "generate": ("eirkit.cli.generate:generate", "One task with its answers, or many in a file."),
        "simulate": ("eirkit.cli.simulate:simulate", "What retention policies miss, without any agent."),
        "cones": ("eirkit.cli.cones:cones", "What it costs to rebuild a lost result."),
        "run": ("eirkit.cli.lacuna_run:run", "Agents under a memory condition, as a sweep that can be resumed."),
        "rescue": ("eirkit.cli.rescue:rescue", "Whether restoring what was lost repairs the answer."),
        "capability": ("eirkit.cli.capability:capability", "Which models can do which task at full information."),
        "probe": ("eirkit.cli.probe:probe", "Whether a model can find its way to a lost result."),
        "audit": ("eirkit.cli.audit:audit", "Whether anything leaks through the interface."),
    },
)
