"""The user's functions in a Spark session, under the names by which expressions call them."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import PandasUDFType, pandas_udf
from pyspark.sql.types import DataType

from streams_runtime.api.checks.spark_checks import is_cluster
from streams_runtime.errors import ConfigException, EnvironmentException, InvalidApplicationException, Mistake
from streams_runtime.pipeline.spark.executor_modules import send_modules
from streams_runtime.pipeline.spark.refused_expressions import refusing
from streams_runtime.pipeline.spark.user_function import RowFunction, SeriesFunction
from streams_runtime.topology.plan import Function
from streams_runtime.user_code import load


def with_functions(session: SparkSession, functions: Sequence[Function]) -> SparkSession:
    """A session in which expressions can call the functions: one of its own, so that several topologies in a process
    have each their own under a name. The given one where there are none.

    Raises:
        InvalidApplicationException: a function can't be loaded, or has a name or a type that Spark refuses.
        EnvironmentException: pandas is missing.
    """
    if not functions:
        return session
    if any(each.pandas for each in functions) and importlib.util.find_spec("pandas") is None:
        raise EnvironmentException("pandas is not installed, and functions over Series need it; install it")
    own = session.newSession()
    for name, value in session.conf.getAll.items():
        if name.startswith("spark.sql.") and session.conf.isModifiable(name):
            own.conf.set(name, value)
    mistakes = [mistake for each in functions for mistake in _mistakes(_load, each)]
    wrong = {mistake.path for mistake in mistakes}
    there = [each for each in functions if each.path not in wrong]
    if is_cluster(session.sparkContext.master or ""):
        # Spark notes with each function which files its workers need.
        send_modules(session.sparkContext, [each.reference for each in there])
    mistakes += [mistake for each in there for mistake in _mistakes(partial(_register, own), each)]
    if mistakes:
        raise InvalidApplicationException(mistakes)
    return own


def _mistakes(do: Callable[[Function], None], function: Function) -> Sequence[Mistake]:
    try:
        do(function)
    except InvalidApplicationException as error:
        return error.mistakes
    return ()


def _load(function: Function) -> None:
    try:
        load(function.reference)
    except ConfigException as error:
        found, _, remedy = str(error).partition("; ")
        raise InvalidApplicationException([Mistake(function.path, found, remedy or "correct it")]) from error


def _register(session: SparkSession, function: Function) -> None:
    if session.catalog.functionExists(function.name):
        remedy = "give it another name"
        raise InvalidApplicationException([Mistake(function.path, f"Spark has a function {function.name}", remedy)])
    with refusing(f"{function.path}.returns"):
        returns = DataType.fromDDL(function.returns)
    kind = SeriesFunction if function.pandas else RowFunction
    called: Any = kind(function.name, function.reference, returns, tuple(sys.path))
    made: Any = F.udf(called, returns) if not function.pandas else _over_series(called, returns)
    session.udf.register(function.name, made)


def _over_series(called: Any, returns: DataType) -> Any:
    make: Any = pandas_udf
    with warnings.catch_warnings():
        # It asks for type hints, which would say what is known here.
        warnings.simplefilter("ignore", UserWarning)
        return make(called, returns, PandasUDFType.SCALAR)
