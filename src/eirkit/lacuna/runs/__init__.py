"""Runs agents on tasks: plans, the runner, storage and resume, budgets, full-information controls, summaries."""
