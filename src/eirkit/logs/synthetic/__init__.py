"""Corpora whose truth is known, for validating the analysis."""
