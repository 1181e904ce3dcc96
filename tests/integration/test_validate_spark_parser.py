"""Spark's own parser over an application's expressions, and its agreement with the check that needs no Spark."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streams_runtime.api import Reading, SqlField, read_application
from streams_runtime.api.sql.scalars import (
    AGGREGATE_FUNCTIONS,
    BATCH_DEPENDENT_FUNCTIONS,
    GENERATOR_FUNCTIONS,
    WINDOW_FUNCTIONS,
    scalar_problems,
)
from streams_runtime.api.sql.spark_functions import SPARK_FUNCTIONS
from streams_runtime.errors import EnvironmentException, Mistake
from streams_runtime.jvm.class_data import spark_class_data
from streams_runtime.pipeline.spark.parsed_expressions import catalyst_package, check_sql

pytestmark = [pytest.mark.integration, pytest.mark.spark]

EXAMPLES = Path(__file__).parents[2] / "examples"

BOTH_TAKE = [
    "amount > 0 and not ok or user is null",
    "user",
    "comment = 'x' or date > '2024-01-01'",
    "`a b` || user",
    "items[0].id = 1",
    "cast(amount * 100 as bigint)",
    "amount::int",
    "if(ok, 1, 0) + case when ok then 1 else 2 end",
    "transform(tags, tag -> upper(tag) || user)",
    "aggregate(tags, 0, (all_, tag) -> all_ + length(tag))",
    "user like any ('a%', 'b%')",
    "amount between 1 and 2 and amount <=> 1.5D and amount in (1, 2L, 3.0BD)",
    "timestampadd(MINUTE, 5, date)",
    "extract(year from date) = 2024",
    "date + interval 1 day > current_date",
    "trim(both 'x' from user)",
    "struct(user, n as m).m",
    "from_json(user, 'a INT').a",
    "amount div 2 + amount % 2",
    "a & b | c ^ ~d",
    "(user, n)",
    "x is distinct from y",
    "date '2024-01-01'",
    "r'\\d' || \"text\"",
]

# Words with a meaning of their own that are names of columns in Spark.
_WORDS_OF_SQL = """
add after all alter analyze and any array as asc at authorization between both bucket by cache case cast catalog change
char clear cluster column columns comment commit compact condition constraint cost create cross cube current data
database date datetime day default delete desc describe dir distinct drop else end escape exists explain export
extract false fetch fields filter first following for foreign format from full function functions global grant group
grouping having hour if ignore import in index inner insert int intersect interval into is items join key keys last
lateral lazy left level like limit lines list load local location lock logical long macro map match minute minus month
name names natural next no not null nulls of offset on only option options or order outer out over overwrite partition
percent position precision primary principals private proc properties purge quarter query range read recover
references refresh regexp rename repair replace reset restrict revoke right role roles row rows schema second select
semi separated session set sets short show skewed some sort start statistics stored string struct sum sync table
tables temporary terminated text then time timestamp to touch trailing transaction transform trim true truncate type
union unique unknown unlock unset update use user using value values version view week when where window with within
year zone
"""
_COMMON_NAMES = """
action category city comment count country currency data database date day description end first format function
hour id index items key kind last left level limit list local location lock map match method minute month name number
offset operation option order partition percent position price quarter query range rank region reset right role row
schema second section session set source start state status sum tag target text time timestamp transaction type unit
update url user value version view week window year zone
"""


AGGREGATE = {
    "n": "sum(n > > 1)",
    "m": "max(n)",
    "set": "collect_set(lowwer(n), 3)",
    "fine": "approx_percentile(n, 0.5)",
}


def refused(*texts: str, kind: Any = "where") -> set[str]:
    """The texts that Spark's parser refuses."""
    fields = [SqlField(str(index), kind, text) for index, text in enumerate(texts)]
    return {texts[int(mistake.path)] for mistake in check_sql(fields)}


def test_a_users_function_is_known_and_is_the_nearest_name_where_it_is_misspelt() -> None:
    fields = [SqlField("a", "where", "tier_of(x) = 'gold'"), SqlField("b", "where", "tier_off(x) = 'gold'")]
    (mistake,) = check_sql(fields, ("Tier_Of",))
    assert (mistake.path, mistake.found) == ("b", "Spark has no function 'tier_off'")
    assert mistake.remedy == "did you mean 'Tier_Of'?"
    (taken,) = check_sql(fields[:1], ("tier_of", "xpath"))
    assert str(taken) == "spec.topology.functions.xpath: Spark has a function xpath; give it another name"


def children() -> set[int]:
    """Processes that this one has started and that are still there."""
    lists = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return {int(pid) for each in lists for pid in each.read_text().split()}


@pytest.fixture(scope="module")
def catalyst() -> Iterator[Any]:
    with catalyst_package() as package:
        yield package


def parser_mistakes(reading: Reading) -> list[Mistake]:
    """What Spark's parser has against an application without other mistakes."""
    assert reading.mistakes == ()
    return check_sql(reading.sql, reading.functions)


def test_spark_takes_what_the_examples_say() -> None:
    for file in sorted(EXAMPLES.glob("*.yaml")):
        assert parser_mistakes(read_application(file.read_text())) == []


def test_a_mistake_that_only_spark_sees_has_its_field_and_position() -> None:
    reading = read_application(
        {
            "apiVersion": "streamsoperator.io/v1alpha1",
            "kind": "StreamsApplication",
            "metadata": {"name": "x"},
            "spec": {
                "topology": {
                    "sources": [
                        {
                            "name": "a",
                            "topic": "a",
                            "key": {"format": "string"},
                            "value": {"format": "json", "schema": "n INT, m INT DEFAULT 3"},
                        }
                    ],
                    "steps": [
                        {"name": "s", "from": "a", "where": "n > > 0", "select": {"x y": "lowwer(n)", "n": "n"}},
                        {"name": "t", "from": "s", "aggregate": AGGREGATE, "store": "t"},
                    ],
                }
            },
        }
    )
    found = {mistake.path: mistake for mistake in parser_mistakes(reading)}
    assert set(found) == {
        "spec.topology.sources[0].value.schema",
        "spec.topology.steps[0].where",
        'spec.topology.steps[0].select["x y"]',
        "spec.topology.steps[1].aggregate.n",
        "spec.topology.steps[1].aggregate.set",
    }
    assert found["spec.topology.steps[1].aggregate.set"].found == "Spark has no function 'lowwer'"
    assert "Syntax error at or near '>'" in found["spec.topology.steps[0].where"].found
    assert "(line 1, pos 4)" in found["spec.topology.steps[0].where"].found
    assert found['spec.topology.steps[0].select["x y"]'].found == "Spark has no function 'lowwer'"
    assert found['spec.topology.steps[0].select["x y"]'].remedy == "did you mean 'lower'?"


def test_a_type_that_spark_does_not_have_is_refused() -> None:
    assert refused("a STRNG", "a INT", "a STRUCT<b: INT>", kind="schema") == {"a STRNG"}


def test_what_is_common_is_taken_by_both() -> None:
    assert refused(*BOTH_TAKE) == set()
    assert {text: scalar_problems(text, None) for text in BOTH_TAKE if scalar_problems(text, None)} == {}


def test_in_backticks_a_column_may_have_any_name() -> None:
    texts = [f"`{word}` > 1" for word in _WORDS_OF_SQL.split()]
    assert refused(*texts) == set()
    assert [text for text in texts if scalar_problems(text, None)] == []


def test_common_names_need_no_backticks() -> None:
    texts = [f"{word} > 1 or x = {word}" for word in _COMMON_NAMES.split()]
    assert refused(*texts) == set()
    assert [text for text in texts if scalar_problems(text, None)] == []


def test_a_word_that_needs_backticks_says_so() -> None:
    for word in ("from", "select", "when", "outer"):
        (problem,) = scalar_problems(f"{word} > 1", None)
        assert f"a column called {word} belongs in backticks" in problem.remedy


def test_the_lists_of_functions_are_complete(catalyst: Any) -> None:
    registry = catalyst.analysis.FunctionRegistry.builtin()
    groups: dict[str, set[str]] = {}
    for name in str(registry.listFunction().mkString(" ")).split():
        info = registry.lookupFunction(catalyst.FunctionIdentifier(name))
        groups.setdefault(str(info.get().getGroup()), set()).add(name)
    assert groups["agg_funcs"] - AGGREGATE_FUNCTIONS == set()
    assert groups["window_funcs"] - WINDOW_FUNCTIONS == set()
    assert groups["generator_funcs"] - GENERATOR_FUNCTIONS == set()
    every = set().union(*groups.values())
    ours = AGGREGATE_FUNCTIONS | WINDOW_FUNCTIONS | GENERATOR_FUNCTIONS | BATCH_DEPENDENT_FUNCTIONS
    assert ours - every == set()


def test_no_process_is_left_behind() -> None:
    before = children()
    assert refused("amount >", "amount") == {"amount >"}
    assert children() <= before


def test_no_process_is_left_behind_by_a_failure() -> None:
    before = children()
    during: set[int] = set()

    def fail() -> None:
        with catalyst_package():
            during.update(children())
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        fail()
    assert during > before
    assert children() <= before


def test_nothing_to_check_needs_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert check_sql([]) == []


def test_without_java_the_check_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> Path:
        raise EnvironmentException("no Java was found. Install one")

    monkeypatch.setattr("streams_runtime.pipeline.spark.parsed_expressions.find_java", no_java)
    with pytest.raises(EnvironmentException, match="Install one"):
        refused("amount")


def test_a_java_that_does_not_start_is_an_environment_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams_runtime.pipeline.spark.parsed_expressions.find_java", lambda: Path("/bin/false"))
    with pytest.raises(EnvironmentException, match="could not be started with /bin/false"):
        refused("amount")


def test_the_parser_starts_with_the_classes_that_set_up_has_archived() -> None:
    archive = spark_class_data().archive
    if not archive.is_file():
        pytest.skip("set-up has made no archive of classes here: make setup")
    before = children()
    with catalyst_package() as package:
        assert package.parser.CatalystSqlParser() is not None
        started = children() - before
        maps = [Path(f"/proc/{pid}/maps").read_text() for pid in started]
    assert any(str(archive) in each for each in maps)


def test_without_the_runtimes_jars_nothing_is_fetched_for_the_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMSAPP_CACHE", str(tmp_path))
    assert refused("amount >", "amount") == {"amount >"}
    assert list(tmp_path.iterdir()) == []


def test_the_functions_that_are_known_without_spark_are_those_that_spark_has() -> None:
    with catalyst_package() as catalyst:
        names = str(catalyst.analysis.FunctionRegistry.builtin().listFunction().mkString(" ")).split()
    assert sorted(SPARK_FUNCTIONS) == sorted(name for name in names if name.replace("_", "").isalnum())
