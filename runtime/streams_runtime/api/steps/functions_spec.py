"""The user's own functions, which the expressions of a topology may call."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from streams_runtime.api.spec.spec_model import Model

REFERENCE_PATTERN = r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*$"


class FunctionSpec(Model):
    """One function in Python. It has to give the same for the same values: a batch that failed is read again."""

    python: str | None = Field(
        default=None,
        description="package.module:function that is called with the values of one record: a plain function.",
    )
    pandas: str | None = Field(
        default=None,
        description="Instead of python: package.module:function that is called with a pandas Series for each argument,"
        " and returns a Series of as many values. Faster for much data.",
    )
    returns: Annotated[str, StringConstraints(min_length=1)] = Field(
        description="Type of the result as Spark DDL, such as STRING or ARRAY<DOUBLE>."
    )

    @property
    def reference(self) -> str:
        """package.module:function, whichever way it is called."""
        return self.python or self.pandas or ""
