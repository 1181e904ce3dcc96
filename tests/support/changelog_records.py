"""Records of a changelog for tests that have no broker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """A record of a changelog, as librdkafka's binding gives it."""

    number: int
    k: bytes | None
    v: bytes | None
    time: int = 7

    def offset(self) -> int:
        return self.number

    def key(self) -> bytes | None:
        return self.k

    def value(self) -> bytes | None:
        return self.v

    def timestamp(self) -> tuple[int, int]:
        return (1, self.time)
