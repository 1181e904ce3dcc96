"""Which namespaces a replica reconciles, when several divide them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shard:
    """The share `number`, from 0 on, of the `of` into which all namespaces are divided by a hash of their names.

    A namespace is in exactly one of them, and the same for every replica and version: its applications share the
    brokers' slots, and nobody has to be asked whose it is.
    """

    number: int = 0
    of: int = 1

    def has(self, namespace: str) -> bool:
        """Whether a namespace is in this share."""
        return int.from_bytes(hashlib.sha256(namespace.encode()).digest()[:8]) % self.of == self.number

    def lease(self, name: str) -> str:
        """The name of this share's Lease; `name` is that of an operator that has no shares."""
        return name if self.of == 1 else f"{name}-{self.number}"
