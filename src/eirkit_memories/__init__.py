"""Third-party memory systems, one file each; each runs in an environment of its own."""
