"""Comparison of two result folders: paired differences with intervals, the verdict in words, and the page."""
