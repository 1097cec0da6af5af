"""Runs memory systems: construction, time limits, separate processes and environments, model endpoint, embeddings."""

FACTORY = "eirkit.agents.stores.memory_factory"  # makes memory systems, imported with the first of them
