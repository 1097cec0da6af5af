"""The `eirkit export` group."""

from eirkit.cli.lazy import LazyGroup

group = LazyGroup(
    "export",
    help="Tasks and runs in the forms that other tools take.",
    commands={
        "harbor": ("eirkit.cli.export_harbor:harbor", "Task folders for Harbor and Terminal-Bench."),
        "inspect": ("eirkit.cli.export_inspect:export_inspect", "Runs as logs that `inspect view` opens."),
        "otel": ("eirkit.cli.export_otel:export_otel", "Runs as OpenTelemetry traces."),
    },
)
