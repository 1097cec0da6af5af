"""Runs memory systems: construction, time limits, separate processes and environments, model endpoint, embeddings."""
