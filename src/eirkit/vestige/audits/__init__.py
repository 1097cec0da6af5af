"""What a run lost on the way: clipped views, compactions, rereads, anomalies and how full its context window was."""
