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
    ├── InternalTopicsAlreadySetupException     (never raised: init() of topics that are all there does nothing)
    ├── DeserializationException                repair or skip the record at topic, partition, offset
    ├── FailedProcessingException               correct the expression, the function or the record's data
    │   └── UserCodeException                   mend the class and the method that are named
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
        │   ├── StateStoreMigratedException     discard the handle, look the store up again
        │   └── NotUpToBoundException           retry, same handle
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
    """Base of everything that this project raises on purpose.

    Its text says what was found and what to do next, and may be shown to a user.
    """


class ConfigException(StreamsException):
    """A setting has a value that can't be used.

    Fix the one that the message names; the same call fails again until then.
    """


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake in a resource.

    `path` is the field (`spec.topology.steps[2].where`), `found` what stands there, `remedy` what would do. `at`: how
    many characters of the field's text stand before it; None: it is the whole field.
    """

    path: str
    found: str
    remedy: str
    at: int | None = None

    def __str__(self) -> str:
        return f"{self.path}: {self.found}; {self.remedy}"


class InvalidApplicationException(ConfigException):
    """A StreamsApplication can't be accepted.

    `mistakes` holds all mistakes in the order of the file: fix them together.
    """

    def __init__(self, mistakes: Sequence[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(str(mistake) for mistake in self.mistakes))


class NotSupportedException(ConfigException):
    """The resource asks for something that this version does not do. The message names the nearest way."""


class TopologyException(StreamsException):
    """The topology and the topics that it reads do not fit together, as in co-partitioning. Fix one of the two."""


class EnvironmentException(StreamsException):
    """The machine lacks something: Java, jars, a free port. The message says what to install or to free."""


class BrokerNotAvailableException(StreamsException):
    """No broker answered at the address in the message. A running client retries by itself; a caller calls again."""


class SchemaRegistryNotAvailableException(BrokerNotAvailableException):
    """The schema registry did not answer, or said that it can't at the moment.

    A running client retries; nothing is lost.
    """


class SchemaRegistryException(StreamsException):
    """The schema registry refuses: a login, a schema that it does not have, or one that is not compatible.

    Do what the message says, then start again.
    """


class UnreleasedInstanceIdException(StreamsException):
    """The group holds this static member for another process (KIP-345). End that one, or wait for its session's end."""


class MissingSourceTopicException(StreamsException):
    """A topic that the application reads is not on the brokers. Create it, then start the application again."""


class MissingInternalTopicException(StreamsException):
    """An internal topic is not on the brokers, and this application may not create it (KIP-698).

    The message says how to set it up; find out first who deleted it.
    """


MissingInternalTopicsException = MissingInternalTopicException
"""The same class under the name that Kafka Streams 4.2 and later give it."""


class MisconfiguredInternalTopicException(StreamsException):
    """An internal topic has settings that would lose data. Correct them, then start the application again."""


class InternalTopicsAlreadySetupException(StreamsException):
    """Kafka Streams has it for an init() that finds all internal topics; here that init() does nothing (KIP-698).

    Nothing raises it. Code that catches it, as it would in Java, is accepted.
    """


class FailedProcessingException(StreamsException):
    """An expression, or a function of the user's, failed over the values of records; `reason` says which and how.

    Correct it, or the data, or let spec.processing.onProcessingError go on past such records. `of_a_record` is False
    where no single record is to blame: then that setting does not apply.
    """

    def __init__(self, reason: str, remedy: str, of_a_record: bool = True) -> None:
        self.reason = reason.rstrip(". ")
        self.of_a_record = of_a_record
        super().__init__(f"{self.reason}. {remedy}")


class UserCodeException(FailedProcessingException):
    """The user's own Python code failed over records.

    The message names the code, its exception and the records; mend the code. Nothing of the batch was committed.
    """


class DeserializationException(StreamsException):
    """A record can't be read in the format that its source declares; `topic`, `partition`, `offset` and `reason` say
    which.

    Repair the producer, or let spec.processing.onDeserializationError skip such records or give them a topic.
    """

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
    """A batch could not be written: the broker refuses it, or the client stopped before.

    It is not committed, and the next start reads it again. `refusing_topic`: the topic whose brokers refused records
    for what they are (too large, a time that it does not take, no key), if that was it.
    `for_want_of_topic`: a topic is not there. `refused_as`: Kafka's class for what is wrong with the one record that it
    is about, such as RecordTooLargeException, where that is known before it is sent.
    """

    refusing_topic: str | None = None
    for_want_of_topic: bool = False
    refused_as: str | None = None


class TaskMigratedException(StreamsException):
    """Under exactly once the thread may have lost its tasks, so its batch is not committed, or not for certain.

    Callers do nothing: the thread closes its tasks, revives them from their changelogs and goes on where the group is,
    so that nothing is lost or doubled.
    """


class ProducerFencedException(TaskMigratedException):
    """The brokers take no more transactions from this producer: another one has its transactional id, or the
    transaction took longer than `transaction.timeout.ms`.

    The thread makes a new producer.
    """


class LockException(StreamsException):
    """The state folder belongs to another live process, named in the message. Stop that one, or use another folder."""


class ProcessorStateException(StreamsException):
    """A store can't be read or written, as on a full disk. Offsets and data still agree: do what the message says."""


class TaskCorruptedException(ProcessorStateException):
    """Files of a store are damaged.

    Callers do nothing: they are set aside and the store is restored from its changelog.
    """


class ShutdownRequestedException(StreamsException):
    """Another instance answered an exception with SHUTDOWN_APPLICATION (KIP-671), which ends all of them.

    `instance` is who asked (empty: a person), `kind` and `reason` the class and text of its exception. Remove that
    cause, then start the application again.
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
    """Something did not end in the time that the caller gave. It goes on: wait longer, or look at what holds it up."""


class IllegalStateException(StreamsException):
    """The present state does not allow the call, or the move between states. Correct the order of the calls."""


class StoreTypeMismatch(StreamsException, TypeError):
    """The store has another type than the one that was asked for. Ask for the type that the message names."""


class InvalidStateStoreException(StreamsException):
    """Base of the query exceptions of KIP-216; never raised itself."""


class RetryableStateStoreException(InvalidStateStoreException):
    """The query may succeed later: retry as the subclass says."""


class FatalStateStoreException(InvalidStateStoreException):
    """The query will not succeed here, however often it is repeated: do what the subclass says."""


class StreamsNotStartedException(RetryableStateStoreException):
    """The client is CREATED (KIP-216). Retry once it is RUNNING."""


class StreamsRebalancingException(RetryableStateStoreException):
    """The client is REBALANCING, or a partition is still being restored (KIP-216). Retry with the same handle."""


class StateStoreMigratedException(RetryableStateStoreException):
    """The handle's store has left this instance (KIP-216). Discard the handle and look the store up again."""


class NotUpToBoundException(RetryableStateStoreException):
    """The store does not contain yet what the query asks for (FailureReason.NOT_UP_TO_BOUND, KIP-796). Retry."""


class StateStoreNotAvailableException(FatalStateStoreException):
    """The store is closed because the client is closing, closed or in ERROR (KIP-216). Ask another instance."""


class UnknownStateStoreException(FatalStateStoreException):
    """The topology has no store of this name (KIP-216). Fix the name; the message lists those that exist."""


class InvalidStateStorePartitionException(FatalStateStoreException):
    """This instance does not have the partition, or the key's partition (KIP-216). Ask the instance that has it."""


def message_of(error: BaseException) -> str:
    """An exception's text, with what was noted about it on its way (`BaseException.add_note`)."""
    notes: list[str] = getattr(error, "__notes__", [])
    return "; ".join([str(error).rstrip("."), *notes]) if notes else str(error)
