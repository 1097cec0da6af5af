"""The `eirkit vestige` group."""

from eirkit.cli.lazy import LazyGroup

group = LazyGroup(
    "vestige",
    help="What recorded agent runs needed, and what they lost.",
    commands={
        "analyze": ("eirkit.cli.vestige_analyze:analyze", "Logs to tables: what was read, written, needed and lost."),
        "cohort": ("eirkit.cli.vestige_cohort:cohort", "Statistics over analysed runs: did those that failed differ?"),
        "query": ("eirkit.cli.vestige_query:run_query", "SQL over the tables of an analysis."),
        "show": ("eirkit.cli.vestige_show:show", "One analysed run: its demand, live files and losses."),
        "guard": ("eirkit.cli.vestige_guard:guard", "Watch a live agent: what did its context just lose?"),
        "formats": ("eirkit.cli.vestige_formats:list_formats", "What can be read."),
    },
)
