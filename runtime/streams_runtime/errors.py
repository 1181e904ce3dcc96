"""The exception tree: every class is named for its remedy, and keeps Kafka's name where Kafka has one.

    StreamsException
    ├── ConfigException                         fix the setting that is named
    │   ├── InvalidApplicationException         fix the fields that are listed
    │   └── NotSupportedException               this version does not have it; the message names the nearest way
    ├── TopologyException                       fix the topology, or the topics that it reads
    ├── EnvironmentException                    install or free what is named (Java, jars, a port)
    ├── BrokerNotAvailableException             check the address; the application retries by itself
    │   └── SchemaRegistryNotAvailableException the same for the address of the schema registry
    ├── SchemaRegistryException                 the registry refuses; do what the message says, then start again
    ├── UnreleasedInstanceIdException           another process has this member name, or had it until its session ends
    ├── MissingSourceTopicException             create the topic that is named
    ├── MissingInternalTopicException           set up the internal topics again, or find out who deleted them
    ├── MisconfiguredInternalTopicException     correct the topic's settings
    ├── DeserializationException                repair or skip the record at topic, partition, offset
    ├── UserCodeException                       mend the class and the method that are named
    ├── ProducerException                       the batch was not written; the broker's reason is in the message
    ├── TaskMigratedException                   none: the thread revives its tasks from their changelogs
    │   └── ProducerFencedException             the same; end the other process of this name, if there is one
    ├── LockException                           stop the process that holds the state folder
    ├── ProcessorStateException                 the disk under the state folder: space, rights
    │   └── TaskCorruptedException              a store's files are damaged; it is set aside and restored
    ├── ShutdownRequestedException              another instance asked for it; its exception says what to mend
    ├── TimeoutException                        it goes on; wait longer, or look at what holds it up
    ├── IllegalStateException                   a call that this state does not allow
    ├── StoreTypeMismatch                       ask for the type that the store has
    └── InvalidStateStoreException              (never raised itself; KIP-216)
        ├── RetryableStateStoreException
        │   ├── StreamsNotStartedException      retry until RUNNING
        │   ├── StreamsRebalancingException     retry, same handle
        │   └── StateStoreMigratedException     discard the handle, look the store up again
        └── FatalStateStoreException
            ├── StateStoreNotAvailableException do not retry here
            ├── UnknownStateStoreException      fix the name
            └── InvalidStateStorePartitionException  ask the instance that has it

A message says what was found and where, and ends with what to do next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class StreamsException(Exception):
    """Base of everything that this project raises on purpose; its text is fit to be shown to a user."""


class ConfigException(StreamsException):
    """A setting has a value that can't be used. Fix the setting that the message names."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a resource.

    `path` is the field (`spec.topology.steps[2].where`), `found` what stands there, `remedy` what would do.
    """

    path: str
    found: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.path}: {self.found}; {self.remedy}"


class InvalidApplicationException(ConfigException):
    """A StreamsApplication can't be accepted. `mistakes` holds all of them, in the order of the file."""

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))


class NotSupportedException(ConfigException):
    """Something that the resource may say one day but that this version does not do."""


class TopologyException(StreamsException):
    """The topology and the topics that it reads do not fit together (co-partitioning, unknown partition counts)."""


class EnvironmentException(StreamsException):
    """The machine lacks something (Java, jars, a free port). The message says what to install or to free."""


class BrokerNotAvailableException(StreamsException):
    """No broker answered at the address in the message. The runtime retries; a caller may do the same."""


class SchemaRegistryNotAvailableException(BrokerNotAvailableException):
    """The schema registry did not answer, or answered that it can't now. The runtime retries; nothing is lost."""


class SchemaRegistryException(StreamsException):
    """The schema registry refuses: a login, a schema that is not there, or one that is not compatible."""


class UnreleasedInstanceIdException(StreamsException):
    """The group still holds this static member for an earlier process, until that member's session ends."""


class MissingSourceTopicException(StreamsException):
    """A topic that the application reads is not on the brokers. Create it and start the application again."""


class MissingInternalTopicException(StreamsException):
    """An internal topic is not on the brokers and this application may not create it (KIP-698)."""


class MisconfiguredInternalTopicException(StreamsException):
    """An internal topic exists with settings that would lose data. Correct it, then start the application again."""


class UserCodeException(StreamsException):
    """The user's own code failed over records. The message names it, what it raised, and the records; mend the code."""


class DeserializationException(StreamsException):
    """A record can't be read with the format that the source declares. Holds where it is."""

    def __init__(self, topic: str, partition: int, offset: int, reason: str) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.reason = reason
        super().__init__(
            f"record {topic}-{partition}@{offset} can't be read: {reason}. Repair the producer; to go on past such"
            " records set spec.processing.onDeserializationError to continue or to deadLetter: {topic: …}"
        )


class ProducerException(StreamsException):
    """The broker refused records of a batch. Nothing of the batch was committed; it is read again after a restart."""


class TaskMigratedException(StreamsException):
    """Exactly once: the thread may have lost its tasks to others, so its batch is not committed, or not for certain.

    Nothing is lost or doubled: the thread closes its tasks, revives them from their changelogs, and goes on where the
    group is.
    """


class ProducerFencedException(TaskMigratedException):
    """The brokers take no more transactions from this producer: another one has its transactional id, or the present
    transaction took longer than `transaction.timeout.ms`. The thread makes a new producer.
    """


class LockException(StreamsException):
    """The state folder belongs to another live process, named in the message."""


class ProcessorStateException(StreamsException):
    """A store can't be read or written (disk full, not writable). Offsets and data still agree."""


class TaskCorruptedException(ProcessorStateException):
    """Files of a store are damaged. The runtime sets them aside and restores the store from its changelog."""


class ShutdownRequestedException(StreamsException):
    """Another instance answered an exception of its own with SHUTDOWN_APPLICATION, which ends all of them.

    `instance` is who asked (empty: a person), `kind` and `reason` the class and the text of its exception. Mend what
    that one says, then start the application again.
    """

    def __init__(self, instance: str, kind: str, reason: str) -> None:
        self.instance = instance
        self.kind = kind
        self.reason = reason
        found = f"{kind}: {reason}" if kind else reason
        super().__init__(
            f"the shutdown of the whole application was asked for by {instance or 'somebody'}: {found.rstrip('. ')}."
            " Remove the cause there, then start the application again"
        )


class TimeoutException(StreamsException, TimeoutError):
    """Something was asked for and did not come to its end in time. It goes on meanwhile."""


class IllegalStateException(StreamsException):
    """The call, or the move between states, is not allowed in the present state."""


class StoreTypeMismatch(StreamsException, TypeError):
    """The store exists with another type than the one that was asked for."""


class InvalidStateStoreException(StreamsException):
    """Base of the six query exceptions of KIP-216; never raised itself."""


class RetryableStateStoreException(InvalidStateStoreException):
    """The query may succeed later."""


class FatalStateStoreException(InvalidStateStoreException):
    """The query will not succeed here, however often it is repeated."""


class StreamsNotStartedException(RetryableStateStoreException):
    """The client is CREATED. Retry once it is RUNNING."""


class StreamsRebalancingException(RetryableStateStoreException):
    """The client is REBALANCING. Retry with the same handle."""


class StateStoreMigratedException(RetryableStateStoreException):
    """The handle's store has left this instance. Discard the handle and look the store up again."""


class StateStoreNotAvailableException(FatalStateStoreException):
    """The store is closed because the client is closing, closed or in ERROR. Do not retry here."""


class UnknownStateStoreException(FatalStateStoreException):
    """The topology has no store of this name."""


class InvalidStateStorePartitionException(FatalStateStoreException):
    """This instance does not have the partition, or the key's partition. Ask the instance that has it."""


def told(error: BaseException) -> str:
    """An exception's text, with what was noted about it on its way (`BaseException.add_note`)."""
    notes: list[str] = getattr(error, "__notes__", [])
    return "; ".join([str(error).rstrip("."), *notes]) if notes else str(error)
