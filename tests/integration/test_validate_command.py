"""`streamsapp validate` and `streamsapp topology` as a user calls them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from streams_runtime.cli.topology.topology_command import topology
from streams_runtime.cli.validate import validate
from streams_runtime.errors import EnvironmentException

pytestmark = [pytest.mark.integration, pytest.mark.spark]

EXAMPLES = Path(__file__).parents[2] / "examples"

INVALID = """\
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata: {name: first}
spec:
  kafka: {config: {group.id: mine, linger.mss: 5}}
  state: {rocksdb: {max_open_files: 5}}
  topology:
    sources:
      - {name: orders, topic: orders, key: {format: string}, value: {format: json, schema: "amount DOUBLE"}}
    steps:
      - {name: big, from: orders, where: "amount > > 5"}
      - {name: totals, from: big, aggregate: {total: sum(amuont)}, store: totals}
"""

app = typer.Typer()
app.command()(validate)
app.command()(topology)
runner = CliRunner()


WITH_CLASS = """\
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata: {name: custom}
spec:
  topology:
    sources:
      - {name: orders, topic: orders, key: {format: string}, value: {format: json, schema: "amount DOUBLE"}}
    steps:
      - {name: spread, from: orders, aggregate: {s: "python('beside_custom:Spraed', amount)"}, store: spread}
"""


@pytest.fixture
def invalid(tmp_path: Path) -> Path:
    file = tmp_path / "invalid.yaml"
    file.write_text(INVALID)
    return file


def test_a_valid_file_ends_with_0_and_a_summary() -> None:
    result = runner.invoke(app, ["validate", str(EXAMPLES / "flights.yaml")])
    assert result.exit_code == 0, result.output
    assert "flights is valid" in result.stdout
    assert "by-carrier, by-origin" in result.stdout


def test_every_checks_mistakes_come_together_in_the_order_of_the_file(invalid: Path) -> None:
    result = runner.invoke(app, ["validate", str(invalid), "--output", "json"])
    assert result.exit_code == 1
    mistakes = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(set(mistake) == {"path", "found", "remedy"} for mistake in mistakes)
    assert [mistake["path"] for mistake in mistakes] == [
        'spec.kafka.config["group.id"]',
        'spec.kafka.config["linger.mss"]',
        "spec.state.rocksdb.max_open_files",
        "spec.topology.steps[0].where",
        "spec.topology.steps[1].aggregate.total",
    ]


def test_a_class_beside_the_file_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    methods = "    def zero(self): ...\n    def add(self, state, records): ...\n"
    (tmp_path / "beside_custom.py").write_text(f"class Spread:\n    state_type = 'DOUBLE'\n{methods}")
    file = tmp_path / "custom.yaml"
    file.write_text(WITH_CLASS)
    result = runner.invoke(app, ["validate", str(file)])
    assert result.exit_code == 1
    assert result.stdout.startswith("spec.topology.steps[0].aggregate.s: 'beside_custom:Spraed': beside_custom has no")
    assert result.stdout.endswith("; did you mean 'Spread'?\n")
    file.write_text(WITH_CLASS.replace("Spraed", "Spread"))
    assert "custom is valid" in runner.invoke(app, ["validate", str(file)]).stdout
    # Where the class is not needed it is not looked for.
    file.write_text(WITH_CLASS)
    assert runner.invoke(app, ["topology", str(file)]).exit_code == 0


def test_text_has_one_mistake_a_line(invalid: Path) -> None:
    result = runner.invoke(app, ["validate", str(invalid)])
    assert result.exit_code == 1
    assert len(result.stdout.splitlines()) == 5
    assert "spec.topology.steps[1].aggregate.total: " in result.stdout
    assert "did you mean 'amount'?" in result.stdout


def test_without_spark_only_what_spark_alone_knows_is_missed(invalid: Path) -> None:
    result = runner.invoke(app, ["validate", str(invalid), "--no-spark"])
    assert result.exit_code == 1
    assert "steps[0].where" not in result.stdout
    assert "steps[1].aggregate.total" in result.stdout


def test_without_spark_functions_that_nobody_has_are_named_and_ones_own_are_not(invalid: Path) -> None:
    own = 'functions: {shortened: {python: "builtins:str", returns: STRING}}\n    steps:'
    text = INVALID.replace("steps:", own).replace("amount > > 5", "uper(shortened(amount)) = Upper('a')")
    invalid.write_text(text)
    result = runner.invoke(app, ["validate", str(invalid), "--no-spark"])
    (line,) = (each for each in result.stdout.splitlines() if "steps[0]" in each)
    assert line == "spec.topology.steps[0].where: Spark has no function 'uper'; did you mean 'upper'?"
    invalid.write_text(text.replace("shortened", "user"))
    result = runner.invoke(app, ["validate", str(invalid), "--no-spark"])
    assert "spec.topology.functions.user: Spark has a function user; give it another name" in result.stdout


def test_without_java_the_other_mistakes_are_still_listed(invalid: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> Path:
        raise EnvironmentException("no Java was found. Install one")

    monkeypatch.setattr("streams_runtime.pipeline.spark.parsed_expressions.find_java", no_java)
    result = runner.invoke(app, ["validate", str(invalid)])
    assert result.exit_code == 2
    assert "steps[1].aggregate.total" in result.stdout
    assert "Install one" in result.stderr


@pytest.mark.parametrize("command", ["validate", "topology"])
def test_a_file_that_is_not_there_ends_with_2_and_no_trace(command: str, tmp_path: Path) -> None:
    result = runner.invoke(app, [command, str(tmp_path / "nowhere.yaml")])
    assert result.exit_code == 2
    assert "there is no file" in result.stderr
    assert "Traceback" not in result.output
    result = runner.invoke(app, [command, str(tmp_path / "nowhere.yaml"), "--output", "json"])
    assert json.loads(result.stdout)["error"] == "ConfigException"


@pytest.mark.parametrize("command", ["validate", "topology"])
def test_wrong_usage_ends_with_2(command: str) -> None:
    assert runner.invoke(app, [command]).exit_code == 2
    assert runner.invoke(app, [command, "x", "--output", "xml"]).exit_code == 2


def test_a_topology_is_shown_in_three_forms() -> None:
    file = str(EXAMPLES / "flights.yaml")
    assert "Sub-topology: 1" in runner.invoke(app, ["topology", file]).stdout
    assert runner.invoke(app, ["topology", file, "--output", "mermaid"]).stdout.startswith("flowchart LR")
    (line,) = runner.invoke(app, ["topology", file, "--output", "json"]).stdout.splitlines()
    assert json.loads(line)["applicationId"] == "flights"


def test_an_invalid_file_has_mistakes_and_no_drawing(invalid: Path) -> None:
    result = runner.invoke(app, ["topology", str(invalid)])
    assert result.exit_code == 1
    assert "spec.state.rocksdb.max_open_files: no such field" in result.stdout
    assert "Sub-topology" not in result.stdout


def test_an_aggregate_by_an_order_that_its_records_lack_is_a_mistake_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "flat.yaml"
    file.write_text("""\
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata: {name: flat}
spec:
  topology:
    sources:
      - {name: orders, topic: orders, key: {format: string}, value: {format: json, schema: "items ARRAY<INT>"}}
    steps:
      - {name: each, from: orders, flatMap: {explode: items, as: item}}
      - {name: newest, from: each, aggregate: {item: last(item)}, store: newest}
""")
    result = runner.invoke(app, ["validate", str(file), "--no-spark"])
    assert result.exit_code == 1
    assert result.stdout.startswith("spec.topology.steps[1].aggregate.item: last of the records of a flatMap")
