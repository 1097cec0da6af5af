"""Commands of `eirkit vestige`, which read recorded runs and their analyses, and of the guard of coding agents."""
