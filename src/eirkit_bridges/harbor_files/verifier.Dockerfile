# The verifier's container: the agent never had a foot in it.
FROM debian:bookworm-slim
COPY test.sh /tests/test.sh
