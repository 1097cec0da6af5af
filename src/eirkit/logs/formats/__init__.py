"""The built-in log formats: name and module of each, imported when the name is first used."""

PLUGINS = {
    "atif": "eirkit.logs.formats.atif",
    "claude-code": "eirkit.logs.formats.claude_code",
    "codex": "eirkit.logs.formats.codex",
    "gemini-cli": "eirkit.logs.formats.gemini_cli",
    "harbor": "eirkit.logs.formats.harbor",
    "inspect": "eirkit.logs.formats.inspect",
    "lacuna": "eirkit.logs.formats.lacuna",
    "message-rows": "eirkit.logs.formats.message_rows",
    "mini-swe-agent": "eirkit.logs.formats.mini_swe_agent",
    "openhands-completions": "eirkit.logs.formats.openhands",
    "openhands-events": "eirkit.logs.formats.openhands_events",
    "otlp": "eirkit.logs.formats.otlp",
    "plain": "eirkit.logs.formats.plain",
    "swe-agent": "eirkit.logs.formats.swe_agent",
    "tau-bench": "eirkit.logs.formats.tau_bench",
    "tau2-bench": "eirkit.logs.formats.tau_bench",
}
