"""Parallel map over pieces of work, on local processes or on Ray, with the same results."""
