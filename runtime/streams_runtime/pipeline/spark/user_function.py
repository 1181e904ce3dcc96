"""A user's function as Spark's Python workers call it. Few imports: each worker pays for them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType, StructType, _make_type_verifier

from streams_runtime.errors import ConfigException
from streams_runtime.user_code import load, where_in

_SHOWN = 80  # characters of arguments and results that a message shows


class FunctionFailed(Exception):
    """What a user's function raised, or that its result is of another type, in words; Spark carries the text."""


class FunctionEnded(Exception):
    """The same of what ends a function whatever its arguments are: no memory, or a call of `sys.exit`."""


class RowFunction:
    """Called with the values of one record. `folders`: where modules are looked for, as in the process that made it."""

    def __init__(self, name: str, reference: str, returns: DataType, folders: tuple[str, ...]) -> None:
        self.__name__ = name
        self._about = f"the function {name!r} ({reference})"
        self._reference = reference
        self._returns = returns
        self._folders = folders
        self._function: Callable[..., Any] | None = None
        self._verify: Callable[[Any], None] | None = None

    def __call__(self, *values: Any) -> Any:
        """What the function gives for the values.

        Raises:
            FunctionFailed: it failed over these values.
            FunctionEnded: it failed, and would over others; or it can't be loaded here.
        """
        try:
            called = self._loaded()
        except Exception as error:
            raise FunctionEnded(f"{self._about} can't be loaded: {where_in(error)}") from None
        try:
            result = called(*values)
        except (Exception, SystemExit) as error:
            kind = FunctionEnded if isinstance(error, MemoryError | SystemExit) else FunctionFailed
            raise kind(f"{self._about} failed: {where_in(error)}{self._given(values)}") from None
        self._check(result, values)
        return result

    def _given(self, values: tuple[Any, ...]) -> str:
        return f", given {_cut(values)}"

    def _check(self, result: Any, values: tuple[Any, ...]) -> None:
        """Spark makes null of a value of another type, and says nothing."""
        if self._verify is None:
            self._verify = _make_type_verifier(self._returns)
        try:
            self._verify(result)
        except Exception:
            wrong = f"gave {_cut(result)}, which is no {self._returns.simpleString()}"
            raise FunctionFailed(f"{self._about} {wrong}{self._given(values)}") from None

    def _loaded(self) -> Callable[..., Any]:
        if self._function is None:
            sys.path += [folder for folder in self._folders if folder not in sys.path]
            found = load(self._reference)
            if not callable(found):
                raise ConfigException(f"{self._reference} is no function")
            self._function = found
        return self._function

    def __getstate__(self) -> dict[str, Any]:
        # The function is found by its name where it is called.
        return {**self.__dict__, "_function": None, "_verify": None}


class SeriesFunction(RowFunction):
    """Called with a pandas Series for each argument."""

    def _given(self, values: tuple[Any, ...]) -> str:
        return f", given {len(values[0])} values" if values else ""

    def _check(self, result: Any, values: tuple[Any, ...]) -> None:
        if isinstance(self._returns, StructType):
            return  # a DataFrame, which Spark compares with the fields by name
        try:
            count = len(pa.Array.from_pandas(result, type=to_arrow_type(self._returns)))
        except Exception as error:
            text = f"gave {type(result).__name__}, which is no Series of {self._returns.simpleString()} ({error})"
            raise FunctionFailed(f"{self._about} {' '.join(text.split())}") from None
        if count != len(values[0]):
            raise FunctionFailed(f"{self._about} gave {count} values{self._given(values)}")


def _cut(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
