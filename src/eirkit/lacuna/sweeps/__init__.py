"""Grids of runs: declared, planned, executed, stored whole or not at all, and summarised."""
