"""spec.kafka.config, as librdkafka and as Java are given it."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams_runtime.errors import ConfigException, InvalidApplicationException
from streams_runtime.kafka.client.client_properties import Value, client_properties, java_properties

BOOTSTRAP = "kafka:9092"
PEM_CERTIFICATE = "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n"
PEM_KEY = "-----BEGIN PRIVATE KEY-----\nMA==\n-----END PRIVATE KEY-----\n"
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


def mistakes_of(config: dict[str, Value]) -> dict[str, str]:
    with pytest.raises(InvalidApplicationException) as caught:
        client_properties(BOOTSTRAP, config)
    return {mistake.path: f"{mistake.found}; {mistake.remedy}" for mistake in caught.value.mistakes}


def test_both_clients_are_given_the_address() -> None:
    assert client_properties(BOOTSTRAP, {})["bootstrap.servers"] == BOOTSTRAP
    assert java_properties(BOOTSTRAP, {}) == {"bootstrap.servers": BOOTSTRAP, "allow.auto.create.topics": "false"}


def test_values_of_any_scalar_type_become_text() -> None:
    given = client_properties(BOOTSTRAP, {"linger.ms": 7, "socket.keepalive.enable": True})
    assert given["linger.ms"] == "7"
    assert given["socket.keepalive.enable"] == "true"


def test_java_is_given_what_both_clients_have_and_nothing_of_librdkafkas_own() -> None:
    config: dict[str, Value] = {"fetch.min.bytes": 10, "queue.buffering.max.messages": 1000}
    assert java_properties(BOOTSTRAP, config).items() - java_properties(BOOTSTRAP, {}).items() == {
        ("fetch.min.bytes", "10")
    }


@pytest.mark.parametrize(
    "name",
    [
        "bootstrap.servers",
        "client.id",
        "group.id",
        "group.instance.id",
        "group.protocol",
        "enable.auto.commit",
        "partitioner",
        "key.serializer",
        "value.deserializer",
        "transactional.id",
        "acks",
        "isolation.level",
        "error_cb",
        "plugin.library.paths",
    ],
)
def test_what_the_runtime_decides_is_refused_with_its_field(name: str) -> None:
    [(path, text)] = mistakes_of({name: "x"}).items()
    assert path.startswith("spec.kafka.config")
    assert name in path
    assert "decided by the runtime" in text


def test_an_unknown_property_is_refused_by_name() -> None:
    assert "No such configuration property" in mistakes_of({"foo": "1"})["spec.kafka.config.foo"]


def test_a_value_that_cannot_be_is_refused() -> None:
    assert "outside allowed range" in mistakes_of({"fetch.min.bytes": -3})['spec.kafka.config["fetch.min.bytes"]']


def test_all_mistakes_are_reported_at_once() -> None:
    found = mistakes_of({"foo": "1", "group.id": "x", "security.protocol": "nope"})
    assert len(found) == 3


@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
def test_a_login_written_for_librdkafka_becomes_a_login_module_for_java(name: str) -> None:
    config: dict[str, Value] = {
        "security.protocol": "SASL_PLAINTEXT",
        name: "PLAIN",
        "sasl.username": "alice",
        "sasl.password": 'p"w\\',
    }
    java = java_properties(BOOTSTRAP, config)
    assert java["sasl.mechanism"] == "PLAIN"
    assert java["sasl.jaas.config"] == f'{PLAIN_MODULE} required username="alice" password="p\\"w\\\\";'
    assert client_properties(BOOTSTRAP, config)["sasl.password"] == 'p"w\\'


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login_module_becomes_user_and_password_for_librdkafka(mechanism: str) -> None:
    config: dict[str, Value] = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{SCRAM_MODULE} required\n username="al ice"\n password="p\\"w";',
    }
    given = client_properties(BOOTSTRAP, config)
    assert (given["sasl.mechanisms"], given["sasl.username"]) == (mechanism, "al ice")
    assert given["sasl.password"] == 'p"w'
    assert "sasl.jaas.config" not in given


@pytest.mark.parametrize(
    "jaas",
    [
        f'{SCRAM_MODULE} required username="a" password="b";',
        f'{PLAIN_MODULE} required username="a" password="b"',
        f'{PLAIN_MODULE} required username="a";',
        f'{PLAIN_MODULE} required username="a" password="b" tokenauth="true";',
    ],
)
def test_a_login_module_that_does_not_fit_is_refused_without_showing_the_password(jaas: str) -> None:
    config: dict[str, Value] = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": jaas.replace('"b"', '"secret"'),
    }
    text = mistakes_of(config)['spec.kafka.config["sasl.jaas.config"]']
    assert "secret" not in text


def test_a_login_that_both_spellings_give_differently_is_refused() -> None:
    config: dict[str, Value] = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "bob",
        "sasl.password": "b",
        "sasl.jaas.config": f'{PLAIN_MODULE} required username="alice" password="b";',
    }
    assert "contradicts" in mistakes_of(config)['spec.kafka.config["sasl.jaas.config"]']


@pytest.mark.parametrize("mechanism", ["GSSAPI", "OAUTHBEARER", ""])
def test_mechanisms_that_are_not_there_yet_are_refused_with_those_that_are(mechanism: str) -> None:
    found = mistakes_of({"security.protocol": "SASL_SSL", "sasl.mechanism": mechanism})
    assert "SCRAM-SHA-512" in found['spec.kafka.config["sasl.mechanism"]']


def test_a_login_without_a_protocol_that_logs_in_is_refused() -> None:
    found = mistakes_of({"sasl.mechanism": "PLAIN", "sasl.username": "a", "sasl.password": "secret"})
    assert len(found) == 3
    assert all("has no effect" in text and "secret" not in text for text in found.values())


@pytest.mark.parametrize("name", ["ssl.ca.location", "ssl.truststore.location"])
def test_a_trusted_certificate_is_known_by_either_name(name: str, tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text(PEM_CERTIFICATE)
    java = java_properties(BOOTSTRAP, {name: str(file)})
    assert java["ssl.truststore.location"] == str(file)
    assert java["ssl.truststore.type"] == "PEM"
    assert client_properties(BOOTSTRAP, {name: str(file)})["ssl.ca.location"] == str(file)


def test_certificate_and_key_files_are_given_to_java_as_texts(tmp_path: Path) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    certificate.write_text(PEM_CERTIFICATE)
    key.write_text(PEM_KEY)
    config: dict[str, Value] = {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
    java = java_properties(BOOTSTRAP, config)
    assert java["ssl.keystore.type"] == "PEM"
    assert java["ssl.keystore.certificate.chain"] == PEM_CERTIFICATE
    assert java["ssl.keystore.key"] == PEM_KEY


def test_one_pem_keystore_serves_librdkafka_as_certificate_and_as_key(tmp_path: Path) -> None:
    store = tmp_path / "both.pem"
    store.write_text(PEM_CERTIFICATE + PEM_KEY)
    config: dict[str, Value] = {"ssl.keystore.location": str(store), "ssl.keystore.type": "PEM"}
    given = client_properties(BOOTSTRAP, config)
    assert given["ssl.certificate.location"] == given["ssl.key.location"] == str(store)
    assert java_properties(BOOTSTRAP, config)["ssl.keystore.location"] == str(store)


def test_a_traditional_key_is_refused_for_java_with_the_command_that_converts_it(tmp_path: Path) -> None:
    certificate, key = tmp_path / "c.pem", tmp_path / "k.pem"
    certificate.write_text(PEM_CERTIFICATE)
    key.write_text(PEM_KEY.replace("PRIVATE", "RSA PRIVATE"))
    config: dict[str, Value] = {"ssl.certificate.location": str(certificate), "ssl.key.location": str(key)}
    with pytest.raises(ConfigException, match="openssl pkcs8 -topk8"):
        java_properties(BOOTSTRAP, config)


def test_a_certificate_file_that_is_not_there_is_named() -> None:
    config: dict[str, Value] = {"ssl.certificate.location": "/no/c.pem", "ssl.key.location": "/no/k.pem"}
    with pytest.raises(ConfigException, match=r"ssl\.certificate\.location.*/no/c\.pem.*No such file"):
        java_properties(BOOTSTRAP, config)


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"ssl.truststore.location": "/t.jks", "ssl.truststore.type": "JKS"}, "ssl.truststore.type"),
        ({"ssl.keystore.location": "/k.jks"}, "ssl.keystore.type"),
        ({"ssl.key.location": "/k.pem"}, "ssl.key.location"),
        ({"ssl.endpoint.identification.algorithm": "maybe"}, "ssl.endpoint.identification.algorithm"),
        ({"sasl.kerberos.service.name": "kafka"}, "sasl.kerberos.service.name"),
        ({"enable.ssl.certificate.verification": False}, "enable.ssl.certificate.verification"),
    ],
)
def test_security_settings_that_both_clients_cannot_have_are_refused(config: dict[str, Value], field: str) -> None:
    assert f'spec.kafka.config["{field}"]' in mistakes_of(config)


def test_host_names_are_not_checked_when_either_spelling_says_so() -> None:
    for value in ("", "none"):
        config: dict[str, Value] = {"ssl.endpoint.identification.algorithm": value}
        assert client_properties(BOOTSTRAP, config)["ssl.endpoint.identification.algorithm"] == "none"
        assert java_properties(BOOTSTRAP, config)["ssl.endpoint.identification.algorithm"] == ""


def test_under_exactly_once_both_clients_read_committed_records_only() -> None:
    for properties in (client_properties, java_properties):
        assert "isolation.level" not in properties(BOOTSTRAP, {})
        assert properties(BOOTSTRAP, {}, exactly_once=True)["isolation.level"] == "read_committed"
