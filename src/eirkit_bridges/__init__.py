"""Other people's tools: each bridge drives the same session, or turns our records into their form."""
