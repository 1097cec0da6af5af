"""Runs agents on tasks: plans, the runner, storage and resume, budgets, full-information controls, summaries."""

CONVERSATIONS = "eirkit.lacuna.runs.conversations"  # what runs of conversations need, imported with the first of them
