# The UI and the daemon (`rss-pipeline up`) for compose.yaml; docs/operating.md says how to use it.

FROM python:3.13-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY rss_pipeline ./rss_pipeline
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --constraint constraints.txt '.[fleet]'

FROM python:3.13-slim-bookworm
# A fixed id, so that a folder mounted in place of the volume can be given to it.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data --shell /usr/sbin/nologin rss \
  && install --directory --owner=rss --group=rss /data /data/var
COPY --from=build /venv /venv
# A new volume begins with a copy of it.
COPY --chown=rss:rss feeds.yaml /data/feeds.yaml
ENV PATH=/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    RSS_PIPELINE_HOME=/data/var \
    RSS_FEEDS_FILE=/data/feeds.yaml \
    RSS_UI_ADDRESS=0.0.0.0 \
    RSS_READER_ADDRESS=0.0.0.0
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 3000 3001
HEALTHCHECK --interval=15m --timeout=2m --start-period=5m --retries=2 CMD ["rss-pipeline", "doctor"]
ENTRYPOINT ["rss-pipeline"]
CMD ["up"]
