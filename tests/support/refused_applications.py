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
PAYMENTS = {
    "name": "payments",
    "topic": "payments",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "paid DOUBLE"},
}
PLANS = {
    "name": "plans",
    "topic": "plans",
    "key": {"format": "long"},
    "value": {"format": "json", "schema": "price INT"},
    "table": {"store": "plans"},
}
CLICKS = {"name": "clicks", "topic": "clicks", "value": {"format": "string"}}


def application(
    *steps: Any, sinks: Any = (), sources: Any = (ORDERS, USERS, CLICKS, PAYMENTS), **spec: Any
) -> dict[str, Any]:
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


U = {"store": "u"}


def joined(table: str = "users", **fields: Any) -> dict[str, Any]:
    select = fields.pop("select", {"tier": "users.tier"})
    return step(join={"table": table, "select": select, **fields.pop("more", {})}, **fields)


def versioned(retention: str, **table: Any) -> dict[str, Any]:
    """The table `users` with a history."""
    return {**USERS, "table": {"store": "users", "historyRetention": retention, **table}}


def held_back(suppress: Any, **fields: Any) -> dict[str, Any]:
    return step(**{"from_": "users", "toStream": {"suppress": suppress}, **fields})


def streams(stream: str = "payments", **fields: Any) -> dict[str, Any]:
    within, select = fields.pop("within", "1m"), fields.pop("select", {"paid": "payments.paid"})
    join = {"stream": stream, "select": select} | ({} if within is None else {"within": within})
    return step(join=join | fields.pop("more", {}), **fields)


def total(**fields: Any) -> dict[str, Any]:
    return step(**{"aggregate": {"n": "count(*)"}, "store": "n", **fields})


def windows_of(window: dict[str, str], **more: Any) -> dict[str, Any]:
    """A process step with one window store."""
    return {**ALERTS, "stores": {"w": {"key": "STRING", "value": "n BIGINT", "window": window, **more}}}


def sessions_of(session: dict[str, str]) -> dict[str, Any]:
    """A process step with one session store."""
    return {**ALERTS, "stores": {"s": {"key": "STRING", "value": "n BIGINT", "session": session}}}


S = "spec.topology.steps[0]"
SRC = "spec.topology.sources[0]"
SINK = "spec.topology.sinks[0]"

ALERTS = {"python": "rules:Alerts", "value": "n BIGINT"}
REGISTRY = {"bootstrapServers": "kafka:9092", "schemaRegistry": {"url": "http://registry:8081"}}
AVRO = """{"type": "record", "name": "Order", "fields": [
  {"name": "user", "type": "string"}, {"name": "amount", "type": "double", "default": 0}]}"""


def avro(schema: str) -> dict[str, Any]:
    """The source `orders` with values of avro."""
    return {**ORDERS, "value": {"format": "avro", "schema": schema}}


PROTO = 'syntax = "proto3"; message Order { string user = 1; double amount = 2; }'


def protobuf(schema: str, **more: Any) -> dict[str, Any]:
    """The source `orders` with values of protobuf."""
    return {**ORDERS, "value": {"format": "protobuf", "schema": schema, **more}}


def protobuf_sink(**value: Any) -> dict[str, Any]:
    """A sink of the source `orders`."""
    return {"from": "orders", "topic": "out", "value": {"format": "protobuf", **value}}


def avro_sink(schema: str) -> dict[str, Any]:
    """A sink of the source `orders`."""
    return {"from": "orders", "topic": "out", "value": {"format": "avro", "schema": schema}}


JSON_SCHEMA = """{"type": "object", "required": ["user"], "properties": {
  "user": {"type": "string"}, "amount": {"type": "number"}}}"""


def jsonschema(schema: str = JSON_SCHEMA) -> dict[str, Any]:
    """The source `orders` with values of jsonschema."""
    return {**ORDERS, "value": {"format": "jsonschema", "schema": schema}}


def jsonschema_sink(schema: str) -> dict[str, Any]:
    """A sink of the source `orders`."""
    return {"from": "orders", "topic": "out", "value": {"format": "jsonschema", "schema": schema}}


# (document, field, part of what was found, part of the remedy)
REFUSED: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "source-without-topic": (
        application(sources=[{key: value for key, value in ORDERS.items() if key != "topic"}]),
        "spec.topology.sources[0]",
        "a source without a topic",
        "give topic, or topicPattern",
    ),
    "source-topic-and-pattern": (
        application(sources=[{**ORDERS, "topicPattern": "orders-.*"}]),
        "spec.topology.sources[0].topicPattern",
        "topicPattern beside topic",
        "give one of the two",
    ),
    "table-of-a-pattern": (
        application(
            sources=[
                ORDERS,
                {key: value for key, value in USERS.items() if key != "topic"} | {"topicPattern": "users-.*"},
            ]
        ),
        "spec.topology.sources[1].topicPattern",
        "a pattern for a table",
        "make a table by toTable",
    ),
    "sink-without-topic": (
        application(sinks=[{"from": "orders"}]),
        SINK,
        "a sink without a topic",
        "give topic, or topicBy",
    ),
    "sink-topic-and-topic-by": (
        application(sinks=[{"from": "orders", "topic": "out", "topicBy": "user"}]),
        f"{SINK}.topicBy",
        "topicBy beside topic",
        "give one of the two",
    ),
    "sink-topics-without-topic-by": (
        application(sinks=[{"from": "orders", "topic": "out", "topics": ["a"]}]),
        f"{SINK}.topics",
        "topics without topicBy",
        "give topicBy",
    ),
    "sink-no-topics": (
        application(sinks=[{"from": "orders", "topicBy": "user", "topics": []}]),
        f"{SINK}.topics",
        "an empty list",
        "list the topics",
    ),
    "sink-topics-twice": (
        application(sinks=[{"from": "orders", "topicBy": "user", "topics": ["a", "a"]}]),
        f"{SINK}.topics[1]",
        "the topic 'a' is listed twice",
        "leave one of them out",
    ),
    "sink-topics-no-name": (
        application(sinks=[{"from": "orders", "topicBy": "user", "topics": ["a b"]}]),
        f"{SINK}.topics[0]",
        "found 'a b', which is no name for a topic",
        "use letters",
    ),
    "sink-topics-read": (
        application(sinks=[{"from": "orders", "topicBy": "user", "topics": ["a", "orders"]}]),
        f"{SINK}.topics[1]",
        "the topic 'orders' is read by",
        "write to another topic",
    ),
    "sink-topics-brokers-own": (
        application(sinks=[{"from": "orders", "topicBy": "user", "topics": ["__consumer_offsets"]}]),
        f"{SINK}.topics[0]",
        "belongs to the brokers",
        "write to another topic",
    ),
    "sink-topic-by-unknown-column": (
        application(sinks=[{"from": "orders", "topicBy": "concat('o-', usr)"}]),
        f"{SINK}.topicBy",
        "'usr'",
        "'user'",
    ),
    "sink-topic-by-syntax": (
        application(sinks=[{"from": "orders", "topicBy": "concat('o-', user"}]),
        f"{SINK}.topicBy",
        "does not close the '('",
        "write",
    ),
    "sink-topic-by-number": (
        application(sinks=[{"from": "orders", "topicBy": "amount"}]),
        f"{SINK}.topicBy",
        "which is no name of a topic",
        "cast(",
    ),
    "sink-topic-by-aggregate": (
        application(sinks=[{"from": "orders", "topicBy": "max(user)"}]),
        f"{SINK}.topicBy",
        "max",
        "",
    ),
    "sink-topic-by-jsonschema": (
        application(
            sinks=[{"from": "orders", "topicBy": "user", "value": {"format": "jsonschema"}}],
            kafka=REGISTRY,
        ),
        f"{SINK}.value.format",
        "jsonschema is not there yet beside topicBy",
        "a sink for each topic",
    ),
    "sink-topic-by-avro": (
        application(
            sinks=[{"from": "orders", "topicBy": "user", "value": {"format": "avro"}}],
            kafka={"bootstrapServers": "kafka:9092", "schemaRegistry": {"url": "http://registry:8081"}},
        ),
        f"{SINK}.value.format",
        "avro is not there yet beside topicBy",
        "use json",
    ),
    "sink-topic-by-of-a-table-and-processing-errors": (
        application(sinks=[{"from": "users", "topicBy": "tier"}], processing={"onProcessingError": "continue"}),
        "spec.processing.onProcessingError",
        "continue is not there yet beside a sink with topicBy of the table 'users'",
        "toStream",
    ),
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
    "where-unclosed-text": (
        application(step(where="user = 'x")),
        f"{S}.where",
        "' at character 8 that is not closed",
        "close it",
    ),
    "where-cut-at-a-comma": (
        application(step(select={"a": "amount", "1)": None})),
        f'{S}.select["1)"]',
        "stands behind a comma",
        "write the whole expression in quotes",
    ),
    "field-cut-at-a-comma": (
        application({**step(where="amount > 0"), "1) > 0": None}),
        f'{S}["1) > 0"]',
        "stands behind a comma",
        "write the whole expression in quotes",
    ),
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
    "select-star-of-an-expression": (
        application(step(select={"*": "orders.*", "n": "amount"})),
        f'{S}.select["*"]',
        "'orders.*' for *, which stands for all columns",
        'write "*": "*"',
    ),
    "select-star-alone": (
        application(step(select={"*": "*"})),
        f"{S}.select",
        "* alone leaves every column as it is",
        "name columns beside it",
    ),
    "select-beside-a-star": (
        application(step(select={"*": "*", "n": "amuont"})),
        f"{S}.select.n",
        "unknown column 'amuont'",
        "did you mean 'amount'?",
    ),
    "behind-a-star": (
        application(step(select={"*": "*", "n": "amount"}), {"name": "t", "from": "s", "where": "amount > m"}),
        "spec.topology.steps[1].where",
        "unknown column 'm'",
        "known here",
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
        "a flatMap step before it",
    ),
    "select-batch": (
        application(step(select={"n": "monotonically_increasing_id()"})),
        f"{S}.select.n",
        "depends on how records fall into batches",
        "_offset",
    ),
    "select-windows-of-time": (
        application(step(select={"n": "window(ts, '10 seconds').start"})),
        f"{S}.select.n",
        "window makes windows of many records",
        "give the step that aggregates a window: window: {tumbling: {size: 10s}}",
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
        application(total(aggregate={"n": "mode(user)"})),
        f"{S}.aggregate.n",
        "not there",
        "use count",
    ),
    "aggregate-without-its-number": (
        application(total(aggregate={"n": "collect_list(user)"})),
        f"{S}.aggregate.n",
        "collect_list takes a column and a number from 1 to 1000",
        "write collect_list(x, 10)",
    ),
    "aggregate-of-another-type": (
        application(total(aggregate={"n": "approx_percentile(user, 0.5)"})),
        f"{S}.aggregate.n",
        "user is STRING, and approx_percentile is of numbers",
        "cast it to DOUBLE",
    ),
    "aggregate-misspelt": (
        application(total(aggregate={"n": "approx_percentil(amount, 0.5)"})),
        f"{S}.aggregate.n",
        "is not an aggregate",
        "did you mean 'approx_percentile'?",
    ),
    "aggregate-distinct": (
        application(total(aggregate={"n": "sum(distinct amount)"})),
        f"{S}.aggregate.n",
        "DISTINCT",
        "put a dedupe or a where before the aggregate",
    ),
    "aggregate-distinct-of-three": (
        application(total(aggregate={"n": "count(distinct user, amount, ts)"})),
        f"{S}.aggregate.n",
        "takes one expression or two",
        "put them into a struct in a select before",
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
    "no-verb": (
        application(step()),
        S,
        "does nothing",
        "headers, dedupe, process, keyBy, repartition, merge, toTable, toStream, aggregate or join",
    ),
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
        "merge of the table 'users'",
        "toStream: {} before it",
    ),
    "aggregate-table": (
        application(total(from_="users")),
        f"{S}.aggregate",
        "aggregate of the table 'users'",
        "toStream: {} before it, whose records are the table's changes, and aggregate that; or give it groupBy",
    ),
    "key-by-a-list": (
        application(step(keyBy=["user", "amount"])),
        f"{S}.keyBy",
        "found a list of 2",
        "give one expression: struct(user, amount), whose fields are the key",
    ),
    "key-by-a-list-of-one": (application(step(keyBy=["user"])), f"{S}.keyBy", "found a list of 1", "expression: user"),
    "key-by-a-list-of-numbers": (application(step(keyBy=[1, 2])), f"{S}.keyBy", "found a list of 2", "give text"),
    "group-by-a-list": (
        application(total(from_="users", groupBy=["tier", "name"])),
        f"{S}.groupBy",
        "found a list of 2",
        "give one expression: struct(tier, name)",
    ),
    "key-by-table": (
        application(step(from_="users", keyBy="name")),
        f"{S}.keyBy",
        "of the table 'users'",
        "toStream: {} before it, whose records are the table's changes, and keyBy that",
    ),
    "repartition-table": (
        application(step(from_="users", repartition={})),
        f"{S}.repartition",
        "repartition of the table 'users'",
        "toStream: {} before it, whose records are the table's changes, and repartition that",
    ),
    "repartition-of-windows": (
        application(
            total(window={"tumbling": {"size": "1m"}}),
            {"name": "changes", "from": "s", "toStream": {}},
            {"name": "wide", "from": "changes", "repartition": {"partitions": 3}},
        ),
        "spec.topology.steps[2].repartition",
        "repartition of 'changes', whose keys have windows",
        "put a keyBy before it",
    ),
    "repartition-into-nothing": (
        application(step(repartition={"partitions": 0})),
        f"{S}.repartition.partitions",
        "found 0",
        "at least 1",
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
        "repartitioning of 'k'",
        "another name",
    ),
    "sliding-window-without-a-length": (
        application(total(window={"sliding": {"timeDifference": "0ms"}})),
        f"{S}.window.sliding.timeDifference",
        "without a length",
        "1ms",
    ),
    "sliding-window-kept-too-shortly": (
        application(total(window={"sliding": {"timeDifference": "1m", "grace": "1s"}, "retention": "2m"})),
        f"{S}.window.retention",
        "does not come to its end",
        "at least 2m1s",
    ),
    "late-records-to-a-source": (
        application(total(window={"tumbling": {"size": "1m"}, "late": {"topic": "orders"}})),
        f"{S}.window.late.topic",
        "is read by",
        "write to another topic",
    ),
    "window-of-no-kind": (
        application(total(window={"retention": "1h"})),
        f"{S}.window",
        "no kind of window",
        "tumbling, hopping, sliding or session",
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
    "window-offset-of-a-size": (
        application(total(window={"tumbling": {"size": "1m", "offset": "1m30s"}})),
        f"{S}.window.tumbling.offset",
        "1m30s, when a window begins every 1m",
        "give 30s",
    ),
    "window-offset-of-an-advance": (
        application(total(window={"hopping": {"size": "1m", "advance": "20s", "offset": "20s"}})),
        f"{S}.window.hopping.offset",
        "20s, when a window begins every 20s",
        "give 0ms",
    ),
    "window-in-a-zone-that-is-none": (
        application(total(window={"tumbling": {"size": "1d", "timezone": "Europe/Berln"}})),
        f"{S}.window.tumbling.timezone",
        "'Europe/Berln', which is no time zone",
        "did you mean 'Europe/Berlin'?",
    ),
    "window-in-an-abbreviated-zone": (
        application(total(window={"tumbling": {"size": "1d", "timezone": "CEST"}})),
        f"{S}.window.tumbling.timezone",
        "'CEST', which is no time zone",
        "give a name such as Europe/Berlin",
    ),
    "window-in-a-zone-of-an-offset": (
        application(total(window={"tumbling": {"size": "1d", "timezone": "+02:00"}})),
        f"{S}.window.tumbling.timezone",
        "'+02:00', which is no place's clock",
        "leave timezone out and give offset: 22h",
    ),
    "window-in-a-zone-without-a-name": (
        application(total(window={"tumbling": {"size": "1d", "timezone": ""}})),
        f"{S}.window.tumbling.timezone",
        "''",
        "at least one character",
    ),
    "window-of-hours-in-a-zone": (
        application(total(window={"tumbling": {"size": "36h", "timezone": "Europe/Berlin"}})),
        f"{S}.window.tumbling.size",
        "1d12h by the clock of a time zone, which only divides time into days",
        "whole days, such as 1d",
    ),
    "hopping-windows-in-a-zone": (
        application(total(window={"hopping": {"size": "2d", "advance": "1d", "timezone": "Europe/Berlin"}})),
        f"{S}.window.hopping.timezone",
        "timezone is not there yet",
        "use tumbling",
    ),
    "day-of-a-zone-kept-too-shortly": (
        application(total(window={"tumbling": {"size": "1d", "timezone": "Europe/Berlin"}, "retention": "1d"})),
        f"{S}.window.retention",
        "does not come to its end",
        "at least 1d1h",
    ),
    "session-without-a-gap": (
        application(total(window={"session": {"gap": "0ms"}})),
        f"{S}.window.session.gap",
        "no second record can reach",
        "1ms",
    ),
    "session-kept-too-shortly": (
        application(total(window={"session": {"gap": "1m", "grace": "1s"}, "retention": "1m"})),
        f"{S}.window.retention",
        "does not come to its end",
        "at least 1m1s",
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
    "first-without-nulls": (
        application(total(aggregate={"n": "first(user) ignore nulls"})),
        f"{S}.aggregate.n",
        "can't be chosen yet",
        "a where before the aggregate",
    ),
    "join-without-columns": (
        application(step(join={"table": "users"})),
        f"{S}.join.select",
        "is missing",
        "columns that the join adds",
    ),
    "join-of-another-kind": (
        application(joined(more={"type": "cross"})),
        f"{S}.join.type",
        "found 'cross'",
        "'inner', 'left' or 'outer'",
    ),
    "outer-join-with-a-table": (
        application(joined(more={"type": "outer"})),
        f"{S}.join.type",
        "an outer join of the stream 'orders' with a table",
        "use inner or left",
    ),
    "join-with-a-table-and-a-stream": (
        application(joined(more={"stream": "clicks", "within": "1m"})),
        f"{S}.join",
        "table and stream in one join",
        "a table, or a stream",
    ),
    "join-with-nobody": (
        application(step(join={"select": {"x": "1"}})),
        f"{S}.join",
        "neither table nor stream",
        "name",
    ),
    "join-with-a-table-within-a-time": (
        application(joined(more={"within": "1m"})),
        f"{S}.join.within",
        "times for a join with a table",
        "leave it out",
    ),
    "join-with-a-table-with-grace": (
        application(joined(more={"grace": "1m"})),
        f"{S}.join.grace",
        "times for a join with a table",
        "leave it out",
    ),
    "streams-without-a-time": (application(streams(within=None)), f"{S}.join.within", "is missing", "such as 5m"),
    "streams-within-no-time": (
        application(streams(within={"before": "0ms", "after": "0ms"})),
        f"{S}.join.within",
        "without a length and without grace",
        "at least 1ms",
    ),
    "streams-within-a-number": (
        application(streams(within=5)),
        f"{S}.join.within",
        "found 5",
        "{before: 5m, after: 1m}",
    ),
    "streams-within-nonsense": (
        application(streams(within="soon")),
        f"{S}.join.within",
        "found 'soon', which is not a duration",
        "5m",
    ),
    "streams-within-half": (
        application(streams(within={"before": "5m"})),
        f"{S}.join.within.after",
        "is missing",
        "",
    ),
    "stream-with-a-table": (
        application(streams("users")),
        f"{S}.join.stream",
        "'users' is a table",
        "join: {table: …}",
    ),
    "table-with-a-stream": (
        application(streams("orders", from_="users", select={"x": "orders.amount"})),
        f"{S}.from",
        "'users' is a table",
        "join two streams",
    ),
    "stream-with-nothing": (
        application(streams("payment")),
        f"{S}.join.stream",
        "called 'payment'",
        "did you mean 'payments'?",
    ),
    "streams-without-a-key": (
        application(streams("clicks", select={"x": "clicks.value"})),
        f"{S}.join.stream",
        "clicks declares none",
        "declare the source's key",
    ),
    "streams-with-two-types-of-key": (
        application(step(name="k", keyBy="amount"), streams(from_="k")),
        "spec.topology.steps[1].join.stream",
        "the key of 'k' is DOUBLE, that of 'payments' STRING",
        "gives both one type",
    ),
    "streams-with-an-unknown-column": (
        application(streams(select={"x": "payments.pad"})),
        f"{S}.join.select.x",
        "'payments' has no field 'pad'",
        "did you mean 'paid'?",
    ),
    "streams-with-the-place-of-one-record": (
        application(streams(select={"x": "_offset"})),
        f"{S}.join.select.x",
        "'_offset'",
        "",
    ),
    "streams-with-a-column-of-the-streams-name": (
        application(step(name="a", select={"payments": "user"}), streams(from_="a")),
        "spec.topology.steps[1].join.stream",
        "'a' has a column called 'payments'",
        "another name",
    ),
    "store-of-a-join-of-streams": (
        application(
            streams(), total(name="n", from_="payments", aggregate={"n": "count(*)"}, store="s-this-join-store")
        ),
        "spec.topology.steps[1].store",
        "the store 's-this-join-store' is used twice",
        "its own name",
    ),
    "join-with-a-stream": (application(joined("clicks")), f"{S}.join.table", "is a stream", "table: {store"),
    "join-with-nothing": (application(joined("user")), f"{S}.join.table", "called 'user'", "did you mean 'users'?"),
    "join-with-a-step": (
        application(joined("named"), {"name": "named", "from": "users", "where": "true"}),
        f"{S}.join.table",
        "the step 'named', whose rows no store keeps",
        "To keep this one, put toStream: {} and toTable: {store: …} behind it",
    ),
    "outer-join-of-a-stream": (
        application(joined(more={"type": "outer"})),
        f"{S}.join.type",
        "an outer join of the stream 'orders'",
        "use inner or left",
    ),
    "join-of-a-table-with-itself-once-more-each-time": (
        application(
            joined("users", name="s0", from_="users"),
            *(joined(f"s{n}", select={"x": f"s{n}.tier"}, name=f"s{n + 1}", from_=f"s{n}") for n in range(6)),
        ),
        "spec.topology.steps[6].join.table",
        "each change of users would come to 's6' by 128 paths, more than 64",
        "put toStream: {} and toTable: {store: …} behind 's5'",
    ),
    "join-of-a-table-with-a-stream": (
        application(joined("orders", select={"amount": "orders.amount"}, from_="users")),
        f"{S}.join.table",
        "'orders' is a stream, and 'users' is a table",
        "from: orders, join: {table: users}",
    ),
    "join-of-a-table-with-windows": (
        application(
            joined("t", select={"n": "t.n"}, from_="users"),
            total(name="t", window={"tumbling": {"size": "1m"}}),
        ),
        f"{S}.join.table",
        "a join of 't', whose rows are windows, and 'users', whose rows are none",
        "make a table of 't' under another key",
    ),
    "join-of-windows-with-a-table": (
        application(
            joined(from_="w"),
            total(name="t", window={"tumbling": {"size": "1m"}}),
            {"name": "w", "from": "t", "where": "n > 1"},
        ),
        f"{S}.join.table",
        "a join of 'w', whose rows are windows, and 'users', whose rows are none",
        "make a table of 'w' under another key",
    ),
    **{
        f"join-of-windows-{name}": (
            application(
                joined("t", select={"n": "t.n"}, from_="u"),
                total(name="t", window=one),
                total(name="u", window=two) | U,
            ),
            f"{S}.join.table",
            f"'u' has {mine}, and 't' has {theirs}",
            "give both the same",
        )
        for name, one, two, mine, theirs in (
            (
                "of-two-sizes",
                {"tumbling": {"size": "1m"}},
                {"hopping": {"size": "2m", "advance": "1m"}},
                "window.hopping.size 2m",
                "window.tumbling.size 1m",
            ),
            (
                "of-two-advances",
                {"tumbling": {"size": "2m"}},
                {"hopping": {"size": "2m", "advance": "1m"}},
                "window.hopping.advance 1m",
                "window.tumbling.size 2m",
            ),
            (
                "of-two-offsets",
                {"tumbling": {"size": "2m", "offset": "1m"}},
                {"tumbling": {"size": "2m"}},
                "window.tumbling.offset 0ms",
                "window.tumbling.offset 1m",
            ),
            (
                "by-two-clocks",
                {"tumbling": {"size": "1d", "timezone": "Europe/Berlin"}},
                {"tumbling": {"size": "1d"}},
                "no window.tumbling.timezone",
                "window.tumbling.timezone Europe/Berlin",
            ),
            (
                "of-two-gaps",
                {"session": {"gap": "1m"}},
                {"session": {"gap": "2m"}},
                "window.session.gap 2m",
                "window.session.gap 1m",
            ),
            (
                "of-two-differences",
                {"sliding": {"timeDifference": "1m"}},
                {"sliding": {"timeDifference": "2m"}},
                "window.sliding.timeDifference 2m",
                "window.sliding.timeDifference 1m",
            ),
            (
                "of-two-kinds",
                {"session": {"gap": "1m"}},
                {"tumbling": {"size": "1m"}},
                "window.tumbling",
                "window.session",
            ),
        )
    },
    "join-of-windows-that-have-closed": (
        application(
            joined("t", select={"n": "t.n"}, from_="u"),
            total(name="t", window={"tumbling": {"size": "1m"}}, suppress="untilWindowCloses"),
            total(name="u", window={"tumbling": {"size": "1m"}}) | U,
        ),
        f"{S}.join.table",
        "a join of two tables of which 't' has windows that have closed is not there yet",
        "leave the suppress of 't' out",
    ),
    "join-of-tables-without-a-key": (
        application(
            joined("plans", select={"p": "plans.price"}, from_="users"), sources=(USERS, PLANS | {"key": None})
        ),
        f"{S}.join.table",
        "plans declares none",
        "the source's key",
    ),
    "join-of-tables-with-two-keys": (
        application(joined("plans", select={"p": "plans.price"}, from_="users"), sources=(USERS, PLANS)),
        f"{S}.join.table",
        "the key of 'users' is STRING, that of 'plans' BIGINT",
        "keys of one type",
    ),
    "join-of-tables-with-an-unknown-column": (
        application(
            joined("plans", select={"p": "plans.prize"}, from_="users"),
            sources=(USERS, PLANS | {"key": {"format": "string"}}),
        ),
        f"{S}.join.select.p",
        "'plans' has no field 'prize'",
        "did you mean 'price'?",
    ),
    "join-of-tables-with-a-column-of-a-tables-name": (
        application(
            step(name="a", from_="users", select={"plans": "name"}),
            joined("plans", select={"p": "plans.price"}, from_="a"),
            sources=(USERS, PLANS | {"key": {"format": "string"}}),
        ),
        "spec.topology.steps[1].join.table",
        "'a' has a column called 'plans'",
        "another name",
    ),
    "join-with-a-store": (
        application(joined() | {"store": "both"}),
        f"{S}.store",
        "a store of what a join gives is not there yet",
        "put two behind it: toStream: {}, and toTable: {store: …}",
    ),
    "where-of-a-table-that-changes-by-itself": (
        application(step(from_="users", where="name > 'm' or rand() > 0.5")),
        f"{S}.where",
        "rand is another value when the row changes",
        "use what the record has",
    ),
    "join-of-tables-that-changes-by-itself": (
        application(
            joined("plans", select={"p": "uuid()"}, from_="users"),
            sources=(USERS, PLANS | {"key": {"format": "string"}}),
        ),
        f"{S}.join.select.p",
        "uuid is another value when the row changes",
        "use what the record has",
    ),
    "time-of-a-table-that-changes-by-itself": (
        application(sources=(USERS | {"timestamp": "now()"},)),
        f"{SRC}.timestamp",
        "now is another value when the row changes",
        "use what the record has",
    ),
    "offset-of-a-row": (
        application(step(from_="users", select={"o": "_offset"})),
        f"{S}.select.o",
        "unknown column '_offset'",
        "known here",
    ),
    "join-without-a-key": (
        application(joined(from_="clicks")),
        f"{S}.join",
        "clicks declares none",
        "keyBy step before",
    ),
    "join-with-another-key": (
        application({"name": "k", "from": "orders", "keyBy": "amount"}, joined(from_="k")),
        "spec.topology.steps[1].join.table",
        "the key of 'k' is DOUBLE, that of 'users' STRING",
        "keyBy before the join",
    ),
    "join-with-an-unknown-column": (
        application(joined(select={"t": "users.teir"})),
        f"{S}.join.select.t",
        "'users' has no field 'teir'",
        "did you mean 'tier'?",
    ),
    "join-with-a-column-of-the-tables-name": (
        application(step(name="a", select={"users": "user"}), joined(from_="a")),
        "spec.topology.steps[1].join.table",
        "'a' has a column called 'users'",
        "another name",
    ),
    "behind-a-join": (
        application(joined(), step(name="b", from_="s", where="teir > 1")),
        "spec.topology.steps[1].where",
        "unknown column 'teir'",
        "did you mean 'tier'?",
    ),
    "flat-map-beside-select": (
        application(step(flatMap={"explode": "array(user)", "as": "one"}, select={"x": "user"})),
        S,
        "select and flatMap in one step",
        "a step of each",
    ),
    "flat-map-of-an-unknown-column": (
        application(step(flatMap={"explode": "split(usr, ',')", "as": "one"})),
        f"{S}.flatMap.explode",
        "'usr'",
        "did you mean 'user'?",
    ),
    "flat-map-syntax": (
        application(step(flatMap={"explode": "split(user", "as": "one"})),
        f"{S}.flatMap.explode",
        "does not close the '('",
        "one Spark SQL expression",
    ),
    "flat-map-of-no-array": (
        application(step(flatMap={"explode": "user", "as": "one"})),
        f"{S}.flatMap.explode",
        "'user' is STRING, which has no elements",
        "give an ARRAY",
    ),
    "flat-map-by-explode": (
        application(step(flatMap={"explode": "explode(array(user))", "as": "one"})),
        f"{S}.flatMap.explode",
        "several rows",
        "explode: <the array>",
    ),
    "flat-map-over-a-column": (
        application(step(flatMap={"explode": "split(user, ',')", "as": "User"})),
        f"{S}.flatMap.as",
        "the column 'user' is there already",
        "another name",
    ),
    "flat-map-over-metadata": (
        application(step(flatMap={"explode": "split(user, ',')", "as": "_offset"})),
        f"{S}.flatMap.as",
        "begins with _",
        "without the _",
    ),
    "flat-map-without-a-name": (
        application(step(flatMap={"explode": "split(user, ',')"})),
        f"{S}.flatMap.as",
        "is missing",
        "name of the column",
    ),
    "flat-map-of-a-table": (
        application(step(from_="users", flatMap={"explode": "split(name, ' ')", "as": "word"})),
        f"{S}.flatMap",
        "flatMap of the table 'users'",
        "the stream that the table is made of",
    ),
    "element-without-this-field": (
        application(
            step(name="each", flatMap={"explode": "lines", "as": "line"}),
            step(from_="each", where="line.amuont > 1"),
            sources=[{**ORDERS, "value": {"format": "json", "schema": "lines ARRAY<STRUCT<amount: INT>>"}}],
        ),
        "spec.topology.steps[1].where",
        "'line' has no field 'amuont'",
        "did you mean 'amount'?",
    ),
    "split-in-which-a-column-is-unknown": (
        application(step(split=[{"name": "a", "where": "amount > 1"}, {"name": "b", "where": "amuont > 0"}])),
        f"{S}.split[1].where",
        "'amuont'",
        "did you mean 'amount'?",
    ),
    "split-by-no-condition": (
        application(step(split=[{"name": "a", "where": "amount"}])),
        f"{S}.split[0].where",
        "'amount' is DOUBLE, not a condition",
        "compare it",
    ),
    "split-by-chance": (
        application(step(split=[{"name": "a", "where": "rand() < 0.5"}])),
        f"{S}.split[0].where",
        "rand is another value for each branch",
        "pmod(hash(_key), 2) = 0",
    ),
    "split-by-the-clock": (
        application(step(split=[{"name": "a", "where": "ts < current_timestamp"}])),
        f"{S}.split[0].where",
        "current_timestamp is another value for each branch",
        "use what the record has",
    ),
    "split-as-fields": (
        application(step(split={"large": "amount > 1"})),
        f"{S}.split",
        "found fields (large)",
        "give a list",
    ),
    "split-into-nothing": (application(step(split=[])), f"{S}.split", "found a list of 0", "at least 1"),
    "split-with-a-branch-twice": (
        application(step(split=[{"name": "a", "where": "true"}, {"name": "a", "where": "true"}])),
        f"{S}.split[1].name",
        f"the branch 'a' is there already, {S}.split[0].name",
        "another name",
    ),
    "split-with-a-default-like-a-branch": (
        application(step(split=[{"name": "a", "where": "true"}], default="a")),
        f"{S}.default",
        "the branch 'a' is there already",
        "another name",
    ),
    "split-with-a-branch-that-is-no-name": (
        application(step(split=[{"name": "a b", "where": "true"}])),
        f"{S}.split[0].name",
        "found 'a b'",
        "letters, digits",
    ),
    "split-beside-where": (
        application(step(where="true", split=[{"name": "a", "where": "true"}])),
        S,
        "where and split in one step",
        "a step of each",
    ),
    "split-of-a-table": (
        application(step(from_="users", split=[{"name": "gold", "where": "tier = 'gold'"}])),
        f"{S}.split",
        "split of the table 'users'",
        "a where step of its own",
    ),
    "default-without-a-split": (
        application(step(where="true", default="rest")),
        f"{S}.default",
        "splits nothing",
        "leave it out",
    ),
    "branch-that-is-not-there": (
        application(
            step(split=[{"name": "large", "where": "true"}], default="rest"),
            step(name="t", from_="s.larg", where="true"),
        ),
        "spec.topology.steps[1].from",
        "no source or step is called 's.larg'",
        "did you mean 's.large'?",
    ),
    "split-without-its-branch": (
        application(step(split=[{"name": "a", "where": "true"}], default="b"), sinks=[{"from": "s", "topic": "out"}]),
        f"{SINK}.from",
        "'s' is split",
        "name a branch: s.a, s.b",
    ),
    "branch-called-like-a-step": (
        application(step(name="s.a", where="true"), step(split=[{"name": "a", "where": "true"}])),
        "spec.topology.steps[1].name",
        "its branch would be called 's.a', which is the name of spec.topology.steps[0]",
        "another name",
    ),
    "branch-that-flows-back": (
        application(step(from_="t", split=[{"name": "a", "where": "true"}]), step(name="t", from_="s.a", where="true")),
        S,
        "s → t → s",
        "from elsewhere",
    ),
    "branch-without-a-condition": (
        application(step(split=[{"name": "a"}]), step(name="t", from_="s.a", where="true")),
        f"{S}.split[0].where",
        "is missing",
        "SQL condition",
    ),
    "branch-with-a-field-too-many": (
        application(
            step(split=[{"name": "a", "where": "true", "when": "x"}]), step(name="t", from_="s.a", where="x > 1")
        ),
        f"{S}.split[0].when",
        "no such field",
        "did you mean 'where'?",
    ),
    "peek-at-an-unknown-column": (
        application(step(peek={"log": "concat(usr, '')"})),
        f"{S}.peek.log",
        "'usr'",
        "did you mean 'user'?",
    ),
    "dedupe-by-an-unknown-column": (
        application(step(dedupe={"within": "1m", "by": "usr"})),
        f"{S}.dedupe.by",
        "'usr'",
        "did you mean 'user'",
    ),
    "dedupe-by-an-aggregate": (
        application(step(dedupe={"within": "1m", "by": "max(user)"})),
        f"{S}.dedupe.by",
        "max is an aggregate",
        "aggregate step",
    ),
    "dedupe-by-what-is-no-id": (
        application(step(dedupe={"within": "1m", "by": "_timestamp"})),
        f"{S}.dedupe.by",
        "'_timestamp' is TIMESTAMP, which no key has",
        "cast it",
    ),
    "dedupe-by-chance": (
        application(step(dedupe={"within": "1m", "by": "uuid()"})),
        f"{S}.dedupe.by",
        "uuid gives another id each time",
        "what the record has",
    ),
    "dedupe-without-a-time": (application(step(dedupe={"by": "user"})), f"{S}.dedupe.within", "is missing", "give it"),
    "dedupe-within-no-time": (
        application(step(dedupe={"within": "0ms"})),
        f"{S}.dedupe.within",
        "a time without a length",
        "at least 1ms",
    ),
    "dedupe-of-records-without-a-key": (
        application(step(from_="clicks", dedupe={"within": "1m"})),
        f"{S}.dedupe",
        "records without a key: clicks declares none",
        "put a keyBy step before the dedupe, or name another id: by",
    ),
    "store-in-memory-of-an-aggregate": (
        application(total(store={"name": "t", "type": "memory"})),
        f"{S}.store.type",
        "a store has no type: every one is RocksDB",
        "memtables and block cache",
    ),
    "store-in-memory-of-a-processor": (
        application(
            step(
                process={
                    "python": "rules:Bursts",
                    "value": "n BIGINT",
                    "stores": {"seen": {"key": "STRING", "value": "n BIGINT", "type": "memory"}},
                }
            )
        ),
        f"{S}.process.stores.seen.type",
        "every one is RocksDB",
        "spec.state.rocksdb.memory",
    ),
    "store-of-a-processor-with-a-ttl": (
        application(
            step(
                process={
                    "python": "rules:Bursts",
                    "value": "n BIGINT",
                    "stores": {"seen": {"key": "STRING", "value": "n BIGINT", "ttl": "1h"}},
                }
            )
        ),
        f"{S}.process.stores.seen.ttl",
        "a store has no ttl",
        "a process step whose punctuator goes by stream time",
    ),
    "table-in-memory": (
        application(sources=[ORDERS, {**USERS, "table": {"store": "users", "type": "memory"}}]),
        "spec.topology.sources[1].table.type",
        "every one is RocksDB",
        "leave it out",
    ),
    "table-with-a-ttl": (
        application(step(toTable={"store": "t", "ttl": "1h"})),
        f"{S}.toTable.ttl",
        "a store has no ttl",
        "in front of a toTable",
    ),
    "aggregate-with-a-ttl": (
        application(total(ttl="1h")),
        f"{S}.ttl",
        "a store has no ttl",
        "aggregate in windows",
    ),
    "process-by-what-is-no-class": (
        application(step(process={"python": "rules.Alerts", "value": "n BIGINT"})),
        f"{S}.process.python",
        "found 'rules.Alerts'",
        "write package.module:Class",
    ),
    "process-without-columns": (
        application(step(process={"python": "rules:Alerts"})),
        f"{S}.process.value",
        "is missing",
        "give it",
    ),
    "process-with-an-output-twice": (
        application(step(process={**ALERTS, "outputs": ["large", "small", "large"]})),
        f"{S}.process.outputs[2]",
        f"the output 'large' is there already, {S}.process.outputs[0]",
        "another name",
    ),
    "process-with-an-output-that-is-no-name": (
        application(step(process={**ALERTS, "outputs": ["a b"]})),
        f"{S}.process.outputs[0]",
        "found 'a b'",
        "letters, digits",
    ),
    "process-with-no-outputs": (
        application(step(process={**ALERTS, "outputs": []})),
        f"{S}.process.outputs",
        "found a list of 0",
        "at least 1",
    ),
    "process-with-one-output-as-text": (
        application(step(process={**ALERTS, "outputs": "large"})),
        f"{S}.process.outputs",
        "found 'large'",
        "give a list",
    ),
    "process-without-its-output": (
        application(step(process={**ALERTS, "outputs": ["a", "b"]}), sinks=[{"from": "s", "topic": "out"}]),
        f"{SINK}.from",
        "'s' has outputs",
        "name an output: s.a, s.b",
    ),
    "output-that-is-not-there": (
        application(
            step(process={**ALERTS, "outputs": ["large", "small"]}), step(name="t", from_="s.larg", where="true")
        ),
        "spec.topology.steps[1].from",
        "no source or step is called 's.larg'",
        "did you mean 's.large'?",
    ),
    "output-called-like-a-step": (
        application(step(name="s.a", where="true"), step(process={**ALERTS, "outputs": ["a"]})),
        "spec.topology.steps[1].name",
        "its output would be called 's.a', which is the name of spec.topology.steps[0]",
        "another name",
    ),
    "process-with-windows-that-expire-before-they-end": (
        application(step(process=windows_of({"size": "10m", "retention": "5m"}))),
        f"{S}.process.stores.w.window.retention",
        "5m, in which a window does not come to its end",
        "at least its size, 10m",
    ),
    "process-with-windows-without-a-length": (
        application(step(process=windows_of({"size": "0ms", "retention": "5m"}))),
        f"{S}.process.stores.w.window.size",
        "windows without a length",
        "at least 1ms",
    ),
    "process-with-windows-that-are-kept-for-no-time": (
        application(step(process=windows_of({"size": "1m"}))),
        f"{S}.process.stores.w.window.retention",
        "is missing",
        "",
    ),
    "process-with-sessions-in-windows": (
        application(step(process=windows_of({"size": "1m", "retention": "1h"}, session={"retention": "1h"}))),
        f"{S}.process.stores.w.session",
        "sessions in a store that has windows",
        "give window or session",
    ),
    "process-with-sessions-that-are-kept-for-no-time": (
        application(step(process=sessions_of({"retention": "0ms"}))),
        f"{S}.process.stores.s.session.retention",
        "0ms, in which no session is kept",
        "at least 1ms",
    ),
    "process-with-sessions-of-unknown-retention": (
        application(step(process=sessions_of({}))),
        f"{S}.process.stores.s.session.retention",
        "is missing",
        "",
    ),
    "process-with-sessions-that-have-a-gap": (
        application(step(process=sessions_of({"gap": "1m", "retention": "1h"}))),
        f"{S}.process.stores.s.session.gap",
        "no such field",
        "known here: retention",
    ),
    "process-to-what-is-no-schema": (
        application(step(process={"python": "rules:Alerts", "value": "n"})),
        f"{S}.process.value",
        "'n' has a mistake",
        'write columns as "name TYPE, name TYPE"',
    ),
    "process-to-what-json-does-not-hold": (
        application(step(process={"python": "rules:Alerts", "value": "n BIGINT, price DECIMAL(10, 2)"})),
        f"{S}.process.value",
        "the column 'price' has DECIMAL(10, 2)",
        "declare numbers, STRING",
    ),
    "process-to-keys-of-no-type": (
        application(step(process={"python": "rules:Alerts", "value": "n BIGINT", "key": "TEXTS OF MINE"})),
        f"{S}.process.key",
        "'TEXTS OF MINE' is no type",
        "give STRING, BIGINT, INT, DOUBLE or BINARY",
    ),
    "process-to-keys-of-no-format": (
        application(step(process={"python": "rules:Alerts", "value": "n BIGINT", "key": "DATE"})),
        f"{S}.process.key",
        "keys of the type DATE",
        "give STRING, BIGINT, INT, DOUBLE or BINARY",
    ),
    "process-with-a-store-of-keys-of-no-format": (
        application(
            step(process={"python": "r:A", "value": "n INT", "stores": {"seen": {"key": "DATE", "value": "n INT"}}})
        ),
        f"{S}.process.stores.seen.key",
        "keys of the type DATE",
        "give STRING",
    ),
    "process-with-a-store-of-what-json-does-not-hold": (
        application(
            step(
                process={
                    "python": "r:A",
                    "value": "n INT",
                    "stores": {"seen": {"key": "INT", "value": "m MAP<STRING, INT>"}},
                }
            )
        ),
        f"{S}.process.stores.seen.value",
        "the column 'm' has MAP<STRING, INT>",
        "declare numbers",
    ),
    "process-with-a-store-of-its-own-store's-name": (
        application(
            step(
                process={
                    "python": "r:A",
                    "value": "n INT",
                    "stores": {"s-process-store": {"key": "INT", "value": "n INT"}},
                }
            )
        ),
        f"{S}.name",
        "the store 's-process-store' is used twice",
        "give each store its own name",
    ),
    "process-with-a-store-beside-its-own": (
        application(step(process={"python": "rules:Alerts", "value": "n BIGINT"}, store="seen")),
        f"{S}.store",
        "a store beside those of a process step, which are declared in process.stores",
        "leave it out",
    ),
    "process-of-a-table": (
        application(step(from_="users", process={"python": "rules:Alerts", "value": "n BIGINT"})),
        f"{S}.process",
        "a processor of the table 'users'",
        "put a step toStream: {} before it",
    ),
    "dedupe-of-a-table": (
        application(step(from_="users", dedupe={"within": "1m"})),
        f"{S}.dedupe",
        "dedupe of the table 'users'",
        "dedupe a stream",
    ),
    "dedupe-beside-a-filter": (
        application(step(where="amount > 1", dedupe={"within": "1m"})),
        S,
        "where and dedupe in one step",
        "a step of each",
    ),
    "dedupe-with-a-store": (
        application(step(dedupe={"within": "1m"}, store="mine")),
        f"{S}.store",
        "the store of a dedupe, which is called 's-dedupe-store'",
        "leave it out",
    ),
    "store-of-a-dedupe": (
        application(step(dedupe={"within": "1m"}), total(name="n", store="s-dedupe-store")),
        f"{S.replace('0', '1')}.store",
        "the store 's-dedupe-store' is used twice",
        "its own name",
    ),
    "header-of-an-unknown-column": (
        application(step(headers={"who": "usr"})),
        f"{S}.headers.who",
        "usr",
        "did you mean 'user'",
    ),
    "headers-for-a-table": (
        application(step(from_="users", headers={"who": "name"})),
        f"{S}.headers",
        "of several records",
        "set them on a stream",
    ),
    "peek-at-nothing": (application(step(peek={"level": "info"})), f"{S}.peek", "shows nothing", "log, metric or both"),
    "peek-at-a-value-without-a-metric": (
        application(step(peek={"log": "user", "value": "amount"})),
        f"{S}.peek.value",
        "a value of no metric",
        "give the metric a name",
    ),
    "peek-that-adds-up-texts": (
        application(step(peek={"metric": "users", "value": "user"})),
        f"{S}.peek.value",
        "'user' is STRING, which can't be added up",
        "give a number",
    ),
    "peek-with-an-odd-name": (
        application(step(peek={"metric": "a b"})),
        f"{S}.peek.metric",
        "found 'a b'",
        "letters, digits",
    ),
    "peek-at-another-level": (
        application(step(peek={"log": "user", "level": "trace"})),
        f"{S}.peek.level",
        "found 'trace'",
        "'debug' or 'info'",
    ),
    "peek-at-too-many": (
        application(step(peek={"log": "user", "atMost": 5000})),
        f"{S}.peek.atMost",
        "found 5000",
        "at most 1000",
    ),
    "peek-at-a-table": (
        application(step(from_="users", peek={"log": "name"})),
        f"{S}.peek",
        "peek at the table 'users'",
        "peek at the stream before the table",
    ),
    "history-without-a-length": (
        application(step(keyBy="user"), step(name="t", from_="s", toTable={"store": "t", "historyRetention": "0ms"})),
        "spec.topology.steps[1].toTable.historyRetention",
        "a history without a length",
        "at least 1ms",
    ),
    "history-of-a-source-without-a-length": (
        application(sources=[ORDERS, versioned("0s")]),
        "spec.topology.sources[1].table.historyRetention",
        "a history without a length",
        "at least 1ms",
    ),
    "history-of-a-global-table": (
        application(sources=[ORDERS, versioned("1h", **{"global": True})]),
        "spec.topology.sources[1].table.historyRetention",
        "a history of a global table",
        "leave it out",
    ),
    "history-by-times-that-are-not-in-the-topic": (
        application(sources=[ORDERS, {**versioned("1h"), "timestamp": "_timestamp"}]),
        "spec.topology.sources[1].table.historyRetention",
        "the times of an expression",
        "leave timestamp out",
    ),
    "where-of-a-table-with-a-history": (
        application(step(from_="users", where="tier = 'gold'"), sources=[ORDERS, versioned("1h")]),
        f"{S}.from",
        "'users' is a table with a history",
        "declare it without historyRetention",
    ),
    "to-stream-of-a-table-with-a-history": (
        application(step(from_="users", toStream={}), sources=[ORDERS, versioned("1h")]),
        f"{S}.from",
        "'users' is a table with a history",
        "join a stream with it",
    ),
    "groups-of-a-table-with-a-history": (
        application(
            step(from_="users", groupBy="tier", aggregate={"n": "count(*)"}, store="n"),
            sources=[ORDERS, versioned("1h")],
        ),
        f"{S}.from",
        "'users' is a table with a history",
        "declare it without historyRetention",
    ),
    "table-joined-with-one-with-a-history": (
        application(
            step(name="t", toTable={"store": "t"}),
            step(from_="t", join={"table": "users", "select": {"tier": "users.tier"}}),
            sources=[ORDERS, versioned("1h")],
        ),
        "spec.topology.steps[1].join.table",
        "'users' is a table with a history",
        "declare it without historyRetention",
    ),
    "table-joined-by-a-foreign-key-with-one-with-a-history": (
        application(
            step(name="t", toTable={"store": "t"}),
            step(from_="t", join={"table": "users", "key": "user", "select": {"tier": "users.tier"}}, store="j"),
            sources=[ORDERS, versioned("1h")],
        ),
        "spec.topology.steps[1].join.table",
        "'users' is a table with a history",
        "declare it without historyRetention",
    ),
    "sink-of-a-table-with-a-history": (
        application(step(toTable={"store": "t", "historyRetention": "1h"}), sinks=[{"from": "s", "topic": "out"}]),
        "spec.topology.sinks[0].from",
        "'s' is a table with a history",
        "declare it without historyRetention",
    ),
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
    "suppress-of-changes-without-a-time": (
        application(held_back({})),
        f"{S}.toStream.suppress.within",
        "is missing",
        "give it",
    ),
    "suppress-of-changes-within-no-time": (
        application(held_back({"within": "0ms"})),
        f"{S}.toStream.suppress.within",
        "a time without a length",
        "at least 1ms",
    ),
    "suppress-in-a-buffer-without-bounds": (
        application(held_back({"within": "1m", "buffer": {"full": "fail"}})),
        f"{S}.toStream.suppress.buffer",
        "a buffer without bounds",
        "give it records, bytes or both",
    ),
    "suppress-in-a-buffer-without-room": (
        application(held_back({"within": "1m", "buffer": {"records": 0}})),
        f"{S}.toStream.suppress.buffer.records",
        "found 0",
        "1",
    ),
    "suppress-in-a-full-buffer-that-blocks": (
        application(held_back({"within": "1m", "buffer": {"bytes": 100, "full": "block"}})),
        f"{S}.toStream.suppress.buffer.full",
        "found 'block'",
        "emitEarly",
    ),
    "suppress-of-changes-of-closed-windows": (
        application(
            held_back({"within": "1m"}, from_="n"),
            total(name="n", window={"tumbling": {"size": "1m"}}, suppress="untilWindowCloses"),
        ),
        f"{S}.toStream.suppress",
        "suppress of 'n', windows that have closed",
        "leave the suppress of 'n' out",
    ),
    "suppress-of-the-records-of-a-stream": (
        application(held_back({"within": "1m"}, from_="orders")),
        f"{S}.toStream",
        "toStream of 'orders', which is a stream",
        "leave the step out",
    ),
    "suppress-with-a-store": (
        application(held_back({"within": "1m"}, store="mine")),
        f"{S}.store",
        "the store of a suppress, which is called 's-suppress-store'",
        "leave it out",
    ),
    "store-of-a-suppress": (
        application(held_back({"within": "1m"}), total(name="n", store="s-suppress-store")),
        f"{S.replace('0', '1')}.store",
        "the store 's-suppress-store' is used twice",
        "its own name",
    ),
    "name-of-a-part-of-a-suppress": (
        application(held_back({"within": "1m"}), step(name="s-suppress", where="amount > 1")),
        f"{S.replace('0', '1')}.name",
        "'s-suppress' is what a part of the toStream 's' with suppress is called",
        "choose another name",
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
        application(sources=[{**ORDERS, "value": {"format": "thrift"}}]),
        f"{SRC}.value.format",
        "found 'thrift'",
        "'string', 'bytes', 'long', 'int', 'double', 'json', 'avro', 'protobuf' or 'jsonschema'",
    ),
    "protobuf-without-schema": (
        application(sources=[{**ORDERS, "value": {"format": "protobuf"}}], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "is missing",
        ".proto",
    ),
    "protobuf-no-schema": (
        application(sources=[protobuf("user STRING")], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "no Protobuf schema: at line 1",
        "message Order",
    ),
    "protobuf-recursive": (
        application(sources=[protobuf(PROTO.replace("double", "Order"))], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "the message Order inside of itself in the field amount",
        "recursive",
    ),
    "protobuf-message": (
        application(sources=[protobuf(PROTO, message="Ordre")], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "there is no message 'Ordre'",
        "'Order'",
    ),
    "protobuf-message-of-json": (
        application(sources=[{**ORDERS, "value": {**ORDERS["value"], "message": "Order"}}]),
        f"{SRC}.value.message",
        "a message for json",
        "format protobuf",
    ),
    "protobuf-message-of-a-json-sink": (
        application(sinks=[{"from": "orders", "topic": "out", "value": {"format": "json", "message": "Order"}}]),
        f"{SINK}.value.message",
        "a message for json",
        "format protobuf",
    ),
    "protobuf-sink-no-schema": (
        application(sinks=[protobuf_sink(schema="user STRING")], kafka=REGISTRY),
        f"{SINK}.value.schema",
        "no Protobuf schema: at line 1",
        "message Order",
    ),
    "protobuf-message-of-no-schema": (
        application(sinks=[protobuf_sink(message="Order")], kafka=REGISTRY),
        f"{SINK}.value.message",
        "the message 'Order' of no schema",
        "leave it out",
    ),
    "protobuf-column": (
        application({"name": "s", "from": "orders", "where": "amuont > 1"}, sources=[protobuf(PROTO)], kafka=REGISTRY),
        f"{S}.where",
        "amuont",
        "'amount'",
    ),
    "protobuf-without-registry": (
        application(sources=[protobuf(PROTO)]),
        "spec.kafka.schemaRegistry",
        "spec.topology.sources[0].value.format is protobuf",
        "url",
    ),
    "protobuf-key-of-an-aggregate": (
        application(
            {"name": "s", "from": "orders", "aggregate": {"total": "count(*)"}, "store": "s"},
            sources=[{**ORDERS, "key": {"format": "protobuf", "schema": PROTO}}],
            kafka=REGISTRY,
        ),
        f"{S}.aggregate",
        "orders declares none, or one in a registry",
        "keyBy",
    ),
    "protobuf-key-of-a-table": (
        application(sources=[{**USERS, "key": {"format": "protobuf", "schema": PROTO}}], kafka=REGISTRY),
        f"{SRC}.key.format",
        "the id of the schema",
        "string",
    ),
    "protobuf-key-of-text": (
        application(sinks=[{"from": "orders", "topic": "out", "key": {"format": "protobuf"}}], kafka=REGISTRY),
        f"{SINK}.key.format",
        "protobuf for a key that is STRING, which is no message",
        "named_struct",
    ),
    "protobuf-sink-column": (
        application(
            sinks=[protobuf_sink(schema='syntax = "proto3"; message P { double payd = 1; }')],
            sources=[{**PAYMENTS, "name": "orders"}],
            kafka=REGISTRY,
        ),
        f"{SINK}.value.schema",
        "there is no field for the column 'paid'",
        "'payd'",
    ),
    "protobuf-sink-required": (
        application(
            sinks=[protobuf_sink(schema='syntax = "proto2"; message P { required double payd = 1; }')],
            sources=[{**PAYMENTS, "name": "orders"}],
            kafka=REGISTRY,
        ),
        f"{SINK}.value.schema",
        "the field 'payd' is required",
        "make it optional",
    ),
    "avro-without-schema": (
        application(sources=[{**ORDERS, "value": {"format": "avro"}}], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "is missing",
        "JSON",
    ),
    "avro-no-schema": (
        application(sources=[avro("user STRING")], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "not JSON",
        '"record"',
    ),
    "avro-sink-no-schema": (
        application(sinks=[avro_sink("user STRING")], kafka=REGISTRY),
        f"{SINK}.value.schema",
        "not JSON",
        '"record"',
    ),
    "avro-no-record": (
        application(sources=[avro('"string"')], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "a schema of string, which has no columns",
        '"record"',
    ),
    "avro-union": (
        application(sources=[avro(AVRO.replace('"double"', '["int", "string"]'))], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "a union of int, string in the field amount",
        "one type",
    ),
    "avro-recursive": (
        application(sources=[avro(AVRO.replace('"double"', '["null", "Order"]'))], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "the record Order inside of itself in the field amount",
        "recursive",
    ),
    "avro-metadata": (
        application(sources=[avro(AVRO.replace("amount", "_amount"))], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "'_amount' begins with _",
        "without the _",
    ),
    "avro-column": (
        application({"name": "s", "from": "orders", "where": "amuont > 1"}, sources=[avro(AVRO)], kafka=REGISTRY),
        f"{S}.where",
        "amuont",
        "'amount'",
    ),
    "avro-without-registry": (
        application(sources=[avro(AVRO)]),
        "spec.kafka.schemaRegistry",
        "spec.topology.sources[0].value.format is avro",
        "url",
    ),
    "avro-key-of-an-aggregate": (
        application(
            {"name": "s", "from": "orders", "aggregate": {"total": "count(*)"}, "store": "s"},
            sources=[{**ORDERS, "key": {"format": "avro", "schema": '"string"'}}],
            kafka=REGISTRY,
        ),
        f"{S}.aggregate",
        "orders declares none, or one in a registry",
        "keyBy",
    ),
    "avro-key-of-a-table": (
        application(sources=[{**USERS, "key": {"format": "avro", "schema": '"string"'}}], kafka=REGISTRY),
        f"{SRC}.key.format",
        "the id of the schema",
        "string",
    ),
    "avro-sink-field": (
        application(sinks=[avro_sink(AVRO)], sources=[{**PAYMENTS, "name": "orders"}], kafka=REGISTRY),
        f"{SINK}.value.schema",
        "the field 'user' has no default",
        "give it a default",
    ),
    "avro-sink-column": (
        application(
            sinks=[
                avro_sink(
                    '{"type": "record", "name": "P", "fields": [{"name": "payd", "type": "double", "default": 0}]}'
                )
            ],
            sources=[{**PAYMENTS, "name": "orders"}],
            kafka=REGISTRY,
        ),
        f"{SINK}.value.schema",
        "there is no field for the column 'paid'",
        "'payd'",
    ),
    "jsonschema-without-schema": (
        application(sources=[{**ORDERS, "value": {"format": "jsonschema"}}], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "jsonschema that is read needs the reader's schema",
        "give it as JSON",
    ),
    "jsonschema-no-json": (
        application(sources=[jsonschema("user STRING")], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "a JSON Schema that is not JSON",
        '"properties"',
    ),
    "jsonschema-no-schema": (
        application(sources=[jsonschema(JSON_SCHEMA.replace('"number"', '"decimal"'))], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "at #/properties/amount/type",
        "by the draft that its $schema names",
    ),
    "jsonschema-sink-no-schema": (
        application(sinks=[jsonschema_sink("user STRING")], kafka=REGISTRY),
        f"{SINK}.value.schema",
        "a JSON Schema that is not JSON",
        '"properties"',
    ),
    "jsonschema-no-object": (
        application(sources=[jsonschema('{"type": "string"}')], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "a schema of string, which has no columns",
        '"object"',
    ),
    "jsonschema-several-types": (
        application(
            sources=[jsonschema(JSON_SCHEMA.replace('"number"}', '"number", "oneOf": [{"type": "null"}]}'))],
            kafka=REGISTRY,
        ),
        f"{SRC}.value.schema",
        "oneOf beside type at #/properties/amount",
        "in one of them",
    ),
    "jsonschema-recursive": (
        application(sources=[jsonschema(JSON_SCHEMA.replace('"type": "number"', '"$ref": "#"'))], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "the schema # inside of itself at #/properties/amount",
        "recursive",
    ),
    "jsonschema-metadata": (
        application(sources=[jsonschema(JSON_SCHEMA.replace("amount", "_amount"))], kafka=REGISTRY),
        f"{SRC}.value.schema",
        "'_amount' begins with _",
        "without the _",
    ),
    "jsonschema-message": (
        application(
            sources=[{**ORDERS, "value": {"format": "jsonschema", "schema": JSON_SCHEMA, "message": "Order"}}],
            kafka=REGISTRY,
        ),
        f"{SRC}.value.message",
        "a message for jsonschema",
        "leave it out",
    ),
    "jsonschema-column": (
        application({"name": "s", "from": "orders", "where": "amuont > 1"}, sources=[jsonschema()], kafka=REGISTRY),
        f"{S}.where",
        "amuont",
        "'amount'",
    ),
    "jsonschema-without-registry": (
        application(sources=[jsonschema()]),
        "spec.kafka.schemaRegistry",
        "spec.topology.sources[0].value.format is jsonschema",
        "url",
    ),
    "jsonschema-key-of-an-aggregate": (
        application(
            {"name": "s", "from": "orders", "aggregate": {"total": "count(*)"}, "store": "s"},
            sources=[{**ORDERS, "key": {"format": "jsonschema", "schema": '{"type": "string"}'}}],
            kafka=REGISTRY,
        ),
        f"{S}.aggregate",
        "orders declares none, or one in a registry",
        "keyBy",
    ),
    "jsonschema-key-of-a-table": (
        application(
            sources=[{**USERS, "key": {"format": "jsonschema", "schema": '{"type": "string"}'}}], kafka=REGISTRY
        ),
        f"{SRC}.key.format",
        "the id of the schema",
        "string",
    ),
    "jsonschema-sink-required": (
        application(sinks=[jsonschema_sink(JSON_SCHEMA)], sources=[{**PAYMENTS, "name": "orders"}], kafka=REGISTRY),
        f"{SINK}.value.schema",
        "the property 'user' is required",
        "take it out of required",
    ),
    "jsonschema-sink-column": (
        application(
            sinks=[jsonschema_sink('{"type": "object", "properties": {"payd": {"type": "number"}}}')],
            sources=[{**PAYMENTS, "name": "orders"}],
            kafka=REGISTRY,
        ),
        f"{SINK}.value.schema",
        "there is no property for the column 'paid'",
        "'payd'",
    ),
    "registry-url": (
        application(kafka={"schemaRegistry": {"url": "http://ann:secret@registry:8081"}}),
        "spec.kafka.schemaRegistry.url",
        "an address that can't be used",
        "basic.auth.user.info",
    ),
    "registry-property": (
        application(kafka={"schemaRegistry": {"url": "http://r:8081", "config": {"basic.auth.userinfo": "a:b"}}}),
        'spec.kafka.schemaRegistry.config["basic.auth.userinfo"]',
        "no property of the registry's client",
        "'basic.auth.user.info'",
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
    "offset-reset": (
        application(sources=[{**ORDERS, "offsetReset": "newest"}]),
        f"{SRC}.offsetReset",
        "found 'newest'",
        "give earliest, latest, none, or a duration that is counted back from now, such as 30m or 1d",
    ),
    "offset-reset-without-a-unit": (
        application(sources=[{**ORDERS, "offsetReset": "90"}]),
        f"{SRC}.offsetReset",
        "found '90'",
        "such as 30m or 1d",
    ),
    "offset-reset-of-more-than-a-century": (
        application(kafka={"offsetReset": "99999d"}),
        "spec.kafka.offsetReset",
        "longer than a century",
        "at most 36500d",
    ),
    "offset-reset-of-an-application": (
        application(kafka={"offsetReset": "by_duration:PT1H"}),
        "spec.kafka.offsetReset",
        "found 'by_duration:PT1H'",
        "such as 30m or 1d",
    ),
    "offset-reset-of-a-table": (
        application(sources=[{**USERS, "offsetReset": "latest"}]),
        f"{SRC}.offsetReset",
        "for a table",
        "leave it out, or read the topic as a stream",
    ),
    "offset-reset-of-a-global-table": (
        application(sources=[{**USERS, "table": {"store": "users", "global": True}, "offsetReset": "1h"}, ORDERS]),
        f"{SRC}.offsetReset",
        "for a global table",
        "leave it out, or read the topic as a stream",
    ),
    "partition-by-beside-topic-by": (
        application(sinks=[{"from": "orders", "topicBy": "user", "partitionBy": "1"}]),
        f"{SINK}.partitionBy",
        "partitionBy beside topicBy is not there yet",
        "a sink for each topic",
    ),
    "partition-by-of-a-table": (
        application(sinks=[{"from": "users", "topic": "out", "partitionBy": "1"}]),
        f"{SINK}.partitionBy",
        "partitionBy of the table 'users'",
        "put a step toStream: {} before the sink",
    ),
    "partition-by-a-text": (
        application(sinks=[{"from": "orders", "topic": "out", "partitionBy": "user"}]),
        f"{SINK}.partitionBy",
        "'user' is STRING, which is no number of a partition",
        "cast(… as int)",
    ),
    "partition-by-a-fraction": (
        application(step(repartition={"partitionBy": "amount"})),
        "spec.topology.steps[0].repartition.partitionBy",
        "'amount' is DOUBLE",
        "give an INT or a BIGINT",
    ),
    "partition-by-an-aggregate": (
        application(step(repartition={"partitionBy": "max(amount)"})),
        "spec.topology.steps[0].repartition.partitionBy",
        "max",
        "",
    ),
    "partition-by-no-column": (
        application(step(repartition={"partitionBy": "usr"})),
        "spec.topology.steps[0].repartition.partitionBy",
        "usr",
        "",
    ),
    "topic-twice-with-other-values": (
        application(sources=[ORDERS, {**ORDERS, "name": "again", "value": {"format": "string"}}]),
        "spec.topology.sources[1].value",
        "it differs from spec.topology.sources[0].value, and both sources read the topic 'orders'",
        "equal settings are one source",
    ),
    "topic-twice-with-other-times": (
        application(sources=[ORDERS, {**ORDERS, "name": "again", "timestamp": "now()"}]),
        "spec.topology.sources[1].timestamp",
        "it differs from spec.topology.sources[0].timestamp",
        "give both the same",
    ),
    "topic-twice-with-other-keys": (
        application(sources=[ORDERS, {**ORDERS, "name": "again", "key": {"format": "long"}}]),
        "spec.topology.sources[1].key",
        "it differs from spec.topology.sources[0].key",
        "give both the same",
    ),
    "topic-twice-with-another-beginning": (
        application(sources=[ORDERS, {**ORDERS, "name": "again", "offsetReset": "latest"}]),
        "spec.topology.sources[1].offsetReset",
        "it differs from spec.topology.sources[0].offsetReset",
        "give both the same",
    ),
    "topic-twice-as-a-table": (
        application(sources=[ORDERS, {**ORDERS, "name": "again", "table": {"store": "again"}}]),
        "spec.topology.sources[1].topic",
        "a topic that is a table is read by one source",
        "a toStream makes a stream",
    ),
    "no-source": (application(sources=[]), "spec.topology.sources", "no source", "at least one topic"),
    "global-table": (
        application(
            step(from_="airlines", where="value > 'a'"),
            sources=[ORDERS, {**CLICKS, "name": "airlines", "table": {"store": "a", "global": True}}],
        ),
        "spec.topology.steps[0].from",
        "'airlines' is a global table",
        "join a stream with it",
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
    "changelog-of-a-table-is-written": (
        application(
            sinks=[{"from": "orders", "topic": "shop-users-changelog"}],
            processing={"onDeserializationError": "continue"},
        ),
        f"{SINK}.topic",
        "an internal topic of this application",
        "another topic",
    ),
    "failing-changes-that-wait": (
        application(
            step(from_="users", toStream={"suppress": {"within": "5s"}}), processing={"onProcessingError": "continue"}
        ),
        "spec.processing.onProcessingError",
        "continue is not there yet beside the step 's', which takes its rows from the table 'users'",
        "use fail, or let such steps take their records from streams",
    ),
    "failing-rows-of-a-kept-table": (
        application(
            step(toTable={"store": "t"}),
            {"name": "both", "from": "users", "join": {"table": "s", "type": "left", "select": {"u": "s.user"}}},
            processing={"onProcessingError": "continue"},
        ),
        "spec.processing.onProcessingError",
        "continue is not there yet beside the step 'both', which takes its rows from the table 's'",
        "from tables of topics by where",
    ),
    "failing-rows-of-an-aggregate": (
        application(
            total(store="t"),
            {"name": "after", "from": "s", "where": "true"},
            processing={"onProcessingError": {"deadLetter": {"topic": "letters"}}},
        ),
        "spec.processing.onProcessingError",
        "deadLetter is not there yet beside the step 'after', which takes its rows from the table 's'",
        "from streams",
    ),
    "failing-rows-without-a-match": (
        application(
            step(join={"stream": "payments", "type": "left", "within": "5s", "select": {"p": "payments.paid"}}),
            processing={"onProcessingError": "continue"},
        ),
        "spec.processing.onProcessingError",
        "continue is not there yet beside the step 's', a left join of streams",
        "an inner join",
    ),
    "failing-records-loop": (
        application(sources=[ORDERS], processing={"onProcessingError": {"deadLetter": {"topic": "orders"}}}),
        "spec.processing.onProcessingError.deadLetter.topic",
        "is read by",
        "another topic",
    ),
    "on-processing-error": (
        application(processing={"onProcessingError": "skip"}),
        "spec.processing.onProcessingError",
        "found 'skip'",
        "fail, continue, deadLetter: {topic: NAME} or python",
    ),
    "refused-records-loop": (
        application(sources=[ORDERS], processing={"onProductionError": {"deadLetter": {"topic": "orders"}}}),
        "spec.processing.onProductionError.deadLetter.topic",
        "is read by",
        "another topic",
    ),
    "on-production-error": (
        application(processing={"onProductionError": "retry"}),
        "spec.processing.onProductionError",
        "found 'retry'",
        "fail, continue, deadLetter: {topic: NAME} or python",
    ),
    "dead-letter-loop": (
        application(sources=[ORDERS], processing={"onDeserializationError": {"deadLetter": {"topic": "orders"}}}),
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
        "fail, continue, deadLetter: {topic: NAME} or python",
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
    "rack-tags-six": (
        application(processing={"rackAwareAssignmentTags": list("abcdef")}),
        "spec.processing.rackAwareAssignmentTags",
        "found",
        "at most 5",
    ),
    "rack-tag-no-text": (
        application(processing={"rackAwareAssignmentTags": [1]}),
        "spec.processing.rackAwareAssignmentTags[0]",
        "found 1",
        "text",
    ),
    "rack-tag-no-label": (
        application(processing={"rackAwareAssignmentTags": ["zone|a"]}),
        "spec.processing.rackAwareAssignmentTags[0]",
        "found 'zone|a', which is no key of a label",
        "topology.kubernetes.io/zone",
    ),
    "rack-tag-twice": (
        application(processing={"rackAwareAssignmentTags": ["zone", "zone"]}),
        "spec.processing.rackAwareAssignmentTags[1]",
        "'zone' is given twice",
        "keep one of the two",
    ),
    "recovery-lag": (
        application(processing={"acceptableRecoveryLag": -1}),
        "spec.processing.acceptableRecoveryLag",
        "found -1",
        "give at least 0",
    ),
    "recovery-lag-vast": (
        application(processing={"acceptableRecoveryLag": 1 << 53}),
        "spec.processing.acceptableRecoveryLag",
        "found 9007199254740992",
        "give at most 9007199254740991",
    ),
    "warm-up-timeout": (
        application(processing={"warmUpTimeout": "never"}),
        "spec.processing.warmUpTimeout",
        "found 'never'",
        "such as 100ms",
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
    "poll-never": (
        application(processing={"pollDuration": "0ms"}),
        "spec.processing.pollDuration",
        "found 0ms",
        "give 1ms to 10s",
    ),
    "poll-long": (
        application(processing={"pollDuration": "1m"}),
        "spec.processing.pollDuration",
        "found 1m",
        "give 1ms to 10s",
    ),
    "level": (
        application(processing={"metricsRecordingLevel": "TRACE"}),
        "spec.processing.metricsRecordingLevel",
        "found 'TRACE'",
        "give 'INFO' or 'DEBUG'",
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
    "handler-name": (
        application(processing={"onProductionError": {"python": "decide"}}),
        "spec.processing.onProductionError.python",
        "found 'decide'",
        "write package.module:function",
    ),
    "handler-beside": (
        application(processing={"onProcessingError": {"python": "shop:decide", "topic": "t"}}),
        "spec.processing.onProcessingError",
        "found {'python': 'shop:decide', 'topic': 't'}",
        "or python: package.module:function",
    ),
    "handler-of-a-global-table": (
        application(
            sources=[ORDERS, {**USERS, "table": {"store": "users", "global": True}}],
            processing={"onDeserializationError": {"python": "shop:decide", "deadLetter": {"topic": "t"}}},
        ),
        "spec.processing.onDeserializationError",
        "deadLetter is not there yet for global tables (users)",
        "use fail or continue",
    ),
    "topic-duration": (
        application(total(), internalTopics={"overrides": {"n-changelog": {"segment.ms": "1h30m"}}}),
        'spec.internalTopics.overrides.n-changelog["segment.ms"]',
        "found '1h30m', which is no whole number",
        "give milliseconds; 1h30m is 5400000",
    ),
    "topic-size": (
        application(internalTopics={"config": {"segment.bytes": "64Mi"}}),
        'spec.internalTopics.config["segment.bytes"]',
        "found '64Mi', which is no whole number",
        "give bytes",
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
    "api-server": (
        application(spark={"master": "k8s://x"}),
        "spec.spark.master",
        "no address of an API server",
        "k8s://https://kubernetes.default.svc",
    ),
    "executors": (
        application(spark={"master": "k8s://https://x"}),
        "spec.spark.config",
        "spark.executor.instances is missing",
        'spark.executor.instances: "2"',
    ),
    "image-with-a-broken-digest": (
        application(image="registry.example/streams@sha256:c0ffee"),
        "spec.image",
        "found 'registry.example/streams@sha256:c0ffee', which is no image",
        "NAME@sha256: with 64 hexadecimal digits",
    ),
    "image-with-a-space": (application(image="streams :1"), "spec.image", "is no image", "NAME:TAG"),
    "executors-of-another-image": (
        application(
            spark={
                "master": "k8s://https://x",
                "config": {"spark.executor.instances": 1, "spark.kubernetes.container.image": "x"},
            }
        ),
        'spec.spark.config["spark.kubernetes.container.image"]',
        "the instance sets by itself",
        "set spec.image",
    ),
    "master": (application(spark={"master": "spark://x"}), "spec.spark.master", "is no master", "spark://host:port"),
    "cores-of-a-cluster": (
        application(spark={"master": "spark://x:7077"}),
        "spec.spark.config",
        "spark.cores.max is missing",
        "its share",
    ),
    "no-cores-of-a-cluster": (
        application(spark={"master": "spark://x:7077", "config": {"spark.cores.max": "0"}}),
        'spec.spark.config["spark.cores.max"]',
        "found '0'",
        "1 or more",
    ),
    "spark-property": (
        application(spark={"config": {"sql.x": 1}}),
        'spec.spark.config["sql.x"]',
        "not a Spark property",
        "spark.sql.x",
    ),
    "rocksdb-unknown": (
        application(state={"rocksdb": {"write_bufer_size": "1Mi"}}),
        "spec.state.rocksdb.write_bufer_size",
        "no such field",
        "did you mean 'writeBufferSize'?",
    ),
    "rocksdb-compression": (
        application(state={"rocksdb": {"compression": "zlib"}}),
        "spec.state.rocksdb.compression",
        "found 'zlib'",
        "'none', 'snappy', 'lz4' or 'zstd'",
    ),
    "rocksdb-compaction": (
        application(state={"rocksdb": {"compaction": "fifo"}}),
        "spec.state.rocksdb.compaction",
        "found 'fifo'",
        "'level' or 'universal'",
    ),
    "rocksdb-memory-without-unit": (
        application(state={"rocksdb": {"memory": 256}}),
        "spec.state.rocksdb.memory",
        "found 256",
        "give 16Mi to 1Ti",
    ),
    "rocksdb-memory-beyond-measure": (
        application(state={"rocksdb": {"memory": "1e99999999999"}}),
        "spec.state.rocksdb.memory",
        "found 1e99999999999",
        "give 16Mi to 1Ti",
    ),
    "rocksdb-memory-of-the-whole-pod": (
        application(
            state={"rocksdb": {"memory": "2Gi"}},
            template={"resources": {"limits": {"memory": "2048Mi"}}},
        ),
        "spec.state.rocksdb.memory",
        "a pod is ended that takes more than 2048Mi (spec.template.resources.limits.memory)",
        "give less, or raise the limit",
    ),
    "rocksdb-write-buffer": (
        application(state={"rocksdb": {"writeBufferSize": "1Ki"}}),
        "spec.state.rocksdb.writeBufferSize",
        "found 1Ki",
        "give 64Ki to 1Gi",
    ),
    "rocksdb-write-buffer-beyond-its-share": (
        application(state={"rocksdb": {"memory": "64Mi", "writeBufferSize": "33Mi"}}),
        "spec.state.rocksdb.writeBufferSize",
        "found 33Mi, more than the half of memory (64Mi)",
        "or more memory",
    ),
    "rocksdb-block": (
        application(state={"rocksdb": {"blockSize": "2Mi"}}),
        "spec.state.rocksdb.blockSize",
        "found 2Mi",
        "give 1Ki to 1Mi",
    ),
    "rocksdb-bloom-filter": (
        application(state={"rocksdb": {"bloomFilterBits": 65}}),
        "spec.state.rocksdb.bloomFilterBits",
        "found 65",
        "give at most 64",
    ),
    "rocksdb-jobs": (
        application(state={"rocksdb": {"maxBackgroundJobs": 0}}),
        "spec.state.rocksdb.maxBackgroundJobs",
        "found 0",
        "give at least 1",
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
    "spark-master": (
        application(spark={"config": {"spark.master": "local[2]"}}),
        'spec.spark.config["spark.master"]',
        "the master among the properties",
        "set spec.spark.master",
    ),
    "store-name": (
        application(total(store="a/b")),
        f"{S}.store",
        "'a/b'",
        "use",
    ),
    "sink-topic": (
        application(sinks=[{"from": "orders", "topic": "a b"}]),
        f"{SINK}.topic",
        "'a b', which is no name for a topic",
        "use letters",
    ),
    "toleration-of-no-taint": (
        application(template={"tolerations": [{"operator": "Equal", "value": "b"}]}),
        "spec.template.tolerations[0].key",
        "is missing",
        "name the taint",
    ),
    "access-empty-group": (
        application(queries={"access": {"kubernetes": {"groups": ["a", ""]}}}),
        "spec.queries.access.kubernetes.groups[1]",
        "is empty",
        "leave it out",
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
    "code": (
        application(code={"configMap": "A_b"}),
        "spec.code.configMap",
        "found 'A_b', which is no name of a Kubernetes object",
        "use small letters",
    ),
    "python": (
        {**application(), "spec": {"topology": {"python": "a:b"}}},
        "spec.topology.python",
        "'a:b' stands alone",
        "streamsapp build",
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
