"""Agents: sessions, prompts, actions and telemetry; models, memory systems and model servers in subpackages."""

# Sessions of agent-managed runs and of recovery probes, imported with the first of them.
MANAGED, PROBE = "eirkit.lacuna.agents.managed", "eirkit.lacuna.agents.probe_session"
