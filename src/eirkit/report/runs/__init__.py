"""Pages about LACUNA folders: sweeps of `lacuna run`, and rescue, capability and probe experiments."""
