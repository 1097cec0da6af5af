"""The small transformer that ships with the package: what it reads, its weights, and its arithmetic in NumPy."""
