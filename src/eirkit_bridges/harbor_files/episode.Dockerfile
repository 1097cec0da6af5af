# The episode: it alone knows the seed, and answers nothing but the commands of the task.
FROM python:3.12-slim
RUN useradd --create-home --home-dir /episode episode
COPY requirements.txt *.whl /tmp/eirkit/
RUN cd /tmp/eirkit && pip install --no-cache-dir -r requirements.txt && rm -r /tmp/eirkit
WORKDIR /episode
COPY --chown=episode episode.json .
USER episode
EXPOSE 8000
HEALTHCHECK --interval=2s --timeout=10s --retries=30 CMD ["python", "-m", "eirkit_bridges.sidecar", "healthy"]
CMD ["python", "-m", "eirkit_bridges.sidecar", "serve"]
