"""What each recorded action read and wrote: calls of agents' tools, and shell commands."""
