"""What to do about an exception, in a few words, by its class: what the tree in `errors` says of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from streams_runtime import errors
from streams_runtime.errors import StreamsException, message_of

REMEDIES: Final[Mapping[type[StreamsException], str]] = {
    errors.ConfigException: "fix the setting that is named",
    errors.InvalidApplicationException: "fix the fields that are listed",
    errors.NotSupportedException: "this version does not have it; the message names the nearest way",
    errors.TopologyException: "fix the topology, or the topics that it reads",
    errors.EnvironmentException: "install or free what is named (Java, jars, a port)",
    errors.BrokerNotAvailableException: "check the address; the application retries by itself",
    errors.SchemaRegistryNotAvailableException: "check the address of the schema registry; the application retries by"
    " itself",
    errors.SchemaRegistryException: "the registry refuses; do what the message says, then start again",
    errors.UnreleasedInstanceIdException: "another process has this member name: end it, or wait for its session's end",
    errors.MissingSourceTopicException: "create the topic that is named",
    errors.MissingInternalTopicException: "set up the internal topics again, or find out who deleted them",
    errors.MisconfiguredInternalTopicException: "correct the topic's settings",
    errors.DeserializationException: "repair or skip the record at topic, partition, offset",
    errors.FailedProcessingException: "correct the expression, the function or the record's data",
    errors.UserCodeException: "mend the class and the method that are named",
    errors.ProducerException: "the batch was not written; look at the broker's reason in the message",
    errors.TaskMigratedException: "nothing: the thread revives its tasks from their changelogs",
    errors.ProducerFencedException: "nothing, but for another process of this name: end it",
    errors.LockException: "stop the process that holds the state folder",
    errors.ProcessorStateException: "look at the disk under the state folder: space, rights",
    errors.TaskCorruptedException: "nothing: the damaged store is set aside and restored",
    errors.ShutdownRequestedException: "another instance asked for it; its exception says what to mend",
    errors.TimeoutException: "it goes on; wait longer, or look at what holds it up",
}
"""Of what ends a client or a thread, or is warned of. Those of queries are in query/wire/problems.py."""


def remedy_of(error: BaseException) -> str | None:
    """The remedy of the error's class, or of its nearest base; None where the message alone says what to do."""
    return next((REMEDIES[base] for base in type(error).__mro__ if base in REMEDIES), None)


def remedy_named(kind: str | None) -> str | None:
    """The same by the name of the class, as a termination message has it."""
    return next((remedy for each, remedy in REMEDIES.items() if each.__name__ == kind), None)


def error_row(error: BaseException) -> dict[str, str | None]:
    """What `/state` says of the exception by which a client ends."""
    return {"class": type(error).__name__, "message": message_of(error), "remedy": remedy_of(error)}
