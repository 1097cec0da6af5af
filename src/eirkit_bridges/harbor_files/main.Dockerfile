# The agent's container. Nothing of the task is in it: no seed, no generator, no answers.
FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends bash ca-certificates curl findutils procps \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --shell /bin/bash agent \
    && mkdir -p /app /task && chown agent:agent /app /task
WORKDIR /app
