"""Pages of LACUNA folders: runs, rescue, capability and probes."""
