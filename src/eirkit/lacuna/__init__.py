"""LACUNA: generated tasks in which access to earlier results is controlled."""
