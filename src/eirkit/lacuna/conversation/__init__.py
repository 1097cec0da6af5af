"""Conversations: invented worlds told in dated messages, questions about them, and exactly known answers."""
