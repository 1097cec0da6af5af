"""Agents: sessions, prompts, actions and telemetry; models, memory systems and model servers in subpackages."""

MANAGED = "eirkit.agents.managed"  # sessions of agent-managed runs, imported with the first of them
