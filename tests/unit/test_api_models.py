"""What a StreamsApplication says, and what it means where it says nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from streams_runtime.api import StreamsApplication, load_application, parse_application
from streams_runtime.api.base import Model

EXAMPLES = Path(__file__).parents[2] / "examples"

FULL = """\
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata: {name: orders, namespace: shop, uid: "1234", resourceVersion: "5", generation: 3, labels: {a: b}}
spec:
  replicas: 2
  applicationId: orders_v2
  image: registry/streams:1
  suspend: true
  kafka:
    bootstrapServers: "kafka-0:9092, kafka-1.kafka:9092,[::1]:9092"
    config: {linger.ms: 5, security.protocol: SASL_SSL, check.crcs: true}
    secretRef: {name: orders-kafka}
  internalTopics:
    setup: automatic
    replicationFactor: 3
    config: {segment.bytes: 1000000}
    overrides: {totals-changelog: {segment.ms: 60000}, by-user-repartition: {retention.ms: -1}}
    deletionPolicy: Delete
  processing:
    streamThreads: 2
    commitInterval: 1m30s
    maxBatchRecords: 1000
    onDeserializationError: {deadLetter: {topic: broken}}
  state: {storage: {size: 10Gi, storageClassName: fast}}
  queries:
    access: {token: {secretRef: {name: orders-queries, key: password}}}
    tls: {secretRef: {name: orders-tls}}
  spark: {master: "local[2]", config: {spark.ui.enabled: false}}
  topology:
    sources:
      - {name: orders, topic: orders, key: {format: json, schema: "id BIGINT"}, timestamp: ts,
         value: {format: json, schema: "user STRING, amount DOUBLE, ts TIMESTAMP"}}
      - {name: refunds, topic: refunds, key: {format: json, schema: "id BIGINT"},
         value: {format: json, schema: "user STRING, amount DOUBLE, ts TIMESTAMP"}}
      - {name: users, topic: users, value: {format: json, schema: "name STRING"}, table: {store: users}}
    steps:
      - {name: paid, from: orders, where: "AMOUNT > 0 and _key.id > 5",
         select: {user: user, cents: "cast(amount as bigint)"}}
      - {name: back, from: refunds, select: {cents: "cast(-amount as bigint)", user: user}}
      - {name: all, merge: [paid, back]}
      - {name: by-user, from: all, keyBy: user}
      - {name: totals, from: by-user, aggregate: {total: sum(cents), n: count(*)}, store: totals}
      - {name: mean, from: totals, where: n > 1, select: {value: total / n}}
      - {name: named, from: users, where: name is not null}
    sinks:
      - {from: mean, topic: means, key: {format: string}, value: {format: double}}
      - {from: mean, topic: means}
      - {from: named, topic: named}
  template:
    resources: {requests: {cpu: 500m, memory: 1Gi}, limits: {memory: 2Gi, cpu: 2}}
    env: [{name: A, value: b}, {name: C, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    nodeSelector: {disk: ssd}
    tolerations: [{key: a, operator: Exists, effect: NoSchedule}]
    affinity: {nodeAffinity: {anything: 1}}
    serviceAccountName: streams
    annotations: {a: b}
  restartNonce: 4
status: {state: RUNNING}
"""


def test_everything_that_the_resource_may_say_is_read() -> None:
    app = parse_application(FULL)
    assert app.name == "orders"
    assert app.application_id == "orders_v2"
    assert app.spec.processing.commit_interval == timedelta(seconds=90)
    assert app.spec.processing.on_deserialization_error.action == "deadLetter"
    assert app.spec.processing.on_deserialization_error.dead_letter is not None
    assert app.spec.processing.on_deserialization_error.dead_letter.topic == "broken"
    assert app.spec.kafka.config["check.crcs"] == "true"
    assert app.spec.kafka.secret_ref is not None
    assert app.spec.queries.access is not None
    assert app.spec.queries.access.token is not None
    assert app.spec.queries.access.token.secret_ref.key == "password"
    assert app.spec.queries.tls is not None
    assert app.spec.template.resources is not None
    assert app.spec.template.resources.limits["cpu"] == "2"
    assert app.spec.topology.steps[0].from_ == "orders"


def test_what_is_not_said_has_its_default() -> None:
    app = load_application(EXAMPLES / "first.yaml")
    spec = app.spec
    assert app.application_id == app.name == "first"
    assert (spec.replicas, spec.suspend, spec.restart_nonce) == (1, False, 0)
    assert (spec.internal_topics.setup, spec.internal_topics.replication_factor) == ("automatic", -1)
    assert spec.internal_topics.deletion_policy == "Retain"
    assert spec.processing.guarantee == "at_least_once"
    assert spec.processing.commit_interval == timedelta(milliseconds=100)
    assert spec.processing.max_batch_records == 500_000
    assert spec.processing.on_deserialization_error.action == "fail"
    assert spec.processing.on_uncaught_exception == "shutdownClient"
    assert spec.spark.master == "local[*]"
    assert spec.kafka.bootstrap_servers is None
    assert (spec.queries.access, spec.queries.tls) == (None, None)


@pytest.mark.parametrize("action", ["fail", "continue"])
def test_the_short_forms_of_on_deserialization_error_are_read(action: str) -> None:
    app = parse_application(FULL.replace("{deadLetter: {topic: broken}}", action))
    assert app.spec.processing.on_deserialization_error.action == action
    assert app.spec.processing.on_deserialization_error.dead_letter is None


def test_a_dumped_application_reads_back_equal() -> None:
    app = parse_application(FULL)
    assert parse_application(app.model_dump(mode="json")) == app


def test_models_cannot_be_changed() -> None:
    app = parse_application(FULL)
    with pytest.raises(ValidationError, match="frozen"):
        app.spec.replicas = 5  # type: ignore[misc]


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_every_example_is_valid(file: Path) -> None:
    assert load_application(file).spec.topology.sources


def test_the_first_application_has_ten_lines() -> None:
    assert len((EXAMPLES / "first.yaml").read_text().splitlines()) == 10


def _fields(model: type[BaseModel]) -> list[tuple[str, str | None]]:
    return [(f"{model.__name__}.{name}", field.description) for name, field in model.model_fields.items()]


def _models(model: type[Model] = Model) -> list[type[Model]]:
    return [each for sub in model.__subclasses__() for each in (sub, *_models(sub))]


def test_every_field_of_the_spec_says_what_it_means() -> None:
    # The envelope and its metadata are described by Kubernetes itself.
    described = [model for model in _models() if model.__name__ not in ("StreamsApplication", "MetadataSpec")]
    own = {"OnDeserializationError"}
    silent = [name for model in described if model.__name__ not in own for name, text in _fields(model) if not text]
    assert silent == []


def test_the_schema_for_the_api_server_can_be_made() -> None:
    schema = StreamsApplication.model_json_schema()
    definitions: dict[str, Any] = schema["$defs"]
    interval = definitions["ProcessingSpec"]["properties"]["commitInterval"]
    assert interval["type"] == "string"
    assert interval["default"] == "100ms"
    assert definitions["StepSpec"]["additionalProperties"] is False
    assert "from" in definitions["StepSpec"]["properties"]
