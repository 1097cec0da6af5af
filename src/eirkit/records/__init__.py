"""Results on disk: JSON lines with checksums, blocks of events, and the types of facts."""
