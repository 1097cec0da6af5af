"""The small transformer that ships with eirkit: tokens, weights file, and exact inference in NumPy."""
