"""Agents: sessions, prompts, protocols and telemetry; scripted agents, and models in this process that act by rule."""

# Sessions of agent-managed runs and of recovery probes, imported with the first of them.
MANAGED, PROBE = "eirkit.lacuna.agents.managed", "eirkit.lacuna.agents.probe_session"
