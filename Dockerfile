# Two images from one file: `--target operator` (no Java, no Spark) and `--target runtime`.
#
# In a network without a package index, put wheels and source packages into ./wheelhouse (`pip download`) and give
# `--build-arg WHEELHOUSE=wheelhouse`. Jars in ./jars (the folder `jars` of the cache folder) go into the runtime
# with `--build-arg JARS=jars`; without that they are fetched.
FROM python:3.11-slim-bookworm AS base
# SAFEPATH: the working folder, which a pod may mount, is no place to import from.
ENV PATH=/opt/streams/venv/bin:$PATH \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp
# Hadoop's libraries ask for the user's name, so the id has to have one.
RUN groupadd --gid 10001 streams \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin streams


FROM base AS packages
ARG WHEELHOUSE=
WORKDIR /build
COPY pyproject.toml .requirements.lock ./
COPY .ci/requirements_of.py .ci/
# Source packages are built with these rather than with a download of their own.
RUN --mount=type=bind,target=/context \
    python3 .ci/requirements_of.py build > build.txt \
 && python3 -m venv /opt/build \
 && /opt/build/bin/python -m pip install --no-cache-dir --require-hashes -r build.txt \
    ${WHEELHOUSE:+--no-index --find-links=/context/$WHEELHOUSE}


FROM packages AS operator-packages
ARG WHEELHOUSE=
RUN --mount=type=bind,target=/context \
    python3 .ci/requirements_of.py operator > operator.txt \
 && /opt/build/bin/pip wheel --no-cache-dir --no-build-isolation --require-hashes -r operator.txt -w wheels \
    ${WHEELHOUSE:+--no-index --find-links=/context/$WHEELHOUSE} \
 && python3 -m venv --without-pip /opt/streams/venv \
 && /opt/build/bin/pip --python /opt/streams/venv/bin/python install --no-cache-dir --no-index --no-deps wheels/*.whl


FROM packages AS runtime-packages
ARG WHEELHOUSE=
# A wheel that is built here is unpacked in this build: compressing 400 MB of PySpark's jars would be for nothing.
RUN --mount=type=bind,target=/context \
    python3 .ci/requirements_of.py runtime > runtime.txt \
 && /opt/build/bin/pip wheel --no-cache-dir --no-build-isolation --require-hashes -r runtime.txt -w wheels \
    --config-settings=--build-option=--compression=stored \
    ${WHEELHOUSE:+--no-index --find-links=/context/$WHEELHOUSE}


FROM packages AS project
COPY README.md ./
COPY operator operator
COPY runtime runtime
# An environment with nothing else in it, to be laid over the one with the packages.
RUN /opt/build/bin/pip wheel --no-cache-dir --no-index --no-deps --no-build-isolation -w wheels . \
 && python3 -m venv --without-pip /opt/streams/venv \
 && /opt/build/bin/pip --python /opt/streams/venv/bin/python install --no-cache-dir --no-index --no-deps wheels/*.whl


FROM base AS operator
COPY --from=operator-packages /opt/streams /opt/streams
COPY --from=project /opt/streams /opt/streams
USER 10001:10001
WORKDIR /tmp
ENTRYPOINT ["python", "-m", "streams_operator"]
# What the image says of itself (OCI's annotations); `make images` gives what a file can't know. Last, so that nothing is built anew.
ARG VERSION=0.2.0 REVISION= CREATED= SOURCE= BASE_NAME= BASE_DIGEST=
LABEL org.opencontainers.image.title="streams-operator" \
      org.opencontainers.image.description="The operator of StreamsApplications: Kafka-Streams-style applications as a Kubernetes resource" \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.created=$CREATED \
      org.opencontainers.image.source=$SOURCE \
      org.opencontainers.image.base.name=$BASE_NAME \
      org.opencontainers.image.base.digest=$BASE_DIGEST


FROM base AS runtime
# The folder is absent in slim images, and the package's links need it.
RUN mkdir -p /usr/share/man/man1 \
 && apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless libnss-unknown \
 && apt-get clean \
 && rm -rf /var/lib/apt/lists/*
# A user that a cluster chooses (OpenShift) has no name of its own, and Spark's JVM does not start without: libnss-unknown,
# which enters itself into nsswitch.conf, gives it one.
RUN getent passwd 1000650000
# The packages are installed where they stay: copying a gigabyte takes longer. buildah knows a step by its words, and not
# by what is mounted, so what was asked for has to come before it.
COPY --from=runtime-packages /build/build.txt /build/runtime.txt /opt/streams/requirements/
RUN --mount=type=bind,from=runtime-packages,target=/packages \
    python3 -m venv --without-pip /opt/streams/venv \
 && /packages/opt/build/bin/python -m pip --python /opt/streams/venv/bin/python install --no-cache-dir --no-index --no-deps \
    /packages/build/wheels/*.whl
ENV STREAMSAPP_CACHE=/opt/streams/cache
ARG JARS=
RUN --mount=type=bind,target=/context \
    mkdir -p /opt/streams/cache \
 && if [ -n "$JARS" ]; then cp -r "/context/$JARS" /opt/streams/cache/jars; fi \
 && chmod -R a+rX /opt/streams/cache
COPY --from=project /opt/streams /opt/streams
# Looks at what is there, and fetches what is missing.
RUN umask 022 && python -m streams_runtime.jvm.machine_setup && python -m streams_runtime.cli.class_archives
USER 10001:10001
WORKDIR /tmp
CMD ["python", "-m", "streams_runtime.cli.process.pod"]
# What the image says of itself (OCI's annotations); `make images` gives what a file can't know. Last, so that nothing is built anew.
ARG VERSION=0.2.0 REVISION= CREATED= SOURCE= BASE_NAME= BASE_DIGEST=
LABEL org.opencontainers.image.title="streams-runtime" \
      org.opencontainers.image.description="One instance of a StreamsApplication: a streams client whose pipeline runs on Spark" \
      org.opencontainers.image.version=$VERSION \
      org.opencontainers.image.revision=$REVISION \
      org.opencontainers.image.created=$CREATED \
      org.opencontainers.image.source=$SOURCE \
      org.opencontainers.image.base.name=$BASE_NAME \
      org.opencontainers.image.base.digest=$BASE_DIGEST
