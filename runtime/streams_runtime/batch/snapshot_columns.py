"""The columns of the snapshots of tables, and of the answer that Spark gives about them."""

from __future__ import annotations

RAW_KEY = "_raw_key"
SHOWN = "_shown"  # whether a snapshot's rows may be written; nobody asks for the others' bytes


def held_value(source: int) -> str:
    """Column of a snapshot: the bytes that the part's source of this number holds, null where it holds nothing."""
    return f"_held_{source}"


def held_time(source: int) -> str:
    """Column of a snapshot: the time that is stored beside them."""
    return f"_time_{source}"


def present(number: int) -> str:
    """Column of the answer: whether the table has a row. Sources are counted first, then steps."""
    return f"_present_{number}"


def time_of(number: int) -> str:
    """Column of the answer: the time of that row, in ms."""
    return f"_at_{number}"


def written_to(sink: int) -> str:
    """Column of the answer: what the part's sink of this number writes of the row; null where there is none."""
    return f"_written_{sink}"


def chosen_for(sink: int) -> str:
    """Column of the answer: the topic that the `topicBy` of the part's sink of this number gives; null: none."""
    return f"_chosen_{sink}"


def group_of(regroup: int) -> str:
    """Column of the answer: the group that the row counts in, by the part's regrouping of this number; null: none."""
    return f"_group_{regroup}"


def grouped(regroup: int) -> str:
    """Column of the answer: what the group's aggregates take of that row, as JSON; null where there is none."""
    return f"_grouped_{regroup}"


def streamed(stream: int) -> str:
    """Column of the answer: the row that the part's toStream of this number makes a record of; null: there is none.

    A struct: the row's time, of a window its start and end, and its columns.
    """
    return f"_streamed_{stream}"
