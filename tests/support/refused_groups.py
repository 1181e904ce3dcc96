"""Aggregates with groupBy that are refused: (document, field, part of what was found, part of the remedy) by name."""

from __future__ import annotations

from typing import Any

from refused_foreign_keys import ORDERS, USERS, Refused, S, application, stream, table

_WINDOWS = {"name": "w", "from": "clicks", "aggregate": {"n": "count(*)"}, "store": "w"} | {
    "window": {"tumbling": {"size": "1m"}}
}
_PLAIN = {"n": "count(*)"}


def grouped(**more: Any) -> dict[str, Any]:
    step = {"name": "s", "from": "orders", "groupBy": "user", "aggregate": _PLAIN, "store": "s-store"}
    given = step | {name.rstrip("_"): value for name, value in more.items()}
    return {name: value for name, value in given.items() if value is not None}


def _function(call: str, remedy: str = "use count, count_if, sum or avg") -> Refused:
    function = call.partition("(")[0]
    found = f"{function} of the table 'orders', out of which a row that leaves its group can't be taken"
    return application(grouped(aggregate={"x": call})), f"{S}.aggregate.x", found, remedy


REFUSED_GROUPS: dict[str, Refused] = {
    "groups-of-a-stream": (
        application(grouped(), sources=(stream("orders"), USERS)),
        f"{S}.groupBy",
        "groupBy of 'orders', which is a stream",
        "put a keyBy with this expression before the aggregate",
    ),
    "groups-without-an-aggregate": (
        application({"name": "s", "from": "orders", "where": "n > 1", "groupBy": "user"}),
        f"{S}.groupBy",
        "groupBy in a step without an aggregate",
        "leave it out",
    ),
    "groups-beside-windows": (
        application(grouped(window={"tumbling": {"size": "1m"}})),
        f"{S}.groupBy",
        "groupBy beside windows",
        "leave the window out",
    ),
    "groups-of-windows": (
        application(_WINDOWS, grouped(from_="w", groupBy="cast(n as string)"), sources=(ORDERS, stream("clicks"))),
        "spec.topology.steps[1].groupBy",
        "whose rows are windows, is not there yet",
        "toStream, keyBy, toTable",
    ),
    "groups-of-rows-that-meet-themselves": (
        application(
            {"name": "some", "from": "orders", "where": "n > 1"},
            {"name": "j", "from": "orders", "join": {"table": "some", "select": {"again": "some.n"}}},
            {"name": "w", "from": "j", "where": "n > 2"},
            grouped(from_="w"),
        ),
        "spec.topology.steps[3].groupBy",
        "groupBy of 'w', in which rows of orders meet themselves",
        "put toStream: {} and toTable: {store: …} behind it",
    ),
    "groups-of-a-global-table": (
        application(grouped(), sources=({**ORDERS, "table": {"store": "orders", "global": True}}, stream("clicks"))),
        f"{S}.from",
        "global",
        "",
    ),
    "groups-without-keys": (
        application(grouped(), sources=(table("orders", key=None), USERS)),
        f"{S}.groupBy",
        "groupBy of rows without a key: orders declares none",
        "declare the source's key",
    ),
    "groups-by-no-column": (
        application(grouped(groupBy="usr")),
        f"{S}.groupBy",
        "unknown column 'usr'",
        "did you mean 'user'?",
    ),
    "groups-by-what-no-key-can-be": (
        application(grouped(groupBy="to_date(user)")),
        f"{S}.groupBy",
        "'to_date(user)' is DATE, for which keys have no format",
        "cast it to STRING",
    ),
    "groups-that-change-by-themselves": (
        application(grouped(groupBy="concat(user, uuid())")),
        f"{S}.groupBy",
        "uuid is another value when the row leaves its group",
        "use what the record has",
    ),
    "a-sum-that-changes-by-itself": (
        application(grouped(aggregate={"x": "sum(n * rand())"})),
        f"{S}.aggregate.x",
        "rand is another value when the row leaves its group",
        "use what the record has",
    ),
    "a-filter-that-changes-by-itself": (
        application(grouped(aggregate={"x": "sum(n) FILTER (WHERE rand() > 0.5)"})),
        f"{S}.aggregate.x",
        "rand is another value when the row leaves its group",
        "use what the record has",
    ),
    "a-moment-in-a-table-of-groups": (
        application(
            grouped(),
            {"name": "t", "from": "s", "where": "rand() < n"},
            grouped(name="u", from_="t", store="u") | {"groupBy": "_key"},
        ),
        "spec.topology.steps[1].where",
        "rand is another value when the row changes",
        "use what the record has",
    ),
    "min-of-groups": _function("min(n)"),
    "max-of-groups": _function("max(n)"),
    "max_by-of-groups": _function("max_by(user, n)"),
    "top-of-groups": _function("top(user, n, 3)"),
    "collect_list-of-groups": _function("collect_list(user, 5)"),
    "approximate-groups": _function("approx_count_distinct(user)"),
    "reduced-groups": _function("reduce(0, (n, row) -> n + 1)", "its lambda adds records and takes none out"),
    "groups-of-a-class": _function("python('smoothing:Smoothed', n as minutes)", "its class adds records"),
    "groups-whose-topic-is-read": (
        application(grouped(), sources=(ORDERS | {"topic": "shop-s-repartition"}, USERS)),
        "spec.topology.sources[0].topic",
        "is the name of an internal topic",
        "choose another topic",
    ),
    "groups-whose-part-is-called-so": (
        application(grouped(), {"name": "s-repartition-source", "from": "orders", "where": "n > 1"}),
        "spec.topology.steps[1].name",
        "is what the repartitioning of 's' is called",
        "choose another name",
    ),
    "groups-beside-records-that-are-left-out": (
        application(grouped(), processing={"onProcessingError": "continue"}),
        "spec.processing.onProcessingError",
        "continue is not there yet beside the step 's', which takes its rows from the table 'orders'",
        "use fail",
    ),
}
