"""What each recorded action read and wrote: tools of agents, and shell commands."""
