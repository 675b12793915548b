# Three images of one file: `spark`, with what executors need, `airflow`, which is that and everything else, and
# `airflow-kubernetes`, which is that and the clients of Kubernetes. So they have the same Python (Spark refuses a driver and
# executors of different minor versions) and share what is largest. Steps of them: `build`, `wheels`, `wheel`. pip takes nothing
# whose hash is not in the lock, to build with neither.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim-bookworm AS base
# procps: Spark's scripts call ps. curl: health checks. The archive of classes is for heaps of more than 32 GB.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends curl openjdk-17-jre-headless procps tini zip \
    && rm -rf /var/lib/apt/lists/* /usr/lib/jvm/*/lib/server/classes_nocoops.jsa \
    && useradd --create-home --uid 50000 airmirror
# glibc keeps what is free in each arena, and makes up to eight a core: a process of many threads grew for an hour.
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 MALLOC_ARENA_MAX=2
WORKDIR /opt/airmirror

FROM base AS build
# setuptools makes wheels, Node (of a wheel) the console's bundles; neither comes into an image that runs.
COPY requirements-build-hashes.txt ./
RUN pip install --require-hashes --only-binary :all: -r requirements-build-hashes.txt

FROM build AS wheels
# PySpark and its client are published as sources alone.
COPY requirements-hashes.txt ./
RUN pip wheel --require-hashes --no-deps --only-binary :all: --no-binary pyspark,pyspark-client \
    --no-build-isolation --use-pep517 --wheel-dir /wheels -r requirements-hashes.txt

FROM build AS wheel
COPY include include
COPY pyproject.toml setup.py CHANGELOG.md README.md LICENSE ./
RUN PYTHONPATH=include python -m airmirror_local.console \
    && pip wheel --no-deps --no-build-isolation --wheel-dir /wheel .

FROM base AS spark
# Spark itself and the pyarrow that its Python workers need, at the versions that Airmirror is tested with. Left out: packages' own
# tests, Arrow Flight and S3, Hive (as in a Spark that is built without it), what only machine learning computes with, libraries of
# other systems.
COPY requirements-executor.txt ./
RUN --mount=type=bind,from=wheels,source=/wheels,target=/wheels \
    pip install --no-index --find-links /wheels -r requirements-executor.txt pyarrow pyspark \
    && cd /usr/local/lib/python3.*/site-packages \
    && find . -type d -name tests -prune -exec rm -rf {} + \
    && rm -r pyarrow/*_flight* pyarrow/*_s3* pyarrow/include \
    && cd pyspark/jars \
    && rm *-osx-* *-windows-* datanucleus-* derby* hive-[!s]* hive-se* hive-shims* spark-hive* \
        breeze* spire* cats-kernel* lapack-* arpack* \
    && zip -qd rocksdbjni-*.jar '*.dll' '*.jnilib' '*-linux32*' '*-musl.so' '*-ppc64le.so' '*-riscv64.so' '*-s390x.so' \
    && mkdir -p /var/lib/spark && chown airmirror /var/lib/spark
# Spark starts its pods on Kubernetes with the one, which runs everything else under tini (Airflow's chart calls it by this name),
# and has Kubernetes run the other before it ends an executor's.
COPY include/kubernetes/entrypoint.sh /entrypoint
COPY include/kubernetes/decommission.sh /opt/decom.sh
ENTRYPOINT ["/entrypoint"]
USER airmirror
WORKDIR /var/lib/spark

FROM spark AS airflow
USER root
WORKDIR /opt/airmirror
COPY requirements.txt ./
# PySpark has all that its client has. The clients of Kubernetes (140 MB) are for those who run there.
RUN --mount=type=bind,from=wheels,source=/wheels,target=/wheels \
    grep -v -e pyspark-client -e kubernetes requirements.txt > /tmp/requirements.txt \
    && pip install --no-index --no-deps --find-links /wheels -r /tmp/requirements.txt \
    && find /usr/local/lib/python3.*/site-packages -type d -name tests -prune -exec rm -rf {} +
COPY dags dags
RUN --mount=type=bind,from=wheel,source=/wheel,target=/wheel \
    pip install --no-deps --no-index /wheel/*.whl \
    && mkdir -p /opt/airflow/login /opt/airflow/logs && chown -R airmirror /opt/airflow
ENV AIRFLOW_HOME=/opt/airflow
USER airmirror

FROM airflow AS airflow-kubernetes
USER root
RUN --mount=type=bind,from=wheels,source=/wheels,target=/wheels \
    grep kubernetes requirements.txt > /tmp/requirements.txt \
    && pip install --no-index --no-deps --find-links /wheels -r /tmp/requirements.txt
USER airmirror
