# Two images of one file: `spark`, with what executors need and no more, and `airflow`, with everything. (`console` is a step of it.)
# Both have the same Python: Spark refuses a driver and executors of different minor versions.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim-bookworm AS base
# procps: Spark's scripts call ps. curl: health checks.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends curl openjdk-17-jre-headless procps tini \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 50000 airmirror
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /opt/airmirror
COPY requirements-hashes.txt requirements-executor-hashes.txt ./
# Spark starts its pods with it on Kubernetes; everything else it runs under tini.
COPY include/kubernetes/entrypoint.sh /opt/entrypoint.sh
ENTRYPOINT ["/opt/entrypoint.sh"]

FROM base AS spark
# Spark itself and the pyarrow that its Python workers need, at the versions that Airmirror is tested with.
RUN pip install --require-hashes -r requirements-executor-hashes.txt \
    && mkdir -p /var/lib/spark && chown airmirror /var/lib/spark
USER airmirror
WORKDIR /var/lib/spark

FROM base AS console
# Node, from a wheel, makes the console's bundles, and setuptools our own wheel; nothing of them comes into the image that runs.
COPY requirements-console-hashes.txt ./
RUN pip install --require-hashes -r requirements-console-hashes.txt
COPY include include
COPY pyproject.toml setup.py CHANGELOG.md README.md LICENSE ./
RUN PYTHONPATH=include python -m airmirror_local.console \
    && pip wheel --no-deps --no-build-isolation --wheel-dir /wheel .

FROM base AS airflow
RUN pip install --require-hashes -r requirements-hashes.txt
COPY include include
COPY --from=console /wheel /wheel
COPY dags dags
RUN pip install --no-deps --no-index /wheel/*.whl \
    && mkdir -p /opt/airflow/logs && chown -R airmirror /opt/airflow
ENV AIRFLOW_HOME=/opt/airflow
USER airmirror
