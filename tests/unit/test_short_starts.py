"""What a start does not load: libraries that its work does not need. Holds on any machine, unlike a start's seconds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import typer

from streams_runtime.cli.cluster import plugin
from streams_runtime.cli.common.loaded_verbs import Verb
from streams_runtime.cli.main import VERBS, app

ROOT = Path(__file__).parents[2]
HEAVY = frozenset(
    {
        "confluent_kafka",
        "fastapi",
        "fastavro",
        "grpc",
        "grpc_tools",
        "httpx",
        "kubernetes",
        "numpy",
        "opentelemetry",
        "pandas",
        "polars",
        "pyarrow",
        "pyspark",
        "rocksdict",
        "structlog",
        "uvicorn",
    }
)
MODELS = frozenset({"pydantic", "sqlglot", "yaml"})
"""What reads a resource: half a second of a processor's time."""
MISTAKEN = """\
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata: {name: orders}
spec:
  topology:
    sources: [{name: orders, topik: orders}]
"""


def loaded(*lines: str, asked: frozenset[str] = HEAVY | MODELS) -> frozenset[str]:
    """Which of these a fresh process has loaded after these lines of Python."""
    found = f"[each for each in {sorted(asked)} if sys.modules.get(each)]"
    last = f"import json, sys; print(json.dumps({found}), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", "\n".join([*lines, last])], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return frozenset(json.loads(done.stderr.splitlines()[-1]))


def command(program: str, *words: str) -> tuple[str, ...]:
    """Lines that call the command line, whatever it ends with."""
    return (f"from {program} import app", "try:", f"    app({list(words)})", "except SystemExit: pass")


@pytest.mark.parametrize("program", ["streams_runtime.cli.main", "streams_runtime.cli.cluster.plugin"])
@pytest.mark.parametrize("words", [["--help"], ["no-such-verb"]])
def test_the_list_of_verbs_loads_none_of_them(program: str, words: list[str]) -> None:
    # Typer takes pydantic to refuse a word.
    assert loaded(*command(program, *words)) <= ({"pydantic"} if words == ["no-such-verb"] else set())


@pytest.mark.parametrize("verbs", [VERBS, plugin.VERBS], ids=["streamsapp", "kubectl"])
def test_the_list_of_verbs_says_what_each_says_of_itself(verbs: Mapping[str, Verb]) -> None:
    own = {name: verb.load(name).help for name, verb in verbs.items()}
    assert {name: " ".join(text.split("\n\n")[0].split()) for name, text in own.items()} == {
        name: verb.help for name, verb in verbs.items()
    }


def test_a_verb_is_found_by_its_name_and_no_other() -> None:
    group = typer.main.get_command(app)
    context = typer.Context(group)
    assert group.list_commands(context) == list(VERBS)
    assert group.get_command(context, "validate").name == "validate"
    assert group.get_command(context, "validated") is None


def test_mistakes_are_found_without_spark_and_kafka(tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text(MISTAKEN)
    assert loaded(*command("streams_runtime.cli.main", "validate", str(tmp_path / "orders.yaml"))) == MODELS


@pytest.mark.parametrize("verb", ["build", "topology"])
def test_a_file_is_shown_without_spark_and_kafka(verb: str) -> None:
    assert loaded(*command("streams_runtime.cli.main", verb, "examples/flights.yaml")) == MODELS


def test_a_query_loads_no_more_than_the_client_that_asks() -> None:
    asked = ["query", "totals", "get", "ada", "--url", "http://127.0.0.1:9", "--timeout", "0"]
    assert loaded(*command("streams_runtime.cli.main", *asked)) & HEAVY == {"httpx"}


def test_what_starts_instances_loads_none_of_what_they_run() -> None:
    assert loaded("import streams_runtime.cli.run") & HEAVY <= {"confluent_kafka", "httpx"}


def test_a_client_is_loaded_without_what_it_does_not_need() -> None:
    light = "import streams_runtime.cli.process.light_libraries"
    # One process for both: what is not there after the second was not there after the first.
    programs = [f"import streams_runtime.cli.process.{each}" for each in ("instance", "pod_lifecycle")]
    spark = {"py4j", "pyspark"}
    unwanted = (
        frozenset({"fastavro", "grpc", "grpc_tools", "kubernetes", "opentelemetry.sdk", "pandas", "rich"}) | spark
    )
    assert loaded(light, *programs, asked=unwanted) == set()


def test_a_pod_hears_signals_before_it_loads_what_it_runs() -> None:
    assert loaded("import streams_runtime.cli.process.pod") == set()


def test_an_operator_loads_nothing_of_what_pods_run() -> None:
    asked = HEAVY | {"rich"}
    found = loaded("import streams_operator.__main__", asked=asked)
    assert found == {"confluent_kafka", "kubernetes", "structlog"}


def test_an_array_of_a_list_needs_no_pandas() -> None:
    lines = ("import streams_runtime.cli.process.light_libraries", "import pyarrow as pa, pyarrow.acero")
    assert loaded(*lines, "pa.array([1])", "pa.scalar('text')", "pa.table({'a': [1]})") & {"pandas"} == set()


def test_pandas_that_comes_later_is_known_to_pyarrow() -> None:
    lines = (
        "import streams_runtime.cli.process.light_libraries",
        "import pyarrow as pa, pandas as pd",
        # Without its types a Series is a list of floats, and NaN one of them.
        "assert pa.array(pd.Series([1.0, float('nan')])).null_count == 1",
        "assert pa.table({'a': [1]}).to_pandas().shape == (1, 1)",
    )
    assert "pandas" in loaded(*lines)


def test_pandas_that_was_there_before_stays_known_to_pyarrow() -> None:
    lines = ("import pandas as pd", "import streams_runtime.cli.process.light_libraries", "import pyarrow as pa")
    assert "pandas" in loaded(*lines, "assert pa.array(pd.Series([1.0, float('nan')])).null_count == 1")


def test_pandas_is_known_to_pyarrow_when_only_its_second_import_succeeds(tmp_path: Path) -> None:
    (tmp_path / "pandas.py").write_text("raise ImportError('half installed')")
    lines = (
        "import sys, streams_runtime.cli.process.light_libraries",
        f"sys.path.insert(0, {str(tmp_path)!r})",
        "try: import pandas",
        "except ImportError as error: assert str(error) == 'half installed', error",
        "del sys.path[0]",
        "import pyarrow as pa, pandas as pd",
        "assert pa.array(pd.Series([1.0, float('nan')])).null_count == 1",
    )
    assert "pandas" in loaded(*lines)
