"""spec.state.rocksdb as a value: its sizes in bytes, what a change of it means, and what a pod has room for."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import typer
from operator_cases import DEFAULTS
from operator_world import application_of, resource
from typer.testing import CliRunner

from streams_operator.plan.objects.document import digest
from streams_operator.plan.version.acceptance import cluster_mistakes
from streams_runtime.api.spec.pod_spec import RocksDBSpec
from streams_runtime.api.spec.spec_values import quantity_value
from streams_runtime.api.spec.template_spec import ResourcesSpec
from streams_runtime.cli.topology.topology_command import topology
from streams_runtime.state.database.rocksdb_options import RocksDBSettings
from streams_runtime.state.store_options import store_options

app = typer.Typer()
app.command()(topology)


def application(rocksdb: dict[str, Any], **spec: Any) -> Any:
    return application_of(resource({"state": {"rocksdb": rocksdb}, **spec}))


@pytest.mark.parametrize(
    ("quantity", "size"),
    [
        ("16Mi", 16 * 1024**2),
        ("1.5Gi", 3 * 1024**3 // 2),
        ("20M", 20_000_000),
        ("2k", 2_000),
        ("1e6", 1_000_000),
        ("1E", 10**18),
        ("1Ei", 1024**6),
        ("3000m", 3),
        ("5", 5),
    ],
)
def test_quantities_are_what_kubernetes_takes_them_for(quantity: str, size: int) -> None:
    assert quantity_value(quantity) == size


@pytest.mark.parametrize("quantity", ["1e99999999999", f"1e{'9' * 5000}", f"1e{'0' * 5000}999", "9" * 5000])
def test_no_quantity_is_too_large_to_be_compared(quantity: str) -> None:
    assert quantity_value(quantity) > quantity_value("1Ei")


def test_every_option_reaches_the_settings_and_goes_to_other_processes_as_json() -> None:
    spec = RocksDBSpec.model_validate(
        {
            "memory": "256Mi",
            "writeBufferSize": 65536,
            "blockSize": "16Ki",
            "bloomFilterBits": 0,
            "compression": "none",
            "compaction": "universal",
            "maxBackgroundJobs": 6,
        }
    )
    settings = store_options(spec).settings
    assert settings == RocksDBSettings(268_435_456, 65_536, 16_384, 0, "none", "universal", 6)
    assert RocksDBSettings(**json.loads(json.dumps(asdict(settings)))) == settings
    assert set(asdict(settings)) == set(RocksDBSpec.model_fields)
    assert store_options(RocksDBSpec()).settings == RocksDBSettings()


@pytest.mark.parametrize(
    "option",
    [
        {"memory": "256Mi"},
        {"writeBufferSize": "8Mi"},
        {"blockSize": "8Ki"},
        {"bloomFilterBits": 12},
        {"compression": "zstd"},
        {"compaction": "universal"},
        {"maxBackgroundJobs": 4},
    ],
)
def test_a_change_of_any_option_replaces_pods_and_what_is_as_by_default_none(option: dict[str, Any]) -> None:
    before = digest(application_of(resource()), "shop", DEFAULTS)
    assert digest(application(option), "shop", DEFAULTS) != before
    spelt_out = {"blockSize": "4Ki", "bloomFilterBits": 10, "compression": "snappy", "compaction": "level"}
    assert digest(application(spelt_out), "shop", DEFAULTS) == before


def test_a_change_of_options_is_no_change_of_the_topology(tmp_path: Path) -> None:
    for name, options in (("old", {}), ("new", {"memory": "64Mi", "compaction": "universal"})):
        (tmp_path / f"{name}.yaml").write_text(json.dumps(resource({"state": {"rocksdb": options}})))
    done = CliRunner().invoke(app, ["--diff", str(tmp_path / "old.yaml"), str(tmp_path / "new.yaml")])
    assert done.exit_code == 0, done.output


def test_memory_that_the_chart_s_limit_leaves_no_room_for_is_refused_in_a_cluster() -> None:
    chart = replace(DEFAULTS, resources=ResourcesSpec(limits={"memory": "2Gi"}))
    (mistake,) = cluster_mistakes(application({"memory": "2Gi"}), chart)
    assert mistake.path == "spec.state.rocksdb.memory"
    assert "more than 2Gi (the chart's default; spec.template.resources is absent)" in mistake.found
    assert not list(cluster_mistakes(application({"memory": "2047Mi"}), chart))
    own = {"template": {"resources": {"limits": {"memory": "4Gi"}}}}
    assert not list(cluster_mistakes(application({"memory": "2Gi"}, **own), chart))
    assert not list(cluster_mistakes(application({"memory": "2Gi"}), DEFAULTS))
