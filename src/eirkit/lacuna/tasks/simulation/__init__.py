"""Simulates retention without agents: one task, batches of tasks, tables of policies, and general cache traces."""
