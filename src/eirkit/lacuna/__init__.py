"""LACUNA: generated tasks with known dependencies, agents with controlled access, and why steps are wrong."""
