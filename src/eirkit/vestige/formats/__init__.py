"""The formats that come with the package; importing this registers them."""

from eirkit.vestige.formats import (
    atif,
    claude_code,
    codex,
    gemini_cli,
    harbor,
    inspect,
    lacuna,
    message_rows,
    mini_swe_agent,
    openhands_completions,
    openhands_events,
    otlp,
    plain,
    swe_agent,
    tau2_bench,
    tau_bench,
)

__all__ = [
    "atif",
    "claude_code",
    "codex",
    "gemini_cli",
    "harbor",
    "inspect",
    "lacuna",
    "message_rows",
    "mini_swe_agent",
    "openhands_completions",
    "openhands_events",
    "otlp",
    "plain",
    "swe_agent",
    "tau2_bench",
    "tau_bench",
]
