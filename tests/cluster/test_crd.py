"""What the API server takes, what it refuses, and in which words."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from full_application import FULL
from kstatus_oracle import kstatus
from kube_cluster import Cluster
from waiting import eventually

from streams_runtime.api import load_application, parse_application
from streams_runtime.api.spec.limits import LONGEST_FIELD, MOST_ENTRIES

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd")]

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
SOURCE = {"name": "orders", "topic": "orders", "value": {"format": "string"}}
KEYED = {"key": {"format": "string"}, "value": {"format": "string"}}
Document = dict[str, Any]


def application(namespace: str, spec: Document | None = None, name: str = "orders") -> Document:
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"topology": {"sources": [copy.deepcopy(SOURCE)]}, **(spec or {})},
    }


def step(**fields: Any) -> Document:
    return {"topology": {"sources": [SOURCE], "steps": [{"name": "step", **fields}]}}


def answer(api_server: Cluster, document: Document, *options: str) -> str:
    """What the API server says against a document; "" when it takes it."""
    done = api_server.kubectl("apply", "--filename=-", *options, input=json.dumps(document), check=False)
    # CEL repeats the type of what it judged.
    return re.sub(r'Invalid value: "(object|integer)": ', "Invalid value: ", done.stderr) if done.returncode else ""


def stored(api_server: Cluster, namespace: str, name: str = "orders") -> Document:
    found: Document = api_server.get("streamsapp", name, namespace=namespace)
    return found


def set_status(api_server: Cluster, namespace: str, status: Document) -> None:
    change = json.dumps({"status": status})
    command = ("patch", "streamsapp", "orders", "-n", namespace, "--subresource=status", "--type=merge")
    api_server.kubectl(*command, f"--patch={change}")


def test_the_definition_is_established_and_accepted_without_a_warning(api_server: Cluster, crd: str):
    definition = api_server.get("crd", crd)
    conditions = {each["type"]: each["status"] for each in definition["status"]["conditions"]}
    assert conditions["Established"] == conditions["NamesAccepted"] == "True"
    # Absent when the schema is structural.
    assert conditions.get("NonStructuralSchema", "False") == "False"
    file = ROOT / "crds" / "streamsapplications.yaml"
    api_server.kubectl("apply", "--server-side", "--dry-run=server", "--warnings-as-errors", f"--filename={file}")


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_every_example_can_be_applied(api_server: Cluster, kube_namespace: str, file: Path):
    api_server.kubectl("apply", "-n", kube_namespace, f"--filename={file}", "--validate=strict", "--warnings-as-errors")
    name = yaml.safe_load(file.read_text())["metadata"]["name"]
    assert parse_application(stored(api_server, kube_namespace, name)).spec == load_application(file).spec


def test_everything_that_the_models_read_can_be_applied(api_server: Cluster, kube_namespace: str):
    document = yaml.safe_load(FULL)
    document["metadata"] = {"name": "orders", "namespace": kube_namespace}
    assert answer(api_server, document, "--validate=strict") == ""
    assert parse_application(stored(api_server, kube_namespace)).spec == parse_application(FULL).spec


def test_a_dumped_application_with_its_empty_fields_can_be_applied(api_server: Cluster, kube_namespace: str):
    spec = step(**{"from": "orders", "keyBy": "value"})
    table = {"name": "users", "topic": "users", **KEYED, "table": {"store": "users"}}
    spec["topology"]["sources"] += [table]
    join = {"table": "users", "select": {"x": "users.value"}}
    spec["topology"]["steps"] += [{"name": "joined", "from": "step", "join": join}]
    dumped = parse_application(application(kube_namespace, spec))
    document = dumped.model_dump(mode="json")
    document["metadata"] = {"name": "orders", "namespace": kube_namespace}
    del document["status"]
    api_server.kubectl("create", "--filename=-", "--validate=strict", input=json.dumps(document))
    assert stored(api_server, kube_namespace)["spec"]["topology"]["steps"][0]["merge"] is None
    assert parse_application(stored(api_server, kube_namespace)).spec == dumped.spec


def test_two_tables_can_be_joined_by_a_foreign_key(api_server: Cluster):
    tables = [{"name": name, "topic": name, **KEYED, "table": {"store": name}} for name in ("users", "plans")]
    join = {"table": "plans", "key": "value", "select": {"plan": "plans.value"}}
    step = {"name": "both", "from": "users", "join": join, "store": "both"}
    spec = {"topology": {"sources": tables, "steps": [step]}}
    assert answer(api_server, application("default", spec), "--dry-run=server") == ""
    assert parse_application(application("default", spec)).spec.topology.steps[0].store == "both"


@pytest.mark.parametrize("kind", ["inner", "left", "outer"])
def test_two_tables_can_be_joined_each_way(api_server: Cluster, kind: str):
    tables = [{"name": name, "topic": name, **KEYED, "table": {"store": name}} for name in ("users", "plans")]
    join = {"table": "plans", "type": kind, "select": {"plan": "plans.value"}}
    spec = {"topology": {"sources": tables, "steps": [{"name": "both", "from": "users", "join": join}]}}
    assert answer(api_server, application("default", spec), "--dry-run=server") == ""
    assert parse_application(application("default", spec)).spec.topology.steps[0].join.type == kind


@pytest.mark.parametrize("value", ["text", 5, 1.5, True])
def test_a_property_is_text_a_number_or_a_boolean(api_server: Cluster, value: object):
    spec = {"kafka": {"config": {"linger.ms": value}}}
    assert answer(api_server, application("default", spec), "--dry-run=server") == ""


REFUSED: dict[str, tuple[Document, str]] = {
    "no topology": ({"topology": None}, "spec.topology: Required value"),
    "no source": (
        {"topology": {"sources": []}},
        "spec.topology: Invalid value: no source; name at least one topic to read",
    ),
    "a number of replicas below 0": ({"replicas": -1}, "spec.replicas in body should be greater than or equal to 0"),
    "an image with a digest that is cut short": (
        {"image": "registry.example/streams@sha256:c0ffee"},
        "spec.image in body should match",
    ),
    "init with automatic set-up": (
        {"internalTopics": {"init": {"nonce": 1}}},
        (
            "spec.internalTopics.init: Invalid value: an explicit init is for manual set-up; set setup: manual, or"
            " leave init out"
        ),
    ),
    "access told in two ways": (
        {"queries": {"access": {"token": {"secretRef": {"name": "a"}}, "kubernetes": {"groups": ["b"]}}}},
        "spec.queries.access: Invalid value: access is told in exactly one way; give token or kubernetes",
    ),
    "access told in no way": ({"queries": {"access": {}}}, "access is told in exactly one way"),
    "access for nobody": (
        {"queries": {"access": {"kubernetes": {"groups": []}}}},
        "spec.queries.access.kubernetes: Invalid value: nobody is listed, so nobody could ask",
    ),
    "access that is off, which is no field": ({"queries": {"access": "off"}}, "spec.queries.access"),
    "another set-up": (
        {"internalTopics": {"setup": "never"}},
        'spec.internalTopics.setup: Unsupported value: "never": supported values: "automatic", "manual"',
    ),
    "no replica of a topic": (
        {"internalTopics": {"replicationFactor": 0}},
        (
            "spec.internalTopics.replicationFactor: Invalid value: 0 replicas; give at least 1, or -1 for the brokers'"
            " default"
        ),
    ),
    "a list as a property": ({"kafka": {"config": {"a": [1]}}}, "spec.kafka.config.a: Too many: 1"),
    "a secret without a name": ({"kafka": {"secretRef": {}}}, "spec.kafka.secretRef.name: Required value"),
    "a duration without a unit": (
        {"processing": {"commitInterval": "100"}},
        "spec.processing.commitInterval in body should match",
    ),
    "another word for where to begin": (
        {"kafka": {"offsetReset": "newest"}},
        "spec.kafka.offsetReset in body should match",
    ),
    "a table that does not begin at its beginning": (
        {
            "topology": {
                "sources": [
                    {
                        "name": "users",
                        "topic": "users",
                        "value": {"format": "string"},
                        "table": {"store": "users"},
                        "offsetReset": "none",
                    }
                ]
            }
        },
        (
            "spec.topology.sources[0].offsetReset: Invalid value: given for a table, which always begins at the"
            " beginning of its topic; leave it out, or read the topic as a stream"
        ),
    ),
    "another word for what to do with poison": (
        {"processing": {"onDeserializationError": "skip"}},
        'spec.processing.onDeserializationError: Unsupported value: "skip": supported values: "fail", "continue"',
    ),
    "a dead letter without a topic": (
        {"processing": {"onDeserializationError": {"deadLetter": {}}}},
        "spec.processing.onDeserializationError.deadLetter.topic: Required value",
    ),
    "another word for what to do with records that fail": (
        {"processing": {"onProcessingError": "skip"}},
        'spec.processing.onProcessingError: Unsupported value: "skip": supported values: "fail", "continue"',
    ),
    "a letter of a record that fails without a topic": (
        {"processing": {"onProcessingError": {"deadLetter": {}}}},
        "spec.processing.onProcessingError.deadLetter.topic: Required value",
    ),
    "no topic for refused records": (
        {"processing": {"onProductionError": {"deadLetter": {}}}},
        "spec.processing.onProductionError.deadLetter.topic: Required value",
    ),
    "a size that is none": ({"state": {"storage": {"size": "big"}}}, "spec.state.storage.size in body should match"),
    "a quantity that is none": (
        {"template": {"resources": {"limits": {"cpu": "much"}}}},
        "spec.template.resources.limits.cpu in body should match",
    ),
    "a step of nothing": (
        step(**{"from": "orders"}),
        (
            "spec.topology.steps[0]: Invalid value: a step has either where and/or select, or flatMap, or split, or"
            " peek, or headers, or dedupe, or process, or keyBy, or repartition, or merge, or toTable, or toStream, or"
            " aggregate, or join; make a step of each"
        ),
    ),
    "two steps in one": (
        step(**{"from": "orders", "where": "true", "keyBy": "value"}),
        (
            "spec.topology.steps[0]: Invalid value: a step has either where and/or select, or flatMap, or split, or"
            " peek, or headers, or dedupe, or process, or keyBy, or repartition, or merge, or toTable, or toStream, or"
            " aggregate, or join; make a step of each"
        ),
    ),
    "a step from nowhere": (
        step(where="true"),
        (
            "spec.topology.steps[0]: Invalid value: a step takes its records either from one source or step (from) or"
            " from several (merge)"
        ),
    ),
    "merge beside from": (
        step(**{"from": "orders", "merge": ["orders", "others"]}),
        (
            "spec.topology.steps[0]: Invalid value: a step takes its records either from one source or step (from) or"
            " from several (merge)"
        ),
    ),
    "an aggregate without a store": (
        step(**{"from": "orders", "aggregate": {"n": "count(*)"}}),
        (
            "spec.topology.steps[0]: Invalid value: an aggregate has a store, as has a join of tables with key, and no"
            " other step; name it, or leave it out"
        ),
    ),
    "a default without a split": (
        step(**{"from": "orders", "where": "true", "default": "rest"}),
        "spec.topology.steps[0].default: Invalid value: a default for a step that splits nothing; leave it out",
    ),
    "groups without an aggregate": (
        step(**{"from": "orders", "where": "true", "groupBy": "x"}),
        "spec.topology.steps[0].groupBy: Invalid value: groupBy in a step without an aggregate, or beside windows",
    ),
    "a join with a table and a stream": (
        step(**{"from": "orders", "join": {"table": "a", "stream": "b", "within": "1m", "select": {"x": "1"}}}),
        "spec.topology.steps[0].join: Invalid value: a join is with either a table or a stream; name one of the two",
    ),
    "a join with a table with grace": (
        step(**{"from": "orders", "join": {"table": "a", "grace": "1m", "select": {"x": "1"}}}),
        "spec.topology.steps[0].join.grace: Invalid value: grace for a join with a table",
    ),
    "a join within no duration": (
        step(**{"from": "orders", "join": {"stream": "b", "within": "soon", "select": {"x": "1"}}}),
        "spec.topology.steps[0].join.within",
    ),
    "a join within a number": (
        step(**{"from": "orders", "join": {"stream": "b", "within": 5, "select": {"x": "1"}}}),
        "spec.topology.steps[0].join.within",
    ),
    "a join within half a time": (
        step(**{"from": "orders", "join": {"stream": "b", "within": {"before": "5m"}, "select": {"x": "1"}}}),
        "spec.topology.steps[0].join.within",
    ),
    "a peek that shows nothing": (
        step(**{"from": "orders", "peek": {"level": "debug"}}),
        "spec.topology.steps[0].peek: Invalid value: a peek that shows nothing; give it log, metric or both",
    ),
    "a column whose name kubectl has read as a boolean": (
        step(**{"from": "orders", "aggregate": {"false": "count(*)"}, "store": "counts"}),
        (
            "spec.topology.steps[0].aggregate: Invalid value: a column called true or false, which is what kubectl"
            " makes of y, yes, on, n, no and off; quote the name"
        ),
    ),
    "a sink without a topic": (
        {"topology": {"sources": [SOURCE], "sinks": [{"from": "orders"}]}},
        "spec.topology.sinks[0]: Invalid value: a sink has either topic or topicBy; give one of the two",
    ),
    "a sink with two topics": (
        {"topology": {"sources": [SOURCE], "sinks": [{"from": "orders", "topic": "out", "topicBy": "user"}]}},
        "spec.topology.sinks[0]: Invalid value: a sink has either topic or topicBy; give one of the two",
    ),
    "topics of no expression": (
        {"topology": {"sources": [SOURCE], "sinks": [{"from": "orders", "topic": "out", "topics": ["a"]}]}},
        "spec.topology.sinks[0].topics: Invalid value: topics without topicBy; give topicBy, or topic",
    ),
    "no topics for an expression": (
        {"topology": {"sources": [SOURCE], "sinks": [{"from": "orders", "topicBy": "user", "topics": []}]}},
        "spec.topology.sinks[0].topics: Invalid value",
    ),
    "a topology in Python that was not built": (
        {"topology": {"python": "shop:build"}},
        (
            "spec.topology.python: Invalid value: a topology in Python without the sources, steps and sinks that it"
            " makes; apply what `streamsapp build FILE` prints, which has both"
        ),
    ),
    "a schema for text": (
        {"topology": {"sources": [SOURCE | {"value": {"format": "string", "schema": "a INT"}}]}},
        (
            "spec.topology.sources[0].value: Invalid value: only json, avro, protobuf and jsonschema have a schema;"
            " leave it out, or use format json"
        ),
    ),
    "a message of text": (
        {"topology": {"sources": [SOURCE | {"value": {"format": "string", "message": "Order"}}]}},
        (
            "spec.topology.sources[0].value.message: Invalid value: only protobuf has messages; leave it out, or use"
            " format protobuf"
        ),
    ),
    "another format": (
        {"topology": {"sources": [SOURCE | {"value": {"format": "thrift"}}]}},
        'spec.topology.sources[0].value.format: Unsupported value: "thrift"',
    ),
    "a name twice": (
        {"topology": {"sources": [SOURCE, SOURCE | {"topic": "others"}]}},
        'spec.topology.sources[1]: Duplicate value: {"name":"orders"}',
    ),
    "a topic that can be none": (
        {"topology": {"sources": [SOURCE | {"topic": "a b"}]}},
        "spec.topology.sources[0].topic in body should match",
    ),
    "an application id that can be none": ({"applicationId": "a/b"}, "spec.applicationId in body should match"),
    "an id of too many characters": ({"applicationId": "a" * 201}, "spec.applicationId: Too long"),
    "a value that no label has": (
        {"template": {"labels": {"team": "a b"}}},
        "spec.template.labels.team in body should match",
    ),
    "a path that is mounted at twice": (
        {"template": {"volumeMounts": [{"name": "a", "mountPath": "/a"}, {"name": "b", "mountPath": "/a"}]}},
        'spec.template.volumeMounts[1]: Duplicate value: {"mountPath":"/a"}',
    ),
    "no time to close": (
        {"template": {"terminationGracePeriodSeconds": 0}},
        "spec.template.terminationGracePeriodSeconds in body should be greater than or equal to 1",
    ),
    "a budget of more than all pods": (
        {"disruptionBudget": {"maxUnavailable": "101%"}},
        "spec.disruptionBudget.maxUnavailable in body should match",
    ),
    "a budget that is off and counts": (
        {"disruptionBudget": {"enabled": False, "maxUnavailable": 2}},
        "spec.disruptionBudget.maxUnavailable: Invalid value: given beside enabled: false",
    ),
    "peers of a policy that is off": (
        {"networkPolicy": {"enabled": False, "from": [{"podSelector": {}}]}},
        "spec.networkPolicy.from: Invalid value: given beside enabled: false",
    ),
    "a text of more than a quarter of a million characters": (
        {"template": {"env": [{"name": "A", "value": "x" * (LONGEST_FIELD + 1)}]}},
        "spec.template.env[0].value: Too long",
    ),
    "more entries than anybody needs": (
        {"template": {"labels": {f"l{at}": "" for at in range(MOST_ENTRIES + 1)}}},
        "spec.template.labels: Too many",
    ),
    "value beside valueFrom": (
        {"template": {"env": [{"name": "A", "value": "b", "valueFrom": {"fieldRef": {}}}]}},
        "spec.template.env[0]: Invalid value: value beside valueFrom; keep one of the two",
    ),
    "a variable twice": (
        {"template": {"env": [{"name": "A"}, {"name": "A"}]}},
        'spec.template.env[1]: Duplicate value: {"name":"A"}',
    ),
    "a toleration of nothing": (
        {"template": {"tolerations": [{"value": "a"}]}},
        (
            "spec.template.tolerations[0]: Invalid value: Equal needs a key, and Exists has no value; name the taint,"
            " or leave the value out"
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_be_is_refused_with_its_field_and_what_would_do(api_server: Cluster, case: str):
    spec, message = REFUSED[case]
    assert message in answer(api_server, application("default", spec), "--dry-run=server")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a" * 59, "metadata.name is too long; use at most 58 characters"),
        ("orders.v2", "metadata.name can't be the Service's name; use small letters, digits and -"),
        ("9orders", "metadata.name can't be the Service's name; use small letters, digits and -"),
    ],
)
def test_a_name_that_pods_and_services_can_not_have_is_refused(api_server: Cluster, name: str, message: str):
    assert message in answer(api_server, application("default", name=name), "--dry-run=server")


def test_the_longest_name_is_taken(api_server: Cluster):
    assert answer(api_server, application("default", name="a" * 58), "--dry-run=server") == ""


CHANGES: dict[str, tuple[Document, Document, str]] = {
    "another application id": ({"applicationId": "a"}, {"applicationId": "b"}, "applicationId can't change"),
    "an application id where there was none": ({}, {"applicationId": "b"}, "applicationId can't change"),
    "no application id where there was one": ({"applicationId": "a"}, {}, "applicationId can't change"),
    "a lower restart nonce": (
        {"restartNonce": 3},
        {"restartNonce": 2},
        (
            "spec.restartNonce: Invalid value: the nonce can only grow: each number replaces every pod once; give a"
            " greater number"
        ),
    ),
    "no restart nonce where there was one": ({"restartNonce": 3}, {}, "the nonce can only grow"),
    "a lower init nonce": (
        {"internalTopics": {"setup": "manual", "init": {"nonce": 3}}},
        {"internalTopics": {"setup": "manual", "init": {"nonce": 2}}},
        (
            "spec.internalTopics.init.nonce: Invalid value: the nonce can only grow: each number is one init(); give"
            " one that is greater than any before"
        ),
    ),
    "a smaller volume": (
        {"state": {"storage": {"size": "10Gi"}}},
        {"state": {"storage": {"size": "9000Mi"}}},
        "spec.state.storage.size: Invalid value: volumes can't shrink; keep the size or give a larger one",
    ),
    "a volume of another class": (
        {"state": {"storage": {"size": "10Gi", "storageClassName": "fast"}}},
        {"state": {"storage": {"size": "10Gi", "storageClassName": "slow"}}},
        (
            "spec.state.storage.storageClassName: Invalid value: volumes can't change their class; put back what it"
            " was, or create another resource"
        ),
    ),
    "a volume of the default class instead": (
        {"state": {"storage": {"size": "10Gi", "storageClassName": "fast"}}},
        {"state": {"storage": {"size": "10Gi"}}},
        "volumes can't change their class",
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_can_not_change_is_kept(api_server: Cluster, kube_namespace: str, case: str):
    before, after, message = CHANGES[case]
    assert answer(api_server, application(kube_namespace, before)) == ""
    assert message in answer(api_server, application(kube_namespace, after))


ALLOWED: dict[str, tuple[Document, Document]] = {
    "its own name as the application id": ({}, {"applicationId": "orders"}),
    "an image by its digest": ({"image": "streams:1"}, {"image": f"example:5000/a/b:1@sha256:{'0a' * 32}"}),
    "a higher restart nonce": ({"restartNonce": 3}, {"restartNonce": 4}),
    "a first init": (
        {"internalTopics": {"setup": "manual"}},
        {"internalTopics": {"setup": "manual", "init": {"nonce": 0}}},
    ),
    "the same init with other parameters": (
        {"internalTopics": {"setup": "manual", "init": {"nonce": 1}}},
        {"internalTopics": {"setup": "manual", "init": {"nonce": 1, "setupChangelogTopicsIfIncomplete": True}}},
    ),
    "automatic set-up after an init": ({"internalTopics": {"setup": "manual", "init": {"nonce": 5}}}, {}),
    "a larger volume, written otherwise": (
        {"state": {"storage": {"size": "1Gi"}}},
        {"state": {"storage": {"size": 1073741825}}},
    ),
    "where sources begin": ({"kafka": {"offsetReset": "latest"}}, {"kafka": {"offsetReset": "1h30m"}}),
    "a volume at all": ({}, {"state": {"storage": {"size": "1Gi", "storageClassName": "fast"}}}),
    "no volume any more": ({"state": {"storage": {"size": "1Gi"}}}, {}),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_what_may_change_can_be_changed(api_server: Cluster, kube_namespace: str, case: str):
    for spec in ALLOWED[case]:
        assert answer(api_server, application(kube_namespace, spec)) == ""


def test_a_nonce_that_was_done_is_not_forgotten_with_its_init(api_server: Cluster, kube_namespace: str):
    def manual(init: Document | None) -> Document:
        return application(kube_namespace, {"internalTopics": {"setup": "manual", "init": init}})

    assert answer(api_server, manual({"nonce": 5})) == ""
    done = {"nonce": 5, "result": "Created", "message": ""}
    set_status(api_server, kube_namespace, {"internalTopics": {"setup": "Ready", "init": done}})
    assert answer(api_server, manual(None)) == ""
    assert "the nonce can only grow" in answer(api_server, manual({"nonce": 4}))
    assert answer(api_server, manual({"nonce": 5})) == ""
    assert answer(api_server, manual({"nonce": 6})) == ""


def test_the_nonce_of_a_reset_only_grows_also_where_it_was_taken_out(api_server: Cluster, kube_namespace: str):
    def asked(reset: Document | None) -> str:
        return answer(api_server, application(kube_namespace, {"reset": reset}))

    assert asked({"nonce": 5, "to": "earliest", "dryRun": True}) == ""
    assert asked({"nonce": 5, "to": {"offsets": {"orders": {"0": 7}}}}) == ""
    set_status(api_server, kube_namespace, {"reset": {"nonce": 5, "state": "Done"}})
    assert "the nonce can only grow" in asked({"nonce": 4, "to": "latest"})
    assert asked(None) == ""
    assert "the nonce can only grow" in asked({"nonce": 4, "to": "latest"})
    assert asked({"nonce": 6, "to": "latest"}) == ""


def test_the_status_can_be_written_whatever_nonce_it_tells_of(api_server: Cluster, kube_namespace: str):
    manual = {"internalTopics": {"setup": "manual", "init": {"nonce": 3}}}
    assert answer(api_server, application(kube_namespace, manual)) == ""
    set_status(api_server, kube_namespace, {"internalTopics": {"init": {"nonce": 5, "result": "Created"}}})
    assert stored(api_server, kube_namespace)["status"]["internalTopics"]["init"]["nonce"] == 5


def test_fields_that_are_not_there_are_refused_under_strict_validation(api_server: Cluster):
    wrong = application("default", {"replcas": 2, **step(**{"from": "orders", "were": "true", "keyBy": "value"})})
    said = answer(api_server, wrong, "--validate=strict", "--dry-run=server")
    assert 'unknown field "spec.replcas"' in said
    assert 'unknown field "spec.topology.steps[0].were"' in said


def test_kubectl_scale_sets_the_replicas(api_server: Cluster, kube_namespace: str):
    assert answer(api_server, application(kube_namespace)) == ""
    set_status(api_server, kube_namespace, {"replicas": 1, "selector": "streamsoperator.io/application=orders"})
    api_server.kubectl("scale", "streamsapp/orders", "-n", kube_namespace, "--current-replicas=1", "--replicas=3")
    assert stored(api_server, kube_namespace)["spec"]["replicas"] == 3
    path = f"/apis/streamsoperator.io/v1alpha1/namespaces/{kube_namespace}/streamsapplications/orders/scale"
    scale = json.loads(api_server.kubectl("get", f"--raw={path}").stdout)
    assert (scale["spec"], scale["status"]) == (
        {"replicas": 3},
        {"replicas": 1, "selector": "streamsoperator.io/application=orders"},
    )


def test_the_status_is_a_subresource(api_server: Cluster, kube_namespace: str):
    assert answer(api_server, application(kube_namespace) | {"status": {"state": "RUNNING"}}) == ""
    unseen = stored(api_server, kube_namespace)
    assert unseen["status"] == {"observedGeneration": -1}
    assert kstatus(unseen) == "InProgress"


STATUS: Document = {
    "observedGeneration": 1,
    "state": "REBALANCING",
    "replicas": 2,
    "readyReplicas": 1,
    "ready": "1/2",
    "selector": "streamsoperator.io/application=orders",
    "tasks": 4,
    "lag": 1200,
    "restoration": {"recordsLeft": 300, "etaSeconds": 2},
    "internalTopics": {"setup": "Ready", "existing": ["orders-totals-changelog"], "missing": []},
    "instances": [
        {
            "name": "orders-0",
            "state": "RUNNING",
            "ready": True,
            "tasks": ["0_0"],
            "error": {"class": "StreamsException", "message": "text"},
            "restarts": 1,
        }
    ],
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "Rebalancing",
            "message": "1 of 2 instances are RUNNING",
            "lastTransitionTime": "2025-01-01T00:00:00Z",
            "observedGeneration": 1,
        }
    ],
}


def test_kubectl_get_shows_the_state_in_its_columns(api_server: Cluster, kube_namespace: str):
    assert answer(api_server, application(kube_namespace)) == ""
    set_status(api_server, kube_namespace, STATUS)
    for name in ("streamsapp", "streamsapps", "streamsapplications"):
        header, row = api_server.kubectl("get", name, "-n", kube_namespace).stdout.splitlines()
        assert header.split() == ["NAME", "STATE", "READY", "TASKS", "RESTORING", "LAG", "SETUP", "AGE"]
        assert row.split()[:-1] == ["orders", "REBALANCING", "1/2", "4", "300", "1200", "Ready"]


def test_a_status_comes_back_as_it_was_written(api_server: Cluster, kube_namespace: str):
    assert answer(api_server, application(kube_namespace)) == ""
    set_status(api_server, kube_namespace, STATUS | {"later": {"field": [1]}})
    assert stored(api_server, kube_namespace)["status"] == STATUS | {"later": {"field": [1]}}


def test_applications_are_among_all(api_server: Cluster, kube_namespace: str):
    assert answer(api_server, application(kube_namespace)) == ""
    # The server tells kubectl of a new category a moment after it serves the resource.
    eventually(
        lambda: "/orders" in api_server.kubectl("get", "all", "-n", kube_namespace, "--output=name").stdout,
        "kubectl get all shows applications",
    )
