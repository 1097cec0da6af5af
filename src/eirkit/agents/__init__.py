"""What an agent sees and may do: sessions, prompts, actions, telemetry; models, memory systems, servers."""
