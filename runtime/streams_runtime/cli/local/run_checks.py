"""What a local run accepts: a valid file, read by Spark's own parser too, without what only a cluster has."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from streams_runtime.api import Reading, StreamsApplication
from streams_runtime.api.checks.spark_checks import is_kubernetes, outside_mistake
from streams_runtime.api.reading.load import accepted as accepted_reading
from streams_runtime.api.reading.load import read_text
from streams_runtime.builder.resolve_python import read_file
from streams_runtime.cli.snapshots.snapshot_credentials import credential_mistakes
from streams_runtime.cli.user_classes import class_mistakes
from streams_runtime.errors import ConfigException, InvalidApplicationException, Mistake
from streams_runtime.kafka.client.client_properties import client_properties


def accepted(
    file: Path, instances: int | None, embedded: bool, queries_token: Path | None = None
) -> StreamsApplication:
    """The application in `file`; `embedded`: it will run on the embedded broker. `queries_token` is in the Secret's
    place.

    Raises:
        InvalidApplicationException: the file has mistakes; all of them are listed.
        ConfigException: the file can't be read.
        EnvironmentException: no Java for Spark's parser; install what it names.
    """
    # Costs a JVM's bridge, which a file that can't be read does not need.
    from streams_runtime.pipeline.spark.parsed_expressions import check_sql

    reading = read_file(file)
    reading = reading.with_more(_client_properties(reading, embedded))
    reading = reading.with_more([*local_mistakes(reading, instances), *query_mistakes(reading, queries_token)])
    if reading.application is not None:
        reading = reading.with_more(credential_mistakes(reading.application.spec.state.snapshots, os.environ))
    reading = reading.with_more(check_sql(reading.sql, reading.functions))
    reading = reading.with_more(class_mistakes(reading, file))
    return accepted_reading(reading)


def local_mistakes(reading: Reading, instances: int | None) -> Iterator[Mistake]:
    """What a resource may say that can't be done without a cluster."""
    secret = reading.kafka.secret_ref if reading.kafka else None
    if secret is not None:
        yield Mistake(
            "spec.kafka.secretRef",
            f"names the Secret {secret.name}, and a run on this machine has no Kubernetes Secrets",
            "leave it out here, and put its properties into spec.kafka.config of a file that stays on this machine",
        )
    registry = reading.kafka.schema_registry if reading.kafka else None
    if registry is not None and registry.secret_ref is not None:
        yield Mistake(
            "spec.kafka.schemaRegistry.secretRef",
            f"names the Secret {registry.secret_ref.name}, and a run on this machine has no Kubernetes Secrets",
            "leave it out here, and put its properties into spec.kafka.schemaRegistry.config, certificates as files",
        )
    spec = reading.document.get("spec")
    fields = spec if isinstance(spec, Mapping) else {}
    spark = fields.get("spark")
    master = str(spark.get("master")) if isinstance(spark, Mapping) else ""
    if is_kubernetes(master):
        yield outside_mistake(master)
    if fields.get("suspend") is True:
        yield Mistake(
            "spec.suspend",
            "is true: a suspended application has no instances, and nothing would run",
            "set it to false, or leave it out",
        )
    if fields.get("paused") is True:
        yield Mistake(
            "spec.paused",
            "is true: a paused application processes nothing",
            "set it to false, or leave it out",
        )
    if fields.get("reset") is not None:
        yield Mistake(
            "spec.reset",
            "is what the operator carries out, and a run on this machine resets nothing",
            "leave it out, and call streamsapp reset",
        )
    if instances is None and fields.get("replicas") == 0:
        yield Mistake("spec.replicas", "is 0, and nothing would run", "set it to 1 or more, or give --instances")


def query_mistakes(reading: Reading, token: Path | None) -> Iterator[Mistake]:
    """What `spec.queries` asks for that only a cluster has; a token can be given as a file.

    Raises:
        ConfigException: there is no such file, or nothing is in it.
    """
    if token is not None and not read_text(token).strip():
        raise ConfigException(f"{token} is empty; put the token for queries into it")
    if reading.application is None:
        return
    queries = reading.application.spec.queries
    if queries.tls is not None:
        yield Mistake(
            "spec.queries.tls",
            f"names the Secret {queries.tls.secret_ref.name}, and a run on this machine has no Kubernetes Secrets",
            "leave it out here; instances listen on this machine alone",
        )
    if queries.access is None:
        return
    if queries.access.kubernetes is not None:
        yield Mistake(
            "spec.queries.access.kubernetes",
            "asks an API server whose tokens are, and a run on this machine has none",
            "leave it out here, or use access.token with --queries-token-file",
        )
    elif token is None:
        yield Mistake(
            "spec.queries.access.token",
            "names a Secret, and a run on this machine has no Kubernetes Secrets",
            "give the token's file (--queries-token-file), or leave it out here",
        )


def _client_properties(reading: Reading, embedded: bool) -> tuple[Mistake, ...]:
    try:
        # Makes no connection; any address will do.
        properties = client_properties("localhost:9092", reading.kafka.config if reading.kafka else {})
    except InvalidApplicationException as error:
        return error.mistakes
    protocol = properties.get("security.protocol", "PLAINTEXT").upper()
    if embedded and protocol != "PLAINTEXT":
        found = f"is {protocol}, and the embedded broker has neither login nor encryption"
        return (
            Mistake(
                'spec.kafka.config["security.protocol"]',
                found,
                "give the broker's address (--bootstrap-servers), or leave login and encryption out",
            ),
        )
    return ()
