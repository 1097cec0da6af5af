"""A local page over a folder of runs: its records come in as the library reads them, JSON goes out on loopback."""
