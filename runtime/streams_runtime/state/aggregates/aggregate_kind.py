"""What an aggregate function is to the store: what it keeps, and how that comes to be and is put together."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from streams_runtime.batch.json_columns import FLOATS, INTEGERS

Columns = Sequence[pa.ChunkedArray]


class Kind(ABC):
    """One aggregate function."""

    parts: tuple[str, ...] = ("",)
    """Names of what it keeps; a single one without a name is what a user sees."""
    passing: tuple[str, ...] = ()
    """Names of what it has of a batch beside the parts, until these are made of it; it never lies in a store."""
    remedy: str = "cast the argument to BIGINT, DOUBLE or STRING"
    """What to do about a part whose type can't be kept."""
    given: tuple[str, ...] | None = None
    """Names of what Spark gives for a batch, where that is not the parts themselves."""
    kept: ClassVar[Mapping[str, pa.DataType]] = {}
    """Types of parts that do not depend on the argument's."""

    @abstractmethod
    def expressions(self, argument: str | None) -> Sequence[str]:
        """Spark SQL that gives each part, or each of `given`, for a batch's records of a key."""

    def expressions_where(self, argument: str | None, condition: str) -> Sequence[str]:
        """The same of the records for which `condition` is true."""
        return self.expressions(only_where(argument, condition))

    def of_batch(self, given: Columns) -> Columns:
        """The parts, of what Spark gave."""
        return given

    def types(self, given: Sequence[pa.DataType]) -> Sequence[pa.DataType]:
        """The types of the parts, and of what is passing, by those of what Spark gives."""
        return [self.kept[part] if part in self.kept else given[number] for number, part in enumerate(self.parts)]

    @abstractmethod
    def merge(self, old: Columns, new: Columns) -> Columns:
        """The parts of both together, `new` after `old`; nulls where there is nothing of one of them.

        Raises:
            pyarrow.ArrowInvalid: a number left its range.
            ProcessorStateException: what is stored can't be read.
        """

    def join(self, one: Columns, other: Columns) -> Columns:
        """The parts of both together, where the records of neither are known to come first. Raises as `merge` does."""
        return self.merge(one, other)

    def stored(self, columns: Columns) -> Columns:
        """The parts as they lie in a store, of the parts and what is passing."""
        return columns[: len(self.parts)]

    def keeps(self, kind: pa.DataType) -> bool:
        """Whether a part of this type can be kept."""
        return can_be_kept(kind)

    def finish(self, parts: Columns) -> pa.ChunkedArray:
        """What a user sees of the parts."""
        return parts[0]

    def finish_value(self, parts: Mapping[str, Any]) -> Any:
        """The same of one stored object, as JSON has it; for kinds whose parts have names.

        Raises ValueError: it is not what the kind keeps.
        """
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class StateColumn:
    """What Spark gives for state: a column's name, the SQL that computes it for a batch, and the field it is of.

    `listed`: the SQL of the values that it lists in their order, if that is what it does.
    """

    name: str
    expression: str
    path: str
    listed: str | None = None


def only_where(argument: str | None, condition: str) -> str:
    """The argument, of `count(*)` a number, where the condition is true; else null, which most functions leave out."""
    return f"if(({condition}), ({argument or '1'}), null)"


def can_be_kept(kind: pa.DataType) -> bool:
    """Whether values of this type can be kept as JSON."""
    return (
        kind in INTEGERS
        or kind in FLOATS
        or pa.types.is_boolean(kind)
        or pa.types.is_string(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_timestamp(kind)
    )
