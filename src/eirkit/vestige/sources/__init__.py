"""Opens files, folders, archives, Parquet files and remote corpora, each read in place within fixed limits."""
