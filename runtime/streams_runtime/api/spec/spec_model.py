"""What all models of the resource have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    """A frozen value with camelCase fields; refuses unknown fields and types that it would have to guess."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        serialize_by_alias=True,
        validate_default=True,
    )
