"""What the API server checks beyond types: limits of single fields, and rules between fields and across changes.

Everything here is said by the models' own checks too, except what compares with the resource as it was before:
only the API server sees both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from streams_runtime.api.crd.cel_rule import Rule, Schema
from streams_runtime.api.reading.legal_names import MAX_APPLICATION, MAX_PART, MAX_TOPIC, PART_PATTERN, TOPIC_PATTERN
from streams_runtime.api.spec.operations.reset_spec import MOMENT_PATTERN
from streams_runtime.api.spec.spec_values import DURATION_PATTERN, QUANTITY_PATTERN
from streams_runtime.api.steps.topology_spec import VERBS


def _no_boolean(field: str) -> Rule:
    return Rule(
        f"!has(self.{field}) || !('true' in self.{field} || 'false' in self.{field})",
        "a column called true or false, which is what kubectl makes of y, yes, on, n, no and off; quote the name",
        f".{field}",
    )


_ALONE = [verb for verb in VERBS.values() if verb not in ("where", "select")]
_COUNTED = " + ".join(
    ["(has(self.where) || has(self.select) ? 1 : 0)", *(f"(has(self.{verb}) ? 1 : 0)" for verb in _ALONE)]
)
_ID = "(has({0}.spec.applicationId) ? {0}.spec.applicationId : {0}.metadata.name)"
_NONCE = "{0}.?internalTopics.?init.?nonce.orValue(-1)"
_NEW, _OLD, _DONE = _NONCE.format("self.spec"), _NONCE.format("oldSelf.spec"), _NONCE.format("self.?status")
_RESET = "{0}.?reset.?nonce.orValue(-1)"
_RESET_NEW, _RESET_OLD = _RESET.format("self.spec"), _RESET.format("oldSelf.spec")
_RESET_DONE = _RESET.format("self.?status")

RESOURCE_RULES = (
    Rule(
        f"self.metadata.name.size() <= {MAX_APPLICATION}",
        f"metadata.name is too long; use at most {MAX_APPLICATION} characters: pods are called NAME-0, NAME-1, …,"
        " and a host name has at most 63",
    ),
    Rule(
        "self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
        "metadata.name can't be the Service's name; use small letters, digits and -, beginning with a letter and"
        " ending with a letter or digit",
    ),
    Rule(
        f"{_ID.format('self')} == {_ID.format('oldSelf')}",
        "applicationId can't change: it names the consumer group and the internal topics; put back what it was"
        " (absent: metadata.name), or create another resource",
        ".spec.applicationId",
    ),
    # Also when init was taken out in between: what was done last stands in status.
    Rule(
        f"{_NEW} == {_OLD} || {_NEW} == -1 || ({_NEW} >= {_OLD} && {_NEW} >= {_DONE})",
        "the nonce can only grow: each number is one init(); give one that is greater than any before",
        ".spec.internalTopics.init.nonce",
    ),
    Rule(
        f"{_RESET_NEW} == {_RESET_OLD} || {_RESET_NEW} == -1"
        f" || ({_RESET_NEW} >= {_RESET_OLD} && {_RESET_NEW} >= {_RESET_DONE})",
        "the nonce can only grow: each number is one reset; give one that is greater than any before",
        ".spec.reset.nonce",
    ),
)
"""Rules of the whole resource, which may look at metadata.name."""

RULES: Mapping[str, tuple[Rule, ...]] = {
    "ApplicationSpec": (
        # 1 is also what stands there when nobody gave a number.
        Rule(
            "!has(self.autoscaling) || self.replicas == 1"
            " || self.autoscaling.minReplicas > self.autoscaling.maxReplicas"
            " || (self.replicas >= self.autoscaling.minReplicas && self.replicas <= self.autoscaling.maxReplicas)",
            "replicas outside of what spec.autoscaling allows; leave it out, or give minReplicas to maxReplicas",
            ".replicas",
        ),
        # By kubectl scale and by a HorizontalPodAutoscaler, which would wait for pods that never come.
        Rule(
            "!has(self.autoscaling) || !has(oldSelf.autoscaling) || self.autoscaling != oldSelf.autoscaling"
            " || self.replicas == oldSelf.replicas || self.replicas == 1",
            "spec.autoscaling chooses the number of instances, and replicas only says how many to start with; change"
            " autoscaling.minReplicas and maxReplicas, or take autoscaling out in the same change",
            ".replicas",
        ),
    ),
    "AutoscalingSpec": (
        Rule(
            "self.minReplicas <= self.maxReplicas",
            "more than maxReplicas; give at most as many, or a greater maxReplicas",
            ".minReplicas",
        ),
    ),
    "InternalTopicsSpec": (
        Rule(
            "!has(self.init) || self.setup == 'manual'",
            "an explicit init is for manual set-up; set setup: manual, or leave init out",
            ".init",
        ),
        Rule(
            "self.replicationFactor != 0",
            "0 replicas; give at least 1, or -1 for the brokers' default",
            ".replicationFactor",
        ),
    ),
    "SnapshotsSpec": (
        Rule(
            "!has(self.secretRef) || !self.url.startsWith('file:')",
            "given for a folder, which needs no credentials; leave it out, or give the url of a bucket",
            ".secretRef",
        ),
    ),
    "StorageSpec": (
        Rule(
            "!isQuantity(string(self.size)) || !isQuantity(string(oldSelf.size))"
            " || quantity(string(self.size)).compareTo(quantity(string(oldSelf.size))) >= 0",
            "volumes can't shrink; keep the size or give a larger one",
            ".size",
        ),
        Rule(
            "has(self.storageClassName) == has(oldSelf.storageClassName)"
            " && (!has(self.storageClassName) || self.storageClassName == oldSelf.storageClassName)",
            "volumes can't change their class; put back what it was, or create another resource",
            ".storageClassName",
        ),
    ),
    "TopologySpec": (
        Rule(
            "has(self.python) || (has(self.sources) && self.sources.size() > 0)",
            "no source; name at least one topic to read",
        ),
        Rule(
            "!has(self.python) || (has(self.sources) && self.sources.size() > 0)",
            "a topology in Python without the sources, steps and sinks that it makes; apply what `streamsapp build"
            " FILE` prints, which has both",
            ".python",
        ),
    ),
    "SourceSpec": (
        Rule(
            "has(self.topic) != has(self.topicPattern)",
            "a source has either topic or topicPattern; give one of the two",
        ),
        Rule(
            "!has(self.topicPattern) || !has(self.table)",
            "given for a table, which is made of one topic; give topic instead",
            ".topicPattern",
        ),
        Rule(
            "!has(self.offsetReset) || !has(self.table) || self.offsetReset == 'earliest'",
            "given for a table, which always begins at the beginning of its topic; leave it out, or read the topic as a"
            " stream",
            ".offsetReset",
        ),
    ),
    "FormatSpec": (
        Rule(
            "!has(self.schema) || self.format in ['json', 'avro', 'protobuf', 'jsonschema']",
            "only json, avro, protobuf and jsonschema have a schema; leave it out, or use format json",
        ),
        Rule(
            "!has(self.message) || self.format == 'protobuf'",
            "only protobuf has messages; leave it out, or use format protobuf",
            ".message",
        ),
    ),
    "StepSpec": (
        Rule(
            f"{_COUNTED} == 1",
            f"a step has either where and/or select, or {', or '.join(_ALONE)}; make a step of each",
        ),
        Rule(
            "has(self.from) != has(self.merge)",
            "a step takes its records either from one source or step (from) or from several (merge)",
        ),
        Rule(
            "has(self.aggregate) ? has(self.store) : !has(self.store) || (has(self.join) && has(self.join.key))",
            "an aggregate has a store, as has a join of tables with key, and no other step; name it, or leave it out",
        ),
        Rule(
            "!has(self.groupBy) || (has(self.aggregate) && !has(self.window))",
            "groupBy in a step without an aggregate, or beside windows; leave it out, or leave the window out",
            ".groupBy",
        ),
        Rule(
            "!has(self.default) || has(self.split)",
            "a default for a step that splits nothing; leave it out, or give the step a split",
            ".default",
        ),
        _no_boolean("select"),
        _no_boolean("aggregate"),
    ),
    "JoinSpec": (
        _no_boolean("select"),
        Rule(
            "has(self.table) != has(self.stream)",
            "a join is with either a table or a stream; name one of the two",
        ),
        Rule(
            "!has(self.key) || !has(self.stream)",
            "a key of its own for a join of two streams, which lie together by their keys; leave it out",
            ".key",
        ),
        Rule(
            "has(self.stream) || !has(self.grace)",
            "grace for a join with a table, which is as it is when a record comes; leave it out",
            ".grace",
        ),
    ),
    "PeekSpec": (
        Rule(
            "has(self.log) || has(self.metric)",
            "a peek that shows nothing; give it log, metric or both",
        ),
        Rule(
            "!has(self.value) || has(self.metric)",
            "a value of no metric; give the metric a name, or leave the value out",
            ".value",
        ),
    ),
    "SinkSpec": (
        Rule("has(self.topic) != has(self.topicBy)", "a sink has either topic or topicBy; give one of the two"),
        Rule("!has(self.topics) || has(self.topicBy)", "topics without topicBy; give topicBy, or topic", ".topics"),
    ),
    "QueryAccess": (
        Rule(
            "has(self.token) != has(self.kubernetes)",
            "access is told in exactly one way; give token or kubernetes, or leave access out to let everybody ask",
        ),
    ),
    "KubernetesAccess": (
        Rule(
            "(has(self.serviceAccounts) && self.serviceAccounts.size() > 0)"
            " || (has(self.groups) && self.groups.size() > 0)",
            "nobody is listed, so nobody could ask; list serviceAccounts or groups",
        ),
    ),
    "DisruptionBudgetSpec": (
        Rule(
            "self.enabled || !has(self.maxUnavailable)",
            "given beside enabled: false; leave it out, or set enabled to true",
            ".maxUnavailable",
        ),
    ),
    "NetworkPolicySpec": (
        Rule(
            "self.enabled || !has(self.from) || self.from.size() == 0",
            "given beside enabled: false, and there is no policy to hold it; leave it out, or set enabled to true",
            ".from",
        ),
    ),
    "EnvVarSpec": (Rule("!(has(self.value) && has(self.valueFrom))", "value beside valueFrom; keep one of the two"),),
    "TolerationSpec": (
        Rule(
            "self.operator == 'Exists' ? !has(self.value) : has(self.key)",
            "Equal needs a key, and Exists has no value; name the taint, or leave the value out",
        ),
    ),
}
"""Rules between the fields of a model."""


def _with(**more: Any) -> Callable[[Schema], Schema]:
    return lambda schema: schema | more


def _only_grows(what: str) -> Callable[[Schema], Schema]:
    rule = Rule("self >= oldSelf", f"the nonce can only grow: {what}; give a greater number")
    return _with(**{"x-kubernetes-validations": [rule.schema()]})


def _on_record_error(schema: Schema) -> Schema:
    """`fail`, `continue` or `{deadLetter: {topic}}`; the model's own fields are those of its long form."""
    dead_letter = schema["properties"]["deadLetter"] | {"nullable": False}
    return {
        "description": schema["description"],
        "default": "fail",
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {"deadLetter": dead_letter},
        # No text is of at least one and at most no character: the second choice is for mappings only.
        "anyOf": [
            {"enum": ["fail", "continue"]},
            {"required": ["deadLetter"], "maxProperties": 1, "minLength": 1, "maxLength": 0},
        ],
    }


def _size(schema: Schema) -> Schema:
    # With a type that CEL knows: it compares sizes. A fraction of a byte is no size, so whole numbers and text do.
    return {
        "description": schema["description"],
        "x-kubernetes-int-or-string": True,
        "pattern": QUANTITY_PATTERN,
        "minimum": 0,
    }


def _text_or(pattern: str, *fields: str, **more: Any) -> Callable[[Schema], Schema]:
    """A text of the pattern, or a mapping with these fields; the model's own fields are those of its long form."""
    # No list and no number is of at least one and at most none: what is left is text, or a mapping.
    no_other = {"minItems": 1, "maxItems": 0, "minimum": 1, "maximum": 0}
    choices = [
        {"pattern": pattern, "minLength": 1, "minProperties": 1, "maxProperties": 0, **no_other},
        {"required": [*fields], "maxProperties": len(fields), "minLength": 1, "maxLength": 0, **no_other},
    ]
    return lambda schema: {
        "description": schema["description"],
        **more,
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": {name: schema["properties"][name] | {"nullable": False} for name in fields},
        "anyOf": choices,
    }


_PART = _with(minLength=1, maxLength=MAX_PART, pattern=f"^{PART_PATTERN}$")
_TOPIC = _with(minLength=1, maxLength=MAX_TOPIC, pattern=f"^{TOPIC_PATTERN}$")
_BY_NAME = _with(**{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]})
_BY_PATH = _with(**{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["mountPath"]})

FIELDS: Mapping[tuple[str, str], Callable[[Schema], Schema]] = {
    ("ApplicationSpec", "applicationId"): _PART,
    ("ApplicationSpec", "restartNonce"): _only_grows("each number replaces every pod once"),
    **{("ProcessingSpec", f"on{of}Error"): _on_record_error for of in ("Deserialization", "Processing", "Production")},
    ("DeadLetter", "topic"): _TOPIC,
    ("JoinSpec", "within"): _text_or(DURATION_PATTERN, "before", "after", nullable=True),
    ("ResetSpec", "to"): _text_or(MOMENT_PATTERN, "offsets"),
    ("StorageSpec", "size"): _size,
    ("TableSpec", "store"): _PART,
    ("SourceSpec", "name"): _PART,
    ("SourceSpec", "topic"): _TOPIC,
    ("StepSpec", "name"): _PART,
    ("StepSpec", "store"): _PART,
    ("StepSpec", "default"): _PART,
    ("BranchSpec", "name"): _PART,
    ("PeekSpec", "metric"): _PART,
    ("SinkSpec", "topic"): _TOPIC,
    ("SinkSpec", "topics"): lambda schema: schema | {"minItems": 1, "items": _TOPIC(schema["items"])},
    ("TopologySpec", "sources"): _BY_NAME,
    ("TopologySpec", "steps"): _BY_NAME,
    ("TemplateSpec", "env"): _BY_NAME,
    ("TemplateSpec", "imagePullSecrets"): _BY_NAME,
    ("TemplateSpec", "volumes"): _BY_NAME,
    ("TemplateSpec", "volumeMounts"): _BY_PATH,
}
"""What is added to the schema of a field, by model and field."""
