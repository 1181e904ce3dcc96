"""Every expression and schema of an application, read by Spark's own parser, without a Spark session."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from subprocess import PIPE, Popen, TimeoutExpired
from tempfile import TemporaryFile
from typing import IO, Any

from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError, Py4JNetworkError

from streams_runtime.api import SqlField
from streams_runtime.api.checks.function_checks import taken_names
from streams_runtime.api.sql.spark_functions import missing_functions
from streams_runtime.errors import EnvironmentException, Mistake
from streams_runtime.jvm.class_data import spark_class_data
from streams_runtime.jvm.jars import has_spark_jars
from streams_runtime.jvm.java import find_java
from streams_runtime.jvm.spark_home import class_path

# What the parser needs and no more: a fraction of a second to start, a few dozen MiB.
_JVM_OPTIONS = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
_END_SECONDS = 10.0
_PARSE_EXCEPTION = "org.apache.spark.sql.catalyst.parser.ParseException"


def check_sql(fields: Iterable[SqlField], own: Sequence[str] = ()) -> list[Mistake]:
    """What Spark's parser refuses in expressions and schemas, each with its field; empty when it takes everything.

    Syntax, types in schemas, and functions that do not exist. `own`: names of the user's functions, which may not be
    those of Spark's. Starts a JVM and ends it.

    Raises:
        EnvironmentException: there is no Java or no PySpark; install what it names.
    """
    wanted = list(fields)
    if not wanted:
        return []
    with catalyst_package() as catalyst:
        parser = catalyst.parser.CatalystSqlParser()
        functions = str(catalyst.analysis.FunctionRegistry.builtin().listFunction().mkString(" ")).split()
        found = list(taken_names(own, functions))
        for field in wanted:
            refused = _refused(parser, field)
            found += [refused] if refused is not None else missing_functions(field, own, functions)
        return found


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
def catalyst_package() -> Iterator[Any]:
    """Spark's package `catalyst` in a JVM of its own, which is gone at the end.

    Raises EnvironmentException when there is no Java or no PySpark, or when the JVM does not start.
    """
    java, classes = find_java(), _classes()
    # The gateway ends itself when its standard input is closed, also when this process is killed.
    server = ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]
    command = [str(java), *_JVM_OPTIONS, *classes, *server]
    with TemporaryFile() as said, Popen(command, stdin=PIPE, stdout=PIPE, stderr=said) as process:
        try:
            with _connected(process, java, said) as gateway:
                yield gateway.jvm.org.apache.spark.sql.catalyst
        finally:
            _end(process)


@contextmanager
def _connected(process: Popen[bytes], java: Path, said: IO[bytes]) -> Iterator[JavaGateway]:
    answers = process.stdout or BytesIO()
    port, token = answers.readline().strip(), answers.readline().strip()
    if not port.isdigit() or not token:
        _end(process)
        said.seek(0)
        reason = " ".join(said.read().decode(errors="replace").split())[-300:] or "it says nothing"
        raise EnvironmentException(
            f"Spark's parser could not be started with {java}: {reason}; try another Java 17 or 21"
        )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=int(port), auth_token=token.decode()))
    try:
        yield gateway
    except (Py4JNetworkError, OSError) as error:
        raise EnvironmentException(f"the JVM with Spark's parser went away: {error}; try again") from error
    finally:
        gateway.shutdown()


def _classes() -> list[str]:
    """Java's options for the classes: Spark's jars, with the archive of their classes where set-up has made it, which
    starts the parser in half the time. Nothing is fetched for it.
    """
    jars = _spark_jar_folder()
    archive = spark_class_data().options if has_spark_jars() else ()
    # An archive is of one class path, entry for entry.
    return [*archive, "-classpath", class_path() if archive else str(jars / "*")]


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
        process.stdin.close()
    try:
        process.wait(_END_SECONDS)
    except TimeoutExpired:
        process.kill()
        process.wait()
