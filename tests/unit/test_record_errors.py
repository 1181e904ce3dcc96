"""Which errors are a record's: only these let it be left out."""

from __future__ import annotations

from unittest.mock import Mock

import pytest
import user_functions
from pyspark.errors import PySparkException, PythonException
from pyspark.sql.types import LongType

from streams_runtime import errors
from streams_runtime.errors import FailedProcessingException, UserCodeException
from streams_runtime.pipeline.spark.query_failures import expression_failed, translated
from streams_runtime.pipeline.spark.user_function import RowFunction
from streams_runtime.processing.failures.failed_records import is_of_a_record

CAST = '[CAST_INVALID_INPUT] The value {} of the type "STRING" cannot be cast to "INT". SQLSTATE: 22018'
JAVA = "\n\tat org.apache.spark.Some.method(Some.java:1)\nCaused by: java.io.IOException: SQLSTATE: XX000"

OF_A_RECORD = {
    "a cast": CAST.format("'seven'") + "\n== SQL (line 1) ==\ncast(g as int)",
    "a cast of several lines": CAST.format("'a\nb'") + JAVA,
    "a cast of what looks like another error": CAST.format("'SQLSTATE: XX000'"),
    "a division": "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012",
    "an error that an expression raises": "[USER_RAISED_EXCEPTION] no. SQLSTATE: P0001",
    "a task that has failed": "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times: "
    + CAST.format("''"),
    "a function": "PythonException: \nFunctionFailed: the function 'f' (m:f) failed: ValueError: 13, given (13,)",
}
OTHERS = {
    "no memory for a job": "Job aborted due to stage failure: java.lang.OutOfMemoryError: Java heap space",
    "no memory for an operator": "[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 9 bytes. SQLSTATE: 53200",
    "a worker that is lost": "Job aborted due to stage failure: ExecutorLostFailure (executor 1 exited)",
    "a mistake of Spark's own": "[INTERNAL_ERROR] a bug. SQLSTATE: XX000",
    "a setting": "[INVALID_CONF_VALUE.TIME_ZONE] none. SQLSTATE: 22022",
    "a jar that is missing": "[AVRO_NOT_LOADED_SQL_FUNCTIONS_UNUSABLE] no. SQLSTATE: 22KD3",
    "a function without memory": "FunctionEnded: the function 'f' (m:f) failed: MemoryError",
    "a module that is missing": "FunctionEnded: the function 'f' (m:f) can't be loaded: there is no module 'm'",
    "a setting of the scan": "streams_runtime.errors.ConfigException: sasl.mechanism is unknown; correct it",
    "brokers that are away": "streams_runtime.errors.BrokerNotAvailableException: nobody answers at b:9092",
    "a text without a name": "something went wrong",
}


@pytest.mark.parametrize("case", OF_A_RECORD)
def test_values_that_an_expression_can_not_take_are_a_records(case: str) -> None:
    assert is_of_a_record(translated(PySparkException(OF_A_RECORD[case])))


@pytest.mark.parametrize("case", OTHERS)
def test_what_would_fail_over_any_record_is_not(case: str) -> None:
    assert not is_of_a_record(translated(PythonException(OTHERS[case])))


def test_a_reduce_is_judged_as_a_step_is() -> None:
    failed = expression_failed(PySparkException(OF_A_RECORD["a division"]), "spec.x")
    assert failed is not None
    assert is_of_a_record(failed)
    failed = expression_failed(PySparkException(OTHERS["no memory for an operator"]), "spec.x")
    assert failed is not None
    assert not is_of_a_record(failed)


def test_no_other_exception_of_the_tree_is_a_records() -> None:
    kinds = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, Exception)]
    of_records = {each for each in kinds if issubclass(each, FailedProcessingException)}
    assert of_records == {FailedProcessingException, UserCodeException}
    assert not is_of_a_record(errors.ProducerException("too large"))
    assert not is_of_a_record(errors.ProcessorStateException("the disk is full"))
    assert not is_of_a_record(MemoryError())
    assert not is_of_a_record(UserCodeException("failed in result", "mend it", of_a_record=False))


def outcome_of(reference: str, *given: object) -> str:
    """The name of what a function raises for these values, as Spark's workers call it."""
    called = RowFunction("f", reference, LongType(), ())
    with pytest.raises(Exception, match=r".") as raised:
        called(*given)
    return raised.type.__name__


def test_a_function_that_fails_over_its_values_differs_from_one_that_can_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert outcome_of("user_functions:picky", 13) == "FunctionFailed"
    assert outcome_of("user_functions:odd", 13) == "FunctionFailed"
    assert outcome_of("no_such_module:f", 1) == "FunctionEnded"
    for error in (MemoryError(), SystemExit(1)):
        monkeypatch.setattr(user_functions, "picky", Mock(side_effect=error))
        assert outcome_of("user_functions:picky", 1) == "FunctionEnded"
