"""Exact execution information requirements: how many bits must survive a cut, at the very least."""
