"""`kubectl streamsapp` against a real API server and the operator."""

from __future__ import annotations

import json

import pytest
from kubectl_plugin import Plugin
from operator_stage import Stage
from waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd", "running")]


def test_verbs_change_the_resource_and_wait_for_what_the_operator_makes_of_it(stage: Stage) -> None:
    plugin = Plugin(stage.cluster, stage.namespace)
    assert "there are no StreamsApplications here" in plugin.run("status").stderr
    missing = plugin.run("status", "app", code=1).stderr
    assert missing.startswith("error: ")
    assert "not found" in missing
    assert "Traceback" not in missing
    stage.apply(replicas=1)
    stage.reaches("RUNNING", "1/1")

    scaled = plugin.run("scale", "app", "2", "--wait").stdout
    assert scaled == "app: instances: 1 -> 2 (spec.replicas: 2)\n"
    assert stage.status()["ready"] == "2/2"
    shown = plugin.run("status", "app").stdout.splitlines()
    assert shown[0].startswith("app RUNNING  2 of 2 ready, tasks 2")
    assert [line.split()[1] for line in shown[1:] if "app-" in line] == ["app-0", "app-1"]
    assert plugin.document("status", "app")["instances"][1]["ready"] is True
    assert "totals" in plugin.run("topology", "app").stdout

    before = stage.uids()
    assert plugin.document("restart", "app", "--wait")["reached"] is True
    after = stage.uids()
    assert set(after) == set(before)
    assert not set(after.values()) & set(before.values())

    plugin.run("suspend", "app", "--wait")
    assert stage.pods() == []
    assert plugin.run("suspend", "app").stdout == "app: it is suspended already\n"
    # The application has never read: to the end of a topic without records is where it stands.
    tried = plugin.run("reset", "app", "--to", "latest", "--dry-run", "--wait").stdout.splitlines()
    assert tried[1].startswith("DryRun: would delete and make anew 1 internal topic, set the offsets of ")
    done = plugin.run("reset", "app", "--to", "latest", "--wait").stdout.splitlines()
    assert done[1].startswith("Done: deleted and made anew 1 internal topic")
    refused = plugin.run("reset", "app", "--to", "in/0=99", "--wait", code=1).stdout.splitlines()
    assert refused[1].startswith("Refused: ")
    plugin.run("resume", "app", "--wait")
    assert stage.status()["ready"] == "2/2"
    # The kubelet that is played writes no condition for a pause.
    assert plugin.run("pause", "app", "--wait", "--timeout=1", code=3).stderr.startswith("it has not come to that")
    assert stage.get()["spec"]["paused"] is True


def test_errors_name_the_instance_its_exception_and_the_next_step(stage: Stage) -> None:
    plugin = Plugin(stage.cluster, stage.namespace)
    stage.apply(replicas=2)
    stage.reaches("RUNNING", "2/2")
    assert plugin.run("errors", "app").stdout == "app: nothing is wrong\n"
    stage.kubelet.end("app-1", 70, {"state": "ERROR", "class": "ProcessorStateException", "message": "disk full"})
    stage.reaches("ERROR", "1/2")
    eventually(lambda: "PodInError" in plugin.run("errors", "app").stdout, "the event is there")
    found = plugin.run("errors", "app").stdout
    assert (
        "app-1: ProcessorStateException: disk full\n  mend the cause, then: kubectl streamsapp restart app\n" in found
    )
    first = json.loads(plugin.run("errors", "app", "-o", "json").stdout.splitlines()[0])
    assert first["where"] == "PodsInError"
