"""Runs memory systems: construction, time limits, separate processes and environments, model endpoint, embeddings."""

FACTORY = "eirkit.lacuna.memories.factory"  # makes memory systems, imported with the first of them
