"""The bench: real coding agents play a scripted session offline, and their logs are compared with what happened."""
