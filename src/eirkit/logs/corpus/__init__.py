"""From a corpus of logs to a folder of tables: found, cut, measured, merged, summarised and queried."""
