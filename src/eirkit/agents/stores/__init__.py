"""What stands between the harness and memory systems: making, limits, embeddings, processes and meters."""
