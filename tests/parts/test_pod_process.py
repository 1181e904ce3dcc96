"""The pod's process, where it needs no broker: what it reads, how it ends, what it says last."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from pod_status_server import pod_status_server

from streams_runtime.cli.process.client_process import EXIT_LATE, exit_code
from streams_runtime.cli.process.pod import identify_pod
from streams_runtime.cli.process.termination import TERMINATION_BYTES, termination_message
from streams_runtime.errors import ConfigException, InvalidApplicationException, Mistake
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kubernetes.mounted import (
    read_mounted_application,
    read_registry_properties,
    read_secret_properties,
    with_secret,
    without_secrets,
)
from streams_runtime.states import EXIT_ERROR, EXIT_NOT_RUNNING, EXIT_UNUSABLE, ClientState

POD = {"POD_NAME": "orders-0", "POD_NAMESPACE": "shop", "STREAMSAPP_SERVICE": "orders"}


def document(**kafka: Any) -> dict[str, Any]:
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": {
            "kafka": kafka,
            "topology": {
                "sources": [{"name": "in", "topic": "in", "value": {"format": "string"}}],
                "sinks": [{"from": "in", "topic": "out"}],
            },
        },
    }


def mount(folder: Path, content: Mapping[str, Any], compressed: bool = False) -> Path:
    folder.mkdir(exist_ok=True)
    data = orjson.dumps(content)
    if compressed:
        (folder / "application.json.gz").write_bytes(gzip.compress(data))
    else:
        (folder / "application.json").write_bytes(data)
    return folder


# --- what is mounted


@pytest.mark.parametrize("compressed", [False, True])
def test_the_mounted_application_is_read_plain_and_compressed(compressed: bool, tmp_path: Path) -> None:
    application = read_mounted_application(mount(tmp_path, document(bootstrapServers="kafka:9092"), compressed))
    assert (application.name, application.spec.kafka.bootstrap_servers) == ("orders", "kafka:9092")


def test_an_application_without_brokers_is_refused_by_the_field(tmp_path: Path) -> None:
    with pytest.raises(InvalidApplicationException, match=r"^spec\.kafka\.bootstrapServers: is missing"):
        read_mounted_application(mount(tmp_path, document()))


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (None, b"", "neither"),
        ("application.json", b"{", "is not JSON"),
        ("application.json", b"[1]", "no StreamsApplication"),
        ("application.json.gz", b"plain", "can't be read"),
        ("application.json.gz", gzip.compress(b"{}" * 100, mtime=0)[:20], "can't be read"),
    ],
)
def test_a_file_that_can_not_be_used_is_named(name: str | None, content: bytes, words: str, tmp_path: Path) -> None:
    if name is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigException, match=words) as caught:
        read_mounted_application(tmp_path)
    assert str(tmp_path / (name or "application.json")) in str(caught.value)


def test_secret_properties_are_files_as_kubernetes_mounts_them(tmp_path: Path) -> None:
    version = tmp_path / "..2026_11_21"
    version.mkdir()
    (version / "sasl.username").write_text("ada")
    (version / "sasl.password").write_text(" s3cret \n")
    (tmp_path / "..data").symlink_to(version.name)
    for name in ("sasl.username", "sasl.password"):
        (tmp_path / name).symlink_to(Path("..data") / name)
    assert read_secret_properties(tmp_path) == {"sasl.username": "ada", "sasl.password": " s3cret "}
    assert read_secret_properties(tmp_path / "absent") == {}


def test_certificates_of_the_schema_registry_stay_files_and_its_other_properties_are_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "basic.auth.user.info").write_text("ada:s3cret\n")
    (secret / "ssl.ca.pem").write_text("PEM")
    found = read_registry_properties(secret)
    assert found == {"basic.auth.user.info": "ada:s3cret", "ssl.ca.location": str(secret / "ssl.ca.pem")}
    registry = {"url": "https://r:8081", "config": {"proxy": "http://p:1"}}
    told = document(bootstrapServers="k:1", schemaRegistry=registry)
    given = read_mounted_application(mount(tmp_path, told))
    merged = with_secret(given, {}, found).spec.kafka.schema_registry
    assert merged is not None
    assert merged.config == {"proxy": "http://p:1", **found}
    (secret / "sasl.password").write_text("hidden")
    with pytest.raises(ConfigException, match=r"schemaRegistry\.secretRef, key sasl\.password"):
        read_registry_properties(secret)


def test_a_secret_that_is_not_text_is_named_without_its_content(tmp_path: Path) -> None:
    (tmp_path / "sasl.password").write_bytes(b"\xff\xfehidden")
    with pytest.raises(ConfigException, match=r"sasl\.password") as caught:
        read_secret_properties(tmp_path)
    assert "hidden" not in str(caught.value)


def test_secret_properties_win_over_those_of_the_resource(tmp_path: Path) -> None:
    given = document(bootstrapServers="kafka:9092", config={"sasl.username": "bob", "client.rack": "r1"})
    application = read_mounted_application(mount(tmp_path, given))
    merged = with_secret(application, {"sasl.username": "ada", "sasl.password": "x"})
    assert merged.spec.kafka.config == {"sasl.username": "ada", "client.rack": "r1", "sasl.password": "x"}
    assert application.spec.kafka.config == {"sasl.username": "bob", "client.rack": "r1"}


@pytest.mark.parametrize(
    ("secret", "place"),
    [
        ({"security.protocol": "hush-hush"}, "spec.kafka.secretRef, key security.protocol"),
        ({"no.such.property": "hush-hush"}, "spec.kafka.secretRef, key no.such.property"),
        ({"ssl.key.pem": "hush-hush\nhush"}, "spec.kafka"),
    ],
)
def test_a_mistake_in_a_secret_names_its_key_and_never_its_value(secret: dict[str, str], place: str) -> None:
    with pytest.raises(InvalidApplicationException) as caught:
        client_properties("kafka:9092", secret)
    told = str(without_secrets(caught.value, secret))
    assert place in told
    assert "hush" not in told


def test_mistakes_elsewhere_stay_as_they_are() -> None:
    other = Mistake("spec.topology.sources", "found hush", "give one")
    assert without_secrets(InvalidApplicationException([other]), {"sasl.password": "hush"}).mistakes == (other,)


# --- who it is, how it ends


def test_a_pod_is_reached_by_its_name_in_the_headless_service() -> None:
    identity, advertised = identify_pod({**POD, "POD_UID": "u"}, "0.0.0.0:8080")
    assert (identity.name, identity.namespace, identity.uid) == ("orders-0", "shop", "u")
    assert advertised == "orders-0.orders.shop.svc:8080"


def test_what_is_missing_in_the_environment_is_named() -> None:
    with pytest.raises(ConfigException, match="POD_NAMESPACE, STREAMSAPP_SERVICE not set"):
        identify_pod({"POD_NAME": "orders-0"}, "0.0.0.0:8080")
    with pytest.raises(ConfigException, match="no port"):
        identify_pod(POD, "0.0.0.0")


@pytest.mark.parametrize("state", list(ClientState))
def test_only_an_orderly_end_and_an_error_are_no_crash(state: ClientState) -> None:
    expected = {
        ClientState.NOT_RUNNING: EXIT_NOT_RUNNING,
        ClientState.ERROR: EXIT_ERROR,
        ClientState.PENDING_ERROR: EXIT_ERROR,
    }
    assert exit_code(state) == expected.get(state, EXIT_LATE)
    assert EXIT_LATE not in (EXIT_NOT_RUNNING, EXIT_ERROR, EXIT_UNUSABLE)


@pytest.mark.parametrize("text", ["x" * 100_000, "ü" * 100_000, '"\n' * 100_000, "short"])
def test_a_termination_message_is_json_of_at_most_what_kubernetes_keeps(text: str) -> None:
    message = termination_message({"state": "ERROR", "class": "E", "message": text}, "and a note")
    assert len(message) <= TERMINATION_BYTES
    said = json.loads(message)
    assert (said["state"], said["class"]) == ("ERROR", "E")
    assert said["message"].startswith(text[:500])
    assert set(said) == {"state", "class", "message"}


# --- the process


def run(folder: Path, api: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    account = folder / "account"
    account.mkdir(exist_ok=True)
    (account / "token").write_text("t")
    termination = folder / "termination-log"
    termination.touch()
    return subprocess.run(
        [
            *(sys.executable, "-m", "streams_runtime.cli.process.pod", "--application", str(folder / "application")),
            *("--secret", str(folder / "secret"), "--state-dir", str(folder / "state")),
            *("--termination-file", str(termination), "--service-account", str(account), "--api-server", api),
            *("--code", str(folder / "code"), "--listen", "127.0.0.1:0"),
        ],
        env={**os.environ, **(POD if environment is None else environment)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_an_application_that_can_not_be_used_ends_with_64_and_says_why_everywhere(tmp_path: Path) -> None:
    mount(tmp_path / "application", document())
    with pod_status_server() as server:
        ended = run(tmp_path, server.url)
    assert ended.returncode == EXIT_UNUSABLE, ended
    said = json.loads((tmp_path / "termination-log").read_bytes())
    assert (said["state"], said["class"]) == ("NOT_STARTED", "InvalidApplicationException")
    assert said["message"].startswith("spec.kafka.bootstrapServers: is missing")
    [patch] = server.patches
    assert set(patch.conditions) == {"Restartable"}
    assert patch.conditions["Restartable"]["status"] == "False"
    assert patch.conditions["Restartable"]["message"] == said["message"]
    assert [json.loads(line)["level"] for line in ended.stdout.splitlines()] == ["error"]
    assert ended.stderr == ""


def test_a_secret_property_that_can_not_be_used_ends_with_64_and_stays_secret(tmp_path: Path) -> None:
    mount(tmp_path / "application", document(bootstrapServers="127.0.0.1:1"))
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "security.protocol").write_text("hush-hush\n")
    with pod_status_server() as server:
        ended = run(tmp_path, server.url)
    assert ended.returncode == EXIT_UNUSABLE, ended
    last = (tmp_path / "termination-log").read_text()
    assert "spec.kafka.secretRef, key security.protocol" in last
    assert "hush" not in last + ended.stdout + ended.stderr + str(server.patches)


@pytest.mark.parametrize("where", ["image", "code"])
def test_code_that_makes_another_topology_than_the_resource_has_ends_with_64(where: str, tmp_path: Path) -> None:
    (tmp_path / where).mkdir()
    code = "from streams_runtime.builder import StreamsBuilder\n\ndef build():\n    builder = StreamsBuilder()\n"
    code += '    builder.stream("in", value="string").to("elsewhere")\n    return builder\n'
    (tmp_path / where / "shop.py").write_text(code)
    given = document(bootstrapServers="127.0.0.1:1")
    given["spec"]["topology"]["python"] = "shop:build"
    if where == "code":
        given["spec"]["code"] = {"configMap": "code-1"}
    mount(tmp_path / "application", given)
    path = f"{tmp_path / 'image'}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    with pod_status_server() as server:
        ended = run(tmp_path, server.url, {**POD, "PYTHONPATH": path})
    assert ended.returncode == EXIT_UNUSABLE, ended
    said = json.loads((tmp_path / "termination-log").read_bytes())
    assert said["message"].startswith(
        "spec.topology.python: 'shop:build' makes another topology than the one that stands"
    )
    assert "it has no sink 'in → out'; its sink 'in → elsewhere' does not stand here" in said["message"]


def test_outside_of_a_pod_it_says_what_to_run_instead(tmp_path: Path) -> None:
    ended = run(tmp_path, "http://127.0.0.1:1", {"POD_NAME": "", "POD_NAMESPACE": ""})
    assert ended.returncode == EXIT_UNUSABLE, ended
    assert "POD_NAME, POD_NAMESPACE, STREAMSAPP_SERVICE not set" in ended.stdout
