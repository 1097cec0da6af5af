"""What a compaction could keep of a recorded run at a cut: the context, what was needed of it, and the best choice."""
