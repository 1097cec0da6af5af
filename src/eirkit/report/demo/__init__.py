"""`eirkit demo`: answers the main questions on built-in examples with the functions behind the other commands."""
