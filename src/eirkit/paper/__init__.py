"""The paper's tables and figures: studies, what was published, and verdicts."""
