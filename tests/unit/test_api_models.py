"""What a StreamsApplication says, and what it means where it says nothing."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from full_application import FULL
from pydantic import BaseModel, ValidationError

from streams_runtime.api import StreamsApplication, load_application, parse_application
from streams_runtime.api.spec.spec_model import Model

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_everything_that_the_resource_may_say_is_read() -> None:
    app = parse_application(FULL)
    assert app.name == "orders"
    assert app.application_id == "orders_v2"
    assert app.spec.processing.commit_interval == timedelta(seconds=90)
    assert app.spec.processing.poll_duration == timedelta(milliseconds=250)
    assert app.spec.processing.metrics_recording_level == "DEBUG"
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
    assert spec.processing.poll_duration == timedelta(milliseconds=100), "Kafka Streams' poll.ms"
    assert spec.processing.max_batch_records is None
    assert spec.processing.metrics_recording_level == "INFO"
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
    own = {"OnRecordError"}
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
