"""The `eirkit mcp` group."""

from eirkit.cli.lazy import LazyGroup

group = LazyGroup(
    "mcp",
    help="Tasks for whole agents that speak the Model Context Protocol.",
    commands={"serve": ("eirkit.cli.mcp_serve:serve", "Give an agent a task through tools.")},
)
