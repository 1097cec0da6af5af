"""Benchmarks, each measured against a peer in the same run: `python -m benchmarks [NAME …]`."""
