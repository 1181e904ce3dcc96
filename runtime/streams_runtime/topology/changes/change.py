"""What an upgrade does to the stores and internal topics that are there already, as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that is other in the new topology.

    `where` is a field of the new file, or the name of what only one of the two topologies has. `kind` is orphaned when
    only the old one has it, so that what is in it stays behind; new when only the new one has it, so that it begins
    empty; changed when both have it, and what is in it would be read as something else, or not be found.
    """

    kind: Literal["orphaned", "new", "changed"]
    where: str
    what: str
    consequence: str
    remedy: str

    @property
    def compatible(self) -> bool:
        """Whether nothing that is there already is lost or misread."""
        return self.kind == "new"

    def __str__(self) -> str:
        return f"{self.where}: {self.what}; {self.consequence}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Owned:
    """Names of stores, and full names of internal topics; sorted."""

    stores: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopologyChanges:
    """All that an upgrade changes for stores and internal topics; changes of expressions alone are not in it.

    `orphaned` and `new` name every store and internal topic that only one of the two topologies has.
    """

    items: tuple[Change, ...]
    orphaned: Owned = Owned()
    new: Owned = Owned()

    @property
    def incompatible(self) -> tuple[Change, ...]:
        """The items by which something is lost or misread."""
        return tuple(item for item in self.items if not item.compatible)

    @property
    def compatible(self) -> bool:
        """The verdict: every store and topic of the old topology goes on in the new one."""
        return not self.incompatible
