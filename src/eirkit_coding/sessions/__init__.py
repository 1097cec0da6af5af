"""The formats in which coding agents keep the sessions of their users."""
