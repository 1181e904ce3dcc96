"""What a start does not load: libraries that its work does not need. Holds on any machine, unlike a start's seconds."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
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
        "jsonschema_rs",
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


@functools.cache
def loaded(*steps: tuple[str, ...], asked: frozenset[str] = HEAVY | MODELS) -> Sequence[frozenset[str]]:
    """Which of these a fresh process has loaded after each step, which is lines of Python.

    A process a scene, and not a step: what is not there after the last step was not there after any.
    """
    note = f"found.append([each for each in {sorted(asked)} if sys.modules.get(each)])"
    lines = [line for step in steps for line in (*step, note)]
    script = "\n".join(["import json, sys", "found = []", *lines, "print(json.dumps(found), file=sys.stderr)"])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    return [frozenset(each) for each in json.loads(done.stderr.splitlines()[-1])]


def command(program: str, *words: str) -> tuple[str, ...]:
    """Lines that call the command line, whatever it ends with."""
    return (f"from {program} import app", "try:", f"    app({list(words)})", "except SystemExit: pass")


@pytest.mark.parametrize("program", ["streams_runtime.cli.main", "streams_runtime.cli.cluster.plugin"])
def test_the_list_of_verbs_loads_none_of_them(program: str) -> None:
    shown, refused = loaded(command(program, "--help"), command(program, "no-such-verb"))
    assert shown == set()
    # Typer takes pydantic to refuse a word.
    assert refused <= {"pydantic"}


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


def test_mistakes_are_found_and_files_shown_without_spark_and_kafka(tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text(MISTAKEN)
    mistaken = command("streams_runtime.cli.main", "validate", str(tmp_path / "orders.yaml"))
    shown = [command("streams_runtime.cli.main", verb, "examples/flights.yaml") for verb in ("build", "topology")]
    assert loaded(mistaken, *shown) == [MODELS, MODELS, MODELS]


ASKING = ("query", "totals", "get", "ada", "--url", "http://127.0.0.1:9", "--timeout", "0")
COMMANDS = (command("streams_runtime.cli.main", *ASKING), ("import streams_runtime.cli.run",))


def test_a_query_loads_no_more_than_the_client_that_asks() -> None:
    assert loaded(*COMMANDS)[0] & HEAVY == {"httpx"}


def test_what_starts_instances_loads_none_of_what_they_run() -> None:
    assert loaded(*COMMANDS)[1] & HEAVY <= {"confluent_kafka", "httpx"}


UNWANTED = frozenset(
    {"fastavro", "grpc", "grpc_tools", "kubernetes", "opentelemetry.sdk", "pandas", "py4j", "pyspark", "rich"}
)
# What a pod's process goes through: it hears signals, it loads the client, and a user's function may load pandas.
POD = (
    ("import streams_runtime.cli.process.pod",),
    (
        "import streams_runtime.cli.process.light_libraries",
        *(f"import streams_runtime.cli.process.{each}" for each in ("instance", "pod_lifecycle")),
    ),
    ("import pyarrow as pa, pyarrow.acero", "pa.array([1])", "pa.scalar('text')", "pa.table({'a': [1]})"),
    (
        "import pandas as pd",
        # Without its types a Series is a list of floats, and NaN one of them.
        "assert pa.array(pd.Series([1.0, float('nan')])).null_count == 1",
        "assert pa.table({'a': [1]}).to_pandas().shape == (1, 1)",
    ),
)


def in_a_pod() -> Sequence[frozenset[str]]:
    return loaded(*POD, asked=HEAVY | MODELS | UNWANTED)


def test_a_pod_hears_signals_before_it_loads_what_it_runs() -> None:
    assert in_a_pod()[0] == set()


def test_a_client_is_loaded_without_what_it_does_not_need() -> None:
    assert in_a_pod()[1] & UNWANTED == set()


def test_an_array_of_a_list_needs_no_pandas() -> None:
    assert "pandas" not in in_a_pod()[2]


def test_pandas_that_comes_later_is_known_to_pyarrow() -> None:
    assert "pandas" in in_a_pod()[3]


def test_an_operator_loads_nothing_of_what_pods_run() -> None:
    asked = HEAVY | {"rich"}
    (found,) = loaded(("import streams_operator.__main__",), asked=asked)
    assert found == {"confluent_kafka", "kubernetes", "structlog"}


def test_pandas_that_was_there_before_stays_known_to_pyarrow() -> None:
    lines = ("import pandas as pd", "import streams_runtime.cli.process.light_libraries", "import pyarrow as pa")
    last = "assert pa.array(pd.Series([1.0, float('nan')])).null_count == 1"
    assert "pandas" in loaded((*lines, last))[0]


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
    assert "pandas" in loaded(lines)[0]
