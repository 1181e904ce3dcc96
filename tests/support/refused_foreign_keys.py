"""Joins by a foreign key that are refused: (document, field, part of what was found, part of the remedy) by name."""

from __future__ import annotations

from typing import Any

Refused = tuple[dict[str, Any], str, str, str]
S = "spec.topology.steps[0]"


def table(name: str, key: str | None = "string", schema: str = "user STRING, n BIGINT, tier STRING") -> dict[str, Any]:
    stream = {"name": name, "topic": name, "value": {"format": "json", "schema": schema}, "table": {"store": name}}
    return stream | ({} if key is None else {"key": {"format": key}})


ORDERS, USERS = table("orders"), table("users")


def stream(name: str) -> dict[str, Any]:
    return {field: value for field, value in table(name).items() if field != "table"}


def joined(**more: Any) -> dict[str, Any]:
    own = ("name", "from", "store")
    fields = {"table": "users", "key": "user", "select": {"t": "users.tier"}}
    step = {"name": "s", "from": "orders", "store": "s-store"} | {name: more[name] for name in own if name in more}
    join = fields | {name: value for name, value in more.items() if name not in own}
    return {name: value for name, value in step.items() if value is not None} | {
        "join": {name: value for name, value in join.items() if value is not None}
    }


def application(*steps: Any, sources: Any = (ORDERS, USERS), **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "shop"},
        "spec": {"topology": {"sources": list(sources), "steps": list(steps), "sinks": []}, **spec},
    }


_COUNTED = {"name": "n", "from": "clicks", "aggregate": {"tier": "count(*)"}, "store": "n"}
_WINDOWS = _COUNTED | {"window": {"tumbling": {"size": "1m"}}}

REFUSED_FOREIGN_KEYS: dict[str, Refused] = {
    "foreign-key-without-a-store": (
        application(joined(store=None)),
        f"{S}.store",
        "is missing",
        "name the store of what the join gives",
    ),
    "foreign-key-outer": (application(joined(type="outer")), f"{S}.join.type", "an outer join", "use inner or left"),
    "foreign-key-of-another-type": (
        application(joined(key="n")),
        f"{S}.join.key",
        "'n' is BIGINT, and the key of 'users' is STRING",
        "cast(n as STRING)",
    ),
    "foreign-key-of-no-column": (
        application(joined(key="usr")),
        f"{S}.join.key",
        "unknown column 'usr'",
        "did you mean 'user'?",
    ),
    "foreign-key-that-aggregates": (application(joined(key="max(user)")), f"{S}.join.key", "max", "aggregate"),
    "foreign-key-that-changes-by-itself": (
        application(joined(key="concat(user, uuid())")),
        f"{S}.join.key",
        "uuid is another value when the row changes",
        "use what the record has",
    ),
    "foreign-key-with-an-unknown-field": (
        application(joined(select={"t": "users.teir"})),
        f"{S}.join.select.t",
        "'users' has no field 'teir'",
        "did you mean 'tier'?",
    ),
    "foreign-key-beside-a-stream": (
        application(joined(), sources=(ORDERS, stream("users"))),
        f"{S}.join.table",
        "'users' is a stream, and 'orders' is a table",
        "declared with table",
    ),
    "foreign-key-beside-a-global-table": (
        application(joined(), sources=(ORDERS, {**USERS, "table": {"store": "users", "global": True}})),
        f"{S}.join.table",
        "a join of two tables of which 'users' is global",
        "join a stream with it",
    ),
    "foreign-key-of-a-stream": (
        application(joined(store=None), sources=(stream("orders"), USERS)),
        f"{S}.join.key",
        "an expression to look up in the table",
        "put a keyBy before the join",
    ),
    "foreign-key-of-a-stream-with-a-store": (
        application(joined(), sources=(stream("orders"), USERS)),
        f"{S}.store",
        "which keeps nothing",
        "leave it out",
    ),
    "foreign-key-of-two-streams": (
        application(
            joined(table=None, stream="users", within="1m", store=None), sources=(stream("orders"), stream("users"))
        ),
        f"{S}.join.key",
        "a join of two streams",
        "put a keyBy before each side",
    ),
    "foreign-key-beside-windows": (
        application(joined(table="n", select={"t": "n.tier"}), _WINDOWS, sources=(ORDERS, stream("clicks"))),
        f"{S}.join.table",
        "of which 'n' has windows is not there yet",
        "toStream, keyBy, toTable",
    ),
    "foreign-key-of-windows": (
        application(joined(**{"from": "n"}, key="cast(tier as string)"), _WINDOWS, sources=(USERS, stream("clicks"))),
        f"{S}.from",
        "of which 'n' has windows is not there yet",
        "toStream, keyBy, toTable",
    ),
    "random-column-behind-a-foreign-key": (
        application(joined(), {"name": "w", "from": "s", "where": "rand() < n"}),
        "spec.topology.steps[1].where",
        "rand is another value when the row changes",
        "use what the record has",
    ),
    "foreign-key-of-rows-that-meet-themselves": (
        application(
            {"name": "j", "from": "orders", "join": {"table": "orders", "select": {"again": "orders.tier"}}},
            joined(**{"from": "j"}),
        ),
        "spec.topology.steps[1].from",
        "a join by a foreign key of 'j', in which rows of orders meet themselves",
        "put toStream: {} and toTable: {store: …} behind it",
    ),
    "foreign-key-beside-rows-that-meet-themselves": (
        application(
            {"name": "j", "from": "users", "join": {"table": "users", "select": {"again": "users.tier"}}},
            joined(table="j", select={"t": "j.tier"}),
        ),
        "spec.topology.steps[1].join.table",
        "a join by a foreign key of 'j', in which rows of users meet themselves",
        "put toStream: {} and toTable: {store: …} behind it",
    ),
    "foreign-key-without-keys": (
        application(joined(), sources=(table("orders", key=None), USERS)),
        f"{S}.from",
        "orders declares none",
        "declare the source's key",
    ),
    "foreign-key-beside-no-keys": (
        application(joined(), sources=(ORDERS, table("users", key=None))),
        f"{S}.join.table",
        "users declares none",
        "declare the source's key",
    ),
    "foreign-key-with-a-column-of-the-tables-name": (
        application(joined(), sources=(table("orders", schema="user STRING, users STRING"), USERS)),
        f"{S}.join.table",
        "'orders' has a column called 'users'",
        "another name",
    ),
    "foreign-key-with-a-store-that-is-taken": (
        application(joined(store="users")),
        f"{S}.store",
        "the store 'users' is used twice",
        "its own name",
    ),
    "foreign-key-whose-part-is-called-so": (
        application(joined(), {"name": "s-subscription-response", "from": "orders", "where": "n > 1"}),
        "spec.topology.steps[1].name",
        "a part of the join 's' by a foreign key",
        "choose another name",
    ),
    "foreign-key-beside-a-topic-of-its-name": (
        application(joined(), sources=(ORDERS | {"topic": "shop-s-subscription-registration-topic"}, USERS)),
        "spec.topology.sources[0].topic",
        "is the name of an internal topic",
        "choose another topic",
    ),
}
