"""Functions of the user's in expressions: called wherever an expression stands, and told by name when they fail."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import user_functions
from clients import client, last_values, make_topics, run_until_done, send
from topology_drivers import ORDERS, USERS, Made, document
from waiting import DEADLINE

from streams_runtime.builder import StreamsBuilder, json
from streams_runtime.errors import InvalidApplicationException, StreamsException, message_of
from streams_runtime.pipeline.spark.registered_functions import with_functions as register
from streams_runtime.states import ClientState
from streams_runtime.topology.plan import Function

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


def function(name: str, returns: str, kind: str = "python") -> dict[str, str]:
    return {kind: f"user_functions:{name}", "returns": returns}


FUNCTIONS = {
    "tier": function("tier", "STRING"),
    "parts": function("parts", "ARRAY<STRING>"),
    "doubled": function("Shop.doubled", "BIGINT"),
    "half": function("half", "DOUBLE", "pandas"),
    "picky": function("picky", "BIGINT"),
}


def with_functions(given: dict[str, Any], **functions: dict[str, str]) -> dict[str, Any]:
    given["spec"]["topology"]["functions"] = functions or FUNCTIONS
    return given


def test_a_function_can_be_called_wherever_an_expression_stands(made: Made) -> None:
    source = {**ORDERS, "timestamp": "timestamp_millis(doubled(amount) * 1000)"}
    steps: list[dict[str, Any]] = [
        {
            "name": "gold",
            "from": "orders",
            "where": "tier(amount) = 'gold'",
            "select": {"u": "user", "h": "half(amount)"},
        },
        {
            "name": "split",
            "from": "orders",
            "split": [{"name": "gold", "where": "TIER(amount) = 'gold'"}],
            "default": "no",
        },
        {"name": "traced", "from": "split.no", "headers": {"tier": "tier(amount)"}},
        {"name": "seen", "from": "traced", "peek": {"metric": "m", "value": "half(amount)"}},
        {"name": "each", "from": "seen", "flatMap": {"explode": "parts(user)", "as": "part"}},
        {"name": "by-tier", "from": "orders", "keyBy": "tier(amount)"},
        {"name": "totals", "from": "by-tier", "aggregate": {"h": "sum(half(amount))"}, "store": "totals"},
        {"name": "after", "from": "totals", "select": {"d": "doubled(cast(h as bigint))"}},
        {"name": "once", "from": "orders", "dedupe": {"within": "1h", "by": "concat(_key, tier(amount))"}},
        {"name": "joined", "from": "once", "join": {"table": "users", "select": {"t": "parts(users.tier)[0]"}}},
        {"name": "rows", "from": "users", "where": "size(parts(tier)) > 1", "select": {"p": "parts(tier)"}},
    ]
    sinks = {name: name for name in ("gold", "each", "after", "joined", "rows")}
    driver = made(with_functions(document([source, USERS], steps, sinks)))
    driver.input_topic("users").pipe_all([("a", {"tier": "x-y"}), ("b", {"tier": "z"})])
    orders = [("a", "u-v", 20), ("b", "w-w", 4), ("a", None, 30)]
    driver.input_topic("orders").pipe_all([(key, {"user": user, "amount": amount}) for key, user, amount in orders])

    def values(topic: str) -> list[Any]:
        return [each.value for each in driver.output_topic(topic).read_all()]

    gold = driver.output_topic("gold").read_all()
    assert [(each.value, each.timestamp.timestamp()) for each in gold] == [
        ({"u": "u-v", "h": 10.0}, 40.0),
        ({"u": None, "h": 15.0}, 60.0),
    ]
    several = driver.output_topic("each").read_all()
    assert [(each.value["part"], each.headers) for each in several] == [("w", (("tier", b"plain"),))] * 2
    assert driver.counters.peeks["seen", "m"] == (1, 2.0)
    assert driver.output_topic("after").read_latest_by_key() == {"gold": {"d": 50}, "plain": {"d": 4}}
    assert driver.store("totals").get("gold") == {"h": 25.0}
    assert [(each["amount"], each["t"]) for each in values("joined")] == [(20, "x"), (4, "z")]
    assert values("rows") == [{"p": ["x", "y"]}]


def test_a_builder_has_functions_too_and_two_drivers_have_each_their_own_of_one_name(made: Made) -> None:
    def driver(of: Any) -> Any:
        builder = StreamsBuilder()
        builder.udf("f", of, "BIGINT")
        builder.pandas_udf("half", user_functions.half, "DOUBLE")
        orders = builder.stream("orders", value=json("amount BIGINT"))
        orders.select(f="f(amount)", h="half(amount)").to("out")
        return made(builder)

    doubled, same = driver(user_functions.Shop.doubled), driver(user_functions.picky)
    for each, expected in ((doubled, 8), (same, 4), (doubled, 8)):
        each.input_topic("orders").pipe(None, {"amount": 4})
        assert each.output_topic("out").read().value == {"f": expected, "h": 2.0}


FAILURES = {
    "an exception": (
        function("picky", "BIGINT"),
        (
            "(user_functions:picky) failed: ValueError: 13 is not served (user_functions.py, line 26), given (13,); in"
            " the batch of orders-0@0 to 1. Nothing of the batch was written; correct the function or the data"
        ),
    ),
    "another type": (
        function("odd", "BIGINT"),
        "the function 'f' (user_functions:odd) gave 'text', which is no bigint, given (13,); in the batch of",
    ),
    "an exception over series": (
        function("broken", "BIGINT", "pandas"),
        "the function 'f' (user_functions:broken) failed: AttributeError: 'Series' object has no attribute",
    ),
    "another type of series": (
        function("worded", "BIGINT", "pandas"),
        "the function 'f' (user_functions:worded) gave Series, which is no Series of bigint (",
    ),
    "too few values": (
        function("short", "BIGINT", "pandas"),
        "the function 'f' (user_functions:short) gave 0 values, given ",
    ),
}


@pytest.mark.parametrize("case", FAILURES)
def test_a_function_that_fails_is_told_with_its_line_and_the_batch_and_nothing_is_written(
    case: str, made: Made
) -> None:
    spec, words = FAILURES[case]
    steps = [{"name": "called", "from": "orders", "select": {"f": "f(amount)"}}]
    driver = made(with_functions(document([ORDERS], steps, {"out": "called"}), f=spec))
    orders, out = driver.input_topic("orders"), driver.output_topic("out")
    with pytest.raises(StreamsException) as failed:
        orders.pipe_all([("a", {"amount": 2}), ("a", {"amount": 13})])
    assert words in str(failed.value)
    assert out.empty
    # The batch is forgotten, and the next one goes through.
    if "python" in spec:
        orders.pipe("a", {"amount": 1})
        assert out.read().value == {"f": 1}


@pytest.mark.parametrize(
    ("name", "spec", "words"),
    [
        (
            "f",
            function("teir", "STRING"),
            "spec.topology.functions.f.python: 'user_functions:teir': user_functions has no 'teir'; did you mean",
        ),
        ("f", function("constant", "STRING"), "spec.topology.functions.f.python: 'user_functions:constant' is 3"),
        (
            "array_append",
            function("tier", "STRING"),
            "spec.topology.functions.array_append: array_append is a function of SQL",
        ),
        (
            "xpath",
            function("tier", "STRING"),
            "spec.topology.functions.xpath: Spark has a function xpath; give it another name",
        ),
    ],
)
def test_a_function_that_can_not_be_called_is_a_mistake(name: str, spec: Any, words: str, made: Made) -> None:
    with pytest.raises(InvalidApplicationException) as refused:
        made(with_functions(document([ORDERS], [], {"out": "orders"}), **{name: spec}))
    assert str(refused.value).startswith(words)


def test_a_function_that_is_not_here_is_a_mistake_of_whoever_did_not_look_before(spark: SparkSession) -> None:
    path = "spec.topology.functions.f.python"
    with pytest.raises(InvalidApplicationException, match=r"user_functions has no 'teir'; did you mean") as refused:
        register(spark, [Function("f", "user_functions:teir", "STRING", False, path)])
    assert [mistake.path for mistake in refused.value.mistakes] == [path]


@pytest.mark.usefixtures("spark")
def test_a_client_calls_functions_and_ends_in_error_with_the_offsets_of_the_batch(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    make_topics(bootstrap, **{orders: 1, f"{namespace}-out": 1})
    topology = f"""
functions: {{strict: {{python: "user_functions:strict", returns: BIGINT}}}}
sources: [{{name: orders, topic: {orders}, value: {{format: json, schema: "amount BIGINT"}}}}]
steps: [{{name: called, from: orders, select: {{f: strict(amount)}}}}]
sinks: [{{from: called, topic: {namespace}-out}}]
"""
    send(bootstrap, orders, [("a", {"amount": 1}), ("b", {"amount": 2})])
    with client(bootstrap, namespace, topology, tmp_path) as made:
        run_until_done(made, [orders])
        send(bootstrap, orders, [("c", {"amount": 13})])
        assert made.wait_for(ClientState.ERROR, timeout=DEADLINE)
        assert made.error is not None
        failed = "ValueError: 13 is not served (user_functions.py, line 20), given (13,)"
        assert f"{failed}; in the batch of {orders}-0@2 to 2" in message_of(made.error)
    assert last_values(bootstrap, f"{namespace}-out") == {"a": {"f": 1}, "b": {"f": 2}}
