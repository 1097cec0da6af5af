"""Model servers: chat-completions client, retries, prices, spending cap, reply cache and secret scrubbing."""
