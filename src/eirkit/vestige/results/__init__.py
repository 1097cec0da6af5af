"""Analyses as objects: `Analysis` reads a finished one, `analyze` makes one from logs."""
