"""Claims of speed, each measured beside its peer in the same run: `python -m benchmarks [NAME …]`."""
