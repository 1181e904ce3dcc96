"""Functions of the user's, as far as they need no Spark: what is refused, what is known of them, how they fail."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import user_functions
from pyspark.sql.types import ArrayType, DataType, DoubleType, LongType, StringType

from streams_runtime.api import read_application
from streams_runtime.builder import StreamsBuilder, json
from streams_runtime.builder.resolve_python import Beside, check_built, read_with_python
from streams_runtime.errors import ConfigException, InvalidApplicationException
from streams_runtime.pipeline.spark.user_function import FunctionEnded, FunctionFailed, RowFunction, SeriesFunction
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_json, as_text

TIER = {"python": "user_functions:tier", "returns": "STRING"}


def document(functions: Any, *steps: dict[str, Any]) -> dict[str, Any]:
    source = {"name": "orders", "topic": "orders", "key": {"format": "string"}}
    value = {"format": "json", "schema": "user STRING, amount BIGINT"}
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {"topology": {"functions": functions, "sources": [{**source, "value": value}], "steps": list(steps)}},
    }


def step(**fields: Any) -> dict[str, Any]:
    return {"name": "step", "from": "orders", **fields}


WRONG: dict[str, tuple[Any, str]] = {
    "no name for SQL": ({"a-b": TIER}, ".a-b: found 'a-b'; name a function with letters, digits and _"),
    "a function of SQL": ({"upper": TIER}, ".upper: upper is a function of SQL; give it another name"),
    "an aggregate": ({"kurtosis": TIER}, ".kurtosis: kurtosis is a function of SQL"),
    "twice": ({"f": TIER, "F": TIER}, ".F: 'F' beside 'f'; SQL takes no notice of case"),
    "neither": ({"f": {"returns": "INT"}}, ".f: neither python nor pandas; name the function with one of the two"),
    "both": ({"f": {**TIER, "pandas": "a:b"}}, ".f: python beside pandas; name the function with one of the two"),
    "no reference": (
        {"f": {"pandas": "a.b", "returns": "INT"}},
        ".f.pandas: found 'a.b'; write package.module:",
    ),
    "no type": ({"f": {**TIER, "returns": "STRNG"}}, ".f.returns: "),
    "nothing returned": ({"f": {"python": "a:b"}}, ".f.returns: is missing; give it: type of the result as Spark DDL"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_declaration_that_can_not_be_is_refused_by_its_field(case: str) -> None:
    functions, words = WRONG[case]
    (mistake,) = read_application(document(functions)).mistakes
    assert str(mistake).startswith(f"spec.topology.functions{words}")


TYPES = {
    "a condition": (step(where="TIER(amount)"), "'TIER(amount)' is STRING, not a condition"),
    "a key": (step(keyBy="parts(user)"), "'parts(user)' is ARRAY<STRING>, for which keys have no format"),
    "an array": (step(flatMap={"explode": "tier(amount)", "as": "x"}), "'tier(amount)' is STRING"),
    "a column of theirs": (step(where="tier(amout) = 'a'"), "unknown column 'amout'"),
}


@pytest.mark.parametrize("case", TYPES)
def test_the_types_of_results_are_known(case: str) -> None:
    given, words = TYPES[case]
    parts = {"python": "user_functions:parts", "returns": "ARRAY<STRING>"}
    (mistake,) = read_application(document({"tier": TIER, "parts": parts}, given)).mistakes
    assert mistake.found.startswith(words)


def test_an_upgrade_that_changes_the_type_of_a_result_in_a_store_is_not_compatible() -> None:
    def plan(returns: str, name: str = "tier") -> Any:
        by = step(name="by-tier", select={"t": "tier(amount)"})
        last = {"name": "last", "from": "by-tier", "aggregate": {"last": "last(t)"}, "store": "last"}
        functions = {"tier": {"python": f"user_functions:{name}", "returns": returns}}
        application = read_application(document(functions, by, last)).application
        assert application is not None
        return build_topology(application)

    assert changes(plan("STRING"), plan("STRING", "other")).compatible
    assert not changes(plan("STRING"), plan("BIGINT")).compatible


def test_functions_are_shown_with_the_topology() -> None:
    application = read_application(document({"tier": TIER})).application
    assert application is not None
    topology = build_topology(application)
    assert as_text(topology).endswith("   Functions:\n    tier (user_functions:tier) --> STRING")
    (shown,) = as_json(topology)["functions"]
    assert shown == {"name": "tier", "reference": "user_functions:tier", "returns": "STRING", "pandas": False}


def test_code_that_is_not_there_is_a_mistake_but_for_a_file_that_is_only_compared() -> None:
    given = document({"f": {"python": "user_functions:teir", "returns": "STRING"}})
    (mistake,) = read_with_python(given).mistakes
    assert (mistake.path, mistake.remedy) == ("spec.topology.functions.f.python", "did you mean 'tier'?")
    assert read_with_python(given, beside=Beside.TAKEN).mistakes == ()
    application = read_application(given).application
    assert application is not None
    with pytest.raises(InvalidApplicationException) as refused:
        check_built(application)
    assert refused.value.mistakes == (mistake,)
    (mistake,) = read_with_python(document({"f": {**TIER, "python": "user_functions:constant"}})).mistakes
    assert "is 3" in mistake.found


def built() -> StreamsBuilder:
    builder = StreamsBuilder()
    builder.udf("tier", user_functions.tier, "STRING")
    builder.pandas_udf("half", user_functions.half, "DOUBLE")
    builder.stream("orders", key="string", value=json("user STRING, amount BIGINT"))
    return builder


def test_a_builder_declares_functions_by_their_modules() -> None:
    declared = built().build().functions
    assert {name: spec.model_dump(exclude_none=True) for name, spec in declared.items()} == {
        "tier": TIER,
        "half": {"pandas": "user_functions:half", "returns": "DOUBLE"},
    }


def test_functions_of_another_version_and_functions_beside_python_are_refused() -> None:
    given = document({"tier": {**TIER, "returns": "INT"}})
    given["spec"]["topology"]["python"] = f"{__name__}:built"
    (mistake,) = read_with_python(given).mistakes
    assert mistake.found.endswith("its function 'half' does not stand here; its function 'tier' differs in returns")
    del given["spec"]["topology"]["sources"]
    (mistake,) = read_with_python(given).mistakes
    assert (mistake.path, mistake.found) == ("spec.topology.functions", "functions beside a topology in Python")
    assert read_with_python(given, beside=Beside.REPLACED).mistakes == (mistake,)


class Wrapped:
    """As PySpark's udf gives it."""

    evalType = 100  # noqa: N815 - PySpark's name

    def __call__(self) -> None: ...


REFUSED = {
    "a lambda": (lambda x: x, "other processes can't import"),
    "one that PySpark has wrapped": (Wrapped(), "which PySpark has wrapped; give the plain function"),
    "no function": (3, "other processes can't import"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_builder_refuses_what_pods_could_not_find(case: str) -> None:
    function, words = REFUSED[case]
    with pytest.raises(ConfigException) as refused:
        StreamsBuilder().udf("f", function, "INT")  # type: ignore[arg-type]
    assert str(refused.value).startswith("test_function_checks.py:")
    assert words in str(refused.value)
    builder = built()
    with pytest.raises(ConfigException, match="there is a function of this name already"):
        builder.udf("tier", user_functions.tier, "STRING")


def row(name: str, returns: DataType = LongType()) -> RowFunction:  # noqa: B008 - types are values
    made: RowFunction = pickle.loads(pickle.dumps(RowFunction("f", f"user_functions:{name}", returns, ())))
    return made


def test_a_function_is_called_in_another_process_by_its_name_and_tells_what_is_wrong() -> None:
    assert row("tier", StringType())(20) == "gold"
    assert row("tier", StringType())(None) is None
    assert row("parts", ArrayType(StringType()))("a-b") == ["a", "b"]
    with pytest.raises(FunctionFailed) as failed:
        row("picky")(13)
    assert str(failed.value) == (
        "the function 'f' (user_functions:picky) failed: ValueError: 13 is not served (user_functions.py, line 26),"
        " given (13,)"
    )
    with pytest.raises(FunctionFailed, match="gave 'text', which is no bigint, given"):
        row("odd")(13)
    with pytest.raises(FunctionFailed, match=r"given \('x{78}…$"):
        row("strict", StringType())("x" * 1000)
    with pytest.raises(FunctionEnded, match=r"'f' \(user_functions:picky.no\) can't be loaded: .* has no 'no'"):
        row("picky.no", StringType())("x")


def test_folders_of_the_process_that_made_a_function_are_searched(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.path", ["/nowhere"])
    (tmp_path / "only_there.py").write_text("def same(x):\n    return x\n")
    assert RowFunction("f", "only_there:same", DoubleType(), (str(tmp_path),))(1.5) == 1.5
    with pytest.raises(FunctionFailed, match="gave 1, which is no double"):
        RowFunction("f", "only_there:same", DoubleType(), (str(tmp_path),))(1)


def test_a_function_over_series_is_checked_as_a_whole() -> None:
    import pandas as pd

    def over(name: str, returns: DataType) -> Any:
        return SeriesFunction("f", f"user_functions:{name}", returns, ())(pd.Series([1, 2]))

    assert list(over("half", DoubleType())) == [0.5, 1.0]
    with pytest.raises(FunctionFailed, match="gave 0 values, given 2 values"):
        over("short", LongType())
    with pytest.raises(FunctionFailed, match="gave Series, which is no Series of bigint"):
        over("worded", LongType())
