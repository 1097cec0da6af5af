"""Agents: sessions, prompts, actions and telemetry; models, memory systems and model servers in subpackages."""
