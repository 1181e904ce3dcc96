"""What Spark's analysis refuses, as mistakes of the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import AnalysisException, ParseException

from streams_runtime.errors import InvalidApplicationException, Mistake, NotSupportedException


@contextmanager
def refusing(path: str) -> Iterator[None]:
    """Turn what Spark's analysis refuses into a mistake at the field `path`."""
    try:
        yield
    except (AnalysisException, ParseException) as error:
        message = (error.getMessage() or str(error)).splitlines()[0].rstrip(". ")
        mistake = Mistake(path, message, "correct the expression; it is Spark SQL over the columns of the step's input")
        raise InvalidApplicationException([mistake]) from error
    except NotSupportedException as error:
        found, _, remedy = str(error).partition("; ")
        raise InvalidApplicationException([Mistake(path, found, remedy)]) from error
