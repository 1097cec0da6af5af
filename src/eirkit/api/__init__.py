"""The Python API: run sweeps, open their folders, look at the results. `import eirkit` has its names."""
