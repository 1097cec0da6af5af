"""Lists every command with its name, the module that defines it and its line of help."""

from __future__ import annotations

import click

from eirkit import __version__
from eirkit.cli.lazy import LazyGroup

EIR = LazyGroup(
    "eir",
    help="Count the bits that an agent must remember.",
    commands={
        "curve": ("eirkit.cli.eir_curve:curve", "Bits that must survive each step of a generated task."),
        "count": ("eirkit.cli.eir_count:count", "Bits that a contract of your own requires."),
    },
)

LACUNA = LazyGroup(
    "lacuna",
    help="Test agents and memory systems on generated tasks.",
    commands={
        "run": ("eirkit.cli.lacuna_run:run", "Run agents under a memory condition; can be resumed."),
        "rescue": ("eirkit.cli.rescue:rescue", "Test whether restoring a lost result repairs the answer."),
        "capability": ("eirkit.cli.capability:capability", "Test which models can do which task with nothing missing."),
        "probe": ("eirkit.cli.probe:probe", "Test whether a model can recompute a lost result."),
        "generate": ("eirkit.cli.generate:generate", "Print or write tasks with their answers."),
        "simulate": ("eirkit.cli.simulate:simulate", "Miss rates of retention policies, without an agent."),
        "cones": ("eirkit.cli.cones:cones", "What it costs to recompute a lost result."),
        "audit": ("eirkit.cli.audit:audit", "Check that the task interface leaks nothing."),
    },
)

VESTIGE = LazyGroup(
    "vestige",
    help="Analyse recorded agent runs for what they needed and lost.",
    commands={
        "analyze": ("eirkit.cli.vestige_analyze:analyze", "Read logs and write tables of what each run needed."),
        "show": ("eirkit.cli.vestige_show:show", "One analysed run: its demand, live files and losses."),
        "cohort": ("eirkit.cli.vestige_cohort:cohort", "Statistics: did failed runs need more than resolved ones?"),
        "query": ("eirkit.cli.vestige_query:run_query", "SQL over the tables of an analysis."),
        "guard": ("eirkit.cli.vestige_guard:guard", "Watch a live agent and report what its context drops."),
        "formats": ("eirkit.cli.vestige_formats:list_formats", "The log formats that can be read."),
    },
)

EXPORT = LazyGroup(
    "export",
    help="Convert tasks and runs for other tools.",
    commands={
        "harbor": ("eirkit.cli.export_harbor:harbor", "Tasks as folders for Harbor and Terminal-Bench."),
        "inspect": ("eirkit.cli.export_inspect:export_inspect", "Runs as logs that `inspect view` opens."),
        "otel": ("eirkit.cli.export_otel:export_otel", "Runs as OpenTelemetry traces."),
    },
)

MCP = LazyGroup(
    "mcp",
    help="Give tasks to agents over the Model Context Protocol.",
    commands={"serve": ("eirkit.cli.mcp_serve:serve", "Serve tasks to an agent as MCP tools.")},
)

ROOT = LazyGroup(
    "eirkit",
    help="Measure what an agent must remember, what its memory keeps, and what recorded runs lost.",
    questions={
        "How much must an agent remember?": "eirkit eir curve WORKLOAD",
        "Does its memory keep it?": "eirkit lacuna run WORKLOAD --model MODEL",
        "What did recorded runs need and lose?": "eirkit vestige analyze PATH --out DIR",
    },
    commands={
        "demo": ("eirkit.cli.demo:demo", "All three questions on built-in examples, offline."),
        "eir": EIR,
        "lacuna": LACUNA,
        "vestige": VESTIGE,
        "report": ("eirkit.cli.report:report", "Write one HTML page about a folder of results."),
        "compare": ("eirkit.cli.compare:compare", "Compare two folders of results, paired, with intervals."),
        "view": ("eirkit.cli.view:view", "Browse a folder of results in a web browser."),
        "watch": ("eirkit.cli.watch:watch", "Follow a sweep in the terminal while it runs."),
        "reproduce": ("eirkit.cli.reproduce:reproduce", "Compute the paper's tables and figures again."),
        "export": EXPORT,
        "mcp": MCP,
        "doctor": ("eirkit.cli.doctor:doctor", "What is usable here, what is missing, and how to install it."),
        "completion": ("eirkit.cli.completion:completion", "Print a completion script for your shell."),
    },
)
click.version_option(__version__, message="eirkit %(version)s")(ROOT)
