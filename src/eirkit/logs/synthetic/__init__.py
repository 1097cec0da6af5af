"""Synthetic corpora with known effects and dependencies, for validating the analysis."""
