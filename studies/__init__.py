"""One file per table or figure of the paper: what was published, ours, and whether they agree."""
