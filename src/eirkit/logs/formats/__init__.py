"""The built-in log formats: name and module of each, imported when the name is first used."""

PLUGINS = {
    "atif": "eirkit.logs.formats.atif",
    "claude-code": "eirkit.logs.formats.sessions.claude_code",
    "codex": "eirkit.logs.formats.sessions.codex",
    "copilot-cli": "eirkit.logs.formats.sessions.copilot_cli",
    "gemini-cli": "eirkit.logs.formats.sessions.gemini_cli",
    "goose": "eirkit.logs.formats.sessions.goose",
    "harbor": "eirkit.logs.formats.harbor",
    "inspect": "eirkit.logs.formats.inspect",
    "lacuna": "eirkit.logs.formats.lacuna",
    "message-rows": "eirkit.logs.formats.message_rows",
    "mini-swe-agent": "eirkit.logs.formats.mini_swe_agent",
    "opencode": "eirkit.logs.formats.sessions.opencode",
    "openhands-completions": "eirkit.logs.formats.openhands",
    "openhands-events": "eirkit.logs.formats.openhands_events",
    "otlp": "eirkit.logs.formats.otlp",
    "plain": "eirkit.logs.formats.plain",
    "qwen-code": "eirkit.logs.formats.sessions.qwen_code",
    "swe-agent": "eirkit.logs.formats.swe_agent",
    "tau-bench": "eirkit.logs.formats.tau_bench",
    "tau2-bench": "eirkit.logs.formats.tau_bench",
}
