# The service: docs/how-to/service-container.md. tests/container builds it and runs it, without a daemon.
#
#   docker build -t rag-harness .                              without torch: chat and embeddings behind an API
#   docker build -t rag-harness --build-arg EXTRAS=service,otlp,qdrant,local \
#     --build-arg PIP_EXTRA_INDEX_URL=<index of CPU builds> .  with it: embeddings, rerankers and judges, too (r1)

FROM python:3.11-slim-bookworm AS build
# The service of compose.yaml has its vectors on a Qdrant server.
ARG EXTRAS=service,otlp,qdrant
# PyPI's torch for Linux brings gigabytes of CUDA; pytorch.org names an index of builds without.
ARG PIP_EXTRA_INDEX_URL=""
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
WORKDIR /build
RUN python -m venv /opt/rag
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY rag_harness ./rag_harness
RUN /opt/rag/bin/pip install -c constraints.txt ".[${EXTRAS}]" \
    && /opt/rag/bin/pip uninstall --yes setuptools pip

FROM python:3.11-slim-bookworm
# The base image's own pip has no work here.
RUN python -m pip uninstall --yes setuptools wheel pip \
    && install --directory --owner 10001 --group 10001 --mode 0700 /state
COPY --from=build /opt/rag /opt/rag
# The shipped study, to try it with. Mount your own suite over it: pytest.ini, pyproject.toml, documents.
WORKDIR /suite
COPY pytest.ini pyproject.toml ./
COPY reliability ./reliability
COPY data/kb ./data/kb
# All that is written is below /state and /tmp: the rest may be read-only.
ENV PATH=/opt/rag/bin:$PATH \
    HOME=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    RAG_CACHE_DIR=/state/cache \
    RAG_LOGS=/state/logs
VOLUME /state
EXPOSE 8000
USER 10001:10001
STOPSIGNAL SIGTERM
# It lives before it can answer (/ready): the first start embeds all documents. Imports take seconds.
HEALTHCHECK --interval=10s --timeout=3s --start-period=120s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health', timeout=2)"]
ENTRYPOINT ["rag-harness"]
# It listens to others, so it starts only once there is a key: rag-harness keys create --scope admin --state /state
CMD ["serve", "--experiment", "e2", "--profile", "openrouter", "--host", "0.0.0.0", "--port", "8000", "--state", "/state"]
