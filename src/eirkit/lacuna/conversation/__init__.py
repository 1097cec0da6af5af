"""LACUNA in words: invented worlds told in conversations, questions about them, and exactly known answers."""
