"""The chart's alerts by promtool: each fires when its condition holds, and none does where it has no reason to."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm import CHART
from kube_binaries import program

pytestmark = pytest.mark.cluster

ALERTS = CHART / "files" / "alerts.yaml"
RUNBOOKS = Path(__file__).parents[2] / "operator" / "guide" / "runbooks.md"
APPLICATION = 'namespace="shop", application="orders"'
INSTANCE = 'namespace="shop", application="orders", application_id="orders", client_id="orders-0"'
ERROR = f'streams_operator_application_state{{{APPLICATION}, state="ERROR"}}'
LAG = f"streams_operator_application_lag_records{{{APPLICATION}}}"
LEFT = f"streams_operator_application_restoration_records_left{{{APPLICATION}}}"
PROCESSED = f"kafka_streams_process_total{{{INSTANCE}}}"
RUNNING = f'kafka_streams_client_state{{{INSTANCE}, state="RUNNING"}}'
WAITING = f'kafka_streams_records_lag{{{INSTANCE}, topic="orders", partition="0"}}'
LATE = f"kafka_streams_late_records_total{{{INSTANCE}}}"
AGE = f'kafka_streams_snapshot_age_seconds{{{INSTANCE}, store="totals"}}'
NO_SNAPSHOT = f"kafka_streams_snapshot_failures_total{{{INSTANCE}}}"
LEADER = {'streams_operator_leader{pod="operator-0"}': "1x120"}


def condition(kind: str, reason: str) -> str:
    return f'streams_operator_application_condition{{{APPLICATION}, condition="{kind}", reason="{reason}"}}'


def instance(name: str, labels: str = "") -> str:
    return f"{name}{{{INSTANCE}{labels}}}"


@dataclass(frozen=True)
class Case:
    """Series with a sample a minute (Prometheus' own notation), and whether the alert fires after `minutes`."""

    alert: str
    series: Mapping[str, str]
    minutes: int
    fires: bool
    leader: Mapping[str, str] = field(default_factory=lambda: LEADER)


def fires(alert: str, minutes: int, series: Mapping[str, str], leader: Mapping[str, str] = LEADER) -> Case:
    return Case(alert, series, minutes, True, leader)


def calm(alert: str, minutes: int, series: Mapping[str, str], leader: Mapping[str, str] = LEADER) -> Case:
    return Case(alert, series, minutes, False, leader)


OLDEST = 'streams_operator_queue_oldest_seconds{pod="operator-0"}'
FAILED = 'streams_operator_reconciles_total{namespace="streams-system", pod="operator-0", result="failed"}'
CASES = (
    fires("StreamsOperatorAbsent", 6, {}, {'streams_operator_leader{pod="operator-0"}': "0x120"}),
    # A change of the leader takes less than half a minute; a new deployment a few.
    calm("StreamsOperatorAbsent", 20, {}, {'streams_operator_leader{pod="operator-0"}': "1x10 0x3 1x60"}),
    fires("StreamsOperatorRoundsFail", 30, {FAILED: "0+1x60"}),
    calm("StreamsOperatorRoundsFail", 22, {FAILED: "0x10 1x60"}),
    fires("StreamsOperatorBehind", 15, {OLDEST: "0+60x60"}),
    calm("StreamsOperatorBehind", 30, {OLDEST: "0+60x8 0x60"}),
    fires("StreamsImageRolloutStopped", 6, {"streams_operator_image_rollout_stopped": "1x60"}),
    calm("StreamsImageRolloutStopped", 6, {"streams_operator_image_rollout_stopped": "0x60"}),
    fires("StreamsApplicationInError", 2, {ERROR: "1x60"}),
    calm("StreamsApplicationInError", 30, {ERROR.replace("ERROR", "PENDING_ERROR"): "1x60"}),
    *(
        fires("StreamsTopicsLost", 2, {condition("Degraded", reason): "1x60"})
        for reason in ("MissingInternalTopics", "MisconfiguredInternalTopics", "MissingSourceTopics")
    ),
    calm("StreamsTopicsLost", 30, {condition("Progressing", "WaitingForTopics"): "1x60"}),
    fires("StreamsPodsCrash", 16, {condition("Degraded", "PodsCrashed"): "1x60"}),
    calm("StreamsPodsCrash", 30, {condition("Degraded", "PodsCrashed"): "1x12 stale _x30"}),
    fires("StreamsApplicationDegraded", 11, {condition("Degraded", "ProgressDeadlineExceeded"): "1x60"}),
    *(
        # Each of these has an alert of its own.
        calm("StreamsApplicationDegraded", 30, {condition("Degraded", reason): "1x60"})
        for reason in ("PodsInError", "PodsCrashed", "MissingInternalTopics")
    ),
    fires("StreamsLagGrows", 80, {LAG: "0+1000x120"}),
    calm("StreamsLagGrows", 80, {LAG: "0+1000x120", condition("Paused", "Paused"): "1x120"}),
    calm("StreamsLagGrows", 80, {LAG: "0+1000x120", condition("Suspended", "Suspended"): "1x120"}),
    calm("StreamsLagGrows", 80, {LAG: "0+10x120"}),
    calm("StreamsLagGrows", 80, {LAG: "50000+100x10 20000x10 60000-200x100"}),
    fires("StreamsRestorationStalled", 25, {LEFT: "500x60"}),
    calm("StreamsRestorationStalled", 25, {LEFT: "500000-1000x60"}),
    # A rolling change: one instance after the other restores.
    calm("StreamsRestorationStalled", 45, {LEFT: "0x5 50000-5000x10 50000-5000x10 50000-5000x10 0x60"}),
    fires("StreamsInstanceStandsStill", 30, {WAITING: "70x60", PROCESSED: "900x60", RUNNING: "1x60"}),
    calm("StreamsInstanceStandsStill", 30, {WAITING: "70x60", PROCESSED: "900+1x60", RUNNING: "1x60"}),
    calm("StreamsInstanceStandsStill", 30, {WAITING: "0x60", PROCESSED: "900x60", RUNNING: "1x60"}),
    calm("StreamsInstanceStandsStill", 30, {WAITING: "70x60", PROCESSED: "900x60", RUNNING: "0x60"}),
    calm(
        "StreamsInstanceStandsStill",
        30,
        {WAITING: "70x60", PROCESSED: "900x60", RUNNING: "1x60", condition("Paused", "Paused"): "1x60"},
    ),
    fires("StreamsThreadDead", 6, {instance("kafka_streams_threads", ', state="DEAD"'): "1x60", RUNNING: "1x60"}),
    calm("StreamsThreadDead", 6, {instance("kafka_streams_threads", ', state="DEAD"'): "1x60", RUNNING: "0x60"}),
    fires("StreamsRecordsUnreadable", 10, {instance("kafka_streams_deserialization_errors_total"): "0x5 1x60"}),
    calm("StreamsRecordsUnreadable", 30, {instance("kafka_streams_deserialization_errors_total"): "7x60"}),
    fires("StreamsRecordsFail", 10, {instance("kafka_streams_processing_errors_total"): "0x5 1x60"}),
    calm("StreamsRecordsFail", 30, {instance("kafka_streams_processing_errors_total"): "7x60"}),
    fires("StreamsRecordsRefused", 10, {instance("kafka_streams_production_errors_total"): "0x5 1x60"}),
    calm("StreamsRecordsRefused", 30, {instance("kafka_streams_production_errors_total"): "7x60"}),
    fires("StreamsRecordsLate", 40, {LATE: "0+2x60", PROCESSED: "0+100x60"}),
    calm("StreamsRecordsLate", 40, {LATE: "0+1x60", PROCESSED: "0+1000x60"}),
    fires("StreamsStoreQuarantined", 20, {instance("kafka_streams_quarantined_stores_total"): "0x5 1x60"}),
    calm("StreamsStoreQuarantined", 20, {instance("kafka_streams_quarantined_stores_total"): "1x60"}),
    fires("StreamsStandbyBehind", 31, {instance("kafka_streams_standby_records_lag", ', store="s"'): "100001x60"}),
    calm("StreamsStandbyBehind", 31, {instance("kafka_streams_standby_records_lag", ', store="s"'): "200000-9000x60"}),
    fires("StreamsSnapshotsFail", 95, {AGE: "0+60x120", NO_SNAPSHOT: "0+1x120"}),
    # Of a store that stands still none is made for an hour; a bucket that is away for a while is tried again.
    calm("StreamsSnapshotsFail", 95, {AGE: "0+60x120", NO_SNAPSHOT: "3x120"}),
    calm("StreamsSnapshotsFail", 95, {AGE: "3000+60x70 0+60x60", NO_SNAPSHOT: "0x55 0+1x15 15x60"}),
    calm("StreamsSnapshotsFail", 95, {AGE: "0+60x10 0+60x10 0+60x10 0+60x90", NO_SNAPSHOT: "0+1x120"}),
)


def rules() -> list[Any]:
    groups = yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def problems(cases: Sequence[Case], folder: Path, alerts: Path = ALERTS) -> str:
    """What promtool finds wrong; empty: every case is as it says."""
    tests = [
        {
            "interval": "1m",
            "name": f"{number}: {case}",
            "input_series": [
                {"series": series, "values": values} for series, values in {**case.leader, **case.series}.items()
            ],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{case.alert}", alertstate="firing"}})',
                    "eval_time": f"{case.minutes}m",
                    "exp_samples": [{"labels": "{}", "value": 1}] if case.fires else [],
                }
            ],
        }
        for number, case in enumerate(cases)
    ]
    file = folder / "alert_cases.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(alerts)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run(
        [program("promtool"), "test", "rules", str(file)], capture_output=True, text=True, timeout=120, check=False
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_each_alert_fires_when_it_should_and_not_when_it_should_not(tmp_path: Path) -> None:
    assert problems(CASES, tmp_path) == ""


def test_every_alert_has_a_case_of_either_kind() -> None:
    named = {rule["alert"] for rule in rules()}
    assert {case.alert for case in CASES if case.fires} == named
    assert {case.alert for case in CASES if not case.fires} == named


def test_an_alert_that_does_not_do_what_a_case_says_is_found(tmp_path: Path) -> None:
    for number, (case, right, wrong) in enumerate(
        (
            (fires("StreamsApplicationInError", 2, {ERROR: "1x60"}), 'state="ERROR"', 'state="ERRORS"'),
            (calm("StreamsStandbyBehind", 31, {}), "> 100000", ">= 0 or vector(1)"),
        )
    ):
        changed = tmp_path / f"changed-{number}.yaml"
        text = ALERTS.read_text(encoding="utf-8")
        assert right in text
        changed.write_text(text.replace(right, wrong))
        assert "FAILED" in problems([case], tmp_path, changed)


def test_every_alert_has_a_severity_and_a_section_in_the_runbooks_and_every_section_an_alert() -> None:
    sections = re.findall(r"^## (\w+)$", RUNBOOKS.read_text(encoding="utf-8"), re.MULTILINE)
    assert sections == [rule["alert"] for rule in rules()]
    for rule in rules():
        assert rule["annotations"]["runbook_url"] == f"RUNBOOKS#{rule['alert'].lower()}"
        assert rule["labels"]["severity"] in ("critical", "warning")
