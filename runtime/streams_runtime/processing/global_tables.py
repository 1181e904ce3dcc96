"""A client's side of its global tables: their stores, and what a batch of their records comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from streams_runtime.batch.drop_reasons import DropReason
from streams_runtime.pipeline.batch_input import BatchInput
from streams_runtime.processing.batch_runner import BatchRunner
from streams_runtime.processing.batch_work import Counters
from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.processing.failures.unreadable_records import dead_letters
from streams_runtime.processors.aggregates.store_updates import table_updates
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.state.store import Updates
from streams_runtime.tasks.task_stores import open_sound
from streams_runtime.topology.plan import SubTopology


def open_global_store(sub: SubTopology, directory: StateDirectory) -> GlobalStore:
    """The store of a global table; one with damaged files is set aside and opened anew, empty.

    Raises:
        ProcessorStateException: the store can't be opened.
    """
    (spec,) = sub.stores
    folder = directory.global_store_folder(spec.name)
    measured, options = directory.measured.of(spec.name), directory.options
    opening = partial(GlobalStore, spec.name, spec.changelog_topic, folder, measured, options)
    return open_sound(folder, directory, opening)


@dataclass(frozen=True, slots=True)
class GlobalUpdate:
    """Brings one global table's store up to date, through the same code that a table of tasks is read by.

    A record that can't be read is judged by the policy, in each instance: every one of them reads it.
    """

    store: GlobalStore
    runner: BatchRunner
    policy: ErrorPolicy
    counters: Counters

    def apply(self, batch: BatchInput, positions: Mapping[int, int]) -> None:
        """Take a batch into the store, with the offsets that come next; of a key the last record counts.

        Raises:
            DeserializationException: a record can't be read and the policy is `fail`; nothing was written.
            ProcessorStateException: the store can't be written.
        """
        if not batch.has_records:
            self.store.write_through(Updates([], [], []), positions)
            return
        result = self.runner.run(batch)
        letters = dead_letters(self.policy, self.runner, batch, result)
        assert not letters  # the checks refuse that policy
        keys: list[bytes] = []
        values: list[bytes | None] = []
        times: list[int] = []
        for store_batch in result.store_batches:
            for _, updates in sorted(table_updates(store_batch).items()):
                keys += updates.keys
                values += updates.values
                times += updates.timestamps
        self.store.write_through(Updates(keys, values, times), positions)
        self.counters.deserialization_errors += result.broken
        self.counters.records_dropped += result.dropped.total()
        recorder = self.counters.recorder
        for source, account in result.accounts.items():
            recorder.read(source, self.store.changelog.topic, account.records, account.times)
            recorder.drop(source, DropReason.UNREADABLE, account.broken)
        for (node, reason), records in result.dropped.items():
            recorder.drop(node, reason, records)
