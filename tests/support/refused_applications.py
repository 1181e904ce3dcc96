"""Applications with one mistake each: the document, the mistake's field, what was found, and what would do."""

from __future__ import annotations

import copy
from typing import Any

ORDERS = {
    "name": "orders",
    "topic": "orders",
    "key": {"format": "string"},
    "value": {
        "format": "json",
        "schema": "user STRING, amount DOUBLE, ts TIMESTAMP, at STRUCT<city: STRING>",
    },
}
USERS = {
    "name": "users",
    "topic": "users",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "name STRING, tier STRING"},
    "table": {"store": "users"},
}
CLICKS = {"name": "clicks", "topic": "clicks", "value": {"format": "string"}}


def application(*steps: Any, sinks: Any = (), sources: Any = (ORDERS, USERS, CLICKS), **spec: Any) -> dict[str, Any]:
    """An application around the given steps; further keywords are fields of spec."""
    topology = {"sources": list(sources), "steps": list(steps), "sinks": list(sinks)}
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "shop"},
        "spec": {"topology": topology, **spec},
    }
    return copy.deepcopy(document)


def step(**fields: Any) -> dict[str, Any]:
    return {"name": "s", "from": "orders", **{name.rstrip("_"): value for name, value in fields.items()}}


def total(**fields: Any) -> dict[str, Any]:
    return step(**{"aggregate": {"n": "count(*)"}, "store": "n", **fields})


S = "spec.topology.steps[0]"
SRC = "spec.topology.sources[0]"
SINK = "spec.topology.sinks[0]"

# (document, field, part of what was found, part of the remedy)
REFUSED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "where-syntax": (
        application(step(where="amount >")),
        f"{S}.where",
        "character 8",
        "one Spark SQL expression",
    ),
    "where-empty": (application(step(where=" ")), f"{S}.where", "is empty", "one Spark SQL expression"),
    "where-unclosed": (
        application(step(where="cast(amount as int")),
        f"{S}.where",
        "does not close the '('",
        "write",
    ),
    "where-unclosed-text": (application(step(where="user = 'x")), f"{S}.where", "not closed", "write"),
    "unknown-column": (
        application(step(where="amuont > 0")),
        f"{S}.where",
        "'amuont'",
        "did you mean 'amount'?",
    ),
    "unknown-field": (
        application(step(where="at.town = 'x'")),
        f"{S}.where",
        "no field 'town'",
        "known here: city",
    ),
    "field-of-a-text": (
        application(step(where="user.x = 1")),
        f"{S}.where",
        "has no fields",
        "use user alone",
    ),
    "unknown-metadata": (application(step(where="_offfset > 1")), f"{S}.where", "'_offfset'", "'_offset'"),
    "where-not-a-condition": (application(step(where="user")), f"{S}.where", "not a condition", "compare it"),
    "where-aggregate": (
        application(step(where="sum(amount) > 1")),
        f"{S}.where",
        "sum is an aggregate",
        "aggregate step",
    ),
    "select-aggregate": (
        application(step(select={"n": "count(*)"})),
        f"{S}.select.n",
        "count is",
        "aggregate step",
    ),
    "select-window": (
        application(step(select={"n": "sum(amount) over (partition by user)"})),
        f"{S}.select.n",
        "a window function",
        "aggregate step",
    ),
    "select-sub-query": (
        application(step(select={"n": "(select 1)"})),
        f"{S}.select.n",
        "a sub-query",
        "columns",
    ),
    "select-star": (application(step(select={"n": "*"})), f"{S}.select.n", "* stands", "name the columns"),
    "select-alias": (
        application(step(select={"n": "amount as x"})),
        f"{S}.select.n",
        "names its result",
        "leave",
    ),
    "select-rows": (
        application(step(select={"n": "explode(array(1))"})),
        f"{S}.select.n",
        "several rows",
        "one record",
    ),
    "select-batch": (
        application(step(select={"n": "monotonically_increasing_id()"})),
        f"{S}.select.n",
        "depends on how records fall into batches",
        "_offset",
    ),
    "select-parameter": (
        application(step(select={"n": ":x"})),
        f"{S}.select.n",
        "a parameter",
        "the value itself",
    ),
    "select-number": (application(step(select={"n": 1})), f"{S}.select.n", "found 1", "in quotes"),
    "select-nothing": (application(step(select={})), f"{S}.select", "found fields (none)", "at least 1"),
    "select-metadata-name": (
        application(step(select={"_x": "user"})),
        f"{S}.select",
        "'_x' begins with _",
        "without",
    ),
    "select-twice": (
        application(step(select={"a": "user", "A": "user"})),
        f"{S}.select",
        "beside 'a'",
        "one of the two",
    ),
    "key-without-format": (application(step(keyBy="ts")), f"{S}.keyBy", "no format", "cast it to"),
    "scalar-where-aggregate": (
        application(total(aggregate={"n": "amount"})),
        f"{S}.aggregate.n",
        "not an agg",
        "select",
    ),
    "aggregate-nested": (
        application(total(aggregate={"n": "sum(amount)/count(*)"})),
        f"{S}.aggregate.n",
        "computes with sum and count",
        "use a select after it",
    ),
    "aggregate-of-aggregate": (
        application(total(aggregate={"n": "sum(max(amount))"})),
        f"{S}.aggregate.n",
        "max is an aggregate",
        "aggregate step",
    ),
    "aggregate-other": (
        application(total(aggregate={"n": "collect_list(user)"})),
        f"{S}.aggregate.n",
        "not there",
        "use count",
    ),
    "aggregate-distinct": (
        application(total(aggregate={"n": "count(distinct user)"})),
        f"{S}.aggregate.n",
        "DISTINCT",
        "leave it out",
    ),
    "aggregate-two": (
        application(total(aggregate={"n": "count(user, ts)"})),
        f"{S}.aggregate.n",
        "one argument",
        "use",
    ),
    "aggregate-column": (
        application(total(aggregate={"n": "sum(amout)"})),
        f"{S}.aggregate.n",
        "'amout'",
        "'amount'",
    ),
    "aggregate-dot": (
        application(total(aggregate={"a.b": "count(*)"})),
        f'{S}.aggregate["a.b"]',
        "a dot",
        "use _",
    ),
    "no-store": (application(step(aggregate={"n": "count(*)"})), f"{S}.store", "is missing", "such as 's'"),
    "store-unused": (
        application(step(where="true", store="x")),
        f"{S}.store",
        "without state",
        "leave it out",
    ),
    "store-twice": (application(total(store="users")), f"{S}.store", "used twice", "own name"),
    "no-key": (
        application(total(from_="clicks")),
        f"{S}.aggregate",
        "clicks declares none",
        "keyBy step before",
    ),
    "no-verb": (application(step()), S, "does nothing", "where, select, keyBy, merge or aggregate"),
    "two-verbs": (application(total(keyBy="user")), S, "keyBy and aggregate in one step", "a step of each"),
    "no-from": (
        application({"name": "s", "where": "true"}),
        f"{S}.from",
        "is missing",
        "name the source or step",
    ),
    "from-and-merge": (
        application(step(merge=["orders", "t"]), step(name="t", where="true")),
        f"{S}.from",
        "beside merge",
        "leave from out",
    ),
    "merge-twice": (
        application({"name": "s", "merge": ["orders", "orders"]}),
        f"{S}.merge[1]",
        "listed twice",
        "once",
    ),
    "merge-one": (
        application({"name": "s", "merge": ["orders"]}),
        f"{S}.merge",
        "found a list of 1",
        "at least 2",
    ),
    "merge-columns": (
        application({"name": "s", "merge": ["orders", "clicks"]}),
        f"{S}.merge",
        "'clicks' has no column 'user'",
        "same columns",
    ),
    "merge-types": (
        application(
            {"name": "a", "from": "orders", "select": {"value": "amount"}},
            {"name": "s", "merge": ["clicks", "a"]},
        ),
        "spec.topology.steps[1].merge",
        "'value' is STRING in 'clicks' and DOUBLE in 'a'",
        "same columns",
    ),
    "merge-keys": (
        application({"name": "a", "from": "orders", "keyBy": "amount"}, {"name": "s", "merge": ["orders", "a"]}),
        "spec.topology.steps[1].merge",
        "the key of 'a' is DOUBLE",
        "one type",
    ),
    "merge-table": (
        application({"name": "s", "merge": ["orders", "users"]}),
        f"{S}.merge",
        "table 'users'",
        "merge a stream",
    ),
    "aggregate-table": (
        application(total(from_="users")),
        f"{S}.aggregate",
        "table 'users' is not there yet",
        "stream",
    ),
    "key-by-table": (
        application(step(from_="users", keyBy="name")),
        f"{S}.keyBy",
        "of the table 'users'",
        "keyBy a stream",
    ),
    "unknown-step": (
        application(step(from_="ordrs", where="true")),
        f"{S}.from",
        "'ordrs'",
        "did you mean 'orders'?",
    ),
    "unknown-merged": (
        application({"name": "s", "merge": ["orders", "x"]}),
        f"{S}.merge[1]",
        "called 'x'",
        "known here",
    ),
    "circle": (
        application({"name": "a", "from": "b", "where": "true"}, {"name": "b", "from": "a", "where": "true"}),
        S,
        "a → b → a",
        "from elsewhere",
    ),
    "circle-of-one": (application(step(from_="s", where="true")), S, "s → s", "from elsewhere"),
    "name-twice": (
        application(step(name="orders", where="true")),
        f"{S}.name",
        "taken by spec.topology.sources[0]",
        "own",
    ),
    "bad-name": (application(step(name="a b", where="true")), f"{S}.name", "found 'a b'", "letters, digits"),
    "long-name": (
        application(step(name="a" * 201, where="true")),
        f"{S}.name",
        "201 characters",
        "at most 200",
    ),
    "generated-name": (
        application(
            {"name": "k", "from": "orders", "keyBy": "user"},
            {"name": "k-repartition", "from": "k", "aggregate": {"n": "count(*)"}, "store": "n"},
        ),
        "spec.topology.steps[1].name",
        "repartitioning of the step 'k'",
        "another name",
    ),
    "window-kind-to-come": (
        application(total(window={"session": {"gap": "1m"}})),
        f"{S}.window.session",
        "not there yet",
        "tumbling or hopping",
    ),
    "window-late-topic": (
        application(total(window={"tumbling": {"size": "1m"}, "late": {"topic": "late"}})),
        f"{S}.window.late",
        "not there yet",
        "counted",
    ),
    "window-of-no-kind": (
        application(total(window={"retention": "1h"})),
        f"{S}.window",
        "no kind of window",
        "tumbling or hopping",
    ),
    "window-of-two-kinds": (
        application(total(window={"tumbling": {"size": "1m"}, "hopping": {"size": "1m", "advance": "1s"}})),
        f"{S}.window",
        "tumbling and hopping",
        "give one",
    ),
    "window-without-an-aggregate": (
        application(step(where="amount > 0", window={"tumbling": {"size": "1m"}})),
        f"{S}.window",
        "aggregates nothing",
        "leave it out",
    ),
    "window-without-a-length": (
        application(total(window={"tumbling": {"size": "0ms"}})),
        f"{S}.window.tumbling.size",
        "without a length",
        "1ms",
    ),
    "window-without-a-unit": (
        application(total(window={"tumbling": {"size": 60}})),
        f"{S}.window.tumbling.size",
        "60, which is not a duration",
        "units",
    ),
    "window-that-never-advances": (
        application(total(window={"hopping": {"size": "1m", "advance": "0ms"}})),
        f"{S}.window.hopping.advance",
        "never advance",
        "1ms",
    ),
    "window-with-gaps": (
        application(total(window={"hopping": {"size": "1m", "advance": "2m"}})),
        f"{S}.window.hopping.advance",
        "longer than the windows",
        "at most the size, 1m",
    ),
    "window-kept-too-shortly": (
        application(total(window={"tumbling": {"size": "1m", "grace": "10s"}, "retention": "1m"})),
        f"{S}.window.retention",
        "does not come to its end",
        "at least 1m10s",
    ),
    "window-bounds-before-the-windows": (
        application(step(where="_window_start > 0")),
        f"{S}.where",
        "unknown column '_window_start'",
        "",
    ),
    "join": (application(step(join={"table": "users"})), f"{S}.join", "not there yet", "merge"),
    "suppress-of-another-kind": (
        application(total(window={"tumbling": {"size": "1m"}}, suppress="untilTimeLimit")),
        f"{S}.suppress",
        "found 'untilTimeLimit'",
        "untilWindowCloses",
    ),
    "suppress-without-windows": (
        application(total(suppress="untilWindowCloses")),
        f"{S}.suppress",
        "without windows",
        "leave it out",
    ),
    "misspelt-field": (application(step(wher="true")), f"{S}.wher", "no such field", "did you mean 'where'?"),
    "no-schema": (
        application(sources=[{**ORDERS, "value": {"format": "json"}}]),
        f"{SRC}.value.schema",
        "is missing",
        "Spark DDL",
    ),
    "schema-unused": (
        application(sources=[{**CLICKS, "value": {"format": "long", "schema": "a INT"}}]),
        f"{SRC}.value.schema",
        "for long",
        "leave it out",
    ),
    "schema-type": (
        application(sources=[{**ORDERS, "value": {"format": "json", "schema": "a STRNG"}}]),
        f"{SRC}.value.schema",
        "after 'a'",
        "types that Spark has",
    ),
    "schema-twice": (
        application(sources=[{**ORDERS, "value": {"format": "json", "schema": "a INT, A INT"}}]),
        f"{SRC}.value.schema",
        "'A' is there beside 'a'",
        "one of the two",
    ),
    "schema-metadata": (
        application(sources=[{**ORDERS, "value": {"format": "json", "schema": "_key STRING"}}]),
        f"{SRC}.value.schema",
        "'_key' begins with _",
        "without the _",
    ),
    "schema-interval": (
        application(sources=[{**ORDERS, "value": {"format": "json", "schema": "a INTERVAL DAY TO SECOND"}}]),
        f"{SRC}.value.schema",
        "json does not hold",
        "STRING",
    ),
    "format": (
        application(sources=[{**ORDERS, "value": {"format": "avro"}}]),
        f"{SRC}.value.format",
        "found 'avro'",
        "'string', 'bytes', 'long', 'int', 'double' or 'json'",
    ),
    "timestamp-type": (
        application(sources=[{**ORDERS, "timestamp": "user"}]),
        f"{SRC}.timestamp",
        "'user' is STRING",
        "a TIMESTAMP",
    ),
    "timestamp-column": (
        application(sources=[{**ORDERS, "timestamp": "tss"}]),
        f"{SRC}.timestamp",
        "unknown column 'tss'",
        "did you mean 'ts'?",
    ),
    "topic-name": (
        application(sources=[{**ORDERS, "topic": "a b"}]),
        f"{SRC}.topic",
        "no name for a topic",
        "letters",
    ),
    "topic-length": (
        application(sources=[{**ORDERS, "topic": "t" * 250}]),
        f"{SRC}.topic",
        "250 characters",
        "249",
    ),
    "topic-twice": (
        application(sources=[ORDERS, {**CLICKS, "topic": "orders"}]),
        "spec.topology.sources[1].topic",
        "two sources of one topic are not there yet",
        "from one source",
    ),
    "no-source": (application(sources=[]), "spec.topology.sources", "no source", "at least one topic"),
    "global-table": (
        application(sources=[{**ORDERS, "globalTable": {"store": "x"}}]),
        f"{SRC}.globalTable",
        "not there yet",
        "use table",
    ),
    "sink-from": (
        application(sinks=[{"from": "paid", "topic": "out"}]),
        f"{SINK}.from",
        "'paid'",
        "known here: orders",
    ),
    "sink-loop": (
        application(sinks=[{"from": "orders", "topic": "users"}]),
        f"{SINK}.topic",
        "is read by",
        "another topic",
    ),
    "sink-brokers": (
        application(sinks=[{"from": "orders", "topic": "__consumer_offsets"}]),
        f"{SINK}.topic",
        "belongs to the brokers",
        "another topic",
    ),
    "sink-schema": (
        application(sinks=[{"from": "orders", "topic": "out", "value": {"format": "json", "schema": "a INT"}}]),
        f"{SINK}.value.schema",
        "what is written",
        "leave it out",
    ),
    "sink-columns": (
        application(sinks=[{"from": "users", "topic": "out", "value": {"format": "long"}}]),
        f"{SINK}.value.format",
        "found name, tier",
        "use json",
    ),
    "sink-key": (
        application(sinks=[{"from": "users", "topic": "out", "key": {"format": "long"}}]),
        f"{SINK}.key.format",
        "long for a key that is STRING",
        "use string",
    ),
    "sink-internal": (
        application(total(), sinks=[{"from": "s", "topic": "shop-n-changelog"}]),
        f"{SINK}.topic",
        "an internal topic of this application",
        "another topic",
    ),
    "internal-collision": (
        application(total(store="a.b"), total(name="t", store="a_b")),
        "spec.topology.steps[1].store",
        "would collide with 'shop-a.b-changelog'",
        "another name",
    ),
    "internal-length": (
        application(total(store="n" * 200), applicationId="a" * 100),
        f"{S}.store",
        "a topic's name of 311 characters",
        "at most 249",
    ),
    "dead-letter-loop": (
        application(processing={"onDeserializationError": {"deadLetter": {"topic": "orders"}}}),
        "spec.processing.onDeserializationError.deadLetter.topic",
        "is read by",
        "another topic",
    ),
    "dead-letter-field": (
        application(processing={"onDeserializationError": {"deadLetter": {"topc": "x", "topic": "x"}}}),
        "spec.processing.onDeserializationError.deadLetter.topc",
        "no such field",
        "did you mean 'topic'?",
    ),
    "on-error": (
        application(processing={"onDeserializationError": "skip"}),
        "spec.processing.onDeserializationError",
        "found 'skip'",
        "fail, continue or deadLetter",
    ),
    "guarantee": (
        application(processing={"guarantee": "x"}),
        "spec.processing.guarantee",
        "found 'x'",
        "'at_least_once'",
    ),
    "standbys": (
        application(processing={"standbyReplicas": -1}),
        "spec.processing.standbyReplicas",
        "found -1",
        "give at least 0",
    ),
    "uncaught-exception": (
        application(processing={"onUncaughtException": "restart"}),
        "spec.processing.onUncaughtException",
        "found 'restart'",
        "'replaceThread'",
    ),
    "duration": (
        application(processing={"commitInterval": 100}),
        "spec.processing.commitInterval",
        "found 100",
        "such as 100ms",
    ),
    "threads": (
        application(processing={"streamThreads": 0}),
        "spec.processing.streamThreads",
        "found 0",
        "at least 1",
    ),
    "batch": (
        application(processing={"maxBatchRecords": "9"}),
        "spec.processing.maxBatchRecords",
        "found '9'",
        "whole",
    ),
    "snake-case": (
        application(processing={"stream_threads": 2}),
        "spec.processing.stream_threads",
        "no such field",
        "did you mean 'streamThreads'?",
    ),
    "setup": (
        application(internalTopics={"setup": "auto"}),
        "spec.internalTopics.setup",
        "found 'auto'",
        "'automatic' or 'manual'",
    ),
    "init": (
        application(internalTopics={"init": {"nonce": 1}}),
        "spec.internalTopics.init",
        "automatic",
        "setup: manual",
    ),
    "replication": (
        application(internalTopics={"replicationFactor": 0}),
        "spec.internalTopics.replicationFactor",
        "found 0",
        "at least 1, or -1",
    ),
    "override-unknown": (
        application(total(), internalTopics={"overrides": {"m-changelog": {"segment.ms": 1}}}),
        "spec.internalTopics.overrides.m-changelog",
        "no internal topic",
        "did you mean 'n-changelog'?",
    ),
    "changelog-deleted": (
        application(total(), internalTopics={"overrides": {"n-changelog": {"cleanup.policy": "compact,delete"}}}),
        'spec.internalTopics.overrides.n-changelog["cleanup.policy"]',
        "would lose records",
        "has to be compact",
    ),
    "topic-times": (
        application(internalTopics={"config": {"message.timestamp.type": "LogAppendTime"}}),
        'spec.internalTopics.config["message.timestamp.type"]',
        "LogAppendTime",
        "CreateTime",
    ),
    "address": (
        application(kafka={"bootstrapServers": "kafka:9092,other"}),
        "spec.kafka.bootstrapServers",
        "found 'other'",
        "host:port",
    ),
    "port": (
        application(kafka={"bootstrapServers": "k:99999"}),
        "spec.kafka.bootstrapServers",
        "'k:99999'",
        "host:port",
    ),
    "secret": (
        application(kafka={"secretRef": {}}),
        "spec.kafka.secretRef.name",
        "is missing",
        "name of the Secret",
    ),
    "cluster": (application(spark={"master": "k8s://x"}), "spec.spark.master", "not there yet", "local[*]"),
    "spark-property": (
        application(spark={"config": {"sql.x": 1}}),
        'spec.spark.config["sql.x"]',
        "not a Spark property",
        "spark.sql.x",
    ),
    "rocksdb": (
        application(state={"rocksdb": {"x": 1}}),
        "spec.state.rocksdb",
        "(x) are not there yet",
        "leave it out",
    ),
    "quantity": (
        application(state={"storage": {"size": "10 GB"}}),
        "spec.state.storage.size",
        "found '10 GB'",
        "such as 10Gi",
    ),
    "env": (
        application(template={"env": [{"name": "A", "value": "1", "valueFrom": {}}]}),
        "spec.template.env[0]",
        "value beside valueFrom",
        "one of the two",
    ),
    "toleration": (
        application(template={"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}),
        "spec.template.tolerations[0].value",
        "beside operator Exists",
        "leave the value out",
    ),
    "access-both": (
        application(queries={"access": {"token": {"secretRef": {"name": "a"}}, "kubernetes": {"groups": ["b"]}}}),
        "spec.queries.access",
        "token and kubernetes",
        "keep one",
    ),
    "access-none": (
        application(queries={"access": {}}),
        "spec.queries.access",
        "no way of telling",
        "leave access out",
    ),
    "access-nobody": (
        application(queries={"access": {"kubernetes": {}}}),
        "spec.queries.access.kubernetes",
        "lists nobody",
        "system:authenticated",
    ),
    "access-account": (
        application(queries={"access": {"kubernetes": {"serviceAccounts": ["a/b", "system:serviceaccount:a:b"]}}}),
        "spec.queries.access.kubernetes.serviceAccounts[1]",
        "no service account",
        "NAMESPACE/NAME",
    ),
    "access-key": (
        application(queries={"access": {"token": {"secretRef": {"name": "a", "key": "b/c"}}}}),
        "spec.queries.access.token.secretRef.key",
        "'b/c'",
        "letters, digits",
    ),
    "access-off": (application(queries={"access": "off"}), "spec.queries.access", "found 'off'", "give"),
    "replicas": (application(replicas=-1), "spec.replicas", "found -1", "at least 0"),
    "replicas-text": (application(replicas="2"), "spec.replicas", "found '2'", "without quotes"),
    "application-id": (
        application(applicationId="a/b"),
        "spec.applicationId",
        "found 'a/b'",
        "letters, digits",
    ),
    "misspelt-section": (
        application(procesing={}),
        "spec.procesing",
        "no such field",
        "did you mean 'processing'?",
    ),
    "python": (
        {**application(), "spec": {"topology": {"python": "a:b"}}},
        "spec.topology.python",
        "not there yet",
        "declare sources",
    ),
    "no-topology": ({**application(), "spec": {}}, "spec.topology", "is missing", "sources, steps and sinks"),
    "no-spec": (
        {"apiVersion": "streamsoperator.io/v1alpha1", "kind": "StreamsApplication"},
        "spec",
        "is missing",
        "give",
    ),
    "kind": ({**application(), "kind": "Deployment"}, "kind", "found 'Deployment'", "'StreamsApplication'"),
    "api-version": (
        {**application(), "apiVersion": "v1"},
        "apiVersion",
        "found 'v1'",
        "'streamsoperator.io/v1alpha1'",
    ),
    "name": (
        {**application(), "metadata": {"name": "Shop"}},
        "metadata.name",
        "found 'Shop'",
        "small letters",
    ),
    "name-length": (
        {**application(), "metadata": {"name": "a" * 59}},
        "metadata.name",
        "59 characters",
        "at most 58",
    ),
    "metadata-field": (
        {**application(), "metadata": {"name": "shop", "lables": {}}},
        "metadata.lables",
        "no such field",
        "did you mean 'labels'?",
    ),
}
