"""Turns a corpus of logs into a folder of tables: finds, divides, measures, merges, summarizes and queries it."""
