"""Which database gives back memtables when all of them together hold too much."""

from __future__ import annotations

from dataclasses import dataclass

from streams_runtime.state.database.memtable_budget import MemtableBudget


@dataclass
class Database:
    size: int
    spilled: int = 0

    def memtable_bytes(self) -> int:
        return self.size

    def spill(self) -> None:
        self.spilled += 1


def budget(used: int, *databases: Database) -> MemtableBudget:
    made = MemtableBudget(100, lambda: used)
    for each in databases:
        made.add(each)
    return made


def test_the_largest_spills_once_less_than_a_quarter_is_left() -> None:
    small, large = Database(20), Database(50)
    budget(75, small, large).keep()
    assert (small.spilled, large.spilled) == (0, 0)
    budget(76, small, large).keep()
    assert (small.spilled, large.spilled) == (0, 1)


def test_one_whose_files_are_being_written_is_left_alone() -> None:
    writing, other = Database(0), Database(1)
    budget(90, writing, other).keep()
    assert (writing.spilled, other.spilled) == (0, 1)
    budget(90, writing).keep()
    assert writing.spilled == 0


def test_one_that_has_left_is_not_asked() -> None:
    gone, stays = Database(90), Database(5)
    it = budget(95, gone, stays)
    it.remove(gone)
    it.remove(gone)
    it.keep()
    assert (gone.spilled, stays.spilled) == (0, 1)
    budget(95).keep()
