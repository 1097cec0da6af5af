"""The demonstration: the three questions on embedded defaults, computed by the functions that every command calls."""
