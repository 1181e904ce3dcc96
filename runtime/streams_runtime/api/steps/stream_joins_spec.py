"""How close records of two streams have to lie to be joined, as it stands in a step."""

from __future__ import annotations

from typing import Any

from pydantic import Field, ModelWrapValidatorHandler, SerializerFunctionWrapHandler, model_serializer, model_validator

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import Duration, format_duration, parse_duration, refusal


class WithinSpec(Model):
    """`5m` both ways, or `{before: 5m, after: 1m}`."""

    before: Duration = Field(description="How much older than the stream's record the other one may be.")
    after: Duration = Field(description="How much younger.")

    @model_validator(mode="wrap")
    @classmethod
    def _from_short_form(cls, value: Any, handler: ModelWrapValidatorHandler[WithinSpec]) -> Any:
        if isinstance(value, str):
            try:
                parse_duration(value)
            except ValueError:
                raise refusal(f"found {value!r}, which is not a duration", "write it as 5m, 30s or 1h30m") from None
            return handler({"before": value, "after": value})
        if not isinstance(value, dict | WithinSpec):
            raise refusal(f"found {value!r}", "give a duration such as 5m, or {before: 5m, after: 1m}")
        return handler(value)

    @model_serializer(mode="wrap")
    def _to_short_form(self, handler: SerializerFunctionWrapHandler) -> Any:
        return format_duration(self.before) if self.before == self.after else handler(self)
