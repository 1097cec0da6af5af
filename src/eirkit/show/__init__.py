"""Documents, tables, charts and pages. Nothing is computed here that a reader could not recompute from the records."""
