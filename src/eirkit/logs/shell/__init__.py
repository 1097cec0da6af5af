"""What a shell command read and wrote, inferred from its text and its output without running it."""
