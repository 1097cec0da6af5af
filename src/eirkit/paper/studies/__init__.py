"""The paper's tables and figures, one study each: what was published, what computes ours, and whether they agree."""
