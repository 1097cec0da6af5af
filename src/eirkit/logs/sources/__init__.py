"""Opens files, folders, archives, Parquet and remote corpora, each read in place and within bounds."""
