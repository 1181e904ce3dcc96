"""Every expression and schema of an application, read by Spark's own parser, without a Spark session."""

from __future__ import annotations

import importlib.util
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JError, Py4JJavaError

from streams_runtime.api import SqlField, StreamsApplication, sql_of
from streams_runtime.api.mistakes import suggestion
from streams_runtime.api.scalars import unfamiliar_functions
from streams_runtime.errors import EnvironmentException, Mistake
from streams_runtime.jvm.java import find_java

# What the parser needs and no more: a fraction of a second to start, a few dozen MiB.
_JVM_OPTIONS = ["-Xmx256m", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
_END_SECONDS = 10.0
_PARSE_EXCEPTION = "org.apache.spark.sql.catalyst.parser.ParseException"


def check_with_spark_parser(application: StreamsApplication) -> list[Mistake]:
    """What Spark's parser refuses in an application, each with its field; empty when it takes everything.

    Syntax, types in schemas, and functions that do not exist. Starts a JVM and ends it. Raises
    EnvironmentException when there is no Java or no PySpark: install what it names.
    """
    return check_sql(sql_of(application))


def check_sql(fields: Iterable[SqlField]) -> list[Mistake]:
    """The same for expressions and schemas that were read from anything, right or wrong."""
    wanted = list(fields)
    if not wanted:
        return []
    with _catalyst() as catalyst:
        parser = catalyst.parser.CatalystSqlParser()
        functions = str(catalyst.analysis.FunctionRegistry.builtin().listFunction().mkString(" ")).split()
        return [mistake for field in wanted for mistake in _mistakes(parser, functions, field)]


def _mistakes(parser: Any, functions: Sequence[str], field: SqlField) -> Iterator[Mistake]:
    refused = _refused(parser, field)
    if refused is not None:
        yield refused
    elif field.kind != "schema":
        for name in unfamiliar_functions(field.text):
            if name.lower() not in functions:
                yield Mistake(field.path, f"Spark has no function {name!r}", suggestion(name, functions))


def _refused(parser: Any, field: SqlField) -> Mistake | None:
    read = parser.parseTableSchema if field.kind == "schema" else parser.parseExpression
    try:
        read(field.text)
    except Py4JJavaError as error:
        thrown = error.java_exception
        if thrown.getClass().getName() != _PARSE_EXCEPTION:
            raise EnvironmentException(f"Spark's parser failed over {field.path}: {thrown}; report this") from error
        remedy = (
            'write columns as "name TYPE, name TYPE" with types that Spark has'
            if field.kind == "schema"
            else "write one Spark SQL expression"
        )
        return Mistake(field.path, f"{field.text!r} is refused by Spark: {_reason(thrown)}", remedy)
    return None


def _reason(thrown: Any) -> str:
    """The first sentence of the parser's message, and where in the text it stopped."""
    first = str(thrown.getMessage()).strip().splitlines()[0]
    reason = first.partition("SQLSTATE:")[0].rstrip(" .")
    position = first.rpartition("(line ")[2].rstrip(")") if "(line " in first else ""
    return f"{reason} (line {position})" if position and "(line " not in reason else reason


@contextmanager
def _catalyst() -> Iterator[Any]:
    """Spark's package `catalyst` in a JVM of its own, which is gone at the end."""
    java, jars = find_java(), _spark_jar_folder()
    said: deque[str] = deque(maxlen=1)
    process: Popen[bytes] | None = None
    gateway: JavaGateway | None = None
    try:
        port, token, process = launch_gateway(
            jarpath=str(next(jars.glob("py4j-*.jar"))),
            classpath=str(jars / "*"),
            javaopts=_JVM_OPTIONS,
            java_path=str(java),
            die_on_exit=True,
            redirect_stdout=deque(maxlen=1),
            redirect_stderr=said,
            enable_auth=True,
            return_proc=True,
        )
        gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
        yield gateway.jvm.org.apache.spark.sql.catalyst
    except (Py4JError, OSError, ValueError, StopIteration) as error:
        reason = " ".join([str(error), *said])
        raise EnvironmentException(f"Spark's parser could not be started with {java}: {reason}") from error
    finally:
        if gateway is not None:
            gateway.shutdown()
        if process is not None:
            _end(process)


def _spark_jar_folder() -> Path:
    spec = importlib.util.find_spec("pyspark")
    for folder in spec.submodule_search_locations or () if spec else ():
        if (jars := Path(folder, "jars")).is_dir():
            return jars
    raise EnvironmentException(
        "PySpark, which has Spark's parser, is not installed here. Install the project with its extra:"
        " `pip install 'streams-operator[runtime]'`"
    )


def _end(process: Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()  # the gateway ends itself when this pipe breaks
    try:
        process.wait(_END_SECONDS)
    except TimeoutExpired:
        process.kill()
        process.wait()
