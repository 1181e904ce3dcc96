"""Argo CD's health and actions of the resource: the scripts of operator/argocd, run as Argo CD runs them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from argo_lua import ACTIONS, SCRIPTS, config_map, health, run, script
from lupa.lua51 import LuaError
from operator_cases import condition
from operator_situations import SITUATIONS, as_served
from operator_world import resource

from streams_runtime.api.crd.definition import definition

BY_NAME = dict(SITUATIONS)
Object = dict[str, Any]


def served(situation: str) -> Object:
    return as_served(BY_NAME[situation]())


@pytest.mark.parametrize("situation", BY_NAME)
def test_the_message_is_the_operators_own_and_says_more_than_the_word(situation: str):
    found = served(situation)
    word, message = health(found)
    assert word in ("Healthy", "Progressing", "Degraded", "Suspended")
    said = {each["message"] for each in found["status"]["conditions"]}
    assert "deletionTimestamp" in found["metadata"] or any(message.endswith(each) for each in said)


def test_a_degraded_application_shows_what_to_do():
    word, message = health(served("a pod has ended in ERROR"))
    assert word == "Degraded"
    assert message.startswith("PodsInError: orders-1 ended in ERROR: LockException: held by 7")
    assert "set spec.restartNonce to 1" in message


def test_a_change_that_the_operator_has_not_seen_is_in_progress_whatever_the_conditions_say():
    for situation in ("all run", "a pod has ended in ERROR", "suspended", "paused"):
        found = served(situation)
        found["metadata"] = {**found["metadata"], "generation": 2}
        assert health(found) == ("Progressing", "waits for the operator to see the change")


def test_an_application_that_nobody_has_seen_yet_is_in_progress():
    default = definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["default"]
    for status in (None, {}, default, {"observedGeneration": 1}, {"observedGeneration": 1, "conditions": None}):
        assert health({**resource(), "status": status})[0] == "Progressing"
    assert health(resource())[0] == "Progressing"


def test_an_application_that_is_being_deleted_is_in_progress_even_when_degraded():
    found = served("a pod has ended in ERROR")
    found["metadata"] = {**found["metadata"], "deletionTimestamp": "2027-01-15T08:00:00Z"}
    assert health(found)[0] == "Progressing"


def test_the_script_fails_over_no_condition_that_is_missing():
    found = served("all run")
    everything = found["status"]["conditions"]
    for left_out in everything:
        found["status"]["conditions"] = [each for each in everything if each is not left_out]
        assert health(found)[0] in ("Healthy", "Progressing")
    found["status"]["conditions"] = []
    assert health(found) == ("Progressing", "has no condition Ready")
    found["status"]["conditions"] = [{**condition({"conditions": everything}, "Ready"), "status": "False"}]
    assert health(found)[0] == "Progressing"


def test_scripts_have_only_the_libraries_that_argo_cd_gives_them():
    with pytest.raises(LuaError, match="global 'string'"):
        run("return {status = string.upper('healthy')}", resource())


def offered(found: Object) -> set[str]:
    return {name for name, each in run(script("actions/discovery"), found).items() if not each["disabled"]}


def spec_after(action: str, **spec: Any) -> Object:
    """What an action changes in the spec."""
    found = resource(spec)
    after = run(script(f"actions/{action}"), found)
    assert after["metadata"] == found["metadata"]
    return {name: value for name, value in after["spec"].items() if found["spec"].get(name) != value}


def test_actions_are_offered_where_they_change_something():
    assert offered(resource()) == {"pause", "suspend", "restart"}
    assert offered(resource({"paused": True})) == {"suspend", "resume", "restart"}
    assert offered(resource({"suspend": True})) == {"resume", "restart"}
    assert offered(resource(deletionTimestamp="2027-01-15T08:00:00Z")) == set()
    assert set(run(script("actions/discovery"), resource())) == set(ACTIONS)


def test_actions_change_the_fields_that_they_are_about_and_no_others():
    assert spec_after("pause") == {"paused": True}
    assert spec_after("suspend", paused=False) == {"suspend": True}
    assert spec_after("resume", paused=True, suspend=True) == {"paused": False, "suspend": False}
    assert spec_after("restart") == {"restartNonce": 1}
    assert spec_after("restart", restartNonce=41) == {"restartNonce": 42}


def test_the_patch_for_argocd_cm_has_these_scripts():
    text = (SCRIPTS / "argocd-cm.yaml").read_text(encoding="utf-8")
    assert text == config_map(), "write it anew: python tests/support/argo_lua.py > operator/argocd/argocd-cm.yaml"
    data = yaml.safe_load(text)["data"]
    key = "streamsoperator.io_StreamsApplication"
    assert data[f"resource.customizations.health.{key}"] == script("health")
    actions = yaml.safe_load(data[f"resource.customizations.actions.{key}"])
    assert actions["discovery.lua"] == script("actions/discovery")
    assert {each["name"]: each["action.lua"] for each in actions["definitions"]} == {
        name: script(f"actions/{name}") for name in ACTIONS
    }
    assert {file.stem for file in (SCRIPTS / "actions").glob("*.lua")} == {*ACTIONS, "discovery"}
