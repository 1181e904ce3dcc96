"""What Spark's Python workers load to read: each of them, at each start, and in memory of its own."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from streams_runtime.pipeline.kafka_scan import forget_archives

READING = {
    "batch",
    "errors",
    "kafka",
    "metrics.sampled",
    "pipeline.formats.json_read",
    "pipeline.kafka_scan",
    "pipeline.pushdown",
    "time_zones.arithmetic",
    "topology.nodes.window_kinds",
}


def test_a_worker_loads_what_reading_needs_and_nothing_of_plans_and_stores() -> None:
    script = "import sys, streams_runtime.pipeline.pushdown.scan_ranges\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {name.removeprefix("streams_runtime.") for name in done.stdout.split() if "streams_runtime." in name}
    packages = {"metrics", "pipeline", "pipeline.formats", "time_zones", "topology", "topology.nodes"}
    others = {name for name in loaded - packages if not any(f"{name}.".startswith(f"{each}.") for each in READING)}
    assert not others


def test_an_archive_whose_directory_was_forgotten_is_read_again_where_something_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "modules.zip"
    with ZipFile(archive, "w") as written:
        for name in ("zipped_one", "zipped_two"):
            written.writestr(f"{name}.py", f"NAME = {name!r}")
    monkeypatch.syspath_prepend(str(archive))
    found = [importlib.import_module("zipped_one").NAME]
    assert str(archive) in sys.path_importer_cache
    others = {path for path in sys.path_importer_cache if not path.endswith(".zip")}
    forget_archives()
    assert str(archive) not in sys.path_importer_cache
    assert others <= sys.path_importer_cache.keys()
    assert [*found, importlib.import_module("zipped_two").NAME] == ["zipped_one", "zipped_two"]


def test_what_a_start_needs_before_spark_loads_none_of_it() -> None:
    # One process for all: what is not there after the last import was not there after any.
    modules = ("pipeline.without_spark.early_runner", "client", "cli.process.instance")
    look = "print({name!r}, 'pyspark' in sys.modules, 'py4j' in sys.modules)"
    lines = [f"import streams_runtime.{name}\n{look.format(name=name)}" for name in modules]
    script = "\n".join(["import sys", *lines])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{name} False False" for name in modules]
