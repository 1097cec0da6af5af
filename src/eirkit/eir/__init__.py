"""Execution information requirements (EIR): the exact minimum of bits that must survive each cut of a task."""
