"""Documents, tables, charts and HTML pages that present results; every figure can be recomputed from the records."""
