"""The demonstration: the main questions answered on embedded defaults, by the functions that every command uses."""
