"""The topics of an application as one thing: addresses and client properties, before any broker is asked."""

from __future__ import annotations

import subprocess
import sys

import pytest

from streams_runtime.api import parse_application
from streams_runtime.errors import ConfigException, InvalidApplicationException
from streams_runtime.topics.application_topics import ApplicationTopics, InitOutcome, TopicsReport


def application(**kafka):
    return parse_application(
        {
            "apiVersion": "streamsoperator.io/v1alpha1",
            "kind": "StreamsApplication",
            "metadata": {"name": "orders"},
            "spec": {
                "kafka": kafka,
                "topology": {
                    "sources": [{"name": "in", "topic": "in", "value": {"format": "json", "schema": "n INT"}}],
                    "sinks": [{"from": "in", "topic": "out"}],
                },
            },
        }
    )


def test_an_application_without_an_address_is_refused_by_the_field():
    with pytest.raises(ConfigException, match=r"spec\.kafka\.bootstrapServers is missing.*orders"):
        ApplicationTopics(application())


def test_the_address_is_the_resource_s_unless_another_one_is_given():
    resource = application(bootstrapServers="kafka:9092")
    assert ApplicationTopics(resource).address == "kafka:9092"
    assert ApplicationTopics(resource, bootstrap_servers="here:1").address == "here:1"


def test_a_mistake_in_a_secret_is_told_by_its_key_and_without_its_value():
    secret = {"sasl.username": "ada", "sasl.password": "hunter22", "security.protocol": "hunter22"}
    with pytest.raises(InvalidApplicationException) as caught:
        ApplicationTopics(application(bootstrapServers="kafka:9092"), secret)
    assert "spec.kafka.secretRef (key security.protocol)" in str(caught.value)
    assert "hunter22" not in str(caught.value).lower()
    # A traceback must not show it either.
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_an_unknown_property_of_a_secret_is_told_without_its_value():
    with pytest.raises(InvalidApplicationException) as caught:
        ApplicationTopics(application(bootstrapServers="kafka:9092"), {"broker.address.family": "s3cret-value"})
    assert "spec.kafka.secretRef (key broker.address.family)" in str(caught.value)
    assert "s3cret-value" not in str(caught.value)


def test_an_init_that_made_nothing_was_already_set_up():
    assert InitOutcome((), ("a",), 3).result == "AlreadySetUp"
    assert InitOutcome(("a",), (), 3).result == "Created"


def test_a_report_is_ready_when_nothing_is_missing():
    assert TopicsReport(("a",), (), 3).ready
    assert not TopicsReport(("a",), ("b",), 3).ready


def test_the_operator_s_way_to_kafka_needs_nothing_of_the_runtime_s_heavy_libraries():
    heavy = "{'pyspark', 'pyarrow', 'numpy', 'rocksdict', 'fastapi', 'polars'}"
    code = f"import sys, streams_runtime.topics.application_topics; print({heavy} & set(sys.modules))"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.strip() == "set()"


def test_manual_set_up_is_accepted_with_and_without_an_init():
    resource = application(bootstrapServers="kafka:9092")
    document = resource.model_dump(exclude_none=True)
    for internal in ({"setup": "manual"}, {"setup": "manual", "init": {"nonce": 3}}):
        document["spec"]["internalTopics"] = internal
        assert parse_application(document).spec.internal_topics.setup == "manual"
