"""Claims about Flink SQL as a contestant: what its job is told, and what it does not take part in."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pytest
from bench_declared import Contestant, load_contestants
from bench_flink import SOURCE, FlinkSql
from bench_peer_build import PeerBuild
from bench_runs import Place
from bench_side import Launch
from bench_versions import versions

from streams_runtime.errors import EnvironmentException

FLINK = {name: each for name, each in load_contestants().items() if each.side == "flink-sql"}


@pytest.fixture
def side(tmp_path: Path) -> FlinkSql:
    """One whose Java prints what it is told."""
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    return FlinkSql(java, PeerBuild(Path("/libs"), Path("/classes")))


def launch(contestant: Contestant, folder: Path) -> Launch:
    topics = {"orders": "orders", "output": "out"}
    return Launch(contestant, "totals", "bench-1", topics, Place(folder, "localhost:1"), until_end=True)


def told(side: FlinkSql, of: Launch) -> tuple[str, dict[str, str]]:
    """The statements that the program runs, and Flink's settings."""
    with side.start(of).child as child:
        words = child.wait(30)
    pairs = list(zip(words[words.index("Serve") + 1 :: 2], words[words.index("Serve") + 2 :: 2], strict=True))
    config = dict(value.split("=", 1) for name, value in pairs if name == "--config")
    (script,) = (value for name, value in pairs if name == "--script")
    return Path(script).read_text(), config


def test_a_contestant_declares_what_differs_from_the_settings_of_all(side: FlinkSql, tmp_path: Path) -> None:
    plain = told(side, launch(FLINK["flink-sql"], tmp_path))
    heap = told(side, launch(FLINK["flink-sql-tuned-heap"], tmp_path))
    assert plain[0] == heap[0]
    source, sink, job = plain[0].strip().split(";\n")
    assert "'topic' = 'orders'" in source
    assert "'topic' = 'out'" in sink
    assert job.lstrip().startswith("INSERT INTO")
    assert plain[1]["state.backend.type"] == "rocksdb"
    assert plain[1]["parallelism.default"] == "2"
    assert [name for name in plain[1] if name.startswith("table.")] == ["table.local-time-zone"]
    differing = {name for name in heap[1] if heap[1][name] != plain[1].get(name)}
    assert differing == set(FLINK["flink-sql-tuned-heap"].config)
    assert heap[1]["state.backend.type"] == "hashmap"


def test_state_and_checkpoints_lie_in_the_folder_of_the_instance(side: FlinkSql, tmp_path: Path) -> None:
    of = launch(FLINK["flink-sql"], tmp_path)
    config = told(side, of)[1]
    assert config["execution.checkpointing.dir"] == (of.own.state / "checkpoints").as_uri()
    assert config["io.tmp.dirs"] == str(of.own.state / "tmp")


@pytest.mark.parametrize("name", sorted(FLINK))
def test_only_a_contestant_of_exactly_once_has_transactions_and_aligned_checkpoints(
    name: str, side: FlinkSql, tmp_path: Path
) -> None:
    script, config = told(side, launch(FLINK[name], tmp_path))
    assert ("'sink.delivery-guarantee' = 'exactly-once'" in script) is FLINK[name].exactly_once
    assert config["execution.checkpointing.mode"] == ("EXACTLY_ONCE" if name.endswith("eos") else "AT_LEAST_ONCE")


def test_other_work_is_refused_with_what_to_do(side: FlinkSql, tmp_path: Path) -> None:
    right = launch(FLINK["flink-sql"], tmp_path)
    several = replace(right, contestant=right.contestant.model_copy(update={"instances": 2}))
    for wrong in (replace(right, task="joined"), replace(right, until_end=False), several):
        with pytest.raises(EnvironmentException, match="leave it out of this workload's contestants"):
            side.start(wrong)


def test_flink_finds_the_counter_of_its_sources() -> None:
    (service,) = (SOURCE / "META-INF" / "services").iterdir()
    named = service.read_text().strip()
    assert f"class {named} implements {service.name.rpartition('.')[2]}" in (SOURCE / f"{named}.java").read_text()


def test_the_figures_name_the_flink_that_was_measured() -> None:
    assert f"<flink.version>{versions()['flink']}</flink.version>" in (SOURCE / "pom.xml").read_text()
