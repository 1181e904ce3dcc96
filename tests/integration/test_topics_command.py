"""`streamsapp topics` on a real broker: the users' topics of a file, made where they are missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from clients import make_topics
from typer.testing import CliRunner

from streams_runtime.cli.main import app as streamsapp
from streams_runtime.kafka.admin.kafka_admin import Admin

pytestmark = pytest.mark.integration

APPLICATION = """
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata: {{name: {name}}}
spec:
  kafka: {{bootstrapServers: "{address}"}}
  processing: {{onDeserializationError: {{deadLetter: {{topic: {name}-letters}}}}}}
  topology:
    sources:
      - name: orders
        topic: {name}-orders
        key: {{format: string}}
        value: {{format: json, schema: "amount BIGINT"}}
    steps:
      - {{name: totals, from: orders, aggregate: {{total: sum(amount)}}, store: totals}}
    sinks: [{{from: totals, topic: {name}-totals}}]
"""


@pytest.fixture
def file(admin: Admin, namespace: str, tmp_path: Path) -> Path:
    made = tmp_path / "app.yaml"
    made.write_text(APPLICATION.format(name=namespace, address=admin.address))
    return made


def topics(file: Path, *options: str) -> Result:
    return CliRunner().invoke(streamsapp, ["topics", str(file), *options])


def there(admin: Admin, namespace: str) -> dict[str, int]:
    names = [f"{namespace}-{each}" for each in ("orders", "totals", "letters", "totals-changelog")]
    return {name.removeprefix(f"{namespace}-"): count for name, count in admin.partition_counts(names).items()}


def test_missing_topics_are_made_as_wide_as_the_source_that_is_there_and_once(
    admin: Admin, namespace: str, file: Path
) -> None:
    make_topics(admin.address, **{f"{namespace}-orders": 3})
    first = topics(file)
    assert first.exit_code == 0, first.output
    assert first.stdout.splitlines() == [
        f"{namespace}-letters: sink, partitions: 3, made",
        f"{namespace}-orders: source, partitions: 3, exists",
        f"{namespace}-totals: sink, partitions: 3, made",
    ]
    assert there(admin, namespace) == {"orders": 3, "totals": 3, "letters": 3}, "internal topics are not made here"
    second = topics(file, "--output", "json")
    rows = json.loads(second.stdout)["topics"]
    assert [row["made"] for row in rows] == [False] * 3


def test_the_number_of_partitions_may_be_given(admin: Admin, namespace: str, file: Path) -> None:
    assert topics(file, "--partitions", "2").exit_code == 0
    assert there(admin, namespace) == {"orders": 2, "totals": 2, "letters": 2}


def test_a_dry_run_makes_nothing_and_says_what_would_be_made(admin: Admin, namespace: str, file: Path) -> None:
    said = topics(file, "--dry-run")
    assert said.exit_code == 0, said.output
    assert said.stdout.count("partitions: 4, would be made") == 3
    assert there(admin, namespace) == {}


def test_a_file_with_mistakes_and_one_that_needs_a_secret_are_refused(admin: Admin, namespace: str, file: Path) -> None:
    given = file.read_text()
    file.write_text(given.replace("sum(amount)", "sum(amounts)"))
    wrong = topics(file)
    assert wrong.exit_code == 1
    assert "amounts" in wrong.output
    file.write_text(given.replace("bootstrapServers:", "secretRef: {name: kafka}, bootstrapServers:"))
    secret = topics(file)
    assert secret.exit_code == 1
    assert "spec.kafka.secretRef: names the Secret kafka" in secret.output
    assert there(admin, namespace) == {}


def test_a_name_that_the_brokers_refuse_is_an_error(admin: Admin, namespace: str, file: Path) -> None:
    file.write_text(file.read_text().replace(f"{namespace}-totals", "t" * 250))
    said = topics(file)
    assert said.exit_code in (1, 2)
    assert "Traceback" not in said.output
    assert there(admin, namespace).keys() <= {"orders", "letters"}
